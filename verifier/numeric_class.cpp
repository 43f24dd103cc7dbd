#include "verifier/numeric_class.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operators/lowered_body.h"
#include "operators/ring.h"
#include "support/hash.h"

namespace taso {
namespace {

// Instances beyond this many scalar operations are not looked at, and at most so many instances are.
constexpr double max_tree_work = 4000;
constexpr std::size_t max_instances_compared = 6;

// The ring of hash-consed expressions.
class TreeRing {
 public:
  using Element = std::uint32_t;

  explicit TreeRing(NumericClass level) : level_(level), zero_(number(0)), one_(number(1)) {}

  Element variable() { return intern({variable_tag, next_variable_++}); }
  Element number(double value) { return intern({number_tag, std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value)}); }
  Element add(Element a, Element b) {
    if (a == zero_) return b;
    if (b == zero_) return a;
    return combine(sum_tag, a, b);
  }
  Element subtract(Element a, Element b) {
    // Negation rounds nothing.
    if (b == zero_) return a;
    if (a == zero_) return negative(b);
    if (level_ != NumericClass::exact || is_negative(b)) return add(a, negative(b));
    return intern({difference_tag, a, b});
  }
  Element multiply(Element a, Element b) {
    if (a == zero_ || b == zero_) return zero_;
    if (a == one_) return b;
    if (b == one_) return a;
    return combine(product_tag, a, b);
  }
  Element divide(Element a, Element b) {
    if (b == one_) return a;
    return intern({quotient_tag, a, b});
  }
  Element call(const FunctionDefinition& function, Element x) {
    if (function.zero_at_zero && x == zero_) return x;
    const Key key = *keys_[x];
    if (function.idempotent && key[0] == call_tag && key[1] == function.key) return x;
    // What keeps the order of numbers finds the largest of the same ones: exactly where it rounds nothing.
    const bool extremal = key[0] == maximum_tag || key[0] == minimum_tag;
    if (extremal && function.monotone && (function.whole != nullptr || level_ != NumericClass::exact)) {
      std::vector<Element> values;
      for (std::size_t i = 1; i < key.size(); ++i) values.push_back(call(function, static_cast<Element>(key[i])));
      return extremum(key[0] == maximum_tag, values);
    }
    return intern({call_tag, function.key, x});
  }
  Element call(const FunctionDefinition& function, Element x, Element y) {
    return intern({call_tag, function.key, x, y});
  }
  Element extremum(bool maximum, std::span<const Element> values) {
    // max and min round nothing: any order and grouping is exact.
    Key key{maximum ? maximum_tag : minimum_tag};
    for (const Element value : values) {
      const Key& inner = *keys_[value];
      if (inner[0] == key[0])
        key.insert(key.end(), inner.begin() + 1, inner.end());
      else if (value != infinity(maximum))
        key.push_back(value);
    }
    std::sort(key.begin() + 1, key.end());
    key.erase(std::unique(key.begin() + 1, key.end()), key.end());
    if (key.size() == 1) return infinity(maximum);
    if (key.size() == 2) return static_cast<Element>(key[1]);
    return intern(std::move(key));
  }
  Element infinity(bool negative_one) { return intern({infinity_tag, negative_one ? 1U : 0U}); }
  [[nodiscard]] static Status status() { return {}; }

  // The result of a reduction is one opaque term until sums are regrouped across reductions.
  Element seal(Element element) {
    if (level_ != NumericClass::reassociation || (*keys_[element])[0] != sum_tag) return element;
    return intern({sealed_tag, element});
  }

 private:
  using Key = std::vector<std::uint64_t>;
  enum : std::uint64_t {
    variable_tag,
    number_tag,
    sum_tag,
    product_tag,
    difference_tag,
    quotient_tag,
    call_tag,
    maximum_tag,
    minimum_tag,
    infinity_tag,
    sealed_tag,
    negative_tag,
  };

