/// What the four programs share: common options, errors in one line, progress on stderr, Ctrl-C.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/status.h"
#include "tools/files.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace taso::tools {

/// Options that every program has.
struct CommonOptions {
  int verbosity = 0;                     ///< How often -v was given.
  bool quiet = false;                    ///< -q: nothing on stderr but errors.
  int threads = 0;                       ///< -j: worker threads of the program itself; 0 is all.
  std::uint64_t seed = 0;                ///< --seed.
  std::string json;                      ///< --json FILE ("-" is stdout); empty: none.
  std::string specs;                     ///< --specs DIR: operators, axioms, rules.
  std::vector<std::string> added_specs;  ///< --add-specs DIR...: folders of the same form that extend it.
};

/// Adds -v, -q, -j, --seed, --json, --specs, --add-specs and -V to a command line. `specs` are the extensions of the
/// files that the program reads from folders of specifications.
void add_common_options(CLI::App& app, FileOptions& files, CommonOptions& options,
                        const std::vector<std::string>& specs);

/// Parses the command line and, with `claim`, claims the files that it names. A value is the code to exit with at once:
/// 0 after -h and -V, that of an error, which has been printed, else. Options of the program that name files and are
/// not declared in `files` are a fault of ours.
/// From then on exhausted memory, and what else the standard library throws, ends the program with one line and an exit
/// code (3: the system gives no more), and a file that gets larger than the process may write is an error of writing
/// it. So is at the end what was printed and cannot be written to stdout.
[[nodiscard]] std::optional<int> parse_command_line(CLI::App& app, FileOptions& files, int argc, char** argv,
                                                    bool claim = true);

/// For an option's check(): a decimal number from `least` to `most` and nothing else. The message of a refusal names
/// what was given and the range; numbers of any length are refused without overflow.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least = 0,
                                          std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
/// The same for a finite real number that is at least `least` (above it with `open`) and at most `most`.
[[nodiscard]] CLI::Validator real_number(double least, double most = std::numeric_limits<double>::max(),
                                         bool open = false);

/// Prints "PROGRAM: error" as one line and returns its exit code.
int fail(std::string_view program, const Error& error);
/// Prints "PROGRAM: warning: message" as one line.
void warn(std::string_view program, std::string_view message);

/// The folder of specifications that lies beside the running program (../share/taso/specs, as installed), else the one
/// of the source tree that the program was built from.
[[nodiscard]] std::string default_specs();

/// Raised by the first Ctrl-C (SIGINT, SIGTERM); the second one ends the program at once.
[[nodiscard]] const std::atomic<bool>& interrupted();
/// Installs the handler for `interrupted`.
void catch_interrupts();
/// Until catch_interrupts: Ctrl-C ends the program at once with the line "PROGRAM: interrupted; nothing was written"
/// and exit code 130. For times when nothing is being written and there is no result yet. `program` is a literal.
void end_on_interrupt(const char* program);

/// While it lives, nothing that this process prints is seen: for ranks that do not speak.
class Silence {
 public:
  explicit Silence(bool on);
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int saved_[2] = {-1, -1};
};

/// One line on stderr that is written over on a terminal (bar style), and a plain line every ten seconds elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& text);
  /// Removes the line from a terminal.
  void clear();

 private:
  bool quiet_, terminal_;
  std::size_t shown_ = 0;
  std::chrono::steady_clock::time_point last_;
};

/// A progress line that shows what a function says every moment (every ten seconds where it is no terminal), from a
/// thread of its own, until it is stopped.
class TickingLine {
 public:
  TickingLine(bool quiet, std::function<std::string()> text);
  ~TickingLine();
  /// Ends the thread, and removes the line from a terminal.
  void stop();

 private:
  ProgressLine line_;
  std::function<std::string()> text_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace taso::tools
