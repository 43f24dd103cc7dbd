#include "generator/candidates.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "generator/joint.h"
#include "generator/parallel.h"

namespace taso {
namespace {

using Leaves = std::set<ClassId>;

class CandidateMaker {
 public:
  CandidateMaker(Bank& bank, CandidateCounts& counts) : bank_(bank), counts_(counts) {}

  std::vector<Draft> run() {
    for (const Hit& hit : bank_.hits()) from_hit(hit);
    for (const Bank::MultiTerm& multi : bank_.multi_terms()) from_join(multi);
    find_joint_equalities(bank_, [&](const std::vector<TermOutput>& source, const std::vector<TermOutput>& target) {
      ++counts_.joint;
      add(source, target, true);
    });
    take_block();
    counts_.after_subgraph = drafts_.size();
    std::stable_sort(drafts_.begin(), drafts_.end(), [](const Draft& a, const Draft& b) {
      auto size = [](const Draft& draft) {
        return std::tuple(draft.source.ops + draft.target.ops, draft.source.nodes.size() + draft.target.nodes.size());
      };
      return size(a) < size(b);
    });
    return std::move(drafts_);
  }

 private:
  /// Per output of a join, only the smallest ways to compute it are combined.
  static constexpr std::size_t max_members = 8;

  TermOutput representative(ClassId id) const {
    const ValueClass& value = bank_.classes()[id];
    if (value.is_input) return {true, id, 0};
    return {false, value.index, value.port};
  }

  void from_hit(const Hit& hit) {
    const ValueClass& known = bank_.classes()[hit.value];
    if (hit.ops == 0) return;  // equal weights: nothing to gain
    const TermOutput term{false, hit.term, hit.port};
    // A term of several outputs is equal to something as a whole: see from_join.
    if (outputs_of(hit.term) > 1) return;
    const TermOutput other = representative(hit.value);
    if (!other.is_input && outputs_of(other.id) > 1) return;
    add({term}, {other});
    if (hit.ops == known.ops) add({other}, {term});
  }

  std::size_t outputs_of(TermId term) const { return bank_.output_count(term); }

  /// The ways to compute a class other than by a term of several outputs.
  const std::vector<TermOutput>& members(ClassId id) {
    if (members_.empty()) {
      members_.resize(bank_.classes().size());
      for (const Hit& hit : bank_.hits())
        if (hit.ops > 0 && outputs_of(hit.term) == 1) members_[hit.value].push_back({false, hit.term, hit.port});
    }
    auto& list = members_[id];
    const TermOutput first = representative(id);
    if ((list.empty() || list.front() != first) && (first.is_input || outputs_of(first.id) == 1))
      list.insert(list.begin(), first);
    return list;
  }

  /// Every output of the term has another way to be computed: by siblings of one operator, or by inputs.
  void from_join(const Bank::MultiTerm& multi) {
    std::vector<TermOutput> whole;
    for (std::uint32_t port = 0; port < multi.outputs.size(); ++port) whole.push_back({false, multi.term, port});
    std::vector<TermOutput> chosen(multi.outputs.size());
    std::function<void(std::size_t)> choose = [&](std::size_t port) {
      if (port == chosen.size()) {
        const int ops = size_of(chosen);
        if (ops > bank_.options().max_ops) return;
        if (ops >= 2 && !chosen[0].is_input) add(chosen, whole);
        if (ops < multi.ops) add(whole, chosen);
        return;
      }
      std::vector<TermOutput> options = members(multi.outputs[port]);
      if (options.size() > max_members) options.resize(max_members);
      for (const TermOutput& option : options) {
        if (!option.is_input && option.id == multi.term) continue;
        if (port > 0) {
          if (option.is_input != chosen[0].is_input) continue;
          if (!option.is_input) {
            // Siblings: the same operator, on different arguments.
            const ProfileGroup& group = bank_.group();
            if (group.operators[bank_.terms()[option.id].op].op != group.operators[bank_.terms()[chosen[0].id].op].op)
              continue;
          }
        }
        if (std::find(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(port), option) !=
            chosen.begin() + static_cast<std::ptrdiff_t>(port))
          continue;
        chosen[port] = option;
        choose(port + 1);
      }
    };
    choose(0);
  }

  /// Operators that run, shared ones once.
  int size_of(const std::vector<TermOutput>& outputs) const {
    int ops = 0;
    for (const TermId term : terms_of(outputs)) ops += bank_.is_weight_term(term) ? 0 : 1;
    return ops;
  }

  std::vector<TermId> terms_of(const std::vector<TermOutput>& outputs) const {
    std::set<TermId> result;
    for (const TermOutput& output : outputs) {
      if (output.is_input) continue;
      result.insert(output.id);
      const auto below = bank_.union_of_terms(bank_.terms()[output.id].inputs());
      result.insert(below.begin(), below.end());
    }
    return {result.begin(), result.end()};
  }

