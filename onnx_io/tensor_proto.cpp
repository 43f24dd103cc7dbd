#include "onnx_io/tensor_proto.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace taso {
namespace {

struct DataType {
  const char* name;
  ElementType element;
  int bits;  ///< Of one element in raw_data; 0 for strings.
};

/// By data_type, from 1. Types after BFLOAT16 are newer than the linked ONNX.
constexpr std::array<DataType, 26> data_types = {{
    {"FLOAT", ElementType::f32, 32},
    {"UINT8", ElementType::u8, 8},
    {"INT8", ElementType::i8, 8},
    {"UINT16", ElementType::u16, 16},
    {"INT16", ElementType::i16, 16},
    {"INT32", ElementType::i32, 32},
    {"INT64", ElementType::i64, 64},
    {"STRING", ElementType::other, 0},
    {"BOOL", ElementType::boolean, 8},
    {"FLOAT16", ElementType::f16, 16},
    {"DOUBLE", ElementType::f64, 64},
    {"UINT32", ElementType::u32, 32},
    {"UINT64", ElementType::u64, 64},
    {"COMPLEX64", ElementType::other, 64},
    {"COMPLEX128", ElementType::other, 128},
    {"BFLOAT16", ElementType::bf16, 16},
    {"FLOAT8E4M3FN", ElementType::other, 8},
    {"FLOAT8E4M3FNUZ", ElementType::other, 8},
    {"FLOAT8E5M2", ElementType::other, 8},
    {"FLOAT8E5M2FNUZ", ElementType::other, 8},
    {"UINT4", ElementType::other, 4},
    {"INT4", ElementType::other, 4},
    {"FLOAT4E2M1", ElementType::other, 4},
    {"FLOAT8E8M0", ElementType::other, 8},
    {"UINT2", ElementType::other, 2},
    {"INT2", ElementType::other, 2},
}};

const DataType* find_type(std::int32_t data_type) {
  return data_type >= 1 && data_type <= static_cast<std::int32_t>(data_types.size())
             ? &data_types[static_cast<std::size_t>(data_type - 1)]
             : nullptr;
}

/// Elements of a typed field, narrowed to `bytes` bytes each.
template <class Field>
std::vector<std::byte> narrow(const Field& field, std::size_t bytes) {
  std::vector<std::byte> out(static_cast<std::size_t>(field.size()) * bytes);
  std::size_t place = 0;
  for (const auto value : field) {
    std::memcpy(out.data() + place, &value, bytes);  // Little-endian: the low bytes come first.
    place += bytes;
  }
  return out;
}

Expected<std::vector<std::byte>> typed_bytes(const onnx::TensorProto& tensor, const DataType& type,
                                             std::int64_t elements) {
  std::vector<std::byte> out;
  std::int64_t count = 0;
  const char* field = "";
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::COMPLEX64:
      out = narrow(tensor.float_data(), sizeof(float));
      field = "float_data";
      count = tensor.float_data_size();
      break;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::COMPLEX128:
      out = narrow(tensor.double_data(), sizeof(double));
      field = "double_data";
      count = tensor.double_data_size();
      break;
    case onnx::TensorProto::INT64:
      out = narrow(tensor.int64_data(), sizeof(std::int64_t));
      field = "int64_data";
      count = tensor.int64_data_size();
      break;
    case onnx::TensorProto::UINT32:
    case onnx::TensorProto::UINT64:
      out = narrow(tensor.uint64_data(), static_cast<std::size_t>(type.bits / 8));
      field = "uint64_data";
      count = tensor.uint64_data_size();
      break;
    default:
      if (type.bits < 8) {  // Packed: several elements in each entry.
        out = narrow(tensor.int32_data(), 1);
      } else {
        out = narrow(tensor.int32_data(), static_cast<std::size_t>(type.bits / 8));
      }
      field = "int32_data";
      count = tensor.int32_data_size();
      break;
  }
  std::int64_t expected = elements;
  if (tensor.data_type() == onnx::TensorProto::COMPLEX64 || tensor.data_type() == onnx::TensorProto::COMPLEX128)
    expected *= 2;
  if (type.bits < 8) expected = (elements * type.bits + 7) / 8;
  if (count != expected)
    return bad_input(
        "shape " +
        to_string(std::span<const std::int64_t>(tensor.dims().data(), static_cast<std::size_t>(tensor.dims_size()))) +
        " of type " + type.name + " needs " + std::to_string(expected) + " values, " + field + " has " +
        std::to_string(count));
  return out;
}

/// No field of a tensor holds an element.
bool stores_nothing(const onnx::TensorProto& tensor, const wire::TakenData* taken) {
  return (taken == nullptr || taken->bytes.empty()) && tensor.raw_data().empty() && tensor.float_data_size() == 0 &&
         tensor.int32_data_size() == 0 && tensor.int64_data_size() == 0 && tensor.double_data_size() == 0 &&
         tensor.uint64_data_size() == 0;
}

/// Hash of large data, chunk by chunk: hashing a model does not make it resident.
std::string digest(std::span<const std::byte> bytes, bool mapped) {
  constexpr std::size_t chunk = std::size_t{16} << 20, read_at_a_time = std::size_t{4} << 20;
  Hasher hasher;
  for (std::size_t begin = 0; begin < bytes.size(); begin += chunk) {
    const auto part = bytes.subspan(begin, std::min(chunk, bytes.size() - begin));
    hasher.add(hash_in_parts(part, read_at_a_time, [mapped](std::span<const std::byte> read) {
      if (mapped) release_pages(read);
    }));
  }
  return "xxh3:" + hasher.finish().to_string();
}

}  // namespace

