#include "session/jax_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "onnx_io/fold.h"
#include "partition/collective_graph.h"
#include "session/jax/assets.h"

namespace taso {
namespace {

/// An element type as NumPy spells it.
Expected<std::string> element_name(ElementType element) {
  switch (element) {
    case ElementType::f32:
      return std::string("float32");
    case ElementType::f64:
      return std::string("float64");
    case ElementType::f16:
      return std::string("float16");
    case ElementType::i8:
      return std::string("int8");
    case ElementType::i16:
      return std::string("int16");
    case ElementType::i32:
      return std::string("int32");
    case ElementType::i64:
      return std::string("int64");
    case ElementType::u8:
      return std::string("uint8");
    case ElementType::u16:
      return std::string("uint16");
    case ElementType::u32:
      return std::string("uint32");
    case ElementType::u64:
      return std::string("uint64");
    case ElementType::boolean:
      return std::string("bool");
    case ElementType::bf16:
    case ElementType::other:
      break;
  }
  return bad_input(std::string("NumPy has no elements of type ") + to_string(element));
}

std::string tuple_text(const std::vector<std::int64_t>& values) {
  return fmt::format("({}{})", fmt::join(values, ", "), values.size() == 1 ? "," : "");
}

/// A text as Python has it.
std::string python_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string real_text(double value) {
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  return to_string(AttributeValue(value));
}

bool writes(std::string_view name) {
  return jax_operators_text.find(fmt::format("def op_{}(", name)) != std::string_view::npos;
}

/// What stands for a value in the parts behind the one that makes it: an element of the tuple of all such tensors.
struct Slot {
  std::size_t place = 0;
  bool flat = false;  ///< Its elements come first.
};

/// Where the weights of a rank lie.
struct WeightPlace {
  std::string element;
  std::int64_t first = 0;
};

/// The program of one rank.
struct RankProgram {
  const Graph* graph = nullptr;
  std::vector<NodeId> nodes;             ///< That outputs need, in order.
  std::map<NodeId, std::size_t> part;    ///< Of what it computes; a collective runs behind its part.
  std::map<NodeId, std::size_t> places;  ///< Of what it computes, within its part.
  std::map<Value, std::size_t> inputs;   ///< The places of inputs of the model.
  std::map<Value, WeightPlace> weights;
  std::map<std::size_t, NodeId> collectives;  ///< By place among those of the script.
  std::vector<std::vector<Value>> crossing;   ///< Per part: what it makes and later ones read.
  std::map<Value, Slot> slots;
};

class ScriptWriter {
 public:
  ScriptWriter(const std::vector<Graph>& ranks, const Mesh& mesh, const OperatorRegistry& registry)
      : mesh_(mesh), registry_(registry) {
    std::set<std::int64_t> numbers;
    for (const Graph& graph : ranks) {
      RankProgram& rank = ranks_.emplace_back();
      rank.graph = &graph;
      rank.nodes = graph.topological_order();
      std::sort(rank.nodes.begin(), rank.nodes.end());
      for (const NodeId id : rank.nodes)
        if (is_collective(graph.node(id))) numbers.insert(graph.node(id).attributes.integer("number"));
    }
    numbers_.assign(numbers.begin(), numbers.end());
  }

  Expected<JaxScript> run(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    for (RankProgram& rank : ranks_) {
      TASO_RETURN_IF_ERROR(check_operators(rank));
      divide(rank);
      TASO_RETURN_IF_ERROR(place_weights(rank));
    }
    TASO_ASSIGN(std::string program, write_program());
    TASO_ASSIGN(script_.text, header(inputs, outputs));
    script_.text += jax_operators_text;
    script_.text += jax_driver_text.substr(0, jax_driver_text.find("def run("));
    script_.text += program;
    script_.text += jax_driver_text.substr(jax_driver_text.find("def run("));
    return std::move(script_);
  }

