/// What a matrix product is to a library that knows batches of column-major matrices. Knows nothing of CUDA.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel.h"

namespace taso::cuda {

/// One operand: `rows` x `columns` in column-major order, `leading` elements between columns.
struct ColumnMajor {
  std::int64_t rows = 0, columns = 0, leading = 0;
  std::int64_t batch_stride = 0;
  bool transposed = false;  ///< The product takes the transposed matrix.
};

/// d = op(first) * op(second), for every element of a batch, as often as there are offsets.
struct ProductPlan {
  std::size_t a = 0, b = 1, bias = 2;  ///< Inputs of the request.
  bool swapped = false;  ///< `first` is b and `second` is a: the result's transpose, which is what a row-major y is.
  ColumnMajor first, second, result;
  std::int64_t batch = 1;
  /// Elements from the operands' begins: one product each.
  struct Offsets {
    std::int64_t a = 0, b = 0, y = 0;
  };
  std::vector<Offsets> offsets;
  /// The bias goes along the rows of `result`, where libraries can add it.
  [[nodiscard]] bool bias_along_rows() const { return swapped; }
};

/// The matmul or matmul_bias_act that a request is, or that is one of its parts; null if there is none, or several.
[[nodiscard]] const KernelRequest* product_in(const KernelRequest& request);

/// The plan for matmul and matmul_bias_act, also with operators that move their operands and the result, or the reason
/// why there is none.
struct PlannedProduct {
  std::optional<ProductPlan> plan;
  std::string reason;
};
[[nodiscard]] PlannedProduct plan_product(const KernelRequest& request);

/// Whether a fused request is one product, and one launch, that reads and writes where others move what it does.
[[nodiscard]] bool is_one_product(const KernelRequest& request);

/// Whether a product with its result within a wider tensor is as many launches as with that by itself.
[[nodiscard]] bool is_as_good_within(const KernelRequest& request);

/// A library's algorithm, which is no more than words whose meaning only it knows, and how it was chosen: "algorithm
/// 2a 0 ...; best of 8".
struct ChosenAlgorithm {
  std::array<std::uint64_t, 8> words{};
  std::string description;  ///< "best of 8".
  bool operator==(const ChosenAlgorithm&) const = default;
};
[[nodiscard]] std::string to_string(const ChosenAlgorithm& algorithm);
/// The inverse; nothing where it is no such text.
[[nodiscard]] std::optional<ChosenAlgorithm> parse_algorithm(std::string_view text);

}  // namespace taso::cuda
