/// Element types, shapes and tensor types.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/hash.h"

namespace taso {

/// The element types of ONNX tensors that the IR tells apart. Operators compute with the real ones (graph/reals.h), and
/// read i32 and i64 as indices; all others are carried.
enum class ElementType : std::uint8_t {
  f32,
  f64,
  f16,
  bf16,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean,
  other,  ///< Anything else (strings, 8-bit floats, sequences, ...): carried, never looked into.
};

/// "f32", "i64", ..., "other".
[[nodiscard]] const char* to_string(ElementType type);
/// The type of that name; nothing if there is none.
[[nodiscard]] std::optional<ElementType> element_type_named(std::string_view name);
/// Bytes of one element; 0 for `other`.
[[nodiscard]] std::size_t size_of(ElementType type);

/// Extents, outermost axis first. An extent may be 0. A scalar has rank 0.
using Shape = std::vector<std::int64_t>;

/// Number of elements; 1 for a scalar. The caller has checked the shape with checked_volume.
[[nodiscard]] std::int64_t volume(std::span<const std::int64_t> shape);
/// False if an extent is negative or the number of elements is above 2^40.
[[nodiscard]] bool is_reasonable(std::span<const std::int64_t> shape);
/// "[1, 3, 224, 224]".
[[nodiscard]] std::string to_string(std::span<const std::int64_t> shape);
/// The same; a Shape would otherwise convert to an AttributeValue as well.
[[nodiscard]] inline std::string to_string(const Shape& shape) { return to_string(std::span(shape)); }

/// The type of one tensor.
struct TensorType {
  ElementType element = ElementType::f32;
  Shape shape;
  /// False if the shape is not known before run time (symbolic extents, opaque producers). No rule and no
  /// kernel touches a tensor of unknown shape; `shape` is then empty.
  bool known = true;

  bool operator==(const TensorType&) const = default;
  [[nodiscard]] std::int64_t elements() const { return volume(shape); }
  [[nodiscard]] std::int64_t bytes() const { return elements() * static_cast<std::int64_t>(size_of(element)); }
};

/// "f32[1, 3, 224, 224]", "f32[?]" if unknown.
[[nodiscard]] std::string to_string(const TensorType& type);

}  // namespace taso
