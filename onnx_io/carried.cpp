#include "onnx_io/carried.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "onnx_io/import.h"
#include "onnx_io/stand_in.h"

namespace taso {
namespace {

std::string operator_name(const onnx::NodeProto& node) {
  return (is_default_domain(node.domain()) ? "" : node.domain() + "::") + node.op_type();
}

/// A node's reason of its own.
struct OwnReason {
  std::string text;
  Obstacle obstacle = Obstacle::form;
  bool of_graph_input = false;  ///< Extents of a graph input are not known.
};

/// Finds for each carried node either its own reason or the nodes that it stands behind.
///
/// In order, so that what a node reads has been looked at before: a node waits for the tensors that were in its way. If
/// all of these come from carried nodes it stands behind the union of what they stand behind, or them.
class Explainer {
 public:
  Explainer(const Document& document, const ImportedModel& imported) : document_(document), imported_(imported) {
    const Graph& graph = imported.graph;
    for (NodeId id = 0; id < graph.id_bound(); ++id)
      if (graph.contains(id) && graph.node(id).kind == NodeKind::opaque && graph.node(id).origin >= 0)
        live_.insert(graph.node(id).origin);
    for (const int node : document.order())
      if (live_.contains(node)) explain(node);
  }

  [[nodiscard]] const std::set<int>& live() const { return live_; }
  /// The nodes that a node stands behind; empty: it has a reason of its own.
  [[nodiscard]] const std::set<int>& roots(int node) const { return roots_.at(node); }
  [[nodiscard]] const OwnReason& own(int node) const { return own_.at(node); }

 private:
  /// A tensor that a node reads, as far as it is not constant.
  struct Read {
    std::size_t position = 0;
    int tensor = -1;
    bool typed = false;
    int maker = -1;  ///< The carried node that computes it.
    /// It would be constant if something before it were known.
    bool pending = false;
  };

  /// The tensor that one is another name for.
  int named(int tensor) const {
    for (;;) {
      if (tensor < 0) return tensor;
      const DocumentTensor& entry = document_.tensors()[static_cast<std::size_t>(tensor)];
      if (entry.source != TensorSource::node || entry.index < 0 ||
          imported_.nodes[static_cast<std::size_t>(entry.index)].kind != NodeImport::Kind::alias)
        return tensor;
      tensor = named_once(tensor, entry.index);
    }
  }

  /// What a node that makes other names makes one of: what it reads, or what an equal node makes.
  int named_once(int tensor, int node) const {
    const std::optional<Value>& value = imported_.values[static_cast<std::size_t>(tensor)];
    for (const std::string& name : document_.node(node).input()) {
      const int input = document_.find(name);
      if (input >= 0 && value && imported_.values[static_cast<std::size_t>(input)] == value) return input;
    }
    if (value && imported_.graph.contains(value->node)) {
      const Node& maker = imported_.graph.node(value->node);
      if (maker.kind == NodeKind::opaque && maker.origin >= 0 && maker.origin != node)
        return document_.find(document_.node(maker.origin).output(static_cast<int>(value->port)));
    }
    return document_.find(document_.node(node).input(0));
  }

  std::vector<Read> reads(int node) const {
    std::vector<Read> result;
    std::size_t position = 0;
    const auto add = [&](const std::string& name) {
      Read read{position++, name.empty() ? -1 : named(document_.find(name))};
      if (read.tensor < 0) return;
      const auto index = static_cast<std::size_t>(read.tensor);
      if (imported_.constants[index]) return;
      const DocumentTensor& tensor = document_.tensors()[index];
      if (tensor.source == TensorSource::node && live_.contains(tensor.index)) {
        read.maker = tensor.index;
        read.pending = pending_.contains(tensor.index);
      }
      const auto& value = imported_.values[index];
      read.typed = value && imported_.graph.contains(value->node) && imported_.graph.type(*value).known;
      result.push_back(read);
    };
    for (const auto& name : document_.node(node).input()) add(name);
    for (const auto& name : document_.captures(node)) add(name);
    return result;
  }

  /// What was in the way of a node.
  std::vector<Read> awaited(int node, const Refusal& refusal) const {
    std::vector<Read> all = reads(node);
    const bool computes = computes_constants(document_.node(node).op_type());
    std::erase_if(all, [&](const Read& read) {
      switch (refusal.obstacle) {
        case Obstacle::unknown_type:
          return read.typed;
        case Obstacle::not_constant:
          return !read.pending && (read.position != refusal.input || read.maker < 0 || read.typed);
        case Obstacle::constants_only:
        case Obstacle::element_type:
          return !computes || read.maker < 0 || (!read.pending && read.typed);
        default:
          return true;
      }
    });
    return all;
  }

  void explain(int node) {
    const Refusal& refusal = imported_.carried.at(node).refusal;
    const std::vector<Read> waits = awaited(node, refusal);
    std::set<int>& roots = roots_[node];
    OwnReason reason{refusal.reason, refusal.obstacle};
    const auto given = std::find_if(waits.begin(), waits.end(), [](const Read& read) { return read.maker < 0; });
    if (given != waits.end()) {
      const DocumentTensor& tensor = document_.tensors()[static_cast<std::size_t>(given->tensor)];
      reason.of_graph_input = tensor.source == TensorSource::input;
      reason.text = reason.of_graph_input ? "the shape of a graph input is known at run time only"
                                          : "an initializer is of a type that is not modelled";
    } else {
      for (const Read& read : waits) {
        const std::set<int>& before = roots_.at(read.maker);
        if (before.empty())
          roots.insert(read.maker);
        else
          roots.insert(before.begin(), before.end());
      }
    }
    const bool would_be_constant = !roots.empty() || reason.of_graph_input || refusal.obstacle == Obstacle::symbolic;
    if (would_be_constant && computes_constants(document_.node(node).op_type())) pending_.insert(node);
    if (roots.empty()) own_.emplace(node, std::move(reason));
  }

