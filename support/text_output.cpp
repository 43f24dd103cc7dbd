#include "support/text_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "support/file.h"

namespace taso {

Status write_text(const std::string& path, std::string_view text) {
  if (path != "-") {
    std::fflush(stdout);  // the path may be another name of it
    return write_file_atomically(path, text);
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return bad_input("cannot write to stdout: " + std::string(std::strerror(errno)));
  return {};
}

}  // namespace taso
