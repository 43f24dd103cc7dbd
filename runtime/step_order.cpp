#include "runtime/step_order.h"

#include "support/status.h"

namespace taso {

void StepSet::unite(const StepSet& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

void StepSet::intersect(const StepSet& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
}

StepOrder::StepOrder(std::span<const std::vector<std::uint32_t>> waits_for)
    : after_(waits_for.size(), StepSet(waits_for.size())) {
  // Those that wait for a step come later and are known before it is reached from the end.
  for (std::size_t step = waits_for.size(); step-- > 0;)
    for (const std::uint32_t awaited : waits_for[step]) {
      TASO_CHECK(awaited < step, "a step waits for itself or a later one");
      after_[awaited].insert(step);
      after_[awaited].unite(after_[step]);
    }
}

}  // namespace taso
