#include "optimizer/search.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "optimizer/equal_costs.h"
#include "optimizer/parts.h"
#include "support/reversed.h"

namespace taso {
namespace {

/// Matches handled together; bounds the graphs alive at once, and with the nodes of all of them the open plans.
constexpr std::size_t largest_chunk = 256, smallest_chunk = 16, chunk_nodes = 100'000;
/// An expansion may take this share of the budget; where that is too little, matches that look alike are tried once.
constexpr std::size_t expansions = 4;
/// Graphs of no more parts than this are searched whole.
constexpr std::size_t fewest_parts = 3;
/// A search starts again from the best graph as long as each time gains this share.
constexpr double worth_restart = 1e-3;
/// Rough size of a node, for the memory limit.
constexpr std::size_t node_bytes = 768;

using RuleMatch = std::pair<std::uint32_t, const Match*>;

/// A graph met by the search. `graph` may be given up once the state is expanded.
struct State {
  std::optional<Graph> graph;
  Hash128 hash;
  double cost = 0;
  std::shared_ptr<State> parent;
  std::vector<RuleApplication> applications;  ///< Since the parent.
  std::vector<NodeId> touched;                ///< What the last step changed, ascending; empty: everything is new.
  std::size_t bytes = 0;
  /// Of `graph`, once the state was expanded and as long as `awaited`: those of its children are made from them.
  std::optional<MatchList> matches;
  std::size_t awaited = 0;  ///< Entries of this state and its children in the queue.
};

struct QueueEntry {
  /// Backtracking: 0, at the touched nodes (everywhere if there are none), or 1, everywhere else. Beam: the number of
  /// steps from the start.
  int tier = 0;
  double rank = 0;
  std::uint64_t sequence = 0;
  std::shared_ptr<State> state;
  bool operator<(const QueueEntry& other) const {
    return std::tie(tier, rank, sequence) < std::tie(other.tier, other.rank, other.sequence);
  }
};

/// One match tried: nothing, a graph met before, or a new graph with its plan.
struct Child {
  enum class Kind : std::uint8_t { rejected, unwritable, duplicate, fresh } kind = Kind::rejected;
  std::size_t match = 0;
  std::optional<RewriteResult> rewrite;
  std::size_t nodes = 0;
  Hash128 hash;
  KernelPlan plan;
  std::optional<Error> error;
  double cost = std::numeric_limits<double>::infinity();
};

/// Nodes whose matches can differ from those before a rewrite: what is new or reads other values, and what these and
/// the removed nodes read.
std::vector<NodeId> touched_nodes(const Graph& before, const RewriteResult& rewrite) {
  std::vector<NodeId> touched;
  const auto add_with_inputs = [&](const Graph& graph, const std::vector<NodeId>& ids, bool with_node) {
    for (const NodeId id : ids) {
      if (with_node) touched.push_back(id);
      for (const Value& input : graph.node(id).inputs)
        if (rewrite.graph.contains(input.node)) touched.push_back(input.node);
    }
  };
  add_with_inputs(rewrite.graph, rewrite.added, true);
  add_with_inputs(before, rewrite.removed, false);
  touched.insert(touched.end(), rewrite.changed.begin(), rewrite.changed.end());
  // Inputs and weights are read by everything: a match is not new because it reads them.
  std::erase_if(touched, [&](NodeId id) {
    const Node& node = rewrite.graph.node(id);
    return node.kind == NodeKind::input || node.weight_only;
  });
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

/// Tells places of a graph apart by what is around them: equal signatures of matches mean equal neighbourhoods (three
/// nodes far; weights by their types alone), as in the repeated cells of a network.
class Neighbourhoods {
 public:
  explicit Neighbourhoods(const Graph& graph) : hashes_(graph.id_bound()) {
    const std::vector<NodeId> order = graph.topological_order();
    const auto consumers = graph.consumers();
    for (const NodeId id : order) {
      const Node& node = graph.node(id);
      Hasher hasher;
      if (node.weight_only || node.kind == NodeKind::input) {
        for (const TensorType& type : node.outputs) hasher.add(to_string(type));
      } else {
        hasher.add(node.label);
      }
      hashes_[id] = hasher.add(static_cast<std::uint64_t>(node.weight_only ? 1 : 0)).finish();
    }
    for (int round = 0; round < 3; ++round) {
      std::vector<Hash128> next = hashes_;
      for (const NodeId id : order) {
        if (graph.node(id).weight_only) continue;
        Hasher hasher;
        hasher.add(hashes_[id]);
        for (const Value& input : graph.node(id).inputs) hasher.add(hashes_[input.node]).add(std::uint64_t{input.port});
        std::vector<Hash128> readers;
        for (const auto& [consumer, position] : consumers[id])
          readers.push_back(Hasher().add(hashes_[consumer]).add(std::uint64_t{position}).finish());
        std::sort(readers.begin(), readers.end());
        for (const Hash128& reader : readers) hasher.add(reader);
        next[id] = hasher.finish();
      }
      hashes_ = std::move(next);
    }
  }

  [[nodiscard]] Hash128 signature(std::uint32_t rule, const Match& match) const {
    Hasher hasher;
    hasher.add(std::uint64_t{rule});
    for (const NodeId id : match.nodes) hasher.add(hashes_[id]);
    for (const std::int32_t begin : match.operand_begin) hasher.add(static_cast<std::int64_t>(begin));
    for (const std::int32_t begin : match.port_begin) hasher.add(static_cast<std::int64_t>(begin));
    for (const Value& value : match.variables) {
      const auto first = std::find(match.variables.begin(), match.variables.end(), value) - match.variables.begin();
      hasher.add(hashes_[value.node]).add(std::uint64_t{value.port}).add(static_cast<std::int64_t>(first));
    }
    return hasher.finish();
  }

 private:
  std::vector<Hash128> hashes_;
};

class Searcher {
 public:
  Searcher(const RuleIndex& rules, const Target& target, CostModel& model, const SearchOptions& options)
      : rules_(rules),
        target_(target),
        model_(model),
        options_(options),
        threads_(options.threads > 0 ? options.threads
                                     : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))),
        parallelism_(tbb::global_control::max_allowed_parallelism,
                     std::max(static_cast<std::size_t>(threads_),
                              tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism))),
        arena_(threads_) {}

