#include "rule_io/extents.h"

#include <algorithm>

namespace taso::rule_io {
namespace {

constexpr int max_nesting = 20;  // of sums: an extent may be a sum of itself and others in a rule that is never typed
constexpr std::size_t max_text = 2000;  // nor does a rule name an extent by more letters

}  // namespace

Extents::Id Extents::fresh() {
  nodes_.push_back({nodes_.size(), std::nullopt, {}, {}});
  return nodes_.size() - 1;
}

Extents::Id Extents::literal(std::int64_t value) {
  const auto [place, added] = literals_.emplace(value, nodes_.size());
  if (added) nodes_[fresh()].value = value;
  return place->second;
}

Extents::Id Extents::named(const std::string& name) {
  const auto [place, added] = names_.emplace(name, nodes_.size());
  if (added) nodes_[fresh()].names = {name};
  return place->second;
}

Extents::Id Extents::sum(Id a, Id b) {
  const Id id = fresh();
  nodes_[id].sums = {{a, b}};
  return id;
}

Extents::Id Extents::find(Id id) const {
  while (nodes_[id].parent != id) id = nodes_[id].parent;
  return id;
}

bool Extents::unify(Id a, Id b) {
  a = find(a);
  b = find(b);
  if (a == b) return true;
  if (a > b) std::swap(a, b);
  Node& kept = nodes_[a];
  const Node& other = nodes_[b];
  if (kept.value && other.value) return false;
  if (other.value) kept.value = other.value;
  kept.names.insert(kept.names.end(), other.names.begin(), other.names.end());
  kept.sums.insert(kept.sums.end(), other.sums.begin(), other.sums.end());
  nodes_[b].parent = a;
  return true;
}

std::optional<std::string> Extents::text(Id id, int depth) const {
  const Node& node = nodes_[find(id)];
  if (node.value) return std::to_string(*node.value);
  if (!node.names.empty()) return node.names.front();
  if (depth > max_nesting) return std::nullopt;
  for (const auto& [a, b] : node.sums) {
    const std::optional<std::string> left = text(a, depth + 1);
    if (!left || left->size() > max_text) continue;
    const std::optional<std::string> right = text(b, depth + 1);
    if (right && left->size() + right->size() < max_text) return *left + " + " + *right;
  }
  return std::nullopt;
}

}  // namespace taso::rule_io
