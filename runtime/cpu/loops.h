/// Inner loops over contiguous floats, compiled once per instruction set and chosen when the program starts to use
/// them. Functions of one element have a relative error below 5e-7 wherever their argument and their value are no
/// subnormal numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace taso::cpu {

/// y[i] = f(x[i]); p and q are parameters of f (clip's bounds). x may be y.
using UnaryLoop = void (*)(const float* x, float* y, std::int64_t count, float p, float q);
/// y[i] = f(a[i], b[i]). y may be a or b.
using BinaryLoop = void (*)(const float* a, const float* b, float* y, std::int64_t count);

/// Columns of a matrix that lie together for LoopTable::panel_product.
inline constexpr std::int64_t panel_width = 64;

/// One function under its operator's name.
struct UnaryEntry {
  std::string_view name;
  UnaryLoop loop;
};

/// One function of two operands under its operator's name: both vary, the second is one number, the first is.
struct BinaryEntry {
  std::string_view name;
  BinaryLoop both, second_scalar, first_scalar;
};

/// The loops of one instruction set.
struct LoopTable {
  const char* instruction_set;
  const UnaryEntry* unary;
  int unary_count;
  const BinaryEntry* binary;
  int binary_count;

  float (*sum)(const float* x, std::int64_t count);
  float (*maximum)(const float* x, std::int64_t count);  ///< -inf for none.
  /// The largest and the smallest of at least one; NaN if one is.
  float (*greatest)(const float* x, std::int64_t count);
  float (*least)(const float* x, std::int64_t count);
  float (*dot)(const float* a, const float* b, std::int64_t count);
  /// The sum of squares of x[i] - from: to the bit, dot of these differences with themselves.
  float (*squares)(const float* x, std::int64_t count, float from);
  /// The same of each of so many rows, which lie `stride` apart: y[r], to the bit. y is none of what is read.
  void (*sum_rows)(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t count, float* y);
  void (*greatest_rows)(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t count, float* y);
  void (*least_rows)(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t count, float* y);
  void (*dot_rows)(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride, std::int64_t rows,
                   std::int64_t count, float* y);
  void (*squares_rows)(const float* x, std::int64_t stride, const float* from, std::int64_t from_stride,
                       std::int64_t rows, std::int64_t count, float* y);
  /// y[r * count + i] = x[r * count + i] - of_rows[r * stride], or their product. y may be x.
  void (*subtract_of_rows)(const float* x, const float* of_rows, std::int64_t stride, float* y, std::int64_t rows,
                           std::int64_t count);
  void (*multiply_by_rows)(const float* x, const float* of_rows, std::int64_t stride, float* y, std::int64_t rows,
                           std::int64_t count);
  /// y[r * y_stride + j] = sum of a[r * length + k] * panel[k * panel_width + j] over k < length, for r < rows and
  /// j < columns, of which there are at most panel_width.
  void (*panel_product)(const float* a, std::int64_t rows, std::int64_t length, const float* panel, float* y,
                        std::int64_t y_stride, std::int64_t columns);
  /// y[i] += x[i], y[i] = max(y[i], x[i]), y[i] *= factor, y[i] = x[i] * a + b, y[i] = x[i] * a[i] + b[i].
  void (*accumulate)(const float* x, float* y, std::int64_t count);
  void (*accumulate_maximum)(const float* x, float* y, std::int64_t count);
  /// y[i] += a[i] * b[i], y[i] += x[i] * factor.
  void (*accumulate_products)(const float* a, const float* b, float* y, std::int64_t count);
  void (*accumulate_scaled)(const float* x, float* y, std::int64_t count, float factor);
  void (*scale)(float* y, std::int64_t count, float factor);
  void (*affine)(const float* x, float* y, std::int64_t count, float a, float b);
  void (*affine_rows)(const float* x, const float* a, const float* b, float* y, std::int64_t count);
  /// Softmax of each of so many rows of `count` elements, of which there is one. Of a row here and below: what it
  /// becomes does not depend on those beside it, and y may be x.
  void (*softmax)(const float* x, float* y, std::int64_t rows, std::int64_t count);
  /// y[i] = exp(x[i] - m[i]) and s[i] += y[i].
  void (*exp_minus)(const float* x, const float* m, float* y, float* s, std::int64_t count);
  /// (x - mean) / sqrt(variance + epsilon) * scale + bias of each row; scale and bias of one.
  void (*layer_norm)(const float* x, const float* scale, const float* bias, float* y, std::int64_t rows,
                     std::int64_t count, float epsilon);
  /// x / sqrt(mean of squares + epsilon) * scale of each row.
  void (*rms_norm)(const float* x, const float* scale, float* y, std::int64_t rows, std::int64_t count, float epsilon);
  /// y[i] = x[i] / (bias + alpha * s[i]) ** beta.
  void (*lrn)(const float* x, const float* s, float* y, std::int64_t count, float alpha, float beta, float bias);
  /// y[i] = x[i] * c[i] - x[pairs + i] * s[i] and y[pairs + i] = x[pairs + i] * c[second + i] + x[i] * s[second + i].
  /// x may be y.
  void (*turn_pairs)(const float* x, const float* c, const float* s, float* y, std::int64_t pairs, std::int64_t second);
  /// y[i * y_stride + j] = x[j * x_stride + i] for i < rows, j < columns.
  void (*transpose)(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride, std::int64_t rows,
                    std::int64_t columns);
};

/// The best table for this processor.
[[nodiscard]] const LoopTable& loops();

/// The entry of that name, or nullptr.
[[nodiscard]] const UnaryEntry* find_unary(std::string_view name);
[[nodiscard]] const BinaryEntry* find_binary(std::string_view name);

/// The tables themselves (tests compare them). Null where not compiled for this architecture or not runnable here.
[[nodiscard]] const LoopTable* generic_loops();
[[nodiscard]] const LoopTable* avx2_loops();
[[nodiscard]] const LoopTable* avx512_loops();

}  // namespace taso::cpu
