#include "runtime/fusion.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "runtime/access.h"

namespace taso {
namespace {

using Source = LoweredTensor::Source;

/// Few numbers, ascending.
class Numbers {
 public:
  Numbers() = default;
  Numbers(std::initializer_list<std::size_t> numbers) { insert(numbers.begin(), numbers.end()); }
  template <class Iterator>
  Numbers(Iterator first, Iterator last) {
    insert(first, last);
  }
  [[nodiscard]] bool contains(std::size_t number) const {
    return std::binary_search(numbers_.begin(), numbers_.end(), number);
  }
  void insert(std::size_t number) {
    if (numbers_.empty() || numbers_.back() < number) {
      numbers_.push_back(number);
      return;
    }
    const auto place = std::lower_bound(numbers_.begin(), numbers_.end(), number);
    if (*place != number) numbers_.insert(place, number);
  }
  template <class Iterator>
  void insert(Iterator first, Iterator last) {
    for (; first != last; ++first) insert(std::size_t{*first});
  }
  void erase(std::size_t number) {
    const auto place = std::lower_bound(numbers_.begin(), numbers_.end(), number);
    if (place != numbers_.end() && *place == number) numbers_.erase(place);
  }
  [[nodiscard]] auto begin() const { return numbers_.begin(); }
  [[nodiscard]] auto end() const { return numbers_.end(); }
  [[nodiscard]] auto rbegin() const { return numbers_.rbegin(); }
  [[nodiscard]] auto rend() const { return numbers_.rend(); }
  [[nodiscard]] std::size_t size() const { return numbers_.size(); }
  [[nodiscard]] bool empty() const { return numbers_.empty(); }

 private:
  std::vector<std::size_t> numbers_;
};

/// Steps that one kernel computes, by their numbers.
struct Group {
  Numbers members;
  /// Steps that move elements and are computed here besides where they belong.
  Numbers copied;

  [[nodiscard]] bool is_one_step() const { return members.size() == 1 && copied.empty(); }
};

/// What a group of several steps asks for (a single one has its request), and the tensors that it reads and writes.
struct Planned {
  KernelRequest request;
  std::vector<TensorIndex> inputs, outputs;
};

class Fusion {
 public:
  Fusion(const LoweredGraph& lowered, const FusionRules& rules, FusionCache& cache)
      : lowered_(lowered),
        rules_(rules),
        cache_(cache),
        wholes_(lowered.tensors.size()),
        producers_(lowered.tensors.size()),
        read_by_(lowered.tensors.size()),
        escapes_(lowered.tensors.size(), 0),
        from_memory_(lowered.steps.size()) {
    note_tensors();
    for (std::size_t step = 0; step < lowered_.steps.size(); ++step) {
      groups_.push_back({{step}, {}});
      group_of_.push_back(step);
      joins_.push_back(static_cast<char>(!rules.joins || rules.joins(lowered_.steps[step].kernel->request)));
    }
  }

  /// Groups by the walk.
  void walk() {
    for (std::size_t step = 0; step < lowered_.steps.size(); ++step) {
      // A producer may have been joined, and have brought others: until nothing more is.
      while (joins_[step] != 0 && join_a_producer(group_of_[step])) {
      }
    }
  }