  Expected<SearchResult> run(const Graph& start) {
    auto root = std::make_shared<State>();
    root->graph = start;
    normalize(*root->graph, rules_.catalog());
    root->hash = root->graph->structural_hash();
    TASO_ASSIGN(KernelPlan plan, plan_of(*root->graph));
    TASO_ASSIGN(root->cost, model_.cost(*root->graph, plan));
    root->bytes = root->graph->id_bound() * sizeof(void*) * 2 + root->graph->size() * node_bytes;
    result_.start_cost = best_cost_ = root->cost;
    result_.curve.add(0, best_cost_);
    remember(root);
    offer(root, plan);
    enqueue(0, root);

    std::size_t fruitless = 0;
    result_.stop = StopReason::exhausted;
    while (!queue_.empty()) {
      if (const auto reason = spent()) {
        result_.stop = *reason;
        break;
      }
      if (fruitless >= options_.patience) {
        result_.stop = StopReason::no_improvement;
        break;
      }
      const QueueEntry entry = *queue_.begin();
      queue_.erase(queue_.begin());
      const bool wanted = takes(entry);
      const double before = best_cost_;
      if (wanted) {
        TASO_RETURN_IF_ERROR(expand(entry));
      }
      left_queue(*entry.state);
      if (!wanted) continue;
      ++result_.steps;
      result_.curve.add(result_.steps, best_cost_);
      fruitless = is_less(best_cost_, before) ? 0 : fruitless + 1;
      report();
      if (stopped_) {
        result_.stop = *stopped_;
        break;
      }
    }
    result_.seconds = elapsed();
    result_.candidate_nodes = candidate_nodes_;
    for (Kept& kept : best_) {
      Candidate candidate;
      candidate.cost = kept.state->cost;
      candidate.graph = std::move(kept.graph);
      std::vector<const State*> path;
      for (const State* state = kept.state.get(); state != nullptr; state = state->parent.get()) path.push_back(state);
      for (const State* state : reversed(path))
        candidate.applications.insert(candidate.applications.end(), state->applications.begin(),
                                      state->applications.end());
      result_.best.push_back(std::move(candidate));
    }
    return std::move(result_);
  }

