#include "graph/tensor_type.h"

namespace taso {

const char* to_string(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "f32";
    case ElementType::f64:
      return "f64";
    case ElementType::f16:
      return "f16";
    case ElementType::bf16:
      return "bf16";
    case ElementType::i8:
      return "i8";
    case ElementType::i16:
      return "i16";
    case ElementType::i32:
      return "i32";
    case ElementType::i64:
      return "i64";
    case ElementType::u8:
      return "u8";
    case ElementType::u16:
      return "u16";
    case ElementType::u32:
      return "u32";
    case ElementType::u64:
      return "u64";
    case ElementType::boolean:
      return "bool";
    case ElementType::other:
      return "other";
  }
  return "?";
}

std::optional<ElementType> element_type_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ElementType::other); ++i)
    if (name == to_string(static_cast<ElementType>(i))) return static_cast<ElementType>(i);
  return std::nullopt;
}

std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::f64:
    case ElementType::i64:
    case ElementType::u64:
      return 8;
    case ElementType::f32:
    case ElementType::i32:
    case ElementType::u32:
      return 4;
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::i16:
    case ElementType::u16:
      return 2;
    case ElementType::i8:
    case ElementType::u8:
    case ElementType::boolean:
      return 1;
    case ElementType::other:
      return 0;
  }
  return 0;
}

std::int64_t volume(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  for (std::int64_t extent : shape) product *= extent;
  return product;
}

bool is_reasonable(std::span<const std::int64_t> shape) {
  constexpr std::int64_t limit = std::int64_t{1} << 40;
  std::int64_t product = 1;
  bool empty = false;
  for (std::int64_t extent : shape) {
    if (extent < 0 || extent > limit) return false;
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (product > limit / extent) return false;
    product *= extent;
  }
  return empty || product <= limit;
}

std::string to_string(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string to_string(const TensorType& type) {
  return std::string(to_string(type.element)) + (type.known ? to_string(std::span(type.shape)) : "[?]");
}

}  // namespace taso