  /// Those of least cost in their place.
  void choose(FusionStatistics* statistics) {
    const std::vector<StageGroup> known = cover();
    const std::set<std::vector<std::uint32_t>> found = [&] {
      std::set<std::vector<std::uint32_t>> members;
      for (const StageGroup& group : known) members.insert(group.members);
      return members;
    }();
    GroupProblem problem;
    problem.stages = stages();
    problem.cost = [&](const StageGroup& stages) -> std::optional<double> {
      const Group group{{stages.members.begin(), stages.members.end()}, {stages.repeats.begin(), stages.repeats.end()}};
      const bool is_known =
          (stages.members.size() == 1 && stages.repeats.empty()) ||
          (found.contains(stages.members) && std::find(known.begin(), known.end(), stages) != known.end());
      if (is_known) return cost_of(group);
      if (repeats_of_several(group)) return std::nullopt;
      const FusionCache::Verdict verdict = verdict_of(group);
      return verdict.is_kernel ? std::optional(verdict.cost) : std::nullopt;
    };
    problem.links = [&](std::uint32_t a, std::uint32_t b) { return link(a, b); };
    problem.least = [&](std::span<const std::uint32_t> part) { return cost_of(Group{{part.begin(), part.end()}, {}}); };
    problem.identity = [&](std::span<const std::uint32_t> part) { return identity_of(part); };
    const GroupChoice choice = choose_groups(problem, known, cache_.groups(), rules_.options);
    if (statistics != nullptr) {
      statistics->walked = 0;
      for (const StageGroup& group : known) statistics->walked += *problem.cost(group);
      statistics->chosen = choice.cost;
      statistics->lower_bound = choice.lower_bound;
      statistics->exact = choice.exact;
      statistics->complete = choice.complete;
      statistics->candidates = choice.candidates;
      statistics->rounds = choice.rounds;
      statistics->width = choice.width;
    }
    take(choice.groups);
    planned_ = plans();
    if (stores_what_it_reads()) return;
    take(known);
    planned_ = plans();
  }

  /// The steps of the groups that are needed, in an order of execution; after choose().
  [[nodiscard]] std::vector<LoweredStep> result() {
    const std::vector<std::size_t> order = ordered();
    std::vector<char> kept(groups_.size(), 0), needed(lowered_.tensors.size(), 0);
    for (std::size_t at = order.size(); at-- > 0;) {
      const Planned& one = *planned_[order[at]];
      const auto is_needed = [&](TensorIndex tensor) { return needed[tensor] != 0 || escapes_[tensor] != 0; };
      if (std::none_of(one.outputs.begin(), one.outputs.end(), is_needed)) continue;
      kept[order[at]] = 1;
      for (const TensorIndex input : one.inputs)
        for (const TensorIndex written : written_for(input)) needed[written] = 1;
    }
    std::vector<LoweredStep> steps;
    for (const std::size_t group : order)
      if (kept[group] != 0) steps.push_back(step_of(groups_[group], std::move(*planned_[group])));
    return steps;
  }

 private:
  /// Who makes and who reads each tensor, as it is or as a view of it, and what is read where no step says so.
  void note_tensors() {
    for (TensorIndex i = 0; i < lowered_.tensors.size(); ++i) {
      TensorIndex whole = i;
      while (lowered_.tensors[whole].source == Source::view) whole = lowered_.tensors[whole].index;
      wholes_[i] = whole;
      whole = i;
      while (const auto other = reshaped(whole)) whole = *other;
      const Source source = lowered_.tensors[whole].source;
      if (source == Source::kernel || source == Source::piece) producers_[i] = lowered_.tensors[whole].step;
    }
    for (TensorIndex i = 0; i < lowered_.tensors.size(); ++i) {
      const LoweredTensor& tensor = lowered_.tensors[i];
      if (tensor.source != Source::piece) continue;
      pieces_[tensor.index].push_back(i);
      escapes_[i] = 1;
    }
    for (const TensorIndex output : lowered_.outputs)
      for (const TensorIndex written : written_for(output)) escapes_[written] = 1;
    for (std::size_t step = 0; step < lowered_.steps.size(); ++step)
      for (const TensorIndex input : lowered_.steps[step].inputs)
        for (const TensorIndex written : written_for(input))
          if (read_by_[written].empty() || read_by_[written].back() != step) read_by_[written].push_back(step);
    for (std::size_t step = 0; step < lowered_.steps.size(); ++step)
      for (const TensorIndex input : lowered_.steps[step].inputs)
        if (!producer(input))
          for (const TensorIndex written : written_for(input))
            from_memory_[step].push_back(lowered_.tensors[written].step);
  }

  /// The tensors that steps write, in whose memory a tensor lies.
  [[nodiscard]] std::span<const TensorIndex> written_for(TensorIndex tensor) const {
    const TensorIndex whole = wholes_[tensor];
    switch (lowered_.tensors[whole].source) {
      case Source::kernel:
      case Source::piece:
        return {&wholes_[whole], 1};
      case Source::pieces:
        return pieces_.at(whole);
      case Source::input:
      case Source::weight:
      case Source::view:
        return {};
    }
    return {};
  }

