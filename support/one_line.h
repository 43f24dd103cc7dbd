/// Texts in messages.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace taso {

/// The text with control characters as question marks: what is quoted from a file may hold any bytes, the end of a line
/// among them, and a message is one line.
[[nodiscard]] inline std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return text;
}

}  // namespace taso