  /// Adds nodes and variables below `outputs` to a draft; classes in `leaves` become variables.
  void build(const std::vector<TermOutput>& outputs, const Leaves& leaves, Draft& draft, DraftSide& side) const {
    std::map<TermId, std::uint32_t> nodes;
    std::function<std::uint32_t(TermId)> node_of;
    auto variable = [&](ClassId id) {
      const auto it = std::find(draft.variables.begin(), draft.variables.end(), id);
      const auto index = static_cast<std::uint32_t>(it - draft.variables.begin());
      if (it == draft.variables.end()) draft.variables.push_back(id);
      return DraftValue{true, index, 0};
    };
    node_of = [&](TermId term) {
      if (const auto it = nodes.find(term); it != nodes.end()) return it->second;
      DraftNode node;
      node.op = bank_.terms()[term].op;
      for (const ClassId id : bank_.terms()[term].inputs()) {
        const TermOutput output = representative(id);
        if (output.is_input || leaves.contains(id))
          node.inputs.push_back(variable(id));
        else
          node.inputs.push_back({false, node_of(output.id), output.port});
      }
      (bank_.group().operators[node.op].on_weights ? side.weight_ops : side.ops) += 1;
      side.nodes.push_back(std::move(node));
      return nodes[term] = static_cast<std::uint32_t>(side.nodes.size() - 1);
    };
    for (const TermOutput& output : outputs) {
      const auto leaf =
          std::find_if(leaves.begin(), leaves.end(), [&](ClassId id) { return representative(id) == output; });
      if (output.is_input)
        side.outputs.push_back(variable(output.id));
      else if (leaf != leaves.end())
        side.outputs.push_back(variable(*leaf));
      else
        side.outputs.push_back({false, node_of(output.id), output.port});
    }
  }

  /// Text that is equal for drafts that differ in the identity of variables only.
  std::string key(const Draft& draft) const {
    std::string text;
    auto number = [&](std::uint64_t value) { text += std::to_string(value) + ','; };
    for (const ClassId id : draft.variables) {
      number(bank_.classes()[id].type);
      number(bank_.classes()[id].is_weight ? 1 : 0);
    }
    for (const DraftSide* side : {&draft.source, &draft.target}) {
      text += '|';
      auto value = [&](const DraftValue& v) {
        text += v.is_variable ? 'v' : 'n';
        number(v.index);
        number(v.port);
      };
      for (const DraftNode& node : side->nodes) {
        text += '(';
        number(node.op);
        for (const DraftValue& input : node.inputs) value(input);
      }
      text += '>';
      for (const DraftValue& output : side->outputs) value(output);
    }
    return text;
  }

  Draft make(const std::vector<TermOutput>& source, const std::vector<TermOutput>& target, const Leaves& leaves) const {
    Draft draft;
    build(source, leaves, draft, draft.source);
    const std::size_t bound = draft.variables.size();
    build(target, leaves, draft, draft.target);
    if (draft.variables.size() > bound) draft.source.nodes.clear();  // a variable that the source does not bind
    return draft;
  }

  /// A pair of terms that is new up to the names of inputs.
  struct Pair {
    std::vector<TermOutput> source, target;
    Draft draft;
  };

  void add(const std::vector<TermOutput>& source, const std::vector<TermOutput>& target, bool joint = false) {
    Draft draft = make(source, target, {});
    if (draft.source.nodes.empty()) return;
    ++counts_.initial;
    if (!seen_.insert(key(draft)).second) return;
    ++counts_.after_renaming;
    draft.joint = joint;
    block_.push_back({source, target, std::move(draft)});
    if (block_.size() >= block_size) take_block();
  }

  /// Abstracts pairs, which is what takes time, all at once, and keeps them in their order.
  void take_block() {
    // The applications that random tests will ask for: from here on they are only looked up.
    for (const Pair& pair : block_)
      for (const DraftSide* side : {&pair.draft.source, &pair.draft.target}) (void)applications(*side, pair.draft);
    parallel_for(bank_.options().threads, block_.size(), [&](std::size_t i, unsigned) {
      Pair& pair = block_[i];
      abstract(pair.source, pair.target, pair.draft);
    });
    for (Pair& pair : block_) keep(std::move(pair.draft));
    block_.clear();
  }

  void keep(Draft draft) {
    if (draft.source.ops == 0 || draft.source.weight_ops > bank_.group().source_weight_ops) return;
    if (!bank_.group().unconnected && !is_connected(draft)) return;
    if (bank_.group().lowering && draft.target.ops >= draft.source.ops) return;
    if (!kept_.insert(key(draft)).second) return;
    drafts_.push_back(std::move(draft));
  }

  /// Whether all outputs of the source are computed from tensors that hang together.
  static bool is_connected(const Draft& draft) {
    const DraftSide& side = draft.source;
    if (side.outputs.size() < 2) return true;
    // Variables first, then nodes; each points to one that it hangs together with.
    std::vector<std::size_t> parent(draft.variables.size() + side.nodes.size());
    for (std::size_t i = 0; i < parent.size(); ++i) parent[i] = i;
    auto root = [&](std::size_t i) {
      while (parent[i] != i) i = parent[i];
      return i;
    };
    auto place = [&](const DraftValue& value) {
      return value.is_variable ? std::size_t{value.index} : draft.variables.size() + value.index;
    };
    for (std::size_t node = 0; node < side.nodes.size(); ++node)
      for (const DraftValue& input : side.nodes[node].inputs)
        parent[root(place(input))] = root(draft.variables.size() + node);
    return std::all_of(side.outputs.begin(), side.outputs.end(),
                       [&](const DraftValue& output) { return root(place(output)) == root(place(side.outputs[0])); });
  }