 private:
  struct Kept {
    std::shared_ptr<const State> state;
    Graph graph;
    Hash128 kernels;  ///< Of the launches: graphs that launch the same are not worth timing twice.
  };

  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  [[nodiscard]] Expected<KernelPlan> plan_of(const Graph& graph) const {
    return options_.choose_layouts ? target_.open_plan(graph) : target_.plan(graph);
  }

  /// The cost without its last digits. Equal steps at different places differ there, by the order of a sum; by rank
  /// they are taken in the order of the matches, so that the repeated parts of a model are rewritten alike and go on
  /// sharing their weights.
  [[nodiscard]] double rank(double cost) const {
    return result_.start_cost > 0 ? std::round(cost / (equal_costs * result_.start_cost)) : cost;
  }

  void enqueue(int tier, const std::shared_ptr<State>& state) {
    queue_.insert({tier, rank(state->cost), sequence_++, state});
    ++state->awaited;
    if (state->parent) ++state->parent->awaited;
  }

  /// An entry of this state is dealt with.
  void left_queue(State& state) {
    for (State* const user : {&state, state.parent.get()})
      if (user != nullptr && --user->awaited == 0 && user->matches) {
        user->matches.reset();
        listed_.erase(user);
      }
  }

  /// The matches of a state's graph, from those of the state itself or the closest one above it that has any.
  const MatchList& matches_of(State& state) {
    if (state.matches) return *state.matches;
    const MatchList* before = &no_matches_;
    for (const State* above = state.parent.get(); above != nullptr; above = above->parent.get())
      if (above->matches) {
        before = &*above->matches;
        break;
      }
    listed_.insert(&state);
    return state.matches.emplace(rules_.update(*before, *state.graph));
  }

  /// Whether the next entry of the queue is to be expanded.
  bool takes(const QueueEntry& entry) {
    if (!within_reach(entry.state->cost)) return false;
    if (beam() && entry.tier != level_) {
      level_ = entry.tier;
      of_level_ = 0;
    }
    return !beam() || ++of_level_ <= options_.beam_width;
  }

  [[nodiscard]] bool within_reach(double cost) const {
    return cost <= best_cost_ || cost < options_.alpha * best_cost_;
  }

  [[nodiscard]] bool beam() const { return options_.method == SearchMethod::beam; }

  /// The tier of what is made from an entry's state.
  [[nodiscard]] int tier_behind(const QueueEntry& entry) const { return beam() ? entry.tier + 1 : 0; }

  [[nodiscard]] bool interrupted() const { return options_.stop.raised(); }

  [[nodiscard]] std::optional<StopReason> spent() const {
    if (interrupted()) return StopReason::interrupted;
    if (options_.time_limit && elapsed() >= *options_.time_limit) return StopReason::time;
    if (result_.steps >= options_.max_steps || candidate_nodes_ >= options_.max_candidate_nodes)
      return StopReason::steps;
    return std::nullopt;
  }

  void report() const {
    if (options_.progress)
      options_.progress({result_.steps, result_.candidates, queue_.size(), result_.start_cost, best_cost_, elapsed()});
  }

  /// True if an equal graph was met. Read-only: called from several threads.
  [[nodiscard]] bool met(const Graph& graph, const Hash128& hash) const {
    if (forgotten_.contains(hash)) return true;
    const auto place = states_.find(hash);
    if (place == states_.end()) return false;
    return std::any_of(place->second.begin(), place->second.end(),
                       [&](const auto& state) { return !state->graph || state->graph->equals(graph); });
  }

  void remember(const std::shared_ptr<State>& state) {
    states_[state->hash].push_back(state);
    bytes_ += state->bytes;
  }

