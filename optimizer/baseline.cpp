#include "optimizer/baseline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace taso {
namespace {

/// A fused operator may compute a little more than its parts (a call of the identity per element, say), but not the
/// multiple of it that an enlarged kernel costs.
constexpr double allowed_arithmetic = 1.25;

/// An operator for what is spelled out may state a little more for each element, such as the root of the row's
/// variance, which kernels compute once.
constexpr double allowed_arithmetic_of_one_pass = 2;

bool contains_reduction(const Expression& expression) {
  return expression.kind == Expression::Kind::reduce ||
         std::any_of(expression.operands.begin(), expression.operands.end(), contains_reduction);
}

/// Operators of a pattern by name, those left out that work element by element or read nothing.
std::vector<std::string_view> others_than_steps(const Pattern& pattern, const OperatorRegistry& registry) {
  std::vector<std::string_view> names;
  for (const PatternNode& node : pattern.nodes) {
    const OperatorDefinition* definition = registry.find(node.op);
    if (node.inputs.empty() || (definition != nullptr && definition->elementwise)) continue;
    names.emplace_back(node.op);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Whether a rule cancels: what its source computes with a tensor, and its target does without, is rounding.
bool cancels(const Substitution& rule) {
  if (rule.numeric_class != NumericClass::distribution) return false;
  std::vector<char> read(rule.tensor_variables.size(), 0);
  const auto note = [&](const std::vector<PatternValue>& values) {
    for (const PatternValue& value : values)
      if (value.is_variable) read[value.index] = 1;
  };
  for (const PatternNode& node : rule.target.nodes) note(node.inputs);
  note(rule.target.outputs);
  return std::find(read.begin(), read.end(), 0) != read.end();
}

class BaselineMaker {
 public:
  BaselineMaker(const RuleIndex& rules, const OperatorRegistry& registry, const RewriteFilter& writable,
                const StopSignal& stop, const MatchFilter& applicable)
      : rules_(rules), registry_(registry), writable_(writable), applicable_(applicable), stop_(stop) {
    for (std::uint32_t rule = 0; rule < rules.rules().size(); ++rule) {
      const Substitution& text = rules.rules()[rule];
      if (text.source.outputs.size() != 1 || cancels(text)) continue;
      candidates_.push_back(rule);
      const std::vector<std::string_view> others = others_than_steps(text.source, registry);
      if (!others.empty() && others == others_than_steps(text.target, registry)) may_leave_steps_.insert(rule);
    }
  }

  Expected<Baseline> run(const Graph& start) {
    Baseline result;
    result.graph = start;
    normalize(result.graph, rules_.catalog());
    MatchList list = rules_.update({}, result.graph);
    bool current = true;  // `list` is of result.graph.
    // Each pass applies the matches of one moment, as far as earlier ones left them alone. Every application
    // lowers the number of operators, so this ends.
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint32_t number : candidates_) {
        const Substitution& rule = rules_.rules()[number];
        if (!current) list = rules_.update(list, result.graph);
        current = true;
        for (const Match* const place : list.matches(number)) {
          const Match& match = *place;
          if (stop_.raised()) return Error{ErrorCode::interrupted, "interrupted while the baseline was made", {}};
          if (!still_matches(list.graph(), result.graph, match)) continue;
          const std::optional<Value> argument = spelled_out_function(result.graph, match);
          const std::optional<Chain> chain = chain_of(result.graph, match);
          const bool may_leave_steps = may_leave_steps_.contains(number);
          const std::optional<Rearranged> rearranged = rearranged_steps(result.graph, match);
          if ((!argument && !chain && !may_leave_steps && !rearranged) ||
              (applicable_ && !applicable_(result.graph, rule, match)))
            continue;
          Expected<RewriteResult> rewritten = apply_with_changes(result.graph, rule, match, rules_.catalog());
          if (!rewritten) continue;
          const bool in_one_pass = argument && is_one_operator_on({*argument}, *rewritten);
          const bool fused = (chain && (!chain->joins || is_one_operator_on(chain->read, *rewritten))) ||
                             (rearranged && is_one_operator_on_views_of(result.graph, *rearranged, *rewritten));
          if (!in_one_pass && !fused && !(may_leave_steps && leaves_steps(result.graph, *rewritten))) continue;
          TASO_ASSIGN(const bool pays, pays_off(result.graph, *rewritten,
                                                in_one_pass ? allowed_arithmetic_of_one_pass : allowed_arithmetic));
          if (!pays || (writable_ && !writable_(*rewritten))) continue;
          result.applications.push_back(describe_application(result.graph, rule, match));
          result.graph = std::move(rewritten->graph);
          changed = true;
          current = false;
        }
      }
    }
    return result;
  }

 private:
  /// Whether an operator is no more than a step of a longer computation on one tensor: it works element by element,
  /// broadcasts, or reduces its only tensor.
  bool is_step(const Node& node) {
    const OperatorDefinition* definition = registry_.find(node.op);
    if (definition == nullptr || node.outputs.size() != 1) return false;
    return definition->elementwise || node.is_op("broadcast") || (node.inputs.size() == 1 && has_reduction(node.op));
  }

  /// The tensor that is the argument, if the matched operators, at least two, are steps that read nothing else from
  /// outside (weights not counted): a function that an exporter has spelled out, such as x * sigmoid(x) or a
  /// normalization of rows.
  std::optional<Value> spelled_out_function(const Graph& graph, const Match& match) {
    std::optional<Value> argument;
    for (const NodeId id : match.nodes) {
      const Node& node = graph.node(id);
      if (node.weight_only) continue;
      if (!is_step(node)) return std::nullopt;
      for (const Value& input : node.inputs) {
        if (graph.node(input.node).weight_only) continue;
        if (std::find(match.nodes.begin(), match.nodes.end(), input.node) != match.nodes.end()) continue;
        if (argument && *argument != input) return std::nullopt;
        argument = input;
      }
    }
    return argument;
  }

  /// What is computed with parts of tensors that are put together again.
  struct Rearranged {
    std::vector<Value> read;  ///< From outside, weights not counted.
    std::string_view op;      ///< The only operator that is not of the kinds below; empty: there is none.
  };

  /// The matched operators if they move elements and work element by element: what an exporter has spelled out of
  /// halves of a tensor, say. Or move those that one other operator reads and makes.
  std::optional<Rearranged> rearranged_steps(const Graph& graph, const Match& match) const {
    Rearranged result;
    bool steps = false, moves = false;
    for (const NodeId id : match.nodes) {
      const Node& node = graph.node(id);
      if (node.weight_only) continue;
      const OperatorDefinition* definition = registry_.find(node.op);
      if (definition == nullptr) return std::nullopt;
      if (definition->elementwise) {
        steps = true;
      } else if (definition->moves) {
        moves = moves || !node.is_op("broadcast");
      } else {
        if (!result.op.empty()) return std::nullopt;
        result.op = node.op;
      }
      for (const Value& input : node.inputs)
        if (!graph.node(input.node).weight_only &&
            std::find(match.nodes.begin(), match.nodes.end(), input.node) == match.nodes.end())
          result.read.push_back(input);
    }
    if (!moves || steps != result.op.empty()) return std::nullopt;
    return result;
  }

  bool has_reduction(const std::string& op) {
    const auto [place, added] = has_reduction_.emplace(op, false);
    if (added) {
      const OperatorDefinition* definition = registry_.find(op);
      place->second =
          definition != nullptr && std::any_of(definition->equations.begin(), definition->equations.end(),
                                               [](const Equation& e) { return contains_reduction(e.value); });
    }
    return place->second;
  }

  /// What a chain of operators reads from outside, weights not counted: once for each time it is read, sorted.
  struct Chain {
    std::vector<Value> read;
    bool joins = false;  ///< An operator behind the first one reads such a tensor: a residual.
  };

  /// The matched operators if they form a chain with at most one reduction. The first one takes one tensor from
  /// outside if it is no reduction. A broadcast that the match leaves alone stays with the element-wise operator that
  /// reads it, whose kernel needs no expanded tensor.
  std::optional<Chain> chain_of(const Graph& graph, const Match& match) {
    std::vector<NodeId> nodes;
    for (const NodeId id : match.nodes)
      if (!graph.node(id).weight_only && std::find(nodes.begin(), nodes.end(), id) == nodes.end()) nodes.push_back(id);
    Chain chain;
    int reductions = 0, starts = 0;
    bool expands = false;
    for (const NodeId id : nodes) {
      const Node& node = graph.node(id);
      const bool reduction = has_reduction(node.op);
      reductions += reduction ? 1 : 0;
      std::vector<NodeId> inside, outside;
      for (const Value& input : node.inputs) {
        expands = expands || (!reduction && graph.node(input.node).is_op("broadcast") &&
                              std::find(match.nodes.begin(), match.nodes.end(), input.node) == match.nodes.end());
        if (graph.node(input.node).weight_only) continue;
        const bool is_inside = std::find(nodes.begin(), nodes.end(), input.node) != nodes.end();
        if (!is_inside) chain.read.push_back(input);
        auto& producers = is_inside ? inside : outside;
        if (std::find(producers.begin(), producers.end(), input.node) == producers.end())
          producers.push_back(input.node);
      }
      if (inside.size() > 1) return std::nullopt;
      if (inside.empty()) {
        ++starts;
        if (!reduction && outside.size() > 1) return std::nullopt;
      } else {
        chain.joins = chain.joins || !outside.empty();
      }
    }
    if (starts != 1 || reductions > 1 || (expands && reductions == 1)) return std::nullopt;
    std::sort(chain.read.begin(), chain.read.end());
    return chain;
  }

  /// What replaces the match is one operator that reads `tensors`, sorted, each as often: nothing is computed in
  /// another way, as a sum of x and a convolution of x by another kernel would be.
  static bool is_one_operator_on(const std::vector<Value>& tensors, const RewriteResult& after) {
    std::vector<Value> read;
    int operators = 0;
    for (const NodeId id : after.added) {
      const Node& node = after.graph.node(id);
      if (node.kind != NodeKind::op || node.weight_only) continue;
      ++operators;
      for (const Value& input : node.inputs)
        if (!after.graph.node(input.node).weight_only) read.push_back(input);
    }
    std::sort(read.begin(), read.end());
    return operators == 1 && read == tensors;
  }

  /// What a value is but for its shape.
  static Value without_reshapes(const Graph& graph, Value value) {
    while (graph.node(value.node).is_op("reshape")) value = graph.node(value.node).inputs[0];
    return value;
  }

  /// What replaces the match is one operator, besides reshapes of what it reads, and reads all of these tensors, no
  /// others. It is the one other operator of the match, if there was one.
  static bool is_one_operator_on_views_of(const Graph& graph, const Rearranged& before, const RewriteResult& after) {
    const auto is_added = [&](NodeId id) {
      const Node& node = after.graph.node(id);
      return node.kind == NodeKind::op && !node.weight_only &&
             std::find(after.added.begin(), after.added.end(), id) != after.added.end();
    };
    std::set<Value> wanted, read;
    for (const Value& value : before.read) wanted.insert(without_reshapes(graph, value));
    int operators = 0;
    for (const NodeId id : after.added) {
      const Node& node = after.graph.node(id);
      if (!is_added(id)) continue;
      const bool is_view = node.is_op("reshape");
      if (!is_view && (++operators > 1 || (!before.op.empty() && node.op != before.op))) return false;
      for (const Value& input : node.inputs) {
        const Value source = without_reshapes(after.graph, input);
        // The operator makes the result itself.
        if (is_view && is_added(source.node)) return false;
        if (!is_view && !after.graph.node(source.node).weight_only) read.insert(source);
      }
    }
    return operators == 1 && read == wanted;
  }

  /// What replaces the match is what was there, without operators that worked element by element on one tensor, and
  /// weights: a number that is part of other weights then.
  bool leaves_steps(const Graph& before, const RewriteResult& after) const {
    const auto computed = [](const Graph& graph, const std::vector<NodeId>& nodes) {
      std::vector<const Node*> operators;
      for (const NodeId id : nodes)
        if (const Node& node = graph.node(id); node.kind == NodeKind::op && !node.weight_only)
          operators.push_back(&node);
      return operators;
    };
    std::vector<const Node*> rest = computed(before, after.removed);
    for (const Node* const added : computed(after.graph, after.added)) {
      const auto same = std::find_if(rest.begin(), rest.end(), [&](const Node* removed) {
        return removed->op == added->op && removed->outputs == added->outputs;
      });
      if (same == rest.end()) return false;
      rest.erase(same);
    }
    return std::all_of(rest.begin(), rest.end(), [&](const Node* node) {
      const OperatorDefinition* definition = registry_.find(node->op);
      const auto tensors = std::count_if(node->inputs.begin(), node->inputs.end(),
                                         [&](const Value& input) { return !before.node(input.node).weight_only; });
      return definition != nullptr && definition->elementwise && tensors == 1;
    });
  }

  /// Fewer operators, and at most `allowed` times the arithmetic.
  Expected<bool> pays_off(const Graph& before, const RewriteResult& after, double allowed) const {
    std::int64_t operators = 0;
    double removed_flops = 0, added_flops = 0;
    auto tally = [&](const Graph& graph, const std::vector<NodeId>& nodes, int sign, double& flops) -> Status {
      for (const NodeId id : nodes) {
        const Node& node = graph.node(id);
        if (node.kind != NodeKind::op || node.weight_only) continue;
        operators += sign;
        std::vector<TensorType> inputs;
        for (const Value& input : node.inputs) inputs.push_back(graph.type(input));
        TASO_ASSIGN(const Work work, registry_.work(node.op, node.attributes, inputs));
        flops += work.flops;
      }
      return {};
    };
    TASO_RETURN_IF_ERROR(tally(before, after.removed, -1, removed_flops));
    TASO_RETURN_IF_ERROR(tally(after.graph, after.added, 1, added_flops));
    return operators < 0 && added_flops <= allowed * removed_flops;
  }

  const RuleIndex& rules_;
  const OperatorRegistry& registry_;
  const RewriteFilter& writable_;
  const MatchFilter& applicable_;
  const StopSignal stop_;
  std::vector<std::uint32_t> candidates_;
  std::set<std::uint32_t> may_leave_steps_;
  std::map<std::string, bool, std::less<>> has_reduction_;
};

}  // namespace

Expected<Baseline> make_baseline(const Graph& graph, const RuleIndex& rules, const OperatorRegistry& registry,
                                 const RewriteFilter& writable, const StopSignal& stop, const MatchFilter& applicable) {
  return BaselineMaker(rules, registry, writable, stop, applicable).run(graph);
}

}  // namespace taso