  /// Replaces subterms that both sides share by variables, as far as the equality survives.
  void abstract(const std::vector<TermOutput>& source, const std::vector<TermOutput>& target, Draft& draft) {
    const std::vector<TermId> left = terms_of(source), right = terms_of(target);
    std::vector<TermId> common;
    std::set_intersection(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(common));
    auto is_root = [](const std::vector<TermOutput>& outputs, TermId term) {
      return std::any_of(outputs.begin(), outputs.end(),
                         [&](const TermOutput& output) { return !output.is_input && output.id == term; });
    };
    // The whole target may be a subterm of the source: it becomes a variable, too.
    std::erase_if(common, [&](TermId term) { return is_root(source, term); });
    if (common.empty()) return;
    // The outermost shared classes: used by a term that is not shared.
    Leaves outermost;
    for (const std::vector<TermId>* side : {&left, &right})
      for (const TermId term : *side) {
        if (std::binary_search(common.begin(), common.end(), term)) continue;
        for (const ClassId id : bank_.terms()[term].inputs()) {
          const TermOutput output = representative(id);
          if (!output.is_input && std::binary_search(common.begin(), common.end(), output.id)) outermost.insert(id);
        }
      }
    auto attempt = [&](const Leaves& leaves) {
      Draft general = make(source, target, leaves);
      general.joint = draft.joint;
      if (general.source.nodes.empty() || !holds(general)) return false;
      draft = std::move(general);
      return true;
    };
    if (attempt(outermost)) return;
    Leaves kept;
    for (const ClassId id : outermost) {
      kept.insert(id);
      if (!attempt(kept)) kept.erase(id);
    }
  }

  /// The applications that the nodes of a side are; empty if one is ill-typed.
  std::vector<const InstanceCache::Entry*> applications(const DraftSide& side, const Draft& draft) {
    std::vector<const InstanceCache::Entry*> result;
    for (const DraftNode& node : side.nodes) {
      std::vector<TypeId> types;
      for (const DraftValue& input : node.inputs)
        types.push_back(input.is_variable ? bank_.classes()[draft.variables[input.index]].type
                                          : result[input.index]->outputs[input.port]);
      result.push_back(bank_.instances().find(node.op, types));
      if (result.back() == nullptr) return {};
    }
    return result;
  }

  /// Whether the two sides are equal with independent random values for the variables. Any number of threads.
  bool holds(const Draft& draft) {
    const std::string text = key(draft);
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = valid_.find(text); it != valid_.end()) return it->second;
    }
    const bool result = agrees_at_random(draft);
    const std::lock_guard lock(mutex_);
    valid_.emplace(text, result);
    return result;
  }

  bool agrees_at_random(const Draft& draft) {
    std::vector<FieldValue> variables;
    for (std::size_t i = 0; i < draft.variables.size(); ++i)
      variables.push_back(
          bank_.random_value(bank_.classes()[draft.variables[i]].type, "variable " + std::to_string(i)));
    std::vector<FieldValue> outputs[2];
    for (int which = 0; which < 2; ++which) {
      const DraftSide& side = which == 0 ? draft.source : draft.target;
      const std::vector<const InstanceCache::Entry*> instances = applications(side, draft);
      if (instances.size() != side.nodes.size()) return false;
      std::vector<std::vector<FieldValue>> values;
      for (const DraftNode& node : side.nodes) {
        std::vector<const FieldValue*> arguments;
        for (const DraftValue& input : node.inputs)
          arguments.push_back(input.is_variable ? &variables[input.index] : &values[input.index][input.port]);
        values.push_back(bank_.apply(*instances[values.size()], arguments));
        if (values.back().empty()) return false;
      }
      for (const DraftValue& output : side.outputs)
        outputs[which].push_back(output.is_variable ? variables[output.index] : values[output.index][output.port]);
    }
    for (std::size_t i = 0; i < outputs[0].size(); ++i)
      for (std::size_t tensor = 0; tensor < outputs[0][i].size(); ++tensor)
        if (outputs[0][i][tensor].shape != outputs[1][i][tensor].shape ||
            outputs[0][i][tensor].elements != outputs[1][i][tensor].elements)
          return false;
    return true;
  }

  Bank& bank_;
  CandidateCounts& counts_;
  std::vector<Draft> drafts_;
  std::unordered_set<std::string> seen_, kept_;
  static constexpr std::size_t block_size = 4096;
  std::vector<Pair> block_;
  std::mutex mutex_;  // of valid_
  std::unordered_map<std::string, bool> valid_;
  std::vector<std::vector<TermOutput>> members_;
};

}  // namespace

std::vector<Draft> make_candidates(Bank& bank, CandidateCounts& counts) { return CandidateMaker(bank, counts).run(); }

}  // namespace taso
