/// Tensors in host memory: what goes into and comes out of an executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/constant.h"
#include "graph/tensor_type.h"
#include "runtime/aligned_buffer.h"
#include "support/status.h"

namespace taso {

/// A tensor of known type in row-major order. Movable; copies are explicit.
class HostTensor {
 public:
  HostTensor() = default;
  /// Zero-filled. The type is known and of a size-known element type (TASO_CHECK).
  explicit HostTensor(TensorType type);
  [[nodiscard]] static HostTensor of_floats(Shape shape, std::span<const float> values);
  [[nodiscard]] static HostTensor of_integers(Shape shape, std::span<const std::int64_t> values);
  [[nodiscard]] static HostTensor of_constant(const ConstantData& constant);
  [[nodiscard]] HostTensor copy() const;
  /// Real elements rounded to another real type; a copy where the type is the same (or not real).
  [[nodiscard]] HostTensor converted(ElementType to) const;

  [[nodiscard]] const TensorType& type() const { return type_; }
  [[nodiscard]] std::span<std::byte> bytes() { return {buffer_.data(), size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {buffer_.data(), size_}; }
  /// Elements of an f32 tensor (TASO_CHECK).
  [[nodiscard]] std::span<float> floats();
  [[nodiscard]] std::span<const float> floats() const;
  /// All elements of any numeric tensor (f16 and bf16 included), widened.
  [[nodiscard]] std::vector<double> to_doubles() const;
  /// All elements of an integer or boolean tensor, widened.
  [[nodiscard]] std::vector<std::int64_t> to_integers() const;
  /// The same bytes under another shape of equal volume (TASO_CHECK).
  void reshape(Shape shape);

 private:
  TensorType type_;
  AlignedBuffer buffer_;
  std::size_t size_ = 0;
};

/// Fills a tensor with seeded values that depend on nothing but type, `seed` and `name`. Floating-point elements are
/// uniform in [-1, 1); integers uniform in [0, integer_bound); booleans fair.
void fill_random(HostTensor& tensor, std::uint64_t seed, std::string_view name, std::int64_t integer_bound = 2);

/// How far `actual` is from `reference`.
struct Difference {
  double max_absolute = 0;       ///< max |actual - reference|.
  double max_relative = 0;       ///< max_absolute / max |reference| (0 / 0 is 0).
  double reference_maximum = 0;  ///< max |reference|.
  std::int64_t worst_index = 0;  ///< Row-major index of the largest deviation.
  std::int64_t violations = 0;   ///< Elements outside the tolerance.
  bool comparable = true;        ///< False if types differ; everything else is then 0.
};

/// Elements count as violations where |actual - reference| > atol + rtol * max |reference|, or where one of them is
/// NaN or infinite and the other is not the same.
[[nodiscard]] Difference compare(const HostTensor& actual, const HostTensor& reference, double rtol, double atol);

/// The L2 norm of the difference over that of the reference (0 / 0 is 0); infinite if types differ, or where one of two
/// elements is NaN or infinite and the other is not the same.
[[nodiscard]] double relative_l2(const HostTensor& actual, const HostTensor& reference);

/// Reads a NumPy .npy file, versions 1 to 3: little-endian b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8, C or Fortran order.
/// bad_input with the file's name and what is wrong.
[[nodiscard]] Expected<HostTensor> read_npy(const std::string& path);
/// The same from bytes; `file` is for messages.
[[nodiscard]] Expected<HostTensor> parse_npy(std::string_view bytes, const std::string& file);
/// A .npy file, version 1.0, as numpy writes it. bf16 is written as f4 (NumPy has no bfloat16).
[[nodiscard]] std::string npy_bytes(const HostTensor& tensor);
[[nodiscard]] Status write_npy(const std::string& path, const HostTensor& tensor);

}  // namespace taso
