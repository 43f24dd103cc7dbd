// The .npy format: the six bytes "\x93NUMPY", two version bytes, a little-endian header length (2 bytes in version 1,
// 4 in versions 2 and 3), a Python dictionary literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
// padded with spaces to a multiple of 64 and ended by a newline, then the elements. Source: numpy.lib.format.
#include <cctype>
#include <cstring>
#include <optional>

#include "runtime/tensor.h"
#include "support/file.h"

namespace taso {
namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};

struct Header {
  std::string descriptor;
  bool fortran_order = false;
  Shape shape;
};

/// Reads the dictionary literal; knows just the three keys that the format allows.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  std::optional<Header> parse() {
    Header header;
    bool have_descriptor = false, have_order = false, have_shape = false;
    if (!accept('{')) return std::nullopt;
    while (!accept('}')) {
      const std::optional<std::string> key = quoted();
      if (!key || !accept(':')) return std::nullopt;
      if (*key == "descr") {
        const std::optional<std::string> value = quoted();
        if (!value) return std::nullopt;
        header.descriptor = *value;
        have_descriptor = true;
      } else if (*key == "fortran_order") {
        if (word("True"))
          header.fortran_order = true;
        else if (!word("False"))
          return std::nullopt;
        have_order = true;
      } else if (*key == "shape") {
        if (!tuple(header.shape)) return std::nullopt;
        have_shape = true;
      } else {
        return std::nullopt;
      }
      if (!accept(',') && peek() != '}') return std::nullopt;
    }
    if (!have_descriptor || !have_order || !have_shape) return std::nullopt;
    return header;
  }

 private:
  char peek() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])) != 0) ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool accept(char symbol) {
    if (peek() != symbol) return false;
    ++position_;
    return true;
  }
  bool word(std::string_view expected) {
    peek();
    if (text_.substr(position_, expected.size()) != expected) return false;
    position_ += expected.size();
    return true;
  }
  std::optional<std::string> quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }
  bool tuple(Shape& shape) {
    if (!accept('(')) return false;
    while (!accept(')')) {
      if (std::isdigit(static_cast<unsigned char>(peek())) == 0) return false;
      std::int64_t extent = 0;
      while (position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])) != 0) {
        if (extent > (std::int64_t{1} << 50)) return false;
        extent = extent * 10 + (text_[position_++] - '0');
      }
      shape.push_back(extent);
      if (!accept(',') && peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

std::optional<ElementType> element_of(std::string_view descriptor) {
  if (descriptor.size() != 3) return std::nullopt;
  const char order = descriptor[0];
  const std::string_view kind = descriptor.substr(1);
  if (order != '<' && order != '|' && order != '=') return std::nullopt;
  if (kind == "f4") return ElementType::f32;
  if (kind == "f8") return ElementType::f64;
  if (kind == "f2") return ElementType::f16;
  if (kind == "i1") return ElementType::i8;
  if (kind == "i2") return ElementType::i16;
  if (kind == "i4") return ElementType::i32;
  if (kind == "i8") return ElementType::i64;
  if (kind == "u1") return ElementType::u8;
  if (kind == "u2") return ElementType::u16;
  if (kind == "u4") return ElementType::u32;
  if (kind == "u8") return ElementType::u64;
  if (kind == "b1") return ElementType::boolean;
  return std::nullopt;
}

const char* descriptor_of(ElementType element) {
  switch (element) {
    case ElementType::f32:
    case ElementType::bf16:
      return "<f4";
    case ElementType::f64:
      return "<f8";
    case ElementType::f16:
      return "<f2";
    case ElementType::i8:
      return "|i1";
    case ElementType::i16:
      return "<i2";
    case ElementType::i32:
      return "<i4";
    case ElementType::i64:
      return "<i8";
    case ElementType::u8:
      return "|u1";
    case ElementType::u16:
      return "<u2";
    case ElementType::u32:
      return "<u4";
    case ElementType::u64:
      return "<u8";
    case ElementType::boolean:
      return "|b1";
    case ElementType::other:
      break;
  }
  TASO_CHECK(false, "a tensor without numbers cannot be written as .npy");
  return "";
}

/// Copies elements stored first axis fastest into row-major order.
void from_fortran_order(std::string_view data, const Shape& shape, std::size_t element_size, std::byte* target) {
  const std::size_t rank = shape.size();
  const auto count = static_cast<std::size_t>(volume(shape));
  std::vector<std::int64_t> index(rank, 0);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t offset = 0;
    for (std::size_t axis = 0; axis < rank; ++axis)
      offset = offset * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(index[axis]);
    std::memcpy(target + offset * element_size, data.data() + i * element_size, element_size);
    for (std::size_t axis = 0; axis < rank && ++index[axis] == shape[axis]; ++axis) index[axis] = 0;
  }
}

}  // namespace

