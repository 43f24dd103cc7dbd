#include "tests/acceptance/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "support/file.h"
#include "support/status.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace taso::acceptance {
namespace {

/// A file that is gone when the object is.
class TemporaryFile {
 public:
  TemporaryFile() : path_("/tmp/taso-process-XXXXXX") {
    descriptor_ = mkstemp(path_.data());
    TASO_CHECK(descriptor_ >= 0, "cannot make a temporary file");
  }
  ~TemporaryFile() {
    close(descriptor_);
    unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] std::string contents() const {
    auto bytes = read_file(path_);
    return bytes ? *bytes : std::string();
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments) {
  const TemporaryFile output;
  const TemporaryFile errors;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  std::vector<char*> pointers;
  std::vector<std::string> copies = arguments;
  pointers.reserve(copies.size() + 1);
  for (std::string& argument : copies) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t child = -1;
  const int failure = posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return {127, "", "cannot start " + arguments[0]};
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), output.contents(), errors.contents()};
}

std::string program(const std::string& name) { return std::string(TASO_PROGRAMS) + "/" + name; }

}  // namespace taso::acceptance
