#include "verifier/fact_field.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>

namespace taso {
namespace {

using Set = absl::InlinedVector<Mod61, 24>;

// A value is a random number or a small one; the former spread by themselves.
std::size_t slot_of(std::uint64_t value, std::size_t slots) { return (value ^ (value >> 31)) & (slots - 1); }

}  // namespace

const FactField::Result* FactField::find(Mod61 value) const {
  if (used_ == 0 || value == Mod61()) return nullptr;
  for (std::size_t slot = slot_of(value.value(), results_.size());; slot = (slot + 1) & (results_.size() - 1)) {
    if (results_[slot].value == value.value()) return &results_[slot];
    if (results_[slot].value == 0) return nullptr;
  }
}

void FactField::remember(Result result) {
  if (result.value == 0) return;
  if (2 * (used_ + 1) > results_.size()) {
    std::vector<Result> old(std::max<std::size_t>(256, 2 * results_.size()));
    old.swap(results_);
    for (const Result& entry : old) {
      if (entry.value == 0) continue;
      std::size_t slot = slot_of(entry.value, results_.size());
      while (results_[slot].value != 0) slot = (slot + 1) & (results_.size() - 1);
      results_[slot] = entry;
    }
  }
  std::size_t slot = slot_of(result.value, results_.size());
  while (results_[slot].value != 0) slot = (slot + 1) & (results_.size() - 1);
  results_[slot] = result;
  ++used_;
}

void FactField::forget() {
  results_.clear();
  arguments_.clear();
  used_ = 0;
}

Mod61 FactField::call(const FunctionDefinition& function, Mod61 x) {
  const bool asks = function.idempotent || function.monotone;
  if (const Result* known = asks ? find(x) : nullptr; known != nullptr) {
    if (known->function != nullptr) {
      if (function.idempotent && known->function->key == function.key) return x;
    } else if (function.monotone) {
      const bool maximum = known->maximum;
      const Set arguments(arguments_.begin() + known->begin, arguments_.begin() + known->begin + known->size);
      Set values;
      for (const Mod61 argument : arguments) values.push_back(call(function, argument));
      return extremum(maximum, values);
    }
  }
  const Mod61 value = field_.call(function, x);
  if (function.idempotent && find(value) == nullptr)
    remember({.value = value.value(), .function = &function, .maximum = false, .begin = 0, .size = 0});
  return value;
}

Mod61 FactField::call(const FunctionDefinition& function, Mod61 x, Mod61 y) const {
  // As in canonical polynomials, a small power is a product.
  if (function.name == "pow" && y.value() <= 8) return x.power(y.value());
  return field_.call(function, x, y);
}

Mod61 FactField::extremum(bool maximum, std::span<const Mod61> values) {
  Set set;
  for (const Mod61 value : values) {
    const Result* known = find(value);
    if (known != nullptr && known->function == nullptr && known->maximum == maximum)
      set.insert(set.end(), arguments_.begin() + known->begin, arguments_.begin() + known->begin + known->size);
    else
      set.push_back(value);
  }
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  if (set.size() == 1) return set[0];
  const Mod61 value = field_.extremum_of_set(maximum, set);
  if (find(value) == nullptr) {
    remember({.value = value.value(),
              .function = nullptr,
              .maximum = maximum,
              .begin = static_cast<std::uint32_t>(arguments_.size()),
              .size = static_cast<std::uint32_t>(set.size())});
    arguments_.insert(arguments_.end(), set.begin(), set.end());
  }
  return value;
}

}  // namespace taso
