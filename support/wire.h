/// Fields of a message in protobuf's wire format, read in place: what the scans of ONNX and rule files share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "support/status.h"

namespace taso::wire {

/// One field of a message.
struct Field {
  int number = 0;
  int wire_type = 0;                   ///< 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes.
  std::uint64_t value = 0;             ///< Of a varint.
  std::span<const std::byte> whole;    ///< Tag and payload.
  std::span<const std::byte> payload;  ///< Of a length-delimited field.
};

/// Reads the fields of one message in order; nothing is copied.
class FieldReader {
 public:
  /// `message` lies within a file that begins at `file_begin`; errors name `path`, the place in the file and what the
  /// file ought to be, say "an ONNX model". `path` and `format` must outlive the reader.
  FieldReader(std::span<const std::byte> message, const std::byte* file_begin, const std::string& path,
              const char* format)
      : rest_(message), file_begin_(file_begin), path_(&path), format_(format) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }
  /// The next field; bad_input ("truncated", "not an ONNX model") if the bytes are none.
  [[nodiscard]] Expected<Field> next();

 private:
  Expected<std::uint64_t> varint();
  Status skip(std::size_t count);
  [[nodiscard]] Error malformed(std::span<const std::byte> place, const std::string& what) const;

  std::span<const std::byte> rest_;
  const std::byte* file_begin_;
  const std::string* path_;
  const char* format_;
};

/// Protobuf's encoding of an unsigned integer.
void append_varint(std::string& out, std::uint64_t value);
/// The tag and length before a length-delimited field.
void append_length_prefix(std::string& out, int field, std::uint64_t length);

}  // namespace taso::wire