 private:
  static Status check_operators(const RankProgram& rank) {
    for (const NodeId id : rank.nodes) {
      const Node& node = rank.graph->node(id);
      if (node.kind != NodeKind::op || node.weight_only || is_collective(node)) continue;
      std::vector<std::string> names = {node.op};
      for (const auto& [name, value] : node.attributes.entries())
        if (const auto* symbol = std::get_if<SymbolValue>(&value)) names.push_back(symbol->name);
      for (const std::string& name : names)
        if (!writes(name)) return bad_input("the script for JAX has no operator " + name);
    }
    return {};
  }

  /// Which part computes what: the first one in which all that it reads is there.
  void divide(RankProgram& rank) {
    const Graph& graph = *rank.graph;
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) rank.inputs[{graph.inputs()[i], 0}] = i;
    std::vector<std::size_t> computed(numbers_.size() + 1, 0);
    for (const NodeId id : rank.nodes) {
      const Node& node = graph.node(id);
      if (node.kind != NodeKind::op || node.weight_only) continue;
      std::size_t part = 0;
      for (const Value& input : node.inputs) {
        const auto made = rank.part.find(input.node);
        if (made == rank.part.end()) continue;
        part = std::max(part, made->second + (is_collective(graph.node(input.node)) ? 1 : 0));
      }
      if (is_collective(node)) {
        const auto number = std::find(numbers_.begin(), numbers_.end(), node.attributes.integer("number"));
        part = static_cast<std::size_t>(number - numbers_.begin());
        rank.collectives[part] = id;
      } else {
        rank.places[id] = computed[part]++;
      }
      rank.part[id] = part;
    }
    std::vector<std::set<Value>> crossing(numbers_.size() + 1);
    for (const NodeId id : rank.nodes) {
      const auto reader = rank.part.find(id);
      if (reader == rank.part.end() || is_collective(graph.node(id))) continue;
      for (const Value& input : graph.node(id).inputs) cross(rank, input, reader->second, crossing);
    }
    for (const auto& [place, id] : rank.collectives) cross(rank, graph.node(id).inputs[0], place, crossing);
    for (const Value& output : graph.outputs()) cross(rank, output, numbers_.size(), crossing);
    for (const std::set<Value>& values : crossing) rank.crossing.emplace_back(values.begin(), values.end());
  }

  /// A value that part `reader` reads.
  static void cross(const RankProgram& rank, Value value, std::size_t reader, std::vector<std::set<Value>>& crossing) {
    const auto maker = rank.part.find(value.node);
    if (maker == rank.part.end() || is_collective(rank.graph->node(value.node))) return;
    if (maker->second < reader) crossing[maker->second].insert(value);
  }

  /// Computes the weights that a rank reads.
  Status place_weights(RankProgram& rank) {
    const Graph& graph = *rank.graph;
    std::set<Value> read;
    const auto add = [&](Value value) {
      if (graph.node(value.node).weight_only) read.insert(value);
    };
    for (const auto& [id, part] : rank.part)
      for (const Value& input : graph.node(id).inputs) add(input);
    for (const Value& output : graph.outputs()) add(output);
    const std::vector<Value> values(read.begin(), read.end());
    TASO_ASSIGN(const auto weights, fold_weights(graph, values, registry_));
    auto& files = weights_.emplace_back();
    for (std::size_t i = 0; i < values.size(); ++i) {
      TASO_ASSIGN(const std::string element, element_name(weights[i]->type().element));
      auto& [type, bytes] = files[element];
      type = weights[i]->type().element;
      rank.weights[values[i]] = {element, static_cast<std::int64_t>(bytes.size() / size_of(type))};
      const std::vector<std::byte> own = weights[i]->to_bytes();
      bytes.insert(bytes.end(), own.begin(), own.end());
    }
    return {};
  }

  // ------------------------------------------------------------------------------------------------ the program

