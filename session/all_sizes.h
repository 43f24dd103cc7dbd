/// The steps of an optimization of a model with symbolic extents, repeated at all sizes.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "certificate/certificate.h"
#include "certificate/symbolic_model.h"
#include "graph/pattern.h"
#include "graph/rewrite.h"
#include "operators/registry.h"
#include "optimizer/check.h"
#include "optimizer/optimize.h"
#include "optimizer/trace.h"
#include "runtime/kernel.h"
#include "session/sized_model.h"
#include "support/hash.h"
#include "support/status.h"

namespace taso {

/// The applications as steps of a certificate.
[[nodiscard]] std::vector<CertificateStep> steps_of(const std::vector<RuleApplication>& applications);

/// Places at which a step does not hold at all sizes, by their appearance: the rule, the types of what it reads and the
/// attributes, at the sizes for which costs count.
class RefusedPlaces {
 public:
  /// Adds a place and why. False if there is an equal one.
  bool add(const Graph& graph, const Substitution& rule, const Match& match, const std::string& reason);
  [[nodiscard]] bool contains(const Graph& graph, const Substitution& rule, const Match& match) const;
  /// "RULE: REASON", each once.
  [[nodiscard]] const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  std::vector<Hash128> places_;  ///< Ascending.
  std::vector<std::string> reasons_;
};

/// Repeats the steps of a search at all sizes, and remembers at which places they do not hold. For a model that is
/// taken at all sizes (SizedModel::symbolic).
class AllSizes {
 public:
  /// `model` and `registry` must outlive this object; `rules` are those that applications name.
  AllSizes(const SizedModel& model, std::vector<Substitution> rules, const OperatorRegistry& registry)
      : model_(model), registry_(registry), rules_(std::move(rules)) {}

  /// The graph that the applications make of the model: SymbolicModel::repeat.
  [[nodiscard]] Expected<SizedGraph> repeat(const std::vector<RuleApplication>& applications,
                                            std::size_t* failed = nullptr) const;
  /// For OptimizeOptions::at_all_sizes: a step that does not hold is remembered.
  [[nodiscard]] OptimizeOptions::AtAllSizes check(const std::vector<RuleApplication>& applications);
  /// Where steps did not hold.
  [[nodiscard]] const RefusedPlaces& refused() const { return refused_; }
  /// For people: for which sizes the result is, and what was not done.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// Checks a result, repeat() of its applications, numerically at the sample that needs least: it is to take little
  /// time, and no more memory than most_elements, or the sizes for which costs count. The value says what was found, or
  /// that this needs more, for people; empty: there is no such sample. A result that computes something else is an
  /// error of code check_failed.
  [[nodiscard]] Expected<std::string> check_at_another_size(const SizedGraph& result, const KernelLibrary& library,
                                                            CheckOptions options) const;

 private:
  [[nodiscard]] const Substitution& rule(const RuleApplication& application) const;

  const SizedModel& model_;
  const OperatorRegistry& registry_;
  std::vector<Substitution> rules_;
  RefusedPlaces refused_;
  std::set<std::string> unwritable_;  ///< Why graphs have no form in a file for all sizes.
};

}  // namespace taso