  [[nodiscard]] bool is_negative(Element a) const { return (*keys_[a])[0] == negative_tag; }
  Element negative(Element a) {
    return is_negative(a) ? static_cast<Element>((*keys_[a])[1]) : intern({negative_tag, a});
  }

  // A binary node up to the order of operands, or a flat multiset.
  Element combine(std::uint64_t tag, Element a, Element b) {
    Key key{tag};
    for (const Element operand : {a, b}) {
      const Key& inner = *keys_[operand];
      if (level_ != NumericClass::exact && inner[0] == tag)
        key.insert(key.end(), inner.begin() + 1, inner.end());
      else
        key.push_back(operand);
    }
    std::sort(key.begin() + 1, key.end());
    return intern(std::move(key));
  }

  Element intern(Key key) {
    const auto [it, inserted] = ids_.try_emplace(std::move(key), static_cast<Element>(keys_.size()));
    if (inserted) keys_.push_back(&it->first);
    return it->second;
  }

  NumericClass level_;
  std::uint64_t next_variable_ = 0;
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return hash_bytes(std::as_bytes(std::span(key))).low; }
  };
  std::unordered_map<Key, Element, KeyHash> ids_;
  std::vector<const Key*> keys_;  // Per element, in ids_.
  Element zero_, one_;
};

bool has_reduction(const OperatorInstance& instance) {
  for (const LoweredStage& stage : instance.body().stages)
    for (const LoweredNode& node : stage.nodes)
      if (node.kind == LoweredNode::Kind::reduce && node.reduction == LoweredNode::Reduction::sum) return true;
  return false;
}

bool equal_at(const TypedInstance& typed, NumericClass level) {
  TreeRing ring(level);
  std::vector<RingTensor<TreeRing::Element>> inputs;
  for (const TensorType& type : typed.instance.variables) {
    RingTensor<TreeRing::Element> tensor;
    tensor.shape = type.shape;
    const auto size = static_cast<std::size_t>(volume(type.shape));
    if (type.element == ElementType::f32)
      for (std::size_t e = 0; e < size; ++e) tensor.elements.push_back(ring.variable());
    else
      tensor.integers.assign(size, 0);
    inputs.push_back(std::move(tensor));
  }
  auto seal = [&](const OperatorInstance& instance, std::vector<RingTensor<TreeRing::Element>>& outputs) {
    if (!has_reduction(instance)) return;
    for (auto& tensor : outputs)
      for (TreeRing::Element& element : tensor.elements) element = ring.seal(element);
  };
  const auto left = typed.source.run(ring, inputs, seal);
  const auto right = typed.target.run(ring, inputs, seal);
  if (!left || !right) return false;
  for (std::size_t i = 0; i < left->size(); ++i)
    if ((*left)[i].elements != (*right)[i].elements) return false;
  return true;
}

/// Whether a real attribute is a number with which trees compute nothing: products by it look like none.
bool hides_products(const Instance& instance) {
  return std::any_of(instance.attributes.begin(), instance.attributes.end(), [](const auto& attribute) {
    const double* real = attribute ? std::get_if<double>(&*attribute) : nullptr;
    return real != nullptr && (*real == 0 || *real == 1 || *real == -1);
  });
}

}  // namespace

NumericClass derive_numeric_class(const std::vector<TypedInstance>& instances) {
  // The largest affordable instances: small ones hide sums of one term. Where none is, nothing is known.
  std::vector<const TypedInstance*> chosen;
  for (auto it = instances.rbegin(); it != instances.rend() && chosen.size() < max_instances_compared; ++it)
    if (it->source.work() + it->target.work() <= max_tree_work && !hides_products(it->instance)) chosen.push_back(&*it);
  if (chosen.empty()) return NumericClass::distribution;
  for (const NumericClass level : {NumericClass::exact, NumericClass::reassociation, NumericClass::accumulation}) {
    if (std::all_of(chosen.begin(), chosen.end(),
                    [level](const TypedInstance* typed) { return equal_at(*typed, level); }))
      return level;
  }
  return NumericClass::distribution;
}

}  // namespace taso