  /// Makes room: first all lists of matches, which can be made anew, then the graphs of expanded states (equal ones are
  /// then told by hash alone), then the costliest states that wait. What is searched does not depend on the lists.
  void limit_memory() {
    if (bytes_ + no_matches_.family_bytes() > options_.memory_limit) {
      for (State* state : listed_) state->matches.reset();
      listed_.clear();
    }
    if (bytes_ <= options_.memory_limit) return;
    std::set<const State*> waiting;
    for (const QueueEntry& entry : queue_) waiting.insert(entry.state.get());
    for (auto& [hash, states] : states_)
      for (auto& state : states)
        if (state->graph && !waiting.contains(state.get())) {
          state->graph.reset();
          bytes_ -= state->bytes;
          state->bytes = 0;
        }
    while (bytes_ > options_.memory_limit / 4 * 3 && queue_.size() > 1) {
      const auto last = std::prev(queue_.end());
      const std::shared_ptr<State> state = last->state;
      queue_.erase(last);
      left_queue(*state);
      if (!state->graph) continue;
      state->graph.reset();
      bytes_ -= state->bytes;
      state->bytes = 0;
      ++result_.dropped;
    }
  }

  /// Lets a state compete for the result.
  void offer(const std::shared_ptr<State>& state, const KernelPlan& plan) {
    if (is_less(state->cost, best_cost_)) best_cost_ = state->cost;
    if (best_.size() == options_.keep && !is_less(state->cost, best_.back().state->cost)) return;
    std::vector<Hash128> hashes;
    for (const Launch& launch : plan.launches) hashes.push_back(launch.kernel->hash);
    std::sort(hashes.begin(), hashes.end());
    Hasher hasher;
    for (const Hash128& hash : hashes) hasher.add(hash);
    const Hash128 kernels = hasher.finish();
    for (const Kept& kept : best_)
      if (kept.kernels == kernels) return;
    auto place = std::find_if(best_.begin(), best_.end(),
                              [&](const Kept& kept) { return is_less(state->cost, kept.state->cost); });
    best_.insert(place, Kept{state, *state->graph, kernels});
    if (best_.size() > options_.keep) best_.pop_back();
  }

  void try_match(const MatchList& list, const RuleMatch& match, Child& child) const {
    if (interrupted()) return;
    if (options_.applicable && !options_.applicable(list.graph(), rules_.rules()[match.first], *match.second)) return;
    Expected<RewriteResult> rewritten = apply_with_changes(list.graph(), rules_.rules()[match.first], *match.second,
                                                           rules_.catalog(), &list.consumers());
    if (!rewritten) return;
    child.nodes = rewritten->graph.size();
    child.hash = rewritten->graph.structural_hash();
    child.kind = Child::Kind::duplicate;
    if (met(rewritten->graph, child.hash)) return;
    child.kind = Child::Kind::unwritable;
    if (options_.writable && !options_.writable(*rewritten)) return;
    child.kind = Child::Kind::fresh;
    Expected<KernelPlan> plan = plan_of(rewritten->graph);
    if (plan)
      child.plan = std::move(plan).value();
    else
      child.error = plan.error();
    child.rewrite = std::move(rewritten).value();
  }

  /// Chooses layouts of all new graphs, and fuses, but of equal ones once.
  void prepare(std::vector<Child>& children) {
    std::vector<CostModel::Unpriced> unpriced;
    std::unordered_set<Hash128> hashes;
    for (Child& child : children)
      if (child.kind == Child::Kind::fresh && !child.error && hashes.insert(child.hash).second)
        unpriced.push_back({&child.rewrite->graph, &child.plan});
    arena_.execute([&] { model_.prepare(unpriced); });
  }

  std::shared_ptr<State> make_state(const std::shared_ptr<State>& parent, Graph graph, const Hash128& hash, double cost,
                                    std::size_t new_nodes) {
    auto state = std::make_shared<State>();
    state->graph = std::move(graph);
    state->hash = hash;
    state->cost = cost;
    state->parent = parent;
    state->bytes = state->graph->id_bound() * sizeof(void*) * 2 + new_nodes * node_bytes + sizeof(State);
    return state;
  }

