/// Definitions of the templates of operators/evaluate.h.
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <utility>

#include "graph/words.h"
#include "operators/evaluate.h"
#include "operators/lowered_body.h"
#include "operators/stage_interpreter.h"

namespace taso::detail {

/// Reads tensors that lie in memory.
template <class Element>
struct DenseReader {
  std::span<const Element* const> buffers;
  std::span<const std::int64_t* const> integers;
  [[nodiscard]] const Element& read(std::uint32_t buffer, std::int64_t offset) const { return buffers[buffer][offset]; }
  [[nodiscard]] std::int64_t integer(std::uint32_t buffer, std::int64_t offset) const {
    return integers[buffer][offset];
  }
};

/// Runs one stage over all its elements, those along the innermost own loop together where that is faster.
template <class Ring>
class StageRunner : public StageInterpreter<Ring, DenseReader<typename Ring::Element>> {
  using Base = StageInterpreter<Ring, DenseReader<typename Ring::Element>>;

 public:
  using Element = typename Ring::Element;

  StageRunner(const LoweredStage& stage, Ring& ring, const DenseReader<Element>& reader, Element* output)
      : Base(stage, ring, reader), output_(output) {
    if (!stage_.rows.empty()) {
      run_length_ = stage_.outer.empty() ? 1 : stage_.extents[stage_.outer.back()];
      rows_.resize(stage_.rows.size() * static_cast<std::size_t>(run_length_));
      row_of_node_.assign(stage_.nodes.size(), -1);
      for (std::size_t i = 0; i < stage_.rows.size(); ++i) row_of_node_[stage_.rows[i]] = static_cast<int>(i);
      run_step_.assign(stage_.forms.size(), 0);
      if (!stage_.outer.empty())
        for (const auto& [form, coefficient] : stage_.steps[stage_.outer.back()]) run_step_[form] = coefficient;
    }
  }

  /// Of a recurrence: its next step.
  Status run() {
    if (stage_.empty) return {};
    outer(0);
    if (stage_.steps_of) step(stage_.steps_of->variable, 1);
    return status_;
  }

 private:
  using Base::position_;
  using Base::reader_;
  using Base::ring_;
  using Base::row_of_node_;
  using Base::rows_;
  using Base::run_length_;
  using Base::stage_;
  using Base::status_;
  using Base::step;
  using Base::values_;

  void outer(std::size_t level) {
    if (level + 1 >= stage_.outer.size()) return innermost();
    const std::uint32_t variable = stage_.outer[level];
    for (std::int64_t i = 0; i < stage_.extents[variable]; ++i) {
      outer(level + 1);
      step(variable, 1);
    }
    step(variable, -stage_.extents[variable]);
  }

  /// A run of the innermost own loop.
  void innermost() {
    for (std::size_t i = 0; i < stage_.rows.size(); ++i) {
      Element* row = rows_.data() + static_cast<std::int64_t>(i) * run_length_;
      std::fill(row, row + run_length_, ring_.number(0));
      const LoweredNode& node = stage_.nodes[stage_.rows[i]];
      sum_products(node, 0, row);
    }
    if (stage_.outer.empty()) {
      position_ = 0;
      output_[this->place()] = this->value();
      return;
    }
    const std::uint32_t variable = stage_.outer.back();
    const std::int64_t extent = stage_.extents[variable];
    for (position_ = 0; position_ < extent; ++position_) {
      output_[this->place()] = this->value();
      step(variable, 1);
    }
    step(variable, -extent);
  }

  /// Adds the sum of products to every element of the run: loops of the reduction outside, the run inside.
  void sum_products(const LoweredNode& node, std::size_t level, Element* row) {
    if (level == node.loops.size()) return add_products(node, row);
    const std::uint32_t variable = node.loops[level];
    const std::int64_t extent = stage_.extents[variable];
    for (std::int64_t i = 0; i < extent; ++i) {
      sum_products(node, level + 1, row);
      step(variable, 1);
    }
    step(variable, -extent);
  }

