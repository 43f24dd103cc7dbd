#include "graph/words.h"

#include <cmath>
#include <cstring>
#include <string>

#include "graph/reals.h"
#include "support/status.h"

namespace taso {
namespace {

template <class T>
std::int64_t load(const std::byte* elements, std::size_t index) {
  T value;
  std::memcpy(&value, elements + index * sizeof(T), sizeof(T));
  return static_cast<std::int64_t>(value);
}

template <class T>
void store(std::byte* elements, std::size_t index, std::int64_t word) {
  const auto value = static_cast<T>(word);
  std::memcpy(elements + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

bool is_word(ElementType type) { return type == ElementType::boolean || is_integer(type); }

bool is_integer(ElementType type) {
  switch (type) {
    case ElementType::i8:
    case ElementType::i16:
    case ElementType::i32:
    case ElementType::i64:
    case ElementType::u8:
    case ElementType::u16:
    case ElementType::u32:
    case ElementType::u64:
      return true;
    case ElementType::boolean:
    case ElementType::f32:
    case ElementType::f64:
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::other:
      return false;
  }
  return false;
}

bool is_unsigned(ElementType type) {
  return type == ElementType::u8 || type == ElementType::u16 || type == ElementType::u32 || type == ElementType::u64;
}

std::int64_t wrapped(std::int64_t word, ElementType type) {
  switch (type) {
    case ElementType::i8:
      return static_cast<std::int8_t>(word);
    case ElementType::i16:
      return static_cast<std::int16_t>(word);
    case ElementType::i32:
      return static_cast<std::int32_t>(word);
    case ElementType::u8:
      return static_cast<std::uint8_t>(word);
    case ElementType::u16:
      return static_cast<std::uint16_t>(word);
    case ElementType::u32:
      return static_cast<std::uint32_t>(word);
    case ElementType::i64:
    case ElementType::u64:
      return word;
    case ElementType::boolean:
      return word != 0 ? 1 : 0;
    case ElementType::f32:
    case ElementType::f64:
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::other:
      break;
  }
  TASO_CHECK(false, "a word of type " + std::string(to_string(type)));
  return 0;
}

bool has_number(ElementType type, double number) {
  if (is_real(type)) return is_in_range(number, type);
  if (!is_word(type) || !(std::abs(number) < 9.0e15) || std::trunc(number) != number) return false;
  const auto word = static_cast<std::int64_t>(number);
  return wrapped(word, type) == word && (word >= 0 || !is_unsigned(type));
}

std::int64_t load_word(const std::byte* elements, ElementType type, std::size_t index) {
  switch (type) {
    case ElementType::i8:
      return load<std::int8_t>(elements, index);
    case ElementType::i16:
      return load<std::int16_t>(elements, index);
    case ElementType::i32:
      return load<std::int32_t>(elements, index);
    case ElementType::i64:
      return load<std::int64_t>(elements, index);
    case ElementType::u8:
      return load<std::uint8_t>(elements, index);
    case ElementType::u16:
      return load<std::uint16_t>(elements, index);
    case ElementType::u32:
      return load<std::uint32_t>(elements, index);
    case ElementType::u64:
      return load<std::uint64_t>(elements, index);
    case ElementType::boolean:
      return load<std::uint8_t>(elements, index) != 0 ? 1 : 0;
    case ElementType::f32:
    case ElementType::f64:
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::other:
      break;
  }
  TASO_CHECK(false, "a word of type " + std::string(to_string(type)));
  return 0;
}

void store_word(std::byte* elements, ElementType type, std::size_t index, std::int64_t word) {
  word = wrapped(word, type);
  switch (size_of(type)) {
    case 1:
      return store<std::uint8_t>(elements, index, word);
    case 2:
      return store<std::uint16_t>(elements, index, word);
    case 4:
      return store<std::uint32_t>(elements, index, word);
    default:
      return store<std::uint64_t>(elements, index, word);
  }
}

}  // namespace taso