  Status expand(const QueueEntry& entry) {
    const std::shared_ptr<State>& state = entry.state;
    if (!state->graph) return {};
    const MatchList list = matches_of(*state);  // A copy: room may be made.
    const Graph& graph = list.graph();
    std::vector<RuleMatch> matches = list.matches();
    if (!beam() && !state->touched.empty()) {
      const auto touches = [&](const RuleMatch& match) {
        return std::any_of(match.second->nodes.begin(), match.second->nodes.end(), [&](NodeId id) {
          return std::binary_search(state->touched.begin(), state->touched.end(), id);
        });
      };
      std::erase_if(matches, [&](const auto& match) { return touches(match) != (entry.tier == 0); });
      if (entry.tier == 0) enqueue(1, state);
    }

    // Of a large graph, one match is tried of those that look alike; the others are joined with it.
    std::vector<std::vector<std::size_t>> alike;
    if (matches.size() > options_.max_candidate_nodes / expansions / std::max<std::size_t>(1, graph.size())) {
      const Neighbourhoods neighbourhoods(graph);
      std::unordered_map<Hash128, std::size_t> classes;
      for (std::size_t i = 0; i < matches.size(); ++i) {
        const auto [place, fresh] =
            classes.emplace(neighbourhoods.signature(matches[i].first, *matches[i].second), alike.size());
        if (fresh) alike.emplace_back();
        alike[place->second].push_back(i);
      }
    } else {
      for (std::size_t i = 0; i < matches.size(); ++i) alike.push_back({i});
    }

    struct Improvement {
      std::size_t match = 0;  ///< Index in `alike`.
      double rank = 0;
      std::shared_ptr<State> state;
    };
    std::vector<Improvement> improvements;
    const std::size_t chunk =
        std::clamp(chunk_nodes / std::max<std::size_t>(1, graph.size()), smallest_chunk, largest_chunk);
    for (std::size_t begin = 0; begin < alike.size() && !stopped_; begin += chunk) {
      std::vector<Child> children(std::min(chunk, alike.size() - begin));
      for (std::size_t i = 0; i < children.size(); ++i) children[i].match = begin + i;
      arena_.execute([&] {
        tbb::parallel_for(std::size_t{0}, children.size(),
                          [&](std::size_t i) { try_match(list, matches[alike[begin + i][0]], children[i]); });
      });
      prepare(children);
      for (Child& child : children) {
        if (const auto reason = spent(); reason && reason != StopReason::steps) {  // measuring may take long
          stopped_ = reason;
          break;
        }
        if (child.kind == Child::Kind::rejected) {
          ++result_.rejected;
          continue;
        }
        if (child.kind == Child::Kind::unwritable) {
          ++result_.unwritable;
          continue;
        }
        ++result_.candidates;
        candidate_nodes_ += child.nodes;
        if (child.kind == Child::Kind::duplicate || met(child.rewrite->graph, child.hash)) {
          ++result_.duplicates;
          continue;
        }
        if (child.error) return *child.error;
        const double limit = std::max(options_.alpha * best_cost_, std::nextafter(best_cost_, best_cost_ + 1));
        const Expected<double> cost = model_.cost(child.rewrite->graph, child.plan, limit);
        if (!cost && cost.error().code == ErrorCode::interrupted) {
          stopped_ = StopReason::interrupted;
          break;
        }
        if (!cost && cost.error().code == ErrorCode::device_unavailable) {
          forgotten_.insert(child.hash);  // It has a kernel that the device does not run.
          continue;
        }
        if (!cost) return cost.error();
        child.cost = *cost;
        if (!within_reach(child.cost)) {
          forgotten_.insert(child.hash);
          continue;
        }
        const auto& [rule, match] = matches[alike[child.match][0]];
        std::vector<NodeId> touched = touched_nodes(graph, *child.rewrite);
        const std::size_t new_nodes = child.rewrite->added.size() + child.rewrite->changed.size();
        std::shared_ptr<State> next =
            make_state(state, std::move(child.rewrite->graph), child.hash, child.cost, new_nodes);
        next->touched = std::move(touched);
        next->applications.push_back(describe_application(graph, rules_.rules()[rule], *match));
        next->applications.back().cost_before = state->cost;
        next->applications.back().cost_after = next->cost;
        remember(next);
        offer(next, child.plan);
        enqueue(tier_behind(entry), next);
        if (is_less(next->cost, state->cost)) improvements.push_back({child.match, rank(next->cost), next});
      }
      limit_memory();
    }
    if (improvements.empty()) return {};
    std::stable_sort(improvements.begin(), improvements.end(),
                     [](const Improvement& a, const Improvement& b) { return a.rank < b.rank; });
    std::vector<std::vector<std::size_t>> order;
    order.reserve(improvements.size());
    for (const Improvement& improvement : improvements) order.push_back(std::move(alike[improvement.match]));
    order.front().erase(order.front().begin());  // which made the state to begin with
    return combine(entry, graph, matches, order, improvements.front().state);
  }