  /// What a view shows in the same order under another shape; nothing if it shows something else.
  [[nodiscard]] std::optional<TensorIndex> reshaped(TensorIndex tensor) const {
    const LoweredTensor& view = lowered_.tensors[tensor];
    if (view.source != Source::view || view.offset != 0) return std::nullopt;
    const LoweredTensor& whole = lowered_.tensors[view.index];
    if (view.layout != Layout::row_major || whole.layout != Layout::row_major ||
        view.type.bytes() != whole.type.bytes() || view.type.element != whole.type.element)
      return std::nullopt;
    return view.index;
  }

  /// The step that writes a tensor, read as it is or under another shape.
  [[nodiscard]] std::optional<std::size_t> producer(TensorIndex tensor) const { return producers_[tensor]; }

  // ---- Requests.

  struct Planner {
    const Fusion& fusion;
    const Group& group;
    Planned planned{};
    Fused fused{};
    std::map<TensorIndex, FusedPart::Source> sources{};  ///< Of tensors that parts have made, and inputs.

    FusedPart::Source source_of(TensorIndex tensor, const Operand& operand) {
      if (const auto known = sources.find(tensor); known != sources.end()) return known->second;
      if (const auto whole = fusion.reshaped(tensor)) {
        const auto made = fusion.producer(*whole);
        if (made && (group.members.contains(*made) || group.copied.contains(*made))) return reshape(tensor, *whole);
      }
      const FusedPart::Source source{true, static_cast<std::uint32_t>(planned.inputs.size()), 0};
      planned.inputs.push_back(tensor);
      planned.request.inputs.push_back(operand);
      return sources[tensor] = source;
    }

    FusedPart::Source reshape(TensorIndex tensor, TensorIndex whole) {
      const TensorType &from = fusion.lowered_.tensors[whole].type, &to = fusion.lowered_.tensors[tensor].type;
      FusedPart part;
      part.request.op = "reshape";
      part.request.attributes.set("shape", std::vector<std::int64_t>(to.shape));
      part.request.inputs = {{from, Layout::row_major, false}};
      part.request.outputs = {{to, Layout::row_major, false}};
      part.sources = {source_of(whole, part.request.inputs[0])};
      return sources[tensor] = add(std::move(part));
    }

    FusedPart::Source add(FusedPart part) {
      fused.parts.push_back(std::move(part));
      return {false, static_cast<std::uint32_t>(fused.parts.size() - 1), 0};
    }

    void add_step(std::size_t number) {
      const LoweredStep& step = fusion.lowered_.steps[number];
      FusedPart part{step.kernel->request, {}};
      for (std::size_t i = 0; i < step.inputs.size(); ++i)
        part.sources.push_back(source_of(step.inputs[i], part.request.inputs[i]));
      FusedPart::Source made = add(std::move(part));
      for (const TensorIndex output : step.outputs) {
        sources[output] = made;
        ++made.port;
      }
    }

    void add_results() {
      for (const std::size_t number : group.members) {
        const LoweredStep& step = fusion.lowered_.steps[number];
        for (std::size_t i = 0; i < step.outputs.size(); ++i) {
          if (!fusion.is_used_outside(step.outputs[i], group)) continue;
          fused.results.push_back(sources.at(step.outputs[i]));
          planned.outputs.push_back(step.outputs[i]);
          planned.request.outputs.push_back(step.kernel->request.outputs[i]);
        }
      }
    }
  };

  [[nodiscard]] bool is_used_outside(TensorIndex written, const Group& group) const {
    if (escapes_[written] != 0) return true;
    return std::any_of(read_by_[written].begin(), read_by_[written].end(),
                       [&](std::size_t reader) { return !group.members.contains(reader); });
  }

  [[nodiscard]] Planned plan(const Group& group) const {
    if (group.is_one_step()) {
      const LoweredStep& step = lowered_.steps[*group.members.begin()];
      return {{}, step.inputs, step.outputs};
    }
    Planner planner{*this, group};
    Numbers all = group.members;
    all.insert(group.copied.begin(), group.copied.end());
    for (const std::size_t step : all) planner.add_step(step);
    planner.add_results();
    KernelRequest& request = planner.planned.request;
    const KernelRequest& first = planner.fused.parts[0].request;
    request.op = fused_op;
    request.threads = first.threads;
    request.cached_tenths = first.cached_tenths;
    request.fused = std::make_shared<const Fused>(std::move(planner.fused));
    return std::move(planner.planned);
  }