  const Document& document_;
  const ImportedModel& imported_;
  std::set<int> live_, pending_;
  std::map<int, std::set<int>> roots_;
  std::map<int, OwnReason> own_;
};

/// "--input-shape ids:1,128 --input-shape mask:1,128" for the inputs whose extents are symbols.
std::string shapes_to_give(const ImportedModel& imported) {
  std::string text;
  for (const TensorDeclaration& input : imported.inputs) {
    const bool open = std::any_of(input.extents.begin(), input.extents.end(),
                                  [](const DeclaredExtent& extent) { return !extent.value; });
    if ((input.has_shape && !open) || input.element == ElementType::other) continue;
    std::string shape;
    for (std::size_t axis = 0; axis < input.extents.size(); ++axis)
      shape += (axis == 0 ? "" : ",") + std::to_string(input.extents[axis].value.value_or(axis == 0 ? 1 : 128));
    text += (text.empty() ? "" : " ") + std::string("--input-shape ") + input.name + ":" +
            (input.has_shape ? shape : "D,D,..");
  }
  return text.empty() ? "nothing yet" : text + " (or other sizes)";
}

bool has_subgraph(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(), [](const onnx::AttributeProto& attribute) {
    return attribute.has_g() || attribute.graphs_size() > 0;
  });
}

std::string help_for(const OwnReason& reason, const onnx::NodeProto& node, const ImportedModel& imported) {
  if (reason.of_graph_input) return shapes_to_give(imported);
  switch (reason.obstacle) {
    case Obstacle::operator_type:
      if (has_subgraph(node)) return "nothing yet: control flow is carried";
      return "--add-specs with a map for " + operator_name(node) + " (docs/onnx.md)";
    case Obstacle::map:
      return "a line for this form in the map of " + operator_name(node);
    case Obstacle::form:
      return is_default_domain(node.domain()) ? "--add-specs with a map for this form of " + operator_name(node)
                                              : "nothing yet";
    case Obstacle::symbolic:
      return shapes_to_give(imported);
    case Obstacle::element_type:
      return "nothing yet: it is understood of real numbers alone";
    case Obstacle::opset:
      return "the model converted to opset 7 or newer";
    case Obstacle::constants_only:
    case Obstacle::unknown_type:
    case Obstacle::not_constant:
      break;
  }
  return "nothing yet";
}

/// Document nodes that stand in the graph as operators that are computed at run time.
std::set<int> understood_nodes(const Graph& graph) {
  std::set<int> nodes;
  for (NodeId id = 0; id < graph.id_bound(); ++id) {
    if (!graph.contains(id)) continue;
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::op && !node.weight_only && node.origin >= 0) nodes.insert(node.origin);
  }
  return nodes;
}

}  // namespace

std::vector<CarriedNode> explain_carried(const Document& document, const ImportedModel& imported) {
  const Explainer explainer(document, imported);
  std::vector<CarriedNode> result;
  for (const int node : document.order()) {
    if (!explainer.live().contains(node)) continue;
    const std::set<int>& roots = explainer.roots(node);
    CarriedNode carried{node, operator_name(document.node(node)), "", {roots.begin(), roots.end()}};
    if (roots.empty()) {
      carried.reason = explainer.own(node).text;
    } else {
      carried.reason = "behind " + document.describe(*roots.begin());
      if (roots.size() > 1) carried.reason += " and " + std::to_string(roots.size() - 1) + " more";
    }
    result.push_back(std::move(carried));
  }
  return result;
}

Coverage coverage_of(const Document& document, const ImportedModel& imported, const OperatorRegistry& registry) {
  const Explainer explainer(document, imported);
  Coverage coverage;
  coverage.understood = static_cast<std::int64_t>(understood_nodes(imported.graph).size());
  coverage.understood_flops = total_flops(imported.graph, registry);
  coverage.carried = static_cast<std::int64_t>(explainer.live().size());
  coverage.carried_flops = 0;
  std::map<std::pair<std::string, std::string>, CarriedCause> causes;
  const auto cause_of = [&](int node) -> CarriedCause& {
    return causes[{operator_name(document.node(node)), explainer.own(node).text}];
  };
  for (const int node : explainer.live()) {
    const std::optional<double>& flops = imported.carried.at(node).flops;
    coverage.carried_flops =
        coverage.carried_flops && flops ? std::optional(*coverage.carried_flops + *flops) : std::nullopt;
    if (!explainer.roots(node).empty()) {
      ++coverage.behind;
      std::set<CarriedCause*> before;
      for (const int root : explainer.roots(node)) before.insert(&cause_of(root));
      for (CarriedCause* cause : before) {
        ++cause->behind;
        cause->blocked += before.size() == 1 ? 1 : 0;
      }
      continue;
    }
    CarriedCause& cause = cause_of(node);
    if (cause.nodes++ > 0) continue;
    cause.op = operator_name(document.node(node));
    cause.cause = explainer.own(node).text;
    cause.node = document.describe(node);
    cause.help = help_for(explainer.own(node), document.node(node), imported);
  }
  for (auto& [key, cause] : causes) coverage.causes.push_back(std::move(cause));
  std::stable_sort(coverage.causes.begin(), coverage.causes.end(), [](const CarriedCause& a, const CarriedCause& b) {
    return std::tuple(-a.behind, -a.nodes) < std::tuple(-b.behind, -b.nodes);
  });
  return coverage;
}

}  // namespace taso
