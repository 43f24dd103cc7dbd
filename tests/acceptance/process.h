/// Runs one of our programs and collects what it says.
#pragma once

#include <string>
#include <vector>

namespace taso::acceptance {

struct ProcessResult {
  int exit_code = -1;  ///< 128 + signal if a signal ended the program.
  std::string output;  ///< Standard output.
  std::string errors;  ///< Standard error.
};

/// Runs `arguments[0]`, a path, with the other arguments; standard input is empty.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& arguments);

/// Path of a built program: "taso-opt", ...
[[nodiscard]] std::string program(const std::string& name);

}  // namespace taso::acceptance