  [[nodiscard]] LoweredStep step_of(const Group& group, Planned planned) const {
    if (!planned.request.fused) return lowered_.steps[*group.members.begin()];
    auto kernel = std::make_shared<PlannedKernel>();
    kernel->request = std::move(planned.request);
    kernel->key = kernel->request.key();
    kernel->key_hash = hash_text(kernel->key);
    LoweredStep step{std::move(kernel), lowered_.steps[*group.members.rbegin()].node, std::move(planned.inputs),
                     std::move(planned.outputs)};
    for (const std::size_t member : group.members) step.fused.push_back(lowered_.steps[member].node);
    return step;
  }

  // ---- Groups of least cost.

  [[nodiscard]] double cost_of(const KernelRequest& request) const { return rules_.cost ? rules_.cost(request) : 1; }

  /// Whether it is a kernel or not.
  [[nodiscard]] double cost_of(const Group& group) const {
    const Hash128 key = key_of(group, 1);
    if (const FusionCache::Verdict* const known = cache_.find(key)) return known->cost;
    const double cost =
        cost_of(group.is_one_step() ? lowered_.steps[*group.members.begin()].kernel->request : plan(group).request);
    return cache_.insert(key, {false, cost}).cost;
  }

  [[nodiscard]] bool is_kept(std::size_t step) const {
    const auto escapes = [&](TensorIndex output) { return escapes_[output] != 0; };
    return std::any_of(lowered_.steps[step].outputs.begin(), lowered_.steps[step].outputs.end(), escapes);
  }

  [[nodiscard]] std::vector<GroupStage> stages() const {
    const auto steps = static_cast<std::uint32_t>(lowered_.steps.size());
    std::vector<GroupStage> stages(steps);
    for (std::uint32_t step = 0; step < steps; ++step) {
      std::map<std::uint32_t, bool> reads;  // whether in memory
      for (const TensorIndex input : lowered_.steps[step].inputs) {
        if (const auto made = producer(input)) {
          reads.emplace(static_cast<std::uint32_t>(*made), false);
          continue;
        }
        const std::span<const TensorIndex> written = written_for(input);
        for (const TensorIndex tensor : written) reads[lowered_.tensors[tensor].step] = true;
        if (written.empty() && lowered_.tensors[input].source != Source::weight) reads.emplace(steps + input, false);
      }
      for (const auto& [value, in_memory] : reads) stages[step].reads.push_back({value, in_memory});
      const KernelRequest& request = lowered_.steps[step].kernel->request;
      stages[step].kept = is_kept(step);
      stages[step].repeatable = joins_[step] != 0 && (moves(step) || (rules_.repeats && rules_.repeats(request)));
    }
    return stages;
  }

  /// The walk's groups without those that nobody needs, because all readers compute what they make.
  [[nodiscard]] std::vector<StageGroup> cover() const {
    const auto makes = [&](std::size_t number, const std::vector<char>& needed) {
      const Numbers& members = groups_[number].members;
      return std::any_of(members.begin(), members.end(),
                         [&](std::size_t step) { return needed[step] != 0 || is_kept(step); });
    };
    std::vector<char> needed(lowered_.steps.size(), 0), is_read(groups_.size(), 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        if (is_read[i] != 0 || groups_[i].members.empty() || !makes(i, needed)) continue;
        is_read[i] = 1;
        changed = true;
        for (const std::size_t step : read_by(groups_[i])) needed[step] = 1;
      }
    }
    std::vector<StageGroup> cover;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (is_read[i] == 0) continue;
      Group group = groups_[i];
      // A step that is computed here only is no repeat.
      const std::vector<std::size_t> copied(group.copied.rbegin(), group.copied.rend());
      for (const std::size_t step : copied) {
        const std::vector<TensorIndex>& outputs = lowered_.steps[step].outputs;
        if (std::any_of(outputs.begin(), outputs.end(), [&](TensorIndex one) { return is_used_outside(one, group); }) ||
            reads_from_memory(group, step))
          continue;
        group.copied.erase(step);
        group.members.insert(step);
      }
      cover.push_back({{group.members.begin(), group.members.end()}, {group.copied.begin(), group.copied.end()}});
    }
    return cover;
  }