  void add_products(const LoweredNode& node, Element* row) {
    // Positions of the run at which all factors lie inside their tensors.
    std::int64_t begin = 0, end = run_length_;
    for (std::uint32_t factor : node.factors)
      for (const LoweredAccess::Guard& guard : stage_.accesses[factor].guards) {
        const std::int64_t at = values_[guard.form], coefficient = run_step_[guard.form];
        if (coefficient == 0) {
          if (at < 0 || at >= guard.extent) return;
        } else if (coefficient > 0) {
          // 0 <= at + coefficient * i < extent
          if (at < 0) begin = std::max(begin, (-at + coefficient - 1) / coefficient);
          if (guard.extent <= at) return;
          end = std::min(end, (guard.extent - at + coefficient - 1) / coefficient);
        } else {
          if (at >= guard.extent) begin = std::max(begin, (at - guard.extent) / -coefficient + 1);
          if (at < 0) return;
          end = std::min(end, at / -coefficient + 1);
        }
      }
    if (begin >= end) return;
    auto first = [&](std::uint32_t factor) {
      const LoweredAccess& access = stage_.accesses[factor];
      return reader_.buffers[access.buffer] + values_[access.offset] + begin * run_step_[access.offset];
    };
    auto stride = [&](std::uint32_t factor) { return run_step_[stage_.accesses[factor].offset]; };
    const std::int64_t count = end - begin;
    Element* out = row + begin;
    if (node.factors.size() == 1) {
      const Element* a = first(node.factors[0]);
      const std::int64_t step_a = stride(node.factors[0]);
      for (std::int64_t i = 0; i < count; ++i) out[i] = ring_.add(out[i], a[i * step_a]);
    } else if (node.factors.size() == 2) {
      const Element *a = first(node.factors[0]), *b = first(node.factors[1]);
      const std::int64_t step_a = stride(node.factors[0]), step_b = stride(node.factors[1]);
      if (step_a == 0 && step_b == 1) {
        const Element fixed = *a;
        for (std::int64_t i = 0; i < count; ++i) out[i] = ring_.add(out[i], ring_.multiply(fixed, b[i]));
      } else if (step_a == 1 && step_b == 0) {
        const Element fixed = *b;
        for (std::int64_t i = 0; i < count; ++i) out[i] = ring_.add(out[i], ring_.multiply(a[i], fixed));
      } else {
        for (std::int64_t i = 0; i < count; ++i)
          out[i] = ring_.add(out[i], ring_.multiply(a[i * step_a], b[i * step_b]));
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        Element product = first(node.factors[0])[i * stride(node.factors[0])];
        for (std::size_t f = 1; f < node.factors.size(); ++f)
          product = ring_.multiply(product, first(node.factors[f])[i * stride(node.factors[f])]);
        out[i] = ring_.add(out[i], product);
      }
    }
  }

  Element* output_;
  absl::InlinedVector<std::int64_t, 16> run_step_;  ///< Per form: its coefficient of the innermost own loop.
};

}  // namespace taso::detail

namespace taso {

namespace detail {

/// A ring that wants to know in which type the results of operators are kept.
template <class Ring>
concept KeepsNumbers = requires(Ring& ring, const typename Ring::Element& element) {
  { ring.kept(element, ElementType::f32) } -> std::same_as<typename Ring::Element>;
};

/// `integers_are_elements`: tensors of integers, too, have ring elements.
template <class Ring>
Expected<std::vector<RingTensor<typename Ring::Element>>> evaluate_elements(
    const OperatorInstance& instance, Ring& ring, std::span<const RingTensor<typename Ring::Element>* const> inputs,
    bool integers_are_elements) {
  using Element = typename Ring::Element;
  const LoweredBody& body = instance.body();
  if (inputs.size() != body.inputs)
    return bad_input(body.op + ": evaluated with " + std::to_string(inputs.size()) + " inputs, expected " +
                     std::to_string(body.inputs));
  absl::InlinedVector<const Element*, 8> buffers;
  absl::InlinedVector<const std::int64_t*, 8> integers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = instance.input_types()[i].shape;
    const auto elements = static_cast<std::size_t>(volume(shape));
    const bool reals = integers_are_elements || !is_word(instance.input_types()[i].element);
    if (inputs[i]->shape != shape || (reals ? inputs[i]->elements.size() : inputs[i]->integers.size()) != elements)
      return bad_input(body.op + ": input " + std::to_string(i) + " is " + to_string(inputs[i]->shape) + ", expected " +
                       to_string(shape) + " with all elements");
    buffers.push_back(inputs[i]->elements.data());
    integers.push_back(inputs[i]->integers.data());
  }
  std::vector<std::vector<Element>> intermediates;
  for (const Shape& shape : body.intermediates) {
    intermediates.emplace_back(static_cast<std::size_t>(volume(shape)), ring.number(0));
    buffers.push_back(intermediates.back().data());
  }
  std::vector<RingTensor<Element>> outputs;
  for (const Shape& shape : body.outputs)
    outputs.push_back({shape, std::vector<Element>(static_cast<std::size_t>(volume(shape)), ring.number(0)), {}});
  const std::size_t first_output = body.inputs + body.intermediates.size();
  for (std::size_t first = 0, end = 0; first < body.stages.size(); first = end) {
    // One stage, or those of a recurrence, which take its steps in turn.
    std::vector<detail::StageRunner<Ring>> together;
    const auto& steps = body.stages[first].steps_of;
    do {
      const LoweredStage& stage = body.stages[end];
      Element* target = stage.buffer >= first_output ? outputs[stage.buffer - first_output].elements.data()
                                                     : intermediates[stage.buffer - body.inputs].data();
      together.emplace_back(stage, ring, detail::DenseReader<Element>{buffers, integers}, target);
      ++end;
    } while (steps && end < body.stages.size() && body.stages[end].steps_of &&
             body.stages[end].steps_of->recurrence == steps->recurrence);
    const std::int64_t count = steps ? body.stages[first].extents[steps->variable] : 1;
    for (std::int64_t step = 0; step < count; ++step)
      for (detail::StageRunner<Ring>& runner : together)
        if (Status status = runner.run(); !status) return bad_input(body.op + ": " + status.error().message);
  }
  if (Status status = ring.status(); !status) return status.error();
  return outputs;
}

}  // namespace detail

