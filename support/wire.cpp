#include "support/wire.h"

namespace taso::wire {

Expected<Field> FieldReader::next() {
  const std::span<const std::byte> start = rest_;
  Field field;
  TASO_ASSIGN(const std::uint64_t tag, varint());
  field.number = static_cast<int>(tag >> 3);
  field.wire_type = static_cast<int>(tag & 7);
  if ((tag >> 3) == 0 || (tag >> 3) > 0x1fffffff) return malformed(start, "a field has no valid number");
  switch (field.wire_type) {
    case 0: {
      TASO_ASSIGN(field.value, varint());
      break;
    }
    case 1:
      TASO_RETURN_IF_ERROR(skip(8));
      break;
    case 5:
      TASO_RETURN_IF_ERROR(skip(4));
      break;
    case 2: {
      TASO_ASSIGN(const std::uint64_t length, varint());
      if (length > rest_.size())
        return bad_input("the file is truncated or not " + std::string(format_) + ": the field at byte " +
                             std::to_string(start.data() - file_begin_) + " needs " + std::to_string(length) +
                             " bytes, " + std::to_string(rest_.size()) + " are left",
                         {*path_});
      field.payload = rest_.first(length);
      rest_ = rest_.subspan(length);
      break;
    }
    default:
      return malformed(start, "a field has wire type " + std::to_string(field.wire_type));
  }
  field.whole = start.first(start.size() - rest_.size());
  return field;
}

Expected<std::uint64_t> FieldReader::varint() {
  const std::span<const std::byte> start = rest_;
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return malformed(start, "a number is cut off");
    const auto byte = std::to_integer<std::uint64_t>(rest_.front());
    rest_ = rest_.subspan(1);
    value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return malformed(start, "a number has more than ten bytes");
}

Status FieldReader::skip(std::size_t count) {
  if (rest_.size() < count) return malformed(rest_, "a number is cut off");
  rest_ = rest_.subspan(count);
  return {};
}

Error FieldReader::malformed(std::span<const std::byte> place, const std::string& what) const {
  return bad_input(
      "not " + std::string(format_) + ": " + what + " at byte " + std::to_string(place.data() - file_begin_), {*path_});
}

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void append_length_prefix(std::string& out, int field, std::uint64_t length) {
  append_varint(out, (static_cast<std::uint64_t>(field) << 3) | 2);
  append_varint(out, length);
}

}  // namespace taso::wire