  /// The steps whose results a group reads from memory.
  [[nodiscard]] Numbers read_by(const Group& group) const {
    Numbers read;
    Numbers all = group.members;
    all.insert(group.copied.begin(), group.copied.end());
    for (const std::size_t step : all)
      for (const TensorIndex input : lowered_.steps[step].inputs)
        for (const TensorIndex written : written_for(input)) {
          const std::size_t made = lowered_.tensors[written].step;
          if (!all.contains(made) || !producer(input)) read.insert(made);
        }
    return read;
  }

  /// Whether two steps may be together: they are a kernel, or in one by the walk. A concatenation is with others only
  /// where these move elements, or concatenate, and one reads the other: what computes may write its operands in place
  /// (runtime/concat_in_place.h), and it is no kernel at all.
  [[nodiscard]] bool link(std::size_t a, std::size_t b) const {
    if (joins_[a] == 0 || joins_[b] == 0) return false;
    for (const std::size_t one : {group_of_[a], group_of_[b]}) {
      const Group& group = groups_[one];
      const auto in_it = [&](std::size_t step) { return group.members.contains(step) || group.copied.contains(step); };
      if (in_it(a) && in_it(b)) return true;
    }
    const auto reads = [&](std::size_t reader, std::size_t read) {
      const std::vector<TensorIndex>& inputs = lowered_.steps[reader].inputs;
      return std::any_of(inputs.begin(), inputs.end(), [&](TensorIndex input) { return producer(input) == read; });
    };
    const auto concatenates = [&](std::size_t step) { return lowered_.steps[step].kernel->request.op == "concat"; };
    if (concatenates(a) || concatenates(b))
      for (const std::size_t step : {a, b})
        if (!reads(b, a) || !(moves(step) || concatenates(step))) return false;
    const Group both{{a, b}, {}}, repeats{{b}, {a}};
    return is_kernel(both) || is_kernel(repeats);
  }

  /// Whether a step is computed once more that reads one result of a step with several from memory: which of them are
  /// stored is more than groups of stages say.
  [[nodiscard]] bool repeats_of_several(const Group& group) const {
    for (const std::size_t step : group.copied)
      for (const TensorIndex input : lowered_.steps[step].inputs)
        if (const auto made = producer(input); made && joins_[*made] != 0 && lowered_.steps[*made].outputs.size() > 1)
          if (!group.members.contains(*made) && !group.copied.contains(*made)) return true;
    return false;
  }

  [[nodiscard]] bool stores_what_it_reads() const {
    std::set<TensorIndex> stored;
    std::vector<TensorIndex> read;
    for (const std::optional<Planned>& planned : planned_) {
      if (!planned) continue;
      stored.insert(planned->outputs.begin(), planned->outputs.end());
      for (const TensorIndex input : planned->inputs)
        for (const TensorIndex written : written_for(input)) read.push_back(written);
    }
    return std::all_of(read.begin(), read.end(), [&](TensorIndex one) { return stored.contains(one); });
  }

