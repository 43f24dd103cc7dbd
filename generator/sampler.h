/// Random instances of rules: shapes and attribute values, as a profile declares them and otherwise.
///
/// Instances start from a few hundred assignments to the symbols of a group, which are drawn once for all its
/// candidates: what is evaluated for one candidate serves the next (generator/compare.h).
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "generator/candidates.h"
#include "generator/compare.h"
#include "support/random.h"

namespace taso {

/// Values of a group's symbols.
using Symbols = std::vector<std::optional<AttributeValue>>;

/// A concrete instance of a rule.
struct Sample {
  std::vector<TensorType> types;
  std::vector<std::optional<AttributeValue>> attributes;
  bool declared = true;  ///< As the profile declares: not mutated.
};

/// Whether an expression over the symbols of a group has any.
[[nodiscard]] bool mentions_symbol(const AttributeExpression& expression);

/// How extents are drawn.
enum class Extents : std::uint8_t {
  any,
  alike,   ///< Equal, as far as their ranges allow: other axes and permutations are well-typed, too.
  grouped  ///< Often such that one divides another, so that one that is multiplied alone may make groups.
};
/// Random values of all symbols; false if a derived extent is not positive.
[[nodiscard]] bool draw_symbols(const ProfileGroup& group, Random& random, Extents extents, Symbols& symbols);
/// The type of a class's representative at these values of the symbols; empty if it is ill-typed.
[[nodiscard]] std::optional<TensorType> type_of(const Bank& bank, InstanceComparer& comparer, ClassId id,
                                                const Symbols& symbols);

/// Assignments to the symbols of a group, and the types of classes at each.
class AssignmentPool {
 public:
  AssignmentPool(const Bank& bank, InstanceComparer& comparer, std::uint64_t seed);
  /// Assignments of either kind: `grouped`, or any and some with extents alike.
  [[nodiscard]] const std::vector<Symbols>& assignments(bool grouped) const { return assignments_[grouped ? 1 : 0]; }
  /// The type of a class at each assignment.
  [[nodiscard]] const std::vector<std::optional<TensorType>>& types(ClassId id, bool grouped);

 private:
  const Bank& bank_;
  InstanceComparer& comparer_;
  std::vector<Symbols> assignments_[2];
  std::unordered_map<ClassId, std::vector<std::optional<TensorType>>> types_[2];
};

/// Draws instances of a draft: an assignment, then mostly a change that the profile does not foresee (other ranks,
/// grouped channels, extents of 1, other literals).
class DraftSampler {
 public:
  /// `bases`: per attribute variable of the rule, its value in terms of the group's symbols.
  DraftSampler(const Bank& bank, AssignmentPool& pool, const Draft& draft,
               const std::vector<AttributeExpression>& bases, std::uint64_t seed)
      : bank_(bank), pool_(pool), draft_(draft), bases_(bases), seed_(seed), random_(seed) {}

  enum class Wanted : std::uint8_t {
    any,
    grouped,  ///< One extent multiplied, which may make groups.
    changed,  ///< Attributes changed, mostly.
  };
  /// False if what was drawn is no instance.
  [[nodiscard]] bool draw(Sample& sample, Wanted wanted);

 private:
  std::int64_t between(std::int64_t low, std::int64_t high);
  bool multiply_one(std::vector<TensorType>& types);
  void mutate(Sample& sample);
  void change(AttributeValue& value);

  const Bank& bank_;
  AssignmentPool& pool_;
  const Draft& draft_;
  const std::vector<AttributeExpression>& bases_;
  std::uint64_t seed_;
  Random random_;  ///< Of one draw: the n-th draws of candidates with the same variables are alike.
  std::uint64_t draws_ = 0;
  std::size_t turn_ = 0;  ///< Of extents that are multiplied.
};

}  // namespace taso
