#include "elimination/table_minimum.h"

#include <absl/container/inlined_vector.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace taso {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Entries along an axis that are computed together.
constexpr std::uint32_t lanes = 8;
/// Additions below which one entry after the other is computed.
constexpr std::size_t vector_work = 1 << 12;
/// Additions that are worth a task of their own.
constexpr std::size_t task_work = 1 << 18;

using Offsets = absl::InlinedVector<std::size_t, 8>;

/// Steps through an index space, last axis fastest, with the offset of every table at the index.
class Odometer {
 public:
  /// Over the first `axes` axes, from the entry of this number on.
  Odometer(const SumOfTables& sum, std::size_t axes, std::size_t entry)
      : sum_(sum), axes_(axes), index_(axes, 0), offsets_(sum.tables.size(), 0) {
    for (std::size_t axis = axes; axis-- > 0;) {
      index_[axis] = static_cast<std::uint32_t>(entry % sum.sizes[axis]);
      entry /= sum.sizes[axis];
      for (std::size_t t = 0; t < offsets_.size(); ++t) offsets_[t] += stride(t, axis) * index_[axis];
    }
  }
  [[nodiscard]] const Offsets& offsets() const { return offsets_; }
  void advance() {
    for (std::size_t axis = axes_; axis-- > 0;) {
      const std::uint32_t size = sum_.sizes[axis];
      const bool carry = ++index_[axis] == size;
      for (std::size_t t = 0; t < offsets_.size(); ++t) {
        offsets_[t] += stride(t, axis);
        if (carry) offsets_[t] -= stride(t, axis) * size;
      }
      if (!carry) return;
      index_[axis] = 0;
    }
  }

 private:
  [[nodiscard]] std::size_t stride(std::size_t table, std::size_t axis) const {
    return sum_.strides[table * sum_.sizes.size() + axis];
  }
  const SumOfTables& sum_;
  std::size_t axes_;
  absl::InlinedVector<std::uint32_t, 8> index_;
  Offsets offsets_;
};

void entry_by_entry(const SumOfTables& sum, std::span<double> result) {
  const std::size_t rank = sum.rank();
  Odometer at(sum, rank, 0);
  const std::uint32_t values = sum.sizes[rank];
  for (double& entry : result) {
    double best = infinity;
    for (std::uint32_t value = 0; value < values; ++value) {
      double total = 0;
      for (std::size_t t = 0; t < sum.tables.size(); ++t)
        total += sum.tables[t][at.offsets()[t] + value * sum.strides[t * (rank + 1) + rank]];
      best = std::min(best, total);
    }
    entry = best;
    at.advance();
  }
}

/// A table as a row of entries along the result's last axis is added up: entries that lie side by side, or one for all.
struct Row {
  const double* entries = nullptr;  ///< For value 0 of the variable.
  std::size_t value_stride = 0;
  bool side_by_side = false;
};

/// Neighbouring entries that are computed at once, in registers. (GCC and Clang make what the processor has of it.)
using Lanes = double __attribute__((vector_size(2 * sizeof(double))));

Lanes load(const double* from) {
  Lanes loaded;
  std::memcpy(&loaded, from, sizeof loaded);
  return loaded;
}

/// result[j] = min over the values of the sum of rows at j, for eight neighbouring j. The first `leading` rows have
/// one entry for all.
void minimum_of_eight(std::span<const Row> rows, std::size_t leading, std::size_t first, std::size_t values,
                      double* result) {
  const Lanes worst = {infinity, infinity};
  Lanes best0 = worst, best1 = worst, best2 = worst, best3 = worst;
  for (std::size_t value = 0; value < values; ++value) {
    double start = 0;
    for (std::size_t r = 0; r < leading; ++r) start += rows[r].entries[value * rows[r].value_stride];
    Lanes sum0 = {start, start}, sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (std::size_t r = leading; r < rows.size(); ++r) {
      const double* entry = rows[r].entries + value * rows[r].value_stride;
      if (rows[r].side_by_side) {
        sum0 += load(entry + first);
        sum1 += load(entry + first + 2);
        sum2 += load(entry + first + 4);
        sum3 += load(entry + first + 6);
      } else {
        const Lanes same = {*entry, *entry};
        sum0 += same;
        sum1 += same;
        sum2 += same;
        sum3 += same;
      }
    }
    best0 = sum0 < best0 ? sum0 : best0;
    best1 = sum1 < best1 ? sum1 : best1;
    best2 = sum2 < best2 ? sum2 : best2;
    best3 = sum3 < best3 ? sum3 : best3;
  }
  for (const Lanes& best : {best0, best1, best2, best3}) {
    std::memcpy(result + first, &best, sizeof best);
    first += 2;
  }
}