  /// Applies the improving matches of one state in order, as far as they stay intact and keep improving. Those that
  /// look alike are applied together.
  Status combine(const QueueEntry& entry, const Graph& graph, const std::vector<RuleMatch>& matches,
                 const std::vector<std::vector<std::size_t>>& order, const std::shared_ptr<State>& first) {
    if (!first->graph) return {};
    const std::shared_ptr<State>& state = entry.state;
    Graph current = *first->graph;
    double cost = first->cost;
    KernelPlan current_plan;
    std::vector<RuleApplication> applications = first->applications;
    std::vector<NodeId> touched = first->touched;
    std::size_t new_nodes = 0;
    for (const std::vector<std::size_t>& together : order) {
      if (const auto reason = spent(); reason && reason != StopReason::steps) break;
      Graph next_graph = current;
      std::vector<RuleApplication> added;
      std::vector<NodeId> next_touched;
      std::size_t next_nodes = 0;
      for (const std::size_t index : together) {
        const auto& [rule, match] = matches[index];
        if (!still_matches(graph, next_graph, *match)) continue;
        if (options_.applicable && !options_.applicable(next_graph, rules_.rules()[rule], *match)) continue;
        Expected<RewriteResult> rewritten =
            apply_with_changes(next_graph, rules_.rules()[rule], *match, rules_.catalog());
        if (!rewritten || (options_.writable && !options_.writable(*rewritten))) continue;
        added.push_back(describe_application(next_graph, rules_.rules()[rule], *match));
        next_nodes += rewritten->added.size() + rewritten->changed.size();
        const std::vector<NodeId> more = touched_nodes(next_graph, *rewritten);
        next_touched.insert(next_touched.end(), more.begin(), more.end());
        next_graph = std::move(rewritten->graph);
      }
      if (added.empty()) continue;
      candidate_nodes_ += next_graph.size();
      TASO_ASSIGN(KernelPlan plan, plan_of(next_graph));
      const Expected<double> priced = model_.cost(next_graph, plan, cost);
      if (!priced && priced.error().code == ErrorCode::interrupted) break;
      if (!priced && priced.error().code == ErrorCode::device_unavailable) continue;
      if (!priced) return priced.error();
      const double next_cost = *priced;
      if (!is_less(next_cost, cost)) continue;
      // What several of them gain together is told of the last one.
      for (RuleApplication& application : added) application.cost_before = application.cost_after = cost;
      added.back().cost_after = next_cost;
      applications.insert(applications.end(), added.begin(), added.end());
      touched.insert(touched.end(), next_touched.begin(), next_touched.end());
      new_nodes += next_nodes;
      current = std::move(next_graph);
      current_plan = std::move(plan);
      cost = next_cost;
    }
    if (applications.size() == first->applications.size()) {
      first->touched.clear();  // the only way down: everything may be new behind it
      return {};
    }
    const Hash128 hash = current.structural_hash();
    if (met(current, hash)) return {};
    std::shared_ptr<State> next = make_state(state, std::move(current), hash, cost, new_nodes);
    next->applications = std::move(applications);
    std::erase_if(touched, [&](NodeId id) { return !next->graph->contains(id); });
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    next->touched = std::move(touched);
    remember(next);
    ++result_.candidates;
    offer(next, current_plan);
    if (within_reach(cost)) enqueue(tier_behind(entry), next);
    limit_memory();
    return {};
  }

