#include "runtime/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "graph/reals.h"
#include "support/random.h"

namespace taso {
namespace {

template <class T>
T load(const std::byte* bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* bytes, std::size_t index, T value) {
  std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

HostTensor::HostTensor(TensorType type) : type_(std::move(type)) {
  TASO_CHECK(type_.known && size_of(type_.element) > 0, "a host tensor needs a known type");
  size_ = static_cast<std::size_t>(type_.bytes());
  buffer_ = AlignedBuffer(size_);
  std::memset(buffer_.data(), 0, size_);
}

HostTensor HostTensor::of_floats(Shape shape, std::span<const float> values) {
  HostTensor tensor(TensorType{ElementType::f32, std::move(shape), true});
  TASO_CHECK(tensor.size_ == values.size_bytes(), "values do not fit the shape");
  if (!values.empty()) std::memcpy(tensor.buffer_.data(), values.data(), values.size_bytes());
  return tensor;
}

HostTensor HostTensor::of_integers(Shape shape, std::span<const std::int64_t> values) {
  HostTensor tensor(TensorType{ElementType::i64, std::move(shape), true});
  TASO_CHECK(tensor.size_ == values.size_bytes(), "values do not fit the shape");
  if (!values.empty()) std::memcpy(tensor.buffer_.data(), values.data(), values.size_bytes());
  return tensor;
}

HostTensor HostTensor::of_constant(const ConstantData& constant) {
  TASO_CHECK(constant.has_data(), "a tensor of a constant that is only a shape");
  HostTensor tensor(constant.type());
  if (constant.is_dense()) {
    if (tensor.size_ > 0) std::memcpy(tensor.buffer_.data(), constant.dense_bytes().data(), tensor.size_);
  } else {
    const auto element = constant.splat_element();
    for (std::size_t i = 0; i < tensor.size_; i += element.size())
      std::memcpy(tensor.buffer_.data() + i, element.data(), element.size());
  }
  return tensor;
}

HostTensor HostTensor::copy() const {
  HostTensor tensor(type_);
  if (size_ > 0) std::memcpy(tensor.buffer_.data(), buffer_.data(), size_);
  return tensor;
}

HostTensor HostTensor::converted(ElementType to) const {
  // There is nothing to convert in what stands for an input of unknown shape.
  const bool is_there = size_ > 0 || type_.elements() == 0;
  if (to == type_.element || !is_there || !is_real(type_.element) || !is_real(to)) return copy();
  HostTensor tensor(TensorType{to, type_.shape, true});
  convert_reals(buffer_.data(), type_.element, tensor.buffer_.data(), to, static_cast<std::size_t>(type_.elements()));
  return tensor;
}

std::span<float> HostTensor::floats() {
  TASO_CHECK(type_.element == ElementType::f32, "floats of a tensor of another type");
  return {reinterpret_cast<float*>(buffer_.data()), size_ / sizeof(float)};
}

std::span<const float> HostTensor::floats() const {
  TASO_CHECK(type_.element == ElementType::f32, "floats of a tensor of another type");
  return {reinterpret_cast<const float*>(buffer_.data()), size_ / sizeof(float)};
}

std::vector<double> HostTensor::to_doubles() const {
  const std::byte* data = buffer_.data();
  std::vector<double> values(static_cast<std::size_t>(type_.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    double& value = values[i];
    switch (type_.element) {
      case ElementType::f16:
      case ElementType::bf16:
      case ElementType::f32:
      case ElementType::f64:
        value = load_real(data, type_.element, i);
        break;
      case ElementType::i8:
        value = load<std::int8_t>(data, i);
        break;
      case ElementType::i16:
        value = load<std::int16_t>(data, i);
        break;
      case ElementType::i32:
        value = load<std::int32_t>(data, i);
        break;
      case ElementType::i64:
        value = static_cast<double>(load<std::int64_t>(data, i));
        break;
      case ElementType::u8:
      case ElementType::boolean:
        value = load<std::uint8_t>(data, i);
        break;
      case ElementType::u16:
        value = load<std::uint16_t>(data, i);
        break;
      case ElementType::u32:
        value = load<std::uint32_t>(data, i);
        break;
      case ElementType::u64:
        value = static_cast<double>(load<std::uint64_t>(data, i));
        break;
      case ElementType::other:
        TASO_CHECK(false, "numbers of a tensor without numbers");
    }
  }
  return values;
}

std::vector<std::int64_t> HostTensor::to_integers() const {
  const std::byte* data = buffer_.data();
  std::vector<std::int64_t> values(static_cast<std::size_t>(type_.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t& value = values[i];
    switch (type_.element) {
      case ElementType::i8:
        value = load<std::int8_t>(data, i);  // NOLINT(bugprone-signed-char-misuse): a number
        break;
      case ElementType::i16:
        value = load<std::int16_t>(data, i);
        break;
      case ElementType::i32:
        value = load<std::int32_t>(data, i);
        break;
      case ElementType::i64:
        value = load<std::int64_t>(data, i);
        break;
      case ElementType::u8:
      case ElementType::boolean:
        value = load<std::uint8_t>(data, i);
        break;
      case ElementType::u16:
        value = load<std::uint16_t>(data, i);
        break;
      case ElementType::u32:
        value = load<std::uint32_t>(data, i);
        break;
      case ElementType::u64:
        value = static_cast<std::int64_t>(load<std::uint64_t>(data, i));
        break;
      case ElementType::f16:
      case ElementType::bf16:
      case ElementType::f32:
      case ElementType::f64:
      case ElementType::other:
        TASO_CHECK(false, "integers of a tensor of another type");
    }
  }
  return values;
}

void HostTensor::reshape(Shape shape) {
  TASO_CHECK(volume(shape) == type_.elements(), "reshape changes the volume");
  type_.shape = std::move(shape);
}

void fill_random(HostTensor& tensor, std::uint64_t seed, std::string_view name, std::int64_t integer_bound) {
  Random random(seed, name);
  const auto bound = static_cast<std::uint64_t>(std::max<std::int64_t>(integer_bound, 1));
  std::byte* data = tensor.bytes().data();
  const auto count = static_cast<std::size_t>(tensor.type().elements());
  for (std::size_t i = 0; i < count; ++i) {
    switch (tensor.type().element) {
      case ElementType::f16:
      case ElementType::f32:
      case ElementType::f64:
        store_real(data, tensor.type().element, i, random.uniform() * 2 - 1);
        break;
      case ElementType::bf16: {
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(random.uniform() * 2 - 1));
        store(data, i, static_cast<std::uint16_t>(bits >> 16));
        break;
      }
      case ElementType::i8:
      case ElementType::u8:
        store(data, i, static_cast<std::uint8_t>(random.below(std::min<std::uint64_t>(bound, 128))));
        break;
      case ElementType::i16:
      case ElementType::u16:
        store(data, i, static_cast<std::uint16_t>(random.below(std::min<std::uint64_t>(bound, 32768))));
        break;
      case ElementType::i32:
      case ElementType::u32:
        store(data, i, static_cast<std::uint32_t>(random.below(std::min<std::uint64_t>(bound, 1u << 31))));
        break;
      case ElementType::i64:
      case ElementType::u64:
        store(data, i, random.below(bound));
        break;
      case ElementType::boolean:
        store(data, i, static_cast<std::uint8_t>(random.below(2)));
        break;
      case ElementType::other:
        break;
    }
  }
}

Difference compare(const HostTensor& actual, const HostTensor& reference, double rtol, double atol) {
  Difference difference;
  if (!(actual.type() == reference.type())) {
    difference.comparable = false;
    return difference;
  }
  const std::vector<double> left = actual.to_doubles(), right = reference.to_doubles();
  for (double value : right)
    if (std::isfinite(value)) difference.reference_maximum = std::max(difference.reference_maximum, std::fabs(value));
  const double tolerance = atol + rtol * difference.reference_maximum;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool finite = std::isfinite(left[i]) && std::isfinite(right[i]);
    if (!finite) {
      const bool same = left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]));
      if (same) continue;
      if (difference.violations++ == 0 || std::isfinite(difference.max_absolute))
        difference.worst_index = static_cast<std::int64_t>(i);
      difference.max_absolute = HUGE_VAL;
      continue;
    }
    const double deviation = std::fabs(left[i] - right[i]);
    if (deviation > tolerance) ++difference.violations;
    if (deviation > difference.max_absolute) {
      difference.max_absolute = deviation;
      difference.worst_index = static_cast<std::int64_t>(i);
    }
  }
  if (difference.max_absolute > 0)
    difference.max_relative =
        difference.reference_maximum > 0 ? difference.max_absolute / difference.reference_maximum : HUGE_VAL;
  return difference;
}

double relative_l2(const HostTensor& actual, const HostTensor& reference) {
  if (!(actual.type() == reference.type())) return HUGE_VAL;
  const std::vector<double> left = actual.to_doubles(), right = reference.to_doubles();
  double difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!std::isfinite(left[i]) || !std::isfinite(right[i])) {
      if (left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]))) continue;
      return HUGE_VAL;
    }
    difference += (left[i] - right[i]) * (left[i] - right[i]);
    magnitude += right[i] * right[i];
  }
  if (difference == 0) return 0;
  return magnitude > 0 ? std::sqrt(difference / magnitude) : HUGE_VAL;
}

}  // namespace taso
