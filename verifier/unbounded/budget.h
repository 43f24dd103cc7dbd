/// How much work a proof may take, in steps that are the same on every machine: what takes longer ends as not proved,
/// with this reason, and what is in memory at a time is bounded with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace taso::unbounded {

/// Steps that are left. One step is about what it takes to copy a factor or to combine two inequalities.
class Budget {
 public:
  explicit Budget(std::uint64_t steps = std::numeric_limits<std::uint64_t>::max()) : left_(steps) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void spend(std::uint64_t steps) { left_ -= std::min(left_, steps); }
  [[nodiscard]] bool exhausted() const { return left_ == 0; }

  /// While it lives only a part of what is left may be spent.
  class Part {
   public:
    Part(Budget& budget, std::uint64_t steps) : budget_(budget), kept_(budget.left_ - std::min(budget.left_, steps)) {
      budget_.left_ -= kept_;
    }
    ~Part() { budget_.left_ += kept_; }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    Budget& budget_;
    std::uint64_t kept_;
  };

 private:
  std::uint64_t left_;
};

/// The reason of a proof that ends for want of steps.
inline constexpr const char* out_of_steps = "the limit on steps of a proof is reached";

}  // namespace taso::unbounded
