#include "verifier/unbounded/shared_values.h"

#include <algorithm>

namespace taso::unbounded {
namespace {

constexpr std::uint8_t in_source = 1, in_target = 2, in_both = 3;

bool same_sizes(const std::vector<Polynomial>& a, const std::vector<Polynomial>& b, Facts& facts) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Polynomial& x, const Polynomial& y) { return facts.reduce(x) == facts.reduce(y); });
}

}  // namespace

SharedValues::SharedValues(const Substitution& rule, const Typing& typing, Facts& facts)
    : typing_(typing), facts_(facts), variables_(rule.tensor_variables.size()) {
  for (Id v = 0; v < variables_; ++v) {
    class_.push_back(v);
    sides_.push_back(in_both);
    made_of_.emplace_back(variables_, false);
    made_of_.back()[v] = true;
  }
  add(typing.source(), source_first_);
  add(typing.target(), target_first_);
  close();
}

void SharedValues::add(const TypedSide& side, std::vector<Id>& first) {
  for (const TypedNode& typed : side.nodes) {
    Node node;
    node.typed = &typed;
    node.first = static_cast<Id>(class_.size());
    std::vector<bool> made_of(variables_, false);
    for (const PatternValue& input : typed.inputs) {
      node.inputs.push_back(id(side, input));
      for (std::size_t v = 0; v < variables_; ++v)
        if (made_of_[node.inputs.back()][v]) made_of[v] = true;
    }
    for (std::size_t port = 0; port < typed.outputs.size(); ++port) {
      class_.push_back(static_cast<Id>(class_.size()));
      sides_.push_back(&side == &typing_.source() ? in_source : in_target);
      made_of_.push_back(made_of);
    }
    first.push_back(node.first);
    nodes_.push_back(std::move(node));
  }
}

SharedValues::Id SharedValues::id(const TypedSide& side, const PatternValue& value) const {
  if (value.is_variable) return value.index;
  return (&side == &typing_.source() ? source_first_ : target_first_)[value.index] + value.port;
}

void SharedValues::unite(Id a, Id b) {
  const Id least = std::min(class_[a], class_[b]), other = std::max(class_[a], class_[b]);
  std::replace(class_.begin(), class_.end(), other, least);
}

void SharedValues::close() {
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (std::size_t j = i + 1; j < nodes_.size(); ++j) {
        const Node &a = nodes_[i], &b = nodes_[j];
        if (a.typed->outputs.empty() || class_[a.first] == class_[b.first] || !congruent(a, b)) continue;
        for (Id port = 0; port < a.typed->outputs.size(); ++port) unite(a.first + port, b.first + port);
        progress = true;
      }
  }
  class_sides_.assign(class_.size(), 0);
  for (Id value = 0; value < class_.size(); ++value) class_sides_[class_[value]] |= sides_[value];
}

bool SharedValues::congruent(const Node& a, const Node& b) const {
  if (a.typed->definition != b.typed->definition || a.typed->outputs.size() != b.typed->outputs.size() ||
      a.inputs.size() != b.inputs.size())
    return false;
  for (std::size_t i = 0; i < a.inputs.size(); ++i)
    if (class_[a.inputs[i]] != class_[b.inputs[i]]) return false;
  const auto &x = a.typed->attributes, &y = b.typed->attributes;
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](const auto& left, const auto& right) {
    const AttributeTerm &one = left.second, &other = right.second;
    return left.first == right.first && one.kind == other.kind && one.function == other.function &&
           one.real == other.real && one.sizes.vector == other.sizes.vector &&
           same_sizes(one.sizes.components, other.sizes.components, facts_);
  });
}

std::optional<std::uint32_t> SharedValues::tensor(const TypedSide& side, const PatternValue& value) const {
  const Id least = class_[id(side, value)];
  return class_sides_[least] == in_both ? std::optional(least) : std::nullopt;
}

bool SharedValues::equal(const Pair& pair) const {
  return class_[id(typing_.source(), pair.first)] == class_[id(typing_.target(), pair.second)];
}

std::vector<SharedValues::Pair> SharedValues::candidates() const {
  auto values = [&](const TypedSide& side) {
    std::vector<PatternValue> all;
    for (Id v = 0; v < variables_; ++v)
      if (!typing_.integers(v)) all.push_back({true, v, 0});
    for (std::uint32_t n = 0; n < side.nodes.size(); ++n)
      for (std::uint32_t port = 0; port < side.nodes[n].outputs.size() && !side.nodes[n].integers; ++port)
        all.push_back({false, n, port});
    return all;
  };
  const TypedSide &source = typing_.source(), &target = typing_.target();
  const std::vector<PatternValue> sources = values(source);
  std::vector<Pair> result;
  for (const PatternValue& to : values(target))
    for (const PatternValue& from : sources) {
      // Of what both sides are known to compute nothing new would be learnt.
      if (tensor(source, from) && tensor(target, to)) continue;
      if (made_of_[id(source, from)] == made_of_[id(target, to)] &&
          same_sizes(typing_.shape(source, from), typing_.shape(target, to), facts_))
        result.emplace_back(from, to);
    }
  return result;
}

void SharedValues::merge(const Pair& pair) {
  unite(id(typing_.source(), pair.first), id(typing_.target(), pair.second));
  close();
}

}  // namespace taso::unbounded
