#include "generator/joint.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>

namespace taso {
namespace {

/// A way to compute a class: a term with one output.
struct Way {
  TermId root = 0;
  ClassId value = 0;
  std::uint32_t ops = 0;         ///< Operators that run, the root included.
  std::uint64_t first_term = 0;  ///< All operators, in the arena; ascending, so that those on weights come first.
  std::uint32_t term_count = 0;
};

using WayId = std::uint32_t;

class JointSearch {
 public:
  JointSearch(const Bank& bank, const JointSink& emit)
      : bank_(bank), emit_(emit), max_ops_(static_cast<std::uint32_t>(bank.levels().size()) - 1) {}

  void run() {
    if (max_ops_ < 2) return;
    make_ways();
    make_index();
    for (WayId first = 0; first < ways_.size(); ++first) {
      if (orbit_[ways_[first].value] != ways_[first].value) continue;
      consider({first});
      const std::vector<WayId> near = neighbours(first, {first});
      for (std::size_t i = 0; i < near.size(); ++i) {
        consider({first, near[i]});
        // A third sink hangs on the first, or else on the second one only: each set comes once.
        for (const WayId third : neighbours(first, {first, near[i]}))
          if (third > near[i] || !std::binary_search(near.begin(), near.end(), third))
            consider({first, near[i], third});
      }
    }
  }

 private:
  static constexpr std::size_t max_outputs = 3;
  /// Of the smallest ways to compute a value only so many are tried as sources.
  static constexpr std::size_t max_sources = 8;

  [[nodiscard]] std::span<const TermId> terms_of(const Way& way) const {
    return {terms_.data() + way.first_term, way.term_count};
  }

  /// All ways with fewer operators than the largest terms, in an order in which the first of an orbit comes first.
  void make_ways() {
    const std::vector<ValueClass>& classes = bank_.classes();
    const Symmetry& symmetry = bank_.symmetry();
    std::size_t stored = 0;
    while (stored < classes.size() && (classes[stored].is_input || classes[stored].ops < max_ops_)) ++stored;
    orbit_.resize(stored);
    for (ClassId id = 0; id < stored; ++id) {
      orbit_[id] = id;
      const ClassId* const images = symmetry.images(id);
      for (std::size_t element = 0; element < symmetry.size(); ++element)
        if (images[element] != Symmetry::none) orbit_[id] = std::min(orbit_[id], images[element]);
    }
    auto add = [&](TermId root, ClassId value, std::uint32_t ops) {
      if (bank_.output_count(root) != 1) return;
      Way way{root, value, ops, terms_.size(), 0};
      const std::vector<TermId> below = bank_.union_of_terms(bank_.terms()[root].inputs());
      terms_.insert(terms_.end(), below.begin(), below.end());
      terms_.push_back(root);
      way.term_count = static_cast<std::uint32_t>(terms_.size() - way.first_term);
      ways_.push_back(way);
    };
    for (ClassId id = 0; id < stored; ++id)
      if (!classes[id].is_input && classes[id].ops > 0) add(classes[id].index, id, classes[id].ops);
    for (const Hit& hit : bank_.hits())
      if (hit.ops > 0 && hit.ops < max_ops_ && !classes[hit.value].is_input && classes[hit.value].ops > 0)
        add(hit.term, hit.value, hit.ops);
    std::stable_sort(ways_.begin(), ways_.end(), [&](const Way& a, const Way& b) {
      return std::pair(orbit_[a.value], a.value) < std::pair(orbit_[b.value], b.value);
    });
    of_class_.assign(stored, {});
    smallest_.assign(stored, {});
    for (WayId id = 0; id < ways_.size(); ++id) {
      const Way& way = ways_[id];
      if (way.root == classes[way.value].index) of_class_[way.value] = id;
      std::vector<WayId>& smallest = smallest_[way.value];
      if (way.ops == classes[way.value].ops && smallest.size() < max_sources) smallest.push_back(id);
    }
    class_of_term_.clear();
    for (ClassId id = 0; id < stored; ++id)
      if (!classes[id].is_input && classes[id].ops > 0 && bank_.output_count(classes[id].index) == 1)
        class_of_term_[classes[id].index] = id;
  }

  /// From an operator to the ways that contain it, by their size.
  void make_index() {
    for (WayId id = 0; id < ways_.size(); ++id)
      for (const TermId term : terms_of(ways_[id]))
        if (!bank_.is_weight_term(term)) containing_[{term, ways_[id].ops}].push_back(id);
    stamp_.assign(ways_.size(), 0);
  }

  /// Adds the terms of a way; the number of operators that run.
  std::uint32_t add_terms(std::vector<TermId>& terms, const Way& way) const {
    std::vector<TermId> merged;
    const std::span<const TermId> more = terms_of(way);
    std::set_union(terms.begin(), terms.end(), more.begin(), more.end(), std::back_inserter(merged));
    terms = std::move(merged);
    return running(terms);
  }
  [[nodiscard]] std::uint32_t running(const std::vector<TermId>& terms) const {
    const auto begin =
        std::partition_point(terms.begin(), terms.end(), [&](TermId term) { return bank_.is_weight_term(term); });
    return static_cast<std::uint32_t>(terms.end() - begin);
  }
  [[nodiscard]] std::vector<TermId> graph_of(std::span<const WayId> ways) const {
    std::vector<TermId> terms;
    for (const WayId way : ways) add_terms(terms, ways_[way]);
    return terms;
  }

