/// Text that goes to a file, or to stdout.
#pragma once

#include <string>
#include <string_view>

#include "support/status.h"

namespace taso {

/// Writes text to a file, atomically (write_file_atomically), or to stdout if `path` is "-".
[[nodiscard]] Status write_text(const std::string& path, std::string_view text);

}  // namespace taso
