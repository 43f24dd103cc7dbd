/// Which steps of a run are over before which others begin: one after the other, or as streams and the waits between
/// them say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace taso {

/// A set of steps, by their positions.
class StepSet {
 public:
  explicit StepSet(std::size_t steps = 0, bool all = false) : words_((steps + 63) / 64, all ? ~std::uint64_t{0} : 0) {}
  void insert(std::size_t step) { words_[step / 64] |= std::uint64_t{1} << (step % 64); }
  [[nodiscard]] bool contains(std::size_t step) const { return (words_[step / 64] >> (step % 64) & 1) != 0; }
  /// Of sets of equally many steps.
  void unite(const StepSet& other);
  void intersect(const StepSet& other);

 private:
  std::vector<std::uint64_t> words_;
};

/// A partial order of steps, given by what each waits for. Positions are an order of execution: every step waits for
/// earlier ones only (TASO_CHECK).
class StepOrder {
 public:
  /// `waits_for`: per step; what follows from other waits may be left out.
  explicit StepOrder(std::span<const std::vector<std::uint32_t>> waits_for);

  [[nodiscard]] std::size_t size() const { return after_.size(); }
  /// Whether `first` is over whenever `second` begins.
  [[nodiscard]] bool is_before(std::size_t first, std::size_t second) const { return after_[first].contains(second); }
  /// All steps that begin when `step` is over.
  [[nodiscard]] const StepSet& after(std::size_t step) const { return after_[step]; }

 private:
  std::vector<StepSet> after_;
};

}  // namespace taso