  /// Of the groups; nothing where one is empty.
  [[nodiscard]] std::vector<std::optional<Planned>> plans() const {
    std::vector<std::optional<Planned>> planned(groups_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (!groups_[i].members.empty()) planned[i] = plan(groups_[i]);
    return planned;
  }

  void take(const std::vector<StageGroup>& chosen) {
    std::vector<char> is_taken(lowered_.steps.size(), 0);
    groups_.assign(lowered_.steps.size(), {});
    for (const StageGroup& group : chosen) {
      const std::size_t number = group.members[0];
      groups_[number].members = {group.members.begin(), group.members.end()};
      groups_[number].copied = {group.repeats.begin(), group.repeats.end()};
      for (const std::uint32_t member : group.members) {
        group_of_[member] = number;
        is_taken[member] = 1;
      }
    }
    for (std::size_t step = 0; step < lowered_.steps.size(); ++step)
      if (is_taken[step] == 0) {  // computed by its readers
        groups_[step].members = {step};
        group_of_[step] = step;
      }
  }

  // ---- The walk.

  [[nodiscard]] bool moves(std::size_t step) const { return only_moves(lowered_.steps[step].kernel->request); }

  /// Joins one more producer to a group, or computes one here that moves elements. False if there is none to be.
  bool join_a_producer(std::size_t consumer) {
    Group& group = groups_[consumer];
    Numbers all = group.members;
    all.insert(group.copied.begin(), group.copied.end());
    for (const std::size_t step : all)
      for (const TensorIndex input : lowered_.steps[step].inputs) {
        const auto made = producer(input);
        if (!made || joins_[*made] == 0 || all.contains(*made) ||
            !refused_.insert({*made, consumer, all.size()}).second)
          continue;
        if (moves(*made) && groups_[group_of_[*made]].members.size() == 1) {
          Group with = group;
          with.copied.insert(*made);
          if (!is_kernel(with)) continue;
          group = std::move(with);
          return true;
        }
        if (join(group_of_[*made], consumer) || join_three(group_of_[*made], consumer)) return true;
      }
    return false;
  }

  /// One group of a consumer, of what it reads of a group, and of what that reads of another, where no two of them are
  /// one kernel: attention, which is two products and what stands between.
  bool join_three(std::size_t middle, std::size_t consumer) {
    const Numbers of_middle = groups_[middle].members;  // which may change and change back
    for (const std::size_t step : of_middle)
      for (const TensorIndex input : lowered_.steps[step].inputs) {
        const auto made = producer(input);
        if (!made) continue;
        const std::size_t first = group_of_[*made];
        if (first == middle || first == consumer || !has_product(first) || !has_product(consumer)) continue;
        const Group both = united(groups_[first], groups_[middle]), all = united(both, groups_[consumer]);
        if (!is_kernel(all) || leads_round(first, middle)) continue;
        const std::vector<Group> before = groups_;
        const std::vector<std::size_t> group_before = group_of_;
        take(first, middle, both);
        if (!leads_round(middle, consumer)) {
          take(middle, consumer, all);
          return true;
        }
        groups_ = before;
        group_of_ = group_before;
      }
    return false;
  }

  [[nodiscard]] bool has_product(std::size_t group) const {
    return std::any_of(groups_[group].members.begin(), groups_[group].members.end(),
                       [&](std::size_t step) { return lowered_.steps[step].kernel->request.op.starts_with("matmul"); });
  }

  [[nodiscard]] static Group united(const Group& first, const Group& second) {
    Group both = second;
    both.members.insert(first.members.begin(), first.members.end());
    both.copied.insert(first.copied.begin(), first.copied.end());
    for (const std::size_t member : both.members) both.copied.erase(member);
    return both;
  }

  /// The second group becomes `both`, the first nothing.
  void take(std::size_t first, std::size_t second, Group both) {
    for (const std::size_t member : groups_[first].members) group_of_[member] = second;
    groups_[first] = {};
    groups_[second] = std::move(both);
  }

  /// Whether a group is wanted as one kernel, and can be.
  [[nodiscard]] bool is_kernel(const Group& group) const { return verdict_of(group).is_kernel; }

  [[nodiscard]] FusionCache::Verdict verdict_of(const Group& group) const {
    if (reads_what_it_stores(group)) return {};
    const Hash128 key = key_of(group, 0);
    if (const FusionCache::Verdict* const known = cache_.find(key)) return *known;
    const Planned planned = plan(group);
    return cache_.insert(key, {rules_.fuses(planned.request), cost_of(planned.request)});
  }

  /// Whether it reads a view of what it makes itself, which is in memory only afterwards.
  [[nodiscard]] bool reads_what_it_stores(const Group& group) const {
    const auto from_memory = [&](std::size_t step) { return !from_memory_[step].empty(); };
    if (std::none_of(group.members.begin(), group.members.end(), from_memory) &&
        std::none_of(group.copied.begin(), group.copied.end(), from_memory))
      return false;
    return std::any_of(group.members.begin(), group.members.end(),
                       [&](std::size_t member) { return reads_from_memory(group, member); });
  }

  /// Whether a group reads what a step makes from memory, though it may compute it: as a view that is no reshape.
  [[nodiscard]] bool reads_from_memory(const Group& group, std::size_t step) const {
    const auto reads = [&](std::size_t reader) {
      const std::vector<std::size_t>& read = from_memory_[reader];
      return std::find(read.begin(), read.end(), step) != read.end();
    };
    return std::any_of(group.members.begin(), group.members.end(), reads) ||
           std::any_of(group.copied.begin(), group.copied.end(), reads);
  }

  /// What a group's request is made of: its steps' requests, what they read of each other, and what others read.
  [[nodiscard]] Hash128 key_of(const Group& group, std::uint64_t purpose) const {
    std::vector<std::size_t> steps;
    std::set_union(group.members.begin(), group.members.end(), group.copied.begin(), group.copied.end(),
                   std::back_inserter(steps));
    const auto number = [](const auto& of, auto one) {
      return static_cast<std::uint64_t>(std::find(of.begin(), of.end(), one) - of.begin());
    };
    std::vector<TensorIndex> read;
    Hasher key;
    for (const std::size_t step : steps) {
      const LoweredStep& lowered = lowered_.steps[step];
      key.add(lowered.kernel->key_hash).add(std::uint64_t{group.members.contains(step)});
      for (TensorIndex input : lowered.inputs) {
        const auto made = producer(input);
        if (!made || !std::binary_search(steps.begin(), steps.end(), *made)) {
          const std::uint64_t place = number(read, input);
          if (place == read.size()) read.push_back(input);
          key.add(std::uint64_t{0}).add(place);
          continue;
        }
        key.add(std::uint64_t{1}).add(number(steps, *made));
        for (; lowered_.tensors[input].source == Source::view; input = lowered_.tensors[input].index)
          for (const std::int64_t extent : lowered_.tensors[input].type.shape) key.add(extent);
        key.add(number(lowered_.steps[*made].outputs, input));
      }
      if (group.members.contains(step))
        for (const TensorIndex output : lowered.outputs) key.add(std::uint64_t{is_used_outside(output, group)});
    }
    return key.finish(purpose);
  }

  /// The same of steps of which groups may be made, and of whose results they read one (repeats_of_several).
  [[nodiscard]] Hash128 identity_of(std::span<const std::uint32_t> part) const {
    Hasher identity;
    identity.add(key_of(Group{{part.begin(), part.end()}, {}}, 2));
    for (const std::uint32_t step : part)
      for (const TensorIndex input : lowered_.steps[step].inputs) {
        const auto made = producer(input);
        identity.add(std::uint64_t{made && joins_[*made] != 0 && lowered_.steps[*made].outputs.size() > 1});
      }
    return identity.finish();
  }

  /// One group of two, if it may be: the consumer's.
  bool join(std::size_t first, std::size_t second) {
    Group both = united(groups_[first], groups_[second]);
    if (!is_kernel(both) || leads_round(first, second)) return false;
    take(first, second, std::move(both));
    return true;
  }

  /// Whether a step of the second group waits for one outside that waits for one of the first.
  [[nodiscard]] bool leads_round(std::size_t first, std::size_t second) const {
    std::vector<char> seen(groups_.size(), 0);
    std::vector<std::size_t> stack;
    const auto visit_readers = [&](std::size_t group) {
      for (const std::size_t reader : readers_of(groups_[group])) {
        if (seen[reader] != 0 || (group == first && reader == second)) continue;
        seen[reader] = 1;
        stack.push_back(reader);
      }
    };
    visit_readers(first);
    while (!stack.empty()) {
      const std::size_t group = stack.back();
      stack.pop_back();
      if (group == second) return true;
      if (group != first) visit_readers(group);
    }
    return false;
  }

  /// The groups of the steps that read what a group writes, also of those that only move it and are computed elsewhere
  /// besides.
  [[nodiscard]] Numbers readers_of(const Group& group) const {
    Numbers readers;
    for (const std::size_t member : group.members)
      for (const TensorIndex output : lowered_.steps[member].outputs)
        for (const std::size_t reader : read_by_[output])
          if (!group.members.contains(reader)) readers.insert(group_of_[reader]);
    return readers;
  }

  /// The groups in an order of execution: of those that can be next, the one whose last step came first.
  [[nodiscard]] std::vector<std::size_t> ordered() const {
    std::vector<std::set<std::size_t>> waits_for(groups_.size()), waited_for_by(groups_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (!planned_[i]) continue;
      for (const TensorIndex input : planned_[i]->inputs)
        for (const TensorIndex written : written_for(input)) {
          const std::size_t writer = group_of_[lowered_.tensors[written].step];
          TASO_CHECK(writer != i, "a fused kernel reads what it writes");
          waits_for[i].insert(writer);
          waited_for_by[writer].insert(i);
        }
    }
    std::set<std::pair<std::size_t, std::size_t>> ready;  // by last step
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (planned_[i] && waits_for[i].empty()) ready.emplace(*groups_[i].members.rbegin(), i);
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t next = ready.begin()->second;
      ready.erase(ready.begin());
      order.push_back(next);
      for (const std::size_t reader : waited_for_by[next]) {
        waits_for[reader].erase(next);
        if (waits_for[reader].empty()) ready.emplace(*groups_[reader].members.rbegin(), reader);
      }
    }
    const auto groups =
        std::count_if(planned_.begin(), planned_.end(), [](const auto& one) { return one.has_value(); });
    TASO_CHECK(static_cast<std::ptrdiff_t>(order.size()) == groups, "fused kernels wait for each other");
    return order;
  }

