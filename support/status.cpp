#include "support/status.h"

#include "support/one_line.h"

namespace taso {

std::string Error::to_string() const {
  std::string text;
  if (!where.file.empty()) {
    text += where.file;
    if (where.line > 0) {
      text += ':' + std::to_string(where.line);
      if (where.column > 0) text += ':' + std::to_string(where.column);
    }
    text += ": ";
  }
  return text + message;
}

Error bad_input(std::string message, SourceLocation where) {
  return {ErrorCode::bad_input, one_line(std::move(message)), std::move(where)};
}

Error internal_error(std::string message) { return {ErrorCode::internal, std::move(message), {}}; }

namespace detail {
void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: internal error: %s (%s does not hold)\n", file, line, message.c_str(), condition);
  std::abort();
}
}  // namespace detail

}  // namespace taso