template <class Ring>
Expected<std::vector<RingTensor<typename Ring::Element>>> evaluate(
    const OperatorInstance& instance, Ring& ring, std::span<const RingTensor<typename Ring::Element>* const> inputs) {
  if (!has_machine_numbers(instance)) return detail::evaluate_elements(instance, ring, inputs, false);
  if constexpr (std::same_as<Ring, DoubleRing>) {
    return evaluate_machine_numbers(instance, inputs);
  } else {
    if (!instance.body().moves)
      return bad_input(instance.body().op + " computes with integers or truth values, not in a ring of reals");
    std::vector<RingTensor<double>> words;
    for (const auto* input : inputs) words.push_back({input->shape, {}, input->integers});
    std::vector<const RingTensor<double>*> pointers;
    for (const RingTensor<double>& tensor : words) pointers.push_back(&tensor);
    TASO_ASSIGN(std::vector<RingTensor<double>> moved,
                evaluate_machine_numbers(instance, std::span<const RingTensor<double>* const>(pointers)));
    std::vector<RingTensor<typename Ring::Element>> outputs;
    for (RingTensor<double>& tensor : moved) outputs.push_back({tensor.shape, {}, std::move(tensor.integers)});
    return outputs;
  }
}

template <class Ring>
Expected<std::vector<RingTensor<typename Ring::Element>>> evaluate(
    const Graph& graph, const OperatorRegistry& registry, Ring& ring,
    const std::vector<RingTensor<typename Ring::Element>>& inputs) {
  using Tensor = RingTensor<typename Ring::Element>;
  if (inputs.size() != graph.inputs().size())
    return bad_input("the graph has " + std::to_string(graph.inputs().size()) + " inputs, not " +
                     std::to_string(inputs.size()));
  const std::vector<NodeId> order = graph.topological_order();
  // A node's tensors are dropped after their last use.
  std::vector<std::size_t> uses(graph.id_bound(), 0);
  for (NodeId id : order)
    for (const Value& input : graph.node(id).inputs) ++uses[input.node];
  for (const Value& output : graph.outputs()) ++uses[output.node];
  std::vector<std::vector<Tensor>> tensors(graph.id_bound());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = graph.node(graph.inputs()[i]);
    if (inputs[i].shape != node.outputs[0].shape)
      return bad_input("input '" + node.name + "' is " + to_string(inputs[i].shape) + ", expected " +
                       to_string(node.outputs[0].shape));
    tensors[graph.inputs()[i]] = {inputs[i]};
  }
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    switch (node.kind) {
      case NodeKind::input:
        break;
      case NodeKind::constant: {
        TASO_RETURN_IF_ERROR(node.constant->require_data());
        Tensor tensor;
        tensor.shape = node.outputs[0].shape;
        switch (node.outputs[0].element) {
          case ElementType::f16:
          case ElementType::bf16:
          case ElementType::f32:
          case ElementType::f64:
            for (const double value : node.constant->to_reals()) tensor.elements.push_back(ring.number(value));
            break;
          case ElementType::i8:
          case ElementType::i16:
          case ElementType::i32:
          case ElementType::i64:
          case ElementType::u8:
          case ElementType::u16:
          case ElementType::u32:
          case ElementType::u64:
          case ElementType::boolean:
            tensor.integers = node.constant->to_integers();
            break;
          case ElementType::other:
            return bad_input("a constant of type " + std::string(to_string(node.outputs[0].element)) +
                             " cannot be evaluated");
        }
        tensors[id] = {std::move(tensor)};
        break;
      }
      case NodeKind::op: {
        std::vector<TensorType> types;
        std::vector<const Tensor*> arguments;
        for (const Value& input : node.inputs) {
          types.push_back(graph.type(input));
          arguments.push_back(&tensors[input.node].at(input.port));
        }
        TASO_ASSIGN(const OperatorInstance instance,
                    OperatorInstance::create(registry, node.op, node.attributes, types));
        TASO_ASSIGN(tensors[id], evaluate(instance, ring, std::span<const Tensor* const>(arguments)));
        if constexpr (detail::KeepsNumbers<Ring>)
          for (std::size_t port = 0; port < tensors[id].size(); ++port)
            for (typename Ring::Element& element : tensors[id][port].elements)
              element = ring.kept(element, node.outputs[port].element);
        break;
      }
      case NodeKind::opaque:
        return bad_input("opaque node '" + node.op + "' cannot be evaluated");
    }
    for (const Value& input : node.inputs)
      if (--uses[input.node] == 0) tensors[input.node].clear();
  }
  std::vector<Tensor> outputs;
  for (const Value& output : graph.outputs()) outputs.push_back(tensors[output.node].at(output.port));
  return outputs;
}

}  // namespace taso
