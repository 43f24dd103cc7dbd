#include "session/all_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "certificate/occurrence.h"

namespace taso {
namespace {

Hash128 appearance(const Graph& graph, const Substitution& rule, const Match& match) {
  Hasher hasher;
  hasher.add(rule.name);
  for (const Value& value : match.variables) hasher.add(to_string(graph.type(value)));
  for (const NodeId id : match.nodes) hasher.add(graph.node(id).label);
  for (const auto& value : match.attributes) hasher.add(value ? to_string(*value) : "");
  return hasher.finish();
}

/// A sample that is one of two graphs, as a position in the samples of each.
struct CommonSample {
  std::size_t first, second;
  std::int64_t elements;  ///< elements_at_once of the graph that needs more.
};

/// The one that needs least.
std::optional<CommonSample> smallest_common_sample(const SizedGraph& a, const SizedGraph& b) {
  std::optional<CommonSample> smallest;
  for (std::size_t j = 0; j < b.numbers.size(); ++j)
    for (std::size_t i = 0; i < a.numbers.size(); ++i) {
      if (a.numbers[i] != b.numbers[j]) continue;
      const std::int64_t elements = std::max(elements_at_once(a.samples[i]), elements_at_once(b.samples[j]));
      if (!smallest || elements < smallest->elements) smallest = {i, j, elements};
    }
  return smallest;
}

}  // namespace

std::vector<CertificateStep> steps_of(const std::vector<RuleApplication>& applications) {
  std::vector<CertificateStep> steps;
  for (const RuleApplication& application : applications) steps.push_back({application.rule, application.match});
  return steps;
}

bool RefusedPlaces::add(const Graph& graph, const Substitution& rule, const Match& match, const std::string& reason) {
  const Hash128 place = appearance(graph, rule, match);
  const auto at = std::lower_bound(places_.begin(), places_.end(), place);
  if (at != places_.end() && *at == place) return false;
  places_.insert(at, place);
  std::string text = rule.name + ": " + reason;
  if (std::find(reasons_.begin(), reasons_.end(), text) == reasons_.end()) reasons_.push_back(std::move(text));
  return true;
}

bool RefusedPlaces::contains(const Graph& graph, const Substitution& rule, const Match& match) const {
  return !places_.empty() && std::binary_search(places_.begin(), places_.end(), appearance(graph, rule, match));
}

Expected<SizedGraph> AllSizes::repeat(const std::vector<RuleApplication>& applications, std::size_t* failed) const {
  std::vector<CertificateStep> steps = steps_of(applications);
  for (CertificateStep& step : steps) forget_sizes(step.match);
  std::map<std::string, std::size_t> uses;
  return model_.symbolic()->repeat(rules_, steps, uses, failed);
}

OptimizeOptions::AtAllSizes AllSizes::check(const std::vector<RuleApplication>& applications) {
  using AtAllSizes = OptimizeOptions::AtAllSizes;
  std::size_t failed = applications.size();
  const Expected<SizedGraph> graph = repeat(applications, &failed);
  if (graph) {
    const Status written = model_.symbolic()->can_save(*graph);
    if (written) return AtAllSizes::holds;
    unwritable_.insert(written.error().message);
    return AtAllSizes::fails;
  }
  if (failed >= applications.size()) return AtAllSizes::fails;
  // The graph in which the step was taken.
  Graph before = model_.model().graph();
  normalize(before, registry_);
  for (std::size_t i = 0; i < failed; ++i) {
    Expected<Graph> next = apply(before, rule(applications[i]), applications[i].match, registry_);
    if (!next) return AtAllSizes::fails;
    before = std::move(*next);
  }
  const bool added = refused_.add(before, rule(applications[failed]), applications[failed].match,
                                  graph.error().message.substr(graph.error().message.find(": ") + 2));
  return added ? AtAllSizes::refused : AtAllSizes::fails;
}

std::vector<std::string> AllSizes::notes() const {
  const std::string ranges = to_string(model_.symbolic()->ranges());
  std::vector<std::string> notes = {
      model_.sizes().empty()
          ? "extents that depend on elements are kept: the result is for all of them; costs are those at some"
          : fmt::format("symbolic extents are kept: the result is for {}; costs are those at {}",
                        ranges.empty() ? "all sizes" : ranges, to_string(model_.sizes()))};
  for (const std::string& reason : refused_.reasons())
    notes.push_back("not done, as it does not hold at all sizes: " + reason);
  for (const std::string& reason : unwritable_)
    notes.push_back("not done, as there is no form of it for all sizes: " + reason);
  return notes;
}

Expected<std::string> AllSizes::check_at_another_size(const SizedGraph& result, const KernelLibrary& library,
                                                      CheckOptions options) const {
  TASO_ASSIGN(const SizedGraph original, repeat({}));
  const std::optional<CommonSample> both = smallest_common_sample(original, result);
  if (!both) return std::string();
  options.inputs = 1;
  const SymbolSizes& chosen = model_.symbolic()->samples()[original.numbers[both->first]];
  const std::string at = chosen.empty() ? "other extents" : to_string(chosen);
  if (both->elements > std::max(most_elements, elements_at_once(model_.model().graph())))
    return fmt::format("not checked at {}: {} elements are needed there at once", at, both->elements);
  TASO_ASSIGN(const CheckReport report,
              taso::check(original.samples[both->first], result.samples[both->second], library, options));
  if (!report.passed) return Error{ErrorCode::check_failed, fmt::format("at {}: {}", at, report.failure()), {}};
  return fmt::format("check at {}: {}", at, report.summary());
}

const Substitution& AllSizes::rule(const RuleApplication& application) const {
  return *std::find_if(rules_.begin(), rules_.end(),
                       [&](const Substitution& rule) { return rule.name == application.rule; });
}

}  // namespace taso