  /// Ways after `first` that share an operator with the last of the sinks and make a graph of the right size with all
  /// of them, none of which contains another.
  std::vector<WayId> neighbours(WayId first, const std::vector<WayId>& sinks) {
    std::vector<WayId> found;
    const std::vector<TermId> terms = graph_of(sinks);
    const std::uint32_t ops = running(terms), limit = max_ops_ - 1;
    if (ops >= limit) return found;  // another sink has at least one operator of its own
    ++round_;
    for (const WayId sink : sinks) stamp_[sink] = round_;
    for (const TermId term : terms) {
      if (bank_.is_weight_term(term)) continue;
      for (std::uint32_t size = 2; size < limit; ++size) {
        const auto at = containing_.find({term, size});
        if (at == containing_.end()) continue;
        for (auto it = std::upper_bound(at->second.begin(), at->second.end(), first); it != at->second.end(); ++it) {
          if (stamp_[*it] == round_) continue;
          stamp_[*it] = round_;
          const Way& way = ways_[*it];
          if (std::binary_search(terms.begin(), terms.end(), way.root)) continue;
          const std::span<const TermId> own = terms_of(way);
          if (std::any_of(sinks.begin(), sinks.end(),
                          [&](WayId sink) { return std::binary_search(own.begin(), own.end(), ways_[sink].root); }))
            continue;
          std::vector<TermId> all = terms;
          if (add_terms(all, way) <= limit) found.push_back(*it);
        }
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  /// All choices of outputs of a graph.
  void consider(const std::vector<WayId>& sinks) {
    const std::vector<TermId> terms = graph_of(sinks);
    if (running(terms) >= max_ops_ || !has_alternative_weights(terms)) return;
    std::vector<WayId> inner;
    for (const TermId term : terms) {
      const auto at = class_of_term_.find(term);
      if (at == class_of_term_.end()) continue;
      const WayId way = of_class_[at->second];
      if (std::find(sinks.begin(), sinks.end(), way) == sinks.end() &&
          std::none_of(sinks.begin(), sinks.end(), [&](WayId sink) { return ways_[sink].value == at->second; }))
        inner.push_back(way);
    }
    for (std::size_t i = 0; i < sinks.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (ways_[sinks[i]].value == ways_[sinks[j]].value) return;  // one value twice
    std::vector<WayId> outputs = sinks;
    choose_outputs(outputs, inner, 0);
  }

  [[nodiscard]] bool has_alternative_weights(const std::vector<TermId>& terms) const {
    return static_cast<int>(terms.size() - running(terms)) <= bank_.group().max_weight_ops;
  }

  void choose_outputs(std::vector<WayId>& outputs, const std::vector<WayId>& inner, std::size_t begin) {
    if (outputs.size() >= 2) choose_sources(outputs);
    if (outputs.size() == max_outputs) return;
    for (std::size_t i = begin; i < inner.size(); ++i) {
      outputs.push_back(inner[i]);
      choose_outputs(outputs, inner, i + 1);
      outputs.pop_back();
    }
  }

  void choose_sources(const std::vector<WayId>& targets) {
    if (std::all_of(targets.begin(), targets.end(), [&](WayId way) {
          const std::vector<WayId>& smallest = smallest_[ways_[way].value];
          return smallest.size() == 1 && smallest[0] == way;
        }))
      return;
    const std::uint32_t ops = running(graph_of(targets));
    std::array<WayId, max_outputs> sources{};
    auto choose = [&](auto&& self, std::size_t output) -> void {
      if (output == targets.size()) {
        const std::span<const WayId> chosen(sources.data(), targets.size());
        const std::uint32_t source_ops = running(graph_of(chosen));
        if (source_ops > ops && source_ops <= max_ops_ && !is_padded(chosen, targets)) emit(chosen, targets);
        return;
      }
      for (const WayId way : smallest_[ways_[targets[output]].value]) {
        sources[output] = way;
        self(self, output + 1);
      }
    };
    choose(choose, 0);
  }

  /// Whether the target is smaller without an output, too, that both sides compute alike.
  [[nodiscard]] bool is_padded(std::span<const WayId> sources, const std::vector<WayId>& targets) const {
    if (targets.size() < 3) return false;
    for (std::size_t left_out = 0; left_out < targets.size(); ++left_out) {
      if (sources[left_out] != targets[left_out]) continue;
      std::vector<WayId> from, to;
      for (std::size_t i = 0; i < targets.size(); ++i) {
        if (i == left_out) continue;
        from.push_back(sources[i]);
        to.push_back(targets[i]);
      }
      if (running(graph_of(to)) < running(graph_of(from))) return true;
    }
    return false;
  }

  void emit(std::span<const WayId> sources, const std::vector<WayId>& targets) const {
    std::vector<TermOutput> source, target;
    for (const WayId way : sources) source.push_back({false, ways_[way].root, 0});
    for (const WayId way : targets) target.push_back({false, ways_[way].root, 0});
    emit_(source, target);
  }

  const Bank& bank_;
  const JointSink& emit_;
  std::uint32_t max_ops_;
  std::vector<ClassId> orbit_;  ///< Per class below the last level: the first class that a renaming takes it to.
  std::vector<Way> ways_;
  std::vector<TermId> terms_;                 ///< The arena of the ways' operators.
  std::vector<WayId> of_class_;               ///< Per class: the way by its representative.
  std::vector<std::vector<WayId>> smallest_;  ///< Per class: its smallest ways.
  std::map<TermId, ClassId> class_of_term_;   ///< Of the classes of representatives with one output.
  std::map<std::pair<TermId, std::uint32_t>, std::vector<WayId>> containing_;
  std::vector<std::uint32_t> stamp_;
  std::uint32_t round_ = 0;
};

}  // namespace

void find_joint_equalities(const Bank& bank, const JointSink& emit) { JointSearch(bank, emit).run(); }

}  // namespace taso
