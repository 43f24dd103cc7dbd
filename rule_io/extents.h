/// Symbolic extents of a rule's tensors: which are equal, and what an attribute expression calls them. Internal to
/// rule_io.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace taso::rule_io {

/// A union-find of extents. A class may have a number, names (`dim(x, -1)`, an attribute variable) and sums of other
/// extents; equal numbers and equal names are one extent.
class Extents {
 public:
  using Id = std::size_t;

  /// An extent of which nothing is known.
  Id fresh();
  Id literal(std::int64_t value);
  Id named(const std::string& name);
  Id sum(Id a, Id b);

  /// Makes two extents equal; false if they are different numbers.
  [[nodiscard]] bool unify(Id a, Id b);
  [[nodiscard]] Id find(Id id) const;
  [[nodiscard]] std::optional<std::int64_t> value(Id id) const { return nodes_[find(id)].value; }
  /// The extent as an attribute expression, if it has a number, a name, or is a sum of such.
  [[nodiscard]] std::optional<std::string> text(Id id) const { return text(id, 0); }

 private:
  struct Node {
    Id parent = 0;
    std::optional<std::int64_t> value;
    std::vector<std::string> names;
    std::vector<std::pair<Id, Id>> sums;
  };
  [[nodiscard]] std::optional<std::string> text(Id id, int depth) const;

  std::vector<Node> nodes_;
  std::map<std::int64_t, Id> literals_;
  std::map<std::string, Id> names_;
};

}  // namespace taso::rule_io
