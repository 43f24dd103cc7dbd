/// What both sides of a rule compute alike.
///
/// Values are put into classes: equal operators with equal attributes on operands of equal classes make equal values,
/// and so do values that were proved to be equal. What has members on both sides may stand for itself: where two sides
/// are equal whatever the elements of such a value are, they are equal, and nothing below it is unfolded. Laws that
/// operators declare are not used: they are proved by this.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "verifier/unbounded/symbolic_types.h"

namespace taso::unbounded {

/// The classes of all values of a typed rule.
class SharedValues {
 public:
  /// The typing must outlive the classes.
  SharedValues(const Substitution& rule, const Typing& typing, Facts& facts);

  /// The number under which elements of an operator's value are read: of the tensor variable that it is equal to, or
  /// one beyond these; nothing for a value that only one side computes.
  [[nodiscard]] std::optional<std::uint32_t> tensor(const TypedSide& side, const PatternValue& value) const;

  /// A value of the source and one of the target.
  using Pair = std::pair<PatternValue, PatternValue>;
  /// Whether they are of one class.
  [[nodiscard]] bool equal(const Pair& pair) const;
  /// Values that are not of one class and may be equal: of one shape, made of the same variables. Operands come before
  /// results.
  [[nodiscard]] std::vector<Pair> candidates() const;
  /// Says that two values are equal, with all that follows.
  void merge(const Pair& pair);

 private:
  /// Tensor variables, then the values of the source, then those of the target.
  using Id = std::uint32_t;

  struct Node {
    const TypedNode* typed = nullptr;
    std::vector<Id> inputs;
    Id first = 0;  ///< Of its outputs, which follow one another.
  };

  void add(const TypedSide& side, std::vector<Id>& first);
  /// Equal operators on equal operands, until nothing changes.
  void close();
  void unite(Id a, Id b);
  [[nodiscard]] Id id(const TypedSide& side, const PatternValue& value) const;
  [[nodiscard]] bool congruent(const Node& a, const Node& b) const;

  const Typing& typing_;
  Facts& facts_;
  std::size_t variables_;
  std::vector<Node> nodes_;                      ///< Of both sides.
  std::vector<Id> source_first_, target_first_;  ///< Per node of a side: its first output.
  std::vector<Id> class_;                        ///< Per value: the least member of its class.
  std::vector<std::uint8_t> sides_;              ///< Per value: of which side it is.
  std::vector<std::uint8_t> class_sides_;        ///< Per least member: of which sides there are members.
  std::vector<std::vector<bool>> made_of_;       ///< Per value: whether each variable is among what it is made of.
};

}  // namespace taso::unbounded
