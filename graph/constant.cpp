#include "graph/constant.h"

#include <cmath>
#include <cstring>

#include "graph/reals.h"
#include "support/status.h"

namespace taso {
namespace {

template <class T>
std::vector<std::int64_t> widen(std::span<const std::byte> bytes) {
  std::vector<std::int64_t> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<std::int64_t>(value);  // NOLINT(bugprone-signed-char-misuse): int8 is a number
  }
  return values;
}

template <class T>
std::vector<std::byte> copy_bytes(std::span<const T> values) {
  std::vector<std::byte> bytes(values.size_bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

std::shared_ptr<const ConstantData> ConstantData::own(TensorType type, std::vector<std::byte> bytes) {
  TASO_CHECK(static_cast<std::int64_t>(bytes.size()) == type.bytes(), "constant bytes do not fit its type");
  auto data = std::make_shared<ConstantData>();
  data->type_ = std::move(type);
  data->owned_ = std::move(bytes);
  data->bytes_ = data->owned_;
  data->compute_identity();
  return data;
}

std::shared_ptr<const ConstantData> ConstantData::borrow(TensorType type, std::span<const std::byte> bytes,
                                                         std::shared_ptr<const void> owner, std::string place,
                                                         bool mapped) {
  TASO_CHECK(static_cast<std::int64_t>(bytes.size()) == type.bytes(), "constant bytes do not fit its type");
  auto data = std::make_shared<ConstantData>();
  data->type_ = std::move(type);
  data->bytes_ = bytes;
  data->owner_ = std::move(owner);
  data->place_ = std::move(place);
  data->mapped_ = mapped;
  data->compute_identity();
  return data;
}

std::shared_ptr<const ConstantData> ConstantData::splat(TensorType type, std::vector<std::byte> element) {
  TASO_CHECK(element.size() == size_of(type.element) && !element.empty(), "splat element does not fit its type");
  auto data = std::make_shared<ConstantData>();
  data->type_ = std::move(type);
  data->splat_ = std::move(element);
  data->compute_identity();
  return data;
}

std::shared_ptr<const ConstantData> ConstantData::shape_only(TensorType type, std::string name) {
  TASO_CHECK(type.known, "a constant that is only a shape has a known one");
  auto data = std::make_shared<ConstantData>();
  data->type_ = std::move(type);
  data->place_ = std::move(name);
  data->shape_only_ = true;
  data->compute_identity();
  return data;
}

std::shared_ptr<const ConstantData> ConstantData::of_reals(TensorType type, std::span<const double> values) {
  TASO_CHECK(static_cast<std::int64_t>(values.size()) == type.elements(), "values do not fit the shape");
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
  for (std::size_t i = 0; i < values.size(); ++i) store_real(bytes.data(), type.element, i, values[i]);
  return own(std::move(type), std::move(bytes));
}

std::shared_ptr<const ConstantData> ConstantData::of_floats(Shape shape, std::span<const float> values) {
  return own({ElementType::f32, std::move(shape), true}, copy_bytes(values));
}

std::shared_ptr<const ConstantData> ConstantData::of_integers(Shape shape, std::span<const std::int64_t> values) {
  return own({ElementType::i64, std::move(shape), true}, copy_bytes(values));
}

std::shared_ptr<const ConstantData> ConstantData::reshaped(Shape shape) const {
  TASO_CHECK(volume(shape) == type_.elements(), "reshape of a constant changes its volume");
  auto data = std::make_shared<ConstantData>(*this);
  data->type_.shape = std::move(shape);
  if (!owned_.empty()) data->bytes_ = data->owned_;
  data->compute_identity();
  return data;
}

Status ConstantData::require_data() const {
  if (has_data()) return {};
  return bad_input("constant '" + place_ + "' " + to_string(type_) + " is only a shape: its elements are not known");
}

std::span<const std::byte> ConstantData::dense_bytes() const {
  TASO_CHECK(is_dense(), "dense bytes of a constant that has none");
  return bytes_;
}

void ConstantData::release_pages() const { release_pages(bytes_); }

void ConstantData::release_pages(std::span<const std::byte> part) const {
  if (mapped_) taso::release_pages(part);
}

std::vector<std::byte> ConstantData::to_bytes() const {
  TASO_CHECK(has_data(), "bytes of a constant that is only a shape");
  if (is_dense()) return {bytes_.begin(), bytes_.end()};
  std::vector<std::byte> bytes(static_cast<std::size_t>(type_.bytes()));
  for (std::size_t i = 0; i < bytes.size(); i += splat_.size())
    std::memcpy(bytes.data() + i, splat_.data(), splat_.size());
  return bytes;
}

std::vector<double> ConstantData::to_reals() const {
  const std::vector<std::byte> bytes = to_bytes();
  std::vector<double> values(static_cast<std::size_t>(type_.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = load_real(bytes.data(), type_.element, i);
  return values;
}

bool ConstantData::is_finite() const {
  const std::span<const std::byte> bytes = is_dense() ? dense_bytes() : splat_element();
  const std::size_t count = is_dense() ? static_cast<std::size_t>(type_.elements()) : 1;
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(load_real(bytes.data(), type_.element, i))) return false;
  return true;
}

std::vector<float> ConstantData::to_floats() const {
  const std::vector<std::byte> bytes = to_bytes();
  std::vector<float> values(static_cast<std::size_t>(type_.elements()));
  convert_reals(bytes.data(), type_.element, reinterpret_cast<std::byte*>(values.data()), ElementType::f32,
                values.size());
  return values;
}

std::vector<std::int64_t> ConstantData::to_integers() const {
  const std::vector<std::byte> bytes = to_bytes();
  switch (type_.element) {
    case ElementType::i64:
      return widen<std::int64_t>(bytes);
    case ElementType::i32:
      return widen<std::int32_t>(bytes);
    case ElementType::i16:
      return widen<std::int16_t>(bytes);
    case ElementType::i8:
      return widen<std::int8_t>(bytes);
    case ElementType::u64:
      return widen<std::uint64_t>(bytes);
    case ElementType::u32:
      return widen<std::uint32_t>(bytes);
    case ElementType::u16:
      return widen<std::uint16_t>(bytes);
    case ElementType::u8:
    case ElementType::boolean:
      return widen<std::uint8_t>(bytes);
    case ElementType::f32:
    case ElementType::f64:
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::other:
      break;
  }
  TASO_CHECK(false, "integer values of a constant of another type");
  return {};
}

void ConstantData::compute_identity() {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(type_.element));
  hasher.add(static_cast<std::uint64_t>(type_.shape.size()));
  for (std::int64_t extent : type_.shape) hasher.add(extent);
  if (shape_only_)
    hasher.add("shape").add(place_);
  else if (!is_dense())
    hasher.add("splat").add(hash_bytes(splat_));
  else if (!place_.empty())
    hasher.add("place").add(place_);
  else
    hasher.add("contents").add(hash_bytes(bytes_));
  identity_ = hasher.finish();
}

namespace {

ConstantData::Signs signs_of(std::span<const std::byte> bytes, ElementType type) {
  ConstantData::Signs signs{true, true, true};
  const std::size_t count = bytes.size() / size_of(type);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = load_real(bytes.data(), type, i);
    const bool finite = std::isfinite(value);
    signs.positive = signs.positive && finite && value > 0;
    signs.nonnegative = signs.nonnegative && finite && value >= 0;
    signs.nonzero = signs.nonzero && finite && value != 0;
    if (!signs.nonnegative && !signs.nonzero) break;
  }
  return signs;
}

}  // namespace

std::optional<ConstantData::Signs> ConstantData::signs() const {
  if (!is_real(type_.element) || !has_data()) return std::nullopt;
  constexpr std::uint8_t known = 8;
  std::uint8_t bits = signs_.bits.load(std::memory_order_relaxed);
  if (bits == 0) {
    const std::span<const std::byte> bytes = is_dense() ? dense_bytes() : splat_element();
    const Signs found = signs_of(bytes, type_.element);
    bits = static_cast<std::uint8_t>(known | (found.positive ? 1 : 0) | (found.nonnegative ? 2 : 0) |
                                     (found.nonzero ? 4 : 0));
    signs_.bits.store(bits, std::memory_order_relaxed);
  }
  return Signs{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
}

std::shared_ptr<const ConstantData> converted(const std::shared_ptr<const ConstantData>& constant, ElementType to) {
  TensorType type = constant->type();
  if (type.element == to) return constant;
  type.element = to;
  if (!constant->has_data()) return ConstantData::shape_only(std::move(type), constant->name());
  const std::span<const std::byte> from = constant->is_dense() ? constant->dense_bytes() : constant->splat_element();
  const std::size_t count = from.size() / size_of(constant->type().element);
  std::vector<std::byte> bytes(count * size_of(to));
  convert_reals(from.data(), constant->type().element, bytes.data(), to, count);
  return constant->is_dense() ? ConstantData::own(std::move(type), std::move(bytes))
                              : ConstantData::splat(std::move(type), std::move(bytes));
}

}  // namespace taso