/// The sum with tables whose entries lie side by side along the result's last axis; copies where they do not.
class Alongside {
 public:
  explicit Alongside(const SumOfTables& given)
      : tables_(given.tables.begin(), given.tables.end()), strides_(given.strides.begin(), given.strides.end()) {
    const std::size_t axes = given.sizes.size(), last = given.rank() - 1;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const std::span<std::size_t> strides(strides_.data() + t * axes, axes);
      if (strides[last] > 1) copy(given.sizes, tables_[t], strides);
    }
    sum = {given.sizes, tables_, strides_};
  }
  SumOfTables sum;

 private:
  /// Replaces a table by one whose axes are in the order of the result's, the variable before the last.
  void copy(std::span<const std::uint32_t> sizes, const double*& table, std::span<std::size_t> strides) {
    const std::size_t rank = sizes.size() - 1;
    absl::InlinedVector<std::uint32_t, 8> extents;
    Offsets from, to;
    std::size_t entries = 1;
    for (std::size_t i = 0; i <= rank; ++i) {
      const std::size_t axis = i + 1 < rank ? i : (i + 1 == rank ? rank : rank - 1);
      if (strides[axis] == 0) continue;
      extents.push_back(sizes[axis]);
      from.push_back(strides[axis]);
      to.push_back(axis);
      entries *= sizes[axis];
    }
    copies_.push_back(std::make_unique<double[]>(entries));
    double* out = copies_.back().get();
    const double* const source[] = {table};
    const SumOfTables walk{extents, source, from};
    Odometer at(walk, extents.size(), 0);
    for (std::size_t i = 0; i < entries; ++i, at.advance()) out[i] = table[at.offsets()[0]];
    table = out;
    std::size_t stride = 1;
    for (std::size_t i = extents.size(); i-- > 0; stride *= extents[i]) strides[to[i]] = stride;
  }
  std::vector<const double*> tables_;
  std::vector<std::size_t> strides_;
  std::vector<std::unique_ptr<double[]>> copies_;
};

/// The rows of numbers [begin, end): all axes of the result but the last, which has at least `lanes`, are one
/// index.
void row_by_row(const SumOfTables& sum, std::size_t begin, std::size_t end, std::span<double> result) {
  const std::size_t axes = sum.sizes.size(), last = sum.rank() - 1;
  const std::size_t width = sum.sizes[last];
  const std::size_t values = sum.sizes[last + 1];
  Odometer at(sum, last, begin);
  absl::InlinedVector<Row, 8> rows(sum.tables.size());
  std::size_t leading = 0;
  while (leading < rows.size() && sum.strides[leading * axes + last] == 0) ++leading;
  for (std::size_t row = begin; row < end; ++row, at.advance()) {
    for (std::size_t t = 0; t < rows.size(); ++t)
      rows[t] = {sum.tables[t] + at.offsets()[t], sum.strides[t * axes + last + 1], sum.strides[t * axes + last] != 0};
    double* out = result.data() + row * width;
    std::size_t j = 0;
    for (; j + lanes <= width; j += lanes) minimum_of_eight(rows, leading, j, values, out);
    if (j < width) minimum_of_eight(rows, leading, width - lanes, values, out);  // some once more
  }
}

}  // namespace

namespace {

/// The same by way of a result in which an axis and the last one have changed places.
void with_last_axis(std::size_t axis, const SumOfTables& sum, std::span<double> result, bool parallel) {
  const std::size_t axes = sum.sizes.size(), last = sum.rank() - 1;
  std::vector<std::uint32_t> sizes(sum.sizes.begin(), sum.sizes.end());
  std::vector<std::size_t> strides(sum.strides.begin(), sum.strides.end());
  std::swap(sizes[axis], sizes[last]);
  for (std::size_t t = 0; t < sum.tables.size(); ++t) std::swap(strides[t * axes + axis], strides[t * axes + last]);
  std::vector<double> turned(result.size());
  minimum_of_sum({sizes, sum.tables, strides}, turned, parallel);
  Offsets places(axes - 1);
  std::size_t place = 1;
  for (std::size_t i = axes - 1; i-- > 0; place *= sum.sizes[i]) places[i] = place;
  std::swap(places[axis], places[last]);
  sizes.pop_back();
  const double* const target[] = {result.data()};
  const SumOfTables walk{sizes, target, places};
  Odometer at(walk, sizes.size(), 0);
  for (std::size_t i = 0; i < turned.size(); ++i, at.advance()) result[at.offsets()[0]] = turned[i];
}

}  // namespace

void minimum_of_sum(const SumOfTables& sum, std::span<double> result, bool parallel) {
  const std::size_t rank = sum.rank();
  const std::size_t work_per_entry = sum.sizes[rank] * std::max<std::size_t>(sum.tables.size(), 1);
  const auto longest = std::max_element(sum.sizes.begin(), sum.sizes.end() - 1);
  if (rank == 0 || result.size() * work_per_entry < vector_work || *longest < lanes) {
    entry_by_entry(sum, result);
    return;
  }
  if (sum.sizes[rank - 1] < lanes) {
    with_last_axis(static_cast<std::size_t>(longest - sum.sizes.begin()), sum, result, parallel);
    return;
  }
  const Alongside alongside(sum);
  const std::size_t width = sum.sizes[rank - 1], rows = result.size() / width;
  const std::size_t rows_per_task = std::max<std::size_t>(1, task_work / (width * work_per_entry));
  if (!parallel || rows <= rows_per_task) {
    row_by_row(alongside.sum, 0, rows, result);
    return;
  }
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, rows, rows_per_task),
                    [&](const tbb::blocked_range<std::size_t>& range) {
                      row_by_row(alongside.sum, range.begin(), range.end(), result);
                    });
}

}  // namespace taso