  const LoweredGraph& lowered_;
  const FusionRules& rules_;
  FusionCache& cache_;
  std::vector<TensorIndex> wholes_;                         ///< Per tensor: what it is a view of, itself if of none.
  std::vector<std::optional<std::size_t>> producers_;       ///< Per tensor.
  std::vector<std::vector<std::size_t>> read_by_;           ///< Per tensor that a step writes; ascending.
  std::vector<char> escapes_;                               ///< Such a tensor is an output, or a piece of another.
  std::map<TensorIndex, std::vector<TensorIndex>> pieces_;  ///< Per concatenation made in place.
  std::vector<std::vector<std::size_t>> from_memory_;       ///< Per step: those of whose results it reads views.
  std::vector<Group> groups_;                               ///< Empty where joined to another.
  std::vector<std::size_t> group_of_;                       ///< Per step.
  std::vector<std::optional<Planned>> planned_;             ///< plans() of the groups that were chosen.
  std::vector<char> joins_;                                 ///< Per step: it can be a part.
  /// A producer, a group and the steps it had: what need not be tried again.
  std::set<std::tuple<std::size_t, std::size_t, std::size_t>> refused_;
};

}  // namespace

const FusionCache::Verdict* FusionCache::find(const Hash128& group) const {
  const auto place = verdicts_.find(group);
  return place == verdicts_.end() ? nullptr : &place->second;
}