Expected<HostTensor> parse_npy(std::string_view bytes, const std::string& file) {
  const SourceLocation where{file, 0, 0};
  if (bytes.size() < 10 || bytes.substr(0, 6) != magic)
    return bad_input("not a .npy file: it does not begin with \\x93NUMPY", where);
  const auto version = static_cast<unsigned char>(bytes[6]);
  auto byte_at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])); };
  std::size_t start = 10;
  std::size_t length = byte_at(8) | (byte_at(9) << 8);
  if (version == 2 || version == 3) {
    if (bytes.size() < 12) return bad_input("the .npy header is cut short", where);
    length |= (byte_at(10) << 16) | (byte_at(11) << 24);
    start = 12;
  } else if (version != 1) {
    return bad_input("unknown .npy version " + std::to_string(version) + "; versions 1 to 3 are read", where);
  }
  if (length > bytes.size() - start) return bad_input("the .npy header is cut short", where);
  const std::optional<Header> header = HeaderParser(bytes.substr(start, length)).parse();
  if (!header)
    return bad_input("the .npy header is not a dictionary of 'descr' (a string), 'fortran_order' and 'shape'", where);
  const std::optional<ElementType> element = element_of(header->descriptor);
  if (!element)
    return bad_input("element type '" + header->descriptor +
                         "' is not supported; little-endian b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 are",
                     where);
  if (!is_reasonable(header->shape)) return bad_input("the shape " + to_string(header->shape) + " is too large", where);
  const TensorType type{*element, header->shape, true};
  const std::string_view data = bytes.substr(start + length);
  if (static_cast<std::int64_t>(data.size()) != type.bytes())
    return bad_input("a tensor " + to_string(type) + " needs " + std::to_string(type.bytes()) +
                         " bytes, the file has " + std::to_string(data.size()),
                     where);
  HostTensor tensor(type);
  if (data.empty()) return tensor;
  if (header->fortran_order && header->shape.size() > 1)
    from_fortran_order(data, header->shape, size_of(*element), tensor.bytes().data());
  else
    std::memcpy(tensor.bytes().data(), data.data(), data.size());
  return tensor;
}

Expected<HostTensor> read_npy(const std::string& path) {
  TASO_ASSIGN(const std::string bytes, read_file(path));
  return parse_npy(bytes, path);
}

std::string npy_bytes(const HostTensor& tensor) {
  const TensorType& type = tensor.type();
  std::string dictionary =
      std::string("{'descr': '") + descriptor_of(type.element) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < type.shape.size(); ++i)
    dictionary += (i == 0 ? "" : ", ") + std::to_string(type.shape[i]);
  dictionary += type.shape.size() == 1 ? ",), }" : "), }";
  while ((10 + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string file(magic);
  file += '\x01';
  file += '\x00';
  file += static_cast<char>(dictionary.size() & 255);
  file += static_cast<char>(dictionary.size() >> 8);
  file += dictionary;
  if (type.element == ElementType::bf16) {
    for (double value : tensor.to_doubles()) {
      const auto number = static_cast<float>(value);
      file.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
  } else {
    file.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
  }
  return file;
}

Status write_npy(const std::string& path, const HostTensor& tensor) {
  return write_file_atomically(path, npy_bytes(tensor));
}

}  // namespace taso