ElementType element_of(std::int32_t data_type) {
  const DataType* type = find_type(data_type);
  return type == nullptr ? ElementType::other : type->element;
}

std::int32_t data_type_of(ElementType element) {
  TASO_CHECK(element != ElementType::other, "element type other has no ONNX type");
  for (std::size_t i = 0; i < data_types.size(); ++i)
    if (data_types[i].element == element) return static_cast<std::int32_t>(i + 1);
  return 0;
}

bool is_known_data_type(std::int32_t data_type) { return find_type(data_type) != nullptr; }

std::string data_type_name(std::int32_t data_type) {
  const DataType* type = find_type(data_type);
  return type == nullptr ? "type " + std::to_string(data_type) : type->name;
}

Expected<TensorContents> read_contents(const onnx::TensorProto& tensor, const wire::TakenData* taken,
                                       ExternalData& external, const std::shared_ptr<const void>& owner, bool mapped,
                                       AbsentData absent) {
  TensorContents contents;
  contents.data_type = tensor.data_type();
  contents.type.element = element_of(tensor.data_type());
  contents.type.shape.assign(tensor.dims().begin(), tensor.dims().end());
  contents.type.known = contents.type.element != ElementType::other;
  const std::string shape = to_string(std::span(contents.type.shape));
  for (std::int64_t extent : contents.type.shape)
    if (extent < 0) return bad_input("shape " + shape + " has a negative extent");
  if (!is_reasonable(contents.type.shape)) return bad_input("shape " + shape + " has more than 2^40 elements");
  if (tensor.data_type() <= 0) return bad_input("it has no element type");
  const std::int64_t elements = volume(contents.type.shape);
  contents.external = tensor.data_location() == onnx::TensorProto::EXTERNAL;
  const DataType* type = find_type(tensor.data_type());
  const std::int64_t needed = type == nullptr ? -1 : (elements * type->bits + 7) / 8;

  const bool may_be_absent = absent == AbsentData::allowed && needed > 0;
  if (may_be_absent && !contents.external && stores_nothing(tensor, taken)) {
    contents.absent = true;
    return contents;
  }
  if (contents.external) {
    std::string location;
    std::int64_t offset = 0;
    std::optional<std::int64_t> length;
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") {
        location = entry.value();
      } else if (entry.key() == "offset" || entry.key() == "length") {
        std::int64_t number = 0;
        const std::string& text = entry.value();
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (failure != std::errc() || end != text.data() + text.size() || number < 0)
          return bad_input("external data " + entry.key() + " \"" + text + "\" is not a number of bytes");
        (entry.key() == "offset" ? offset : length.emplace()) = number;
      }
    }
    if (!length && needed >= 0) length = needed;
    if (may_be_absent) {
      TASO_ASSIGN(const bool exists, external.exists(location));
      contents.absent = !exists;
      if (contents.absent) return contents;
    }
    TASO_ASSIGN(contents.bytes, external.read(location, offset, length));
  } else if (taken != nullptr) {
    if (taken->field == 4 && tensor.data_type() != onnx::TensorProto::FLOAT)
      return bad_input("values of type " + data_type_name(tensor.data_type()) + " are stored as float_data");
    contents.bytes = {taken->bytes, owner, mapped};
  } else if (tensor.has_raw_data()) {
    // Copied: a constant may outlive the message.
    auto stored = std::make_shared<const std::string>(tensor.raw_data());
    contents.bytes = {std::as_bytes(std::span(stored->data(), stored->size())), stored, false};
  } else if (tensor.data_type() == onnx::TensorProto::STRING) {
    if (tensor.string_data_size() != elements)
      return bad_input("shape " + shape + " of type STRING needs " + std::to_string(elements) +
                       " values, string_data has " + std::to_string(tensor.string_data_size()));
    return contents;
  } else if (type != nullptr) {
    TASO_ASSIGN(std::vector<std::byte> values, typed_bytes(tensor, *type, elements));
    auto stored = std::make_shared<const std::vector<std::byte>>(std::move(values));
    contents.bytes = {*stored, stored, false};
    return contents;
  } else {
    return contents;
  }
  if (needed >= 0 && static_cast<std::int64_t>(contents.bytes.bytes.size()) != needed)
    return bad_input("shape " + shape + " of type " + data_type_name(tensor.data_type()) + " needs " +
                     std::to_string(needed) + " bytes, it has " + std::to_string(contents.bytes.bytes.size()));
  return contents;
}

std::shared_ptr<const ConstantData> make_constant(const TensorContents& contents, const std::string& name) {
  if (contents.absent) return ConstantData::shape_only(contents.type, name);
  // Small ones are told apart by their contents, whoever has them; so many bytes of a mapped file may be copied.
  constexpr std::size_t large = std::size_t{1} << 20, copied = std::size_t{1} << 14;
  const auto& [bytes, owner, mapped] = contents.bytes;
  if (bytes.size() < (mapped ? copied : large)) return ConstantData::own(contents.type, {bytes.begin(), bytes.end()});
  auto constant =
      ConstantData::borrow(contents.type, bytes, owner, bytes.size() < large ? "" : digest(bytes, mapped), mapped);
  constant->release_pages();
  return constant;
}

}  // namespace taso