FusionCache::Verdict FusionCache::insert(const Hash128& group, const Verdict& verdict) {
  constexpr std::size_t most = 500'000;
  if (verdicts_.size() >= most) verdicts_.clear();
  return verdicts_[group] = verdict;
}

LoweredGraph fuse_steps(LoweredGraph lowered, const FusionRules& rules, FusionCache* cache,
                        FusionStatistics* statistics) {
  FusionCache own;
  for (FusionCache* const used : {cache, &own}) {
    if (used == nullptr) continue;
    Fusion fusion(lowered, rules, *used);
    fusion.walk();
    fusion.choose(statistics);
    std::vector<LoweredStep> steps = fusion.result();
    std::set<Hash128> asked;
    const auto is_so = [&](const LoweredStep& step) {
      const PlannedKernel& kernel = *step.kernel;
      return !kernel.request.fused || !asked.insert(kernel.key_hash).second || rules.fuses(kernel.request);
    };
    if (used == &own || std::all_of(steps.begin(), steps.end(), is_so)) {
      lowered.steps = std::move(steps);
      for (std::uint32_t step = 0; step < lowered.steps.size(); ++step)
        for (const TensorIndex output : lowered.steps[step].outputs) lowered.tensors[output].step = step;
      return lowered;
    }
    cache->clear();
  }
  return lowered;
}

}  // namespace taso