  Expected<std::string> write_program() {
    std::string functions, body = "def program(w, x):\n    s = ()\n";
    for (std::size_t part = 0; part <= numbers_.size(); ++part) {
      const bool last = part == numbers_.size();
      TASO_ASSIGN(const std::vector<std::string> results, results_of(part));
      std::vector<std::string> texts;
      std::vector<std::size_t> kinds;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        std::string text = part_text(ranks_[r], part) + results[r];
        const auto known = std::find(texts.begin(), texts.end(), text);
        kinds.push_back(static_cast<std::size_t>(known - texts.begin()));
        if (known == texts.end()) texts.push_back(std::move(text));
      }
      std::vector<std::string> names;
      for (std::size_t kind = 0; kind < texts.size(); ++kind) {
        names.push_back(fmt::format("part{}_{}", part, kind));
        functions += fmt::format("def {}(x, w, s):\n{}\n\n", names.back(), texts[kind]);
      }
      const std::string computed =
          fmt::format("compute([{}], [{}], x, w, s)", fmt::join(names, ", "), fmt::join(kinds, ", "));
      body += last ? fmt::format("    return {}\n\n\n", computed) : fmt::format("    s += {}\n", computed);
      if (!last) body += collective_text(part);
    }
    return functions + body;
  }

  /// What every rank returns from a part, and where that is in the tuple.
  Expected<std::vector<std::string>> results_of(std::size_t part) {
    std::vector<std::vector<std::string>> returned(ranks_.size());
    if (part == numbers_.size()) {
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        for (const Value& output : ranks_[r].graph->outputs())
          returned[r].push_back(read_text(ranks_[r], output, part));
      return return_texts(returned);
    }
    TASO_ASSIGN(const std::string element, element_name(collective_type(part).element));
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const auto own = ranks_[r].collectives.find(part);
      // A rank of a group that has nothing to do with the result.
      returned[r].push_back(own == ranks_[r].collectives.end()
                                ? fmt::format("jnp.zeros({}, \"{}\")", tuple_text(collective_type(part).shape), element)
                                : read_text(ranks_[r], ranks_[r].graph->node(own->second).inputs[0], part));
    }
    const std::size_t given = slots_++;
    TASO_RETURN_IF_ERROR(return_crossing(part, returned));
    for (RankProgram& rank : ranks_)
      if (const auto own = rank.collectives.find(part); own != rank.collectives.end())
        rank.slots[{own->second, 0}] = {slots_, false};
    given_.push_back(given);
    ++slots_;
    return return_texts(returned);
  }

  /// The type of what a collective is given, the same on all ranks.
  [[nodiscard]] const TensorType& collective_type(std::size_t part) const {
    for (const RankProgram& rank : ranks_)
      if (const auto own = rank.collectives.find(part); own != rank.collectives.end())
        return rank.graph->type(rank.graph->node(own->second).inputs[0]);
    TASO_CHECK(false, "a collective of no rank");
    return ranks_[0].graph->node(0).outputs[0];
  }

  /// Of each element type, the first values of all ranks share a slot, then the next ones.
  Status return_crossing(std::size_t part, std::vector<std::vector<std::string>>& returned) {
    std::set<ElementType> elements;
    for (const RankProgram& rank : ranks_)
      for (const Value& value : rank.crossing[part]) elements.insert(rank.graph->type(value).element);
    for (const ElementType element : elements) {
      TASO_ASSIGN(const std::string name, element_name(element));
      std::vector<std::vector<Value>> values;
      std::size_t most = 0;
      for (const RankProgram& rank : ranks_) {
        auto& own = values.emplace_back();
        for (const Value& value : rank.crossing[part])
          if (rank.graph->type(value).element == element) own.push_back(value);
        most = std::max(most, own.size());
      }
      for (std::size_t i = 0; i < most; ++i) return_slot(i, values, name, part, returned);
    }
    return {};
  }

  /// `values`: per rank, of which the one at place i is returned.
  void return_slot(std::size_t i, const std::vector<std::vector<Value>>& values, const std::string& element,
                   std::size_t part, std::vector<std::vector<std::string>>& returned) {
    std::int64_t largest = 0;
    std::optional<Shape> shape;
    bool flat = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      flat = flat || i >= values[r].size();
      if (i >= values[r].size()) continue;
      const TensorType& type = ranks_[r].graph->type(values[r][i]);
      largest = std::max(largest, type.elements());
      flat = flat || (shape && *shape != type.shape);
      shape = type.shape;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (i >= values[r].size()) {
        returned[r].push_back(fmt::format("jnp.zeros({}, \"{}\")", largest, element));
        continue;
      }
      const std::string text = read_text(ranks_[r], values[r][i], part);
      returned[r].push_back(flat ? fmt::format("flat({}, {})", text, largest) : text);
      ranks_[r].slots[values[r][i]] = {slots_, flat};
    }
    ++slots_;
  }

  static std::vector<std::string> return_texts(const std::vector<std::vector<std::string>>& returned) {
    std::vector<std::string> texts;
    for (const std::vector<std::string>& values : returned)
      texts.push_back(fmt::format("    return ({}{})\n", fmt::join(values, ", "), values.size() == 1 ? "," : ""));
    return texts;
  }

  std::string collective_text(std::size_t part) const {
    const RankProgram* one = nullptr;
    for (const RankProgram& rank : ranks_)
      if (rank.collectives.contains(part)) one = &rank;
    const Node& node = one->graph->node(one->collectives.at(part));
    std::vector<std::string> axes;
    for (const std::int64_t axis : node.attributes.integers("mesh_axes")) axes.push_back(fmt::format("\"m{}\"", axis));
    std::string arguments = fmt::format("s[{}], ({},)", given_[part], fmt::join(axes, ", "));
    if (node.op == name_of(Collective::Kind::all_reduce))
      arguments += fmt::format(", \"{}\"", node.attributes.symbol("reducer"));
    else
      arguments += fmt::format(", axis={}", node.attributes.integer("axis"));
    if (node.op == name_of(Collective::Kind::all_to_all))
      arguments += fmt::format(", split_axis={}", node.attributes.integer("split_axis"));
    return fmt::format("    s += ({}({}),)\n", node.op, arguments);
  }

  // ----------------------------------------------------------------------------------------- a rank's part

  /// The statements of a part.
  std::string part_text(const RankProgram& rank, std::size_t part) const {
    std::string text;
    for (const NodeId id : rank.nodes) {
      const auto own = rank.part.find(id);
      if (own == rank.part.end() || own->second != part || is_collective(rank.graph->node(id))) continue;
      const Node& node = rank.graph->node(id);
      std::vector<std::string> arguments;
      for (const Value& input : node.inputs) arguments.push_back(read_text(rank, input, part));
      for (const auto& [name, value] : node.attributes.entries())
        arguments.push_back(fmt::format("{}={}", name, attribute_text(value)));
      text += fmt::format("    {} = op_{}({})\n", local_name(rank, id), node.op, fmt::join(arguments, ", "));
    }
    return text;
  }

  static std::string attribute_text(const AttributeValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
    if (const auto* real = std::get_if<double>(&value)) return real_text(*real);
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) return tuple_text(*integers);
    return "op_" + std::get<SymbolValue>(value).name;
  }

  /// What a node makes is called by its place in its part, so that equal parts of two ranks have equal texts.
  static std::string local_name(const RankProgram& rank, NodeId id) { return fmt::format("t{}", rank.places.at(id)); }

  /// A value as a part reads it.
  std::string read_text(const RankProgram& rank, Value value, std::size_t part) const {
    const Node& node = rank.graph->node(value.node);
    const TensorType& type = rank.graph->type(value);
    if (const auto input = rank.inputs.find(value); input != rank.inputs.end())
      return fmt::format("x[{}]", input->second);
    if (const auto weight = rank.weights.find(value); weight != rank.weights.end())
      return fmt::format("w[\"{}\"][{}:{}].reshape({})", weight->second.element, weight->second.first,
                         weight->second.first + type.elements(), tuple_text(type.shape));
    if (!is_collective(node) && rank.part.at(value.node) == part) {
      const std::string name = local_name(rank, value.node);
      return node.outputs.size() == 1 ? name : fmt::format("{}[{}]", name, value.port);
    }
    const Slot& slot = rank.slots.at(value);
    return slot.flat ? fmt::format("s[{}][:{}].reshape({})", slot.place, type.elements(), tuple_text(type.shape))
                     : fmt::format("s[{}]", slot.place);
  }

  // ------------------------------------------------------------------------------------------------ the rest

  Expected<std::string> header(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    std::vector<std::int64_t> sizes;
    std::vector<std::string> axes, declared, files;
    for (const MeshAxis& axis : mesh_.axes) {
      axes.push_back(fmt::format("\"m{}\"", sizes.size()));
      sizes.push_back(axis.size);
    }
    if (axes.empty()) {
      axes.emplace_back("\"m0\"");
      sizes.push_back(1);
    }
    const Graph& graph = *ranks_[0].graph;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorType& type = graph.type({graph.inputs()[i], 0});
      TASO_ASSIGN(const std::string element, element_name(type.element));
      declared.push_back(fmt::format("({}, {}, \"{}\")", python_string(inputs[i]), tuple_text(type.shape), element));
    }
    for (const auto& [element, tensor] : gathered_weights())
      files.push_back(fmt::format("\"{}\": \"{}\"", element, jax_weights_file(element)));
    std::vector<std::string> names;
    for (const std::string& output : outputs) names.push_back(python_string(output));
    return fmt::format(R"(#!/usr/bin/env python3
"""A model as a plan for {0} devices (mesh {1}) has it, run on as many host devices of JAX.

Written by taso-opt --emit jax; its weights lie beside it. Every rank reads whole inputs and has whole outputs.
"""
import argparse
import os
import re
import sys

RANKS = {0}
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={{RANKS}}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")

FOLDER = os.path.dirname(os.path.abspath(__file__))
MESH = {2}
MESH_AXES = ({3},)
WEIGHTS = {{{4}}}
INPUTS = [{5}]
OUTPUTS = [{6}]

)",
                       ranks_.size(), mesh_.to_string(), tuple_text(sizes), fmt::join(axes, ", "),
                       fmt::join(files, ", "), fmt::join(declared, ", "), fmt::join(names, ", "));
  }

  /// The weights of all ranks, a row each. They are part of the script then.
  const std::map<std::string, HostTensor>& gathered_weights() {
    std::map<std::string, std::pair<ElementType, std::size_t>> longest;  // In bytes.
    for (const auto& files : weights_)
      for (const auto& [element, weights] : files) {
        longest[element].first = weights.first;
        longest[element].second = std::max(longest[element].second, weights.second.size());
      }
    for (const auto& [element, row] : longest) {
      const auto& [type, bytes] = row;
      HostTensor tensor(TensorType{
          type, {static_cast<std::int64_t>(ranks_.size()), static_cast<std::int64_t>(bytes / size_of(type))}, true});
      for (std::size_t r = 0; r < weights_.size(); ++r)
        if (const auto own = weights_[r].find(element); own != weights_[r].end())
          std::copy(own->second.second.begin(), own->second.second.end(),
                    tensor.bytes().begin() + static_cast<std::ptrdiff_t>(r * bytes));
      script_.weights.emplace(element, std::move(tensor));
    }
    return script_.weights;
  }

  const Mesh& mesh_;
  const OperatorRegistry& registry_;
  std::vector<RankProgram> ranks_;
  std::vector<std::int64_t> numbers_;  ///< Of collectives, in order; each is between two parts.
  std::vector<std::size_t> given_;     ///< Per collective: the slot of what it is given.
  std::size_t slots_ = 0;
  /// Per rank, by element type.
  std::vector<std::map<std::string, std::pair<ElementType, std::vector<std::byte>>>> weights_;
  JaxScript script_;
};

}  // namespace

const CollectiveVocabulary& jax_collectives() {
  static const CollectiveVocabulary vocabulary = {{"sum", "max"}, {"sum"}, true, true};
  return vocabulary;
}

std::string jax_weights_file(const std::string& element) { return "weights." + element + ".npy"; }

Expected<JaxScript> jax_script(const std::vector<Graph>& ranks, const Mesh& mesh,
                               const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                               const OperatorRegistry& registry) {
  return ScriptWriter(ranks, mesh, registry).run(inputs, outputs);
}

}  // namespace taso