  const RuleIndex& rules_;
  const Target& target_;
  CostModel& model_;
  const SearchOptions& options_;
  int threads_;
  tbb::global_control parallelism_;  ///< Allows more threads than there are processors.
  tbb::task_arena arena_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  const MatchList no_matches_;         ///< All lists are made from it, so that it knows their bytes.
  std::unordered_set<State*> listed_;  ///< States that have matches.
  std::set<QueueEntry> queue_;
  std::uint64_t sequence_ = 0;
  int level_ = 0;             ///< Of a beam, being expanded,
  std::size_t of_level_ = 0;  ///< and how many states of it were.
  std::unordered_map<Hash128, std::vector<std::shared_ptr<State>>> states_;
  std::unordered_set<Hash128> forgotten_;  ///< Graphs too costly to keep.
  std::size_t bytes_ = 0, candidate_nodes_ = 0;
  double best_cost_ = 0;
  std::vector<Kept> best_;
  std::optional<StopReason> stopped_;
  SearchResult result_;
};

}  // namespace

const char* to_string(StopReason reason) {
  switch (reason) {
    case StopReason::exhausted:
      return "queue empty";
    case StopReason::steps:
      return "step budget spent";
    case StopReason::no_improvement:
      return "no improvement for a while";
    case StopReason::time:
      return "time limit";
    case StopReason::interrupted:
      return "interrupted";
  }
  return "?";
}

const char* to_string(SearchMethod method) {
  switch (method) {
    case SearchMethod::backtracking:
      return "backtracking";
    case SearchMethod::beam:
      return "beam";
  }
  return "?";
}

namespace {

/// Adds what a further search found and took. Its applications begin at the graph that `before` lead to.
void join(SearchResult& all, SearchResult more, const std::vector<RuleApplication>& before, std::size_t keep) {
  for (Candidate& candidate : more.best) {
    candidate.applications.insert(candidate.applications.begin(), before.begin(), before.end());
    if (std::none_of(all.best.begin(), all.best.end(),
                     [&](const Candidate& other) { return other.graph.equals(candidate.graph); }))
      all.best.push_back(std::move(candidate));
  }
  std::stable_sort(all.best.begin(), all.best.end(),
                   [](const Candidate& a, const Candidate& b) { return is_less(a.cost, b.cost); });
  if (all.best.size() > keep) all.best.erase(all.best.begin() + static_cast<std::ptrdiff_t>(keep), all.best.end());
  all.stop = more.stop;
  all.curve.append(more.curve, all.steps);
  for (const auto count :
       {&SearchResult::steps, &SearchResult::candidates, &SearchResult::duplicates, &SearchResult::rejected,
        &SearchResult::unwritable, &SearchResult::dropped, &SearchResult::parts, &SearchResult::candidate_nodes})
    all.*count += more.*count;
  all.seconds += more.seconds;
}

}  // namespace

Expected<SearchResult> search(const Graph& start, const RuleIndex& rules, const Target& target, CostModel& model,
                              const SearchOptions& options) {
  if (options.part_size > 0 && working_nodes(start) > fewest_parts * options.part_size)
    return search_in_parts(start, rules, target, model, options);
  if (options.method == SearchMethod::beam || options.alpha <= 1 || options.restarts <= 0)
    return Searcher(rules, target, model, options).run(start);

  SearchOptions one = options;
  TASO_ASSIGN(SearchResult result, Searcher(rules, target, model, one).run(start));
  const auto is_over = [&] { return result.stop == StopReason::interrupted || result.stop == StopReason::time; };
  const auto further = [&](double alpha, const Candidate& from) -> Status {
    one.alpha = alpha;
    one.max_steps = options.max_steps - std::min(options.max_steps, result.steps);
    if (options.time_limit) one.time_limit = std::max(0.0, *options.time_limit - result.seconds);
    TASO_ASSIGN(SearchResult more, Searcher(rules, target, model, one).run(from.graph));
    join(result, std::move(more), from.applications, options.keep);
    return {};
  };
  if (is_over()) return result;
  const double found = result.best[0].cost;
  const bool cut_short = result.stop == StopReason::steps;
  TASO_RETURN_IF_ERROR(further(1, {start, 0, {}}));
  bool again = is_less(result.best[0].cost, found) || (cut_short && is_less(found, result.start_cost));
  for (int restart = 0; restart < options.restarts && again && !is_over(); ++restart) {
    const Candidate best = result.best[0];
    TASO_RETURN_IF_ERROR(further(options.alpha, best));
    again = result.best[0].cost < (1 - worth_restart) * best.cost;
  }
  return result;
}

}  // namespace taso
