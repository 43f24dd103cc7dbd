#include "tools/common.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "support/nearest_word.h"
#include "tools/memory_limit.h"

/// mimalloc, where a program is linked with it, knows no handler of operator new; null elsewhere.
extern "C" __attribute__((weak)) void mi_register_error(void (*callback)(int code, void* argument), void* argument);

namespace taso::tools {
namespace {

constexpr auto terminal_pause = std::chrono::milliseconds(100);
constexpr std::size_t longest_message = 500;  // of an error or a warning; the middle of a longer one is left out
constexpr auto plain_pause = std::chrono::seconds(10);
constexpr auto tick = std::chrono::milliseconds(250);

/// The one piece of state that a signal handler can reach.
std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only use lock-free atomics");

extern "C" void on_interrupt(int signal) {
  if (interrupt_flag.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

/// What the handler of end_on_interrupt prints.
constinit const char* interrupted_program = "";

extern "C" void on_early_interrupt(int /*signal*/) {
  // Only what is allowed in a signal handler.
  for (const char* text : {interrupted_program, ": interrupted; nothing was written\n"})
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
  ::_exit(static_cast<int>(ErrorCode::interrupted));
}

/// Ends the program with one line. Nothing is allocated.
[[noreturn]] void end_with(const char* message, const char* reason, ErrorCode code) {
  for (const char* text : {static_cast<const char*>(program_invocation_short_name), ": ", message, reason, "\n"})
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
  ::_exit(static_cast<int>(code));
}

/// Called by operator new, in any thread, where no exception need find its way to main.
void on_exhausted_memory() {
  end_with("out of memory: this needs more than the system gives; smaller extents or fewer threads need less", "",
           ErrorCode::bad_input);
}

void end_if_memory_is_exhausted() {
  constexpr std::size_t some = std::size_t{128} << 20;
  void* const memory = ::mmap(nullptr, some, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) on_exhausted_memory();
  (void)::munmap(memory, some);
}

/// A library that does not look whether it was given memory crashes where there is none left: if that is so, the
/// program ends as where it looks itself. Anything else ends it as a crash does.
extern "C" void on_crash(int signal) {
  end_if_memory_is_exhausted();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// The library of OpenMP ends a program where there is no memory for a thread. What was printed may wait in memory
/// until now: it is not done before it is written.
extern "C" void on_exit_of_process(int code, void* /*argument*/) {
  if (code == static_cast<int>(ErrorCode::internal)) end_if_memory_is_exhausted();
  const bool written = std::fflush(stdout) == 0;
  if (code != 0 || (written && std::ferror(stdout) == 0)) return;
  end_with("cannot write to stdout", written ? "" : (std::string(": ") + std::strerror(errno)).c_str(),
           ErrorCode::bad_input);
}

/// Sanitizers report crashes themselves.
void handle_crashes() {
  (void)::on_exit(on_exit_of_process, nullptr);
#if !defined(__SANITIZE_ADDRESS__)
  static std::array<std::byte, std::size_t{1} << 16> stack;
  stack_t own{};
  own.ss_sp = stack.data();
  own.ss_size = stack.size();
  if (::sigaltstack(&own, nullptr) != 0) return;
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) ::sigaction(signal, &action, nullptr);
#endif
}

extern "C" void on_allocator_error(int code, void* /*argument*/) {
  if (code == ENOMEM) on_exhausted_memory();
}

/// No exceptions are thrown on purpose: these come from the standard library.
[[noreturn]] void on_terminate() {
  try {
    if (const std::exception_ptr exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    on_exhausted_memory();
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0)
      end_with("cannot write to stdout: ", std::strerror(error.code().value()), ErrorCode::bad_input);
    end_with("the system refuses: ", error.what(), ErrorCode::bad_input);
  } catch (const std::exception& error) {
    end_with("internal error: ", error.what(), ErrorCode::internal);
  } catch (...) {
  }
  std::abort();
}

void handle_interrupts(void (*handler)(int)) {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\r', ' ');
  // What a message quotes may be any length, and bytes of any kind.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  if (text.size() > longest_message)
    text = text.substr(0, longest_message * 3 / 5) + " ... " + text.substr(text.size() - longest_message * 2 / 5);
  return text;
}

/// What is wrong with the first argument that was left over, and the option that was probably meant.
std::string unexpected_argument(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining();
  const auto option = std::find_if(left.begin(), left.end(),
                                   [](const std::string& text) { return text.size() > 1 && text.starts_with('-'); });
  if (option == left.end()) return fmt::format("unexpected argument '{}'", left.empty() ? "" : left.front());
  const std::string given = option->substr(0, option->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* one : app.get_options())
    for (const std::string& name : one->get_lnames()) known.push_back("--" + name);
  const std::string nearest = nearest_word(given, known);
  return fmt::format("unknown option {}{}", given, nearest.empty() ? "" : "; did you mean " + nearest + "?");
}

}  // namespace

void add_common_options(CLI::App& app, FileOptions& files, CommonOptions& options,
                        const std::vector<std::string>& specs) {
  app.set_help_flag("-h,--help", "Show this help and exit");
  app.set_version_flag("-V,--version", fmt::format("{} {}", app.get_name(), TASO_VERSION), "Show the version and exit");
  app.add_flag("-v,--verbose", options.verbosity, "Say more on stderr; repeatable");
  app.add_flag("-q,--quiet", options.quiet, "Say nothing but errors on stderr");
  app.add_option("-j,--jobs", options.threads, "Worker threads of this program (0: all processors)")
      ->check(whole_number(0, 4096));
  app.add_option("--seed", options.seed, "Seed of everything random")->check(whole_number());
  files.writes(app, "--json", options.json, "Write the report as JSON to FILE (-: stdout)");
  options.specs = default_specs();
  CLI::Option* const folder =
      app.add_option("--specs", options.specs, "Folder of specifications (default: " + options.specs + ")")
          ->type_name("DIR");
  files.declare(
      folder,
      [&options, specs](FileClaims& claims, const std::string& name) {
        return claims.reads_all(name, options.specs, specs);
      },
      true);
  CLI::Option* const added =
      app.add_option("--add-specs", options.added_specs,
                     "Folder of more specifications, with operators/, onnx/, axioms/, rules/, profiles/ (repeatable)")
          ->type_name("DIR")
          ->allow_extra_args(false);
  files.declare(added, [&options, specs](FileClaims& claims, const std::string& name) -> Status {
    for (const std::string& path : options.added_specs) TASO_RETURN_IF_ERROR(claims.reads_all(name, path, specs));
    return {};
  });
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  std::string range = fmt::format("a whole number of at least {}", least);
  if (most != std::numeric_limits<std::uint64_t>::max())
    range = fmt::format("a whole number from {} to {}", least, most);
  const auto check = [=](std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status == std::errc::result_out_of_range && end == text.data() + text.size())
      return fmt::format("'{}' is too large; the most is {}", text, most);
    if (status != std::errc{} || end != text.data() + text.size() || value < least || value > most)
      return fmt::format("'{}' is not {}", text, range);
    return {};
  };
  return {check, ""};
}

CLI::Validator real_number(double least, double most, bool open) {
  std::string range = fmt::format("a finite number {} {}", open ? "above" : "of at least", least);
  if (most != std::numeric_limits<double>::max()) range += fmt::format(" and at most {}", most);
  const auto check = [=](std::string& text) -> std::string {
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < least ||
        (open && value == least) || value > most)
      return fmt::format("'{}' is not {}", text, range);
    return {};
  };
  return {check, ""};
}

std::optional<int> parse_command_line(CLI::App& app, FileOptions& files, int argc, char** argv, bool claim) {
  respect_group_memory_limit();
  std::set_new_handler(on_exhausted_memory);
  if (mi_register_error != nullptr) mi_register_error(on_allocator_error, nullptr);
  std::set_terminate(on_terminate);
  handle_crashes();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is a write error like others
  const std::string undeclared = undeclared_option(app, files);
  TASO_CHECK(undeclared.empty(), undeclared);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    return fail(app.get_name(), {ErrorCode::usage, unexpected_argument(app) + " (see --help)", {}});
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help and version
    return fail(app.get_name(), {ErrorCode::usage, one_line(error.what()) + " (see --help)", {}});
  }
  if (!claim) return std::nullopt;
  if (const Status claimed = files.claim_all(); !claimed) return fail(app.get_name(), claimed.error());
  return std::nullopt;
}

int fail(std::string_view program, const Error& error) {
  fmt::print(stderr, "{}: {}\n", program, one_line(error.to_string()));
  return error.exit_code();
}

void warn(std::string_view program, std::string_view message) {
  fmt::print(stderr, "{}: warning: {}\n", program, one_line(std::string(message)));
}

std::string default_specs() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path installed = program.parent_path().parent_path() / "share" / "taso" / "specs";
    if (std::filesystem::is_directory(installed / "operators", error)) return installed.string();
  }
  return TASO_SOURCE_DIR "/specs";
}

const std::atomic<bool>& interrupted() { return interrupt_flag; }

void catch_interrupts() { handle_interrupts(on_interrupt); }

void end_on_interrupt(const char* program) {
  interrupted_program = program;
  handle_interrupts(on_early_interrupt);
}

Silence::Silence(bool on) {
  if (!on) return;
  std::fflush(stdout);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (int stream = 1; stream <= 2; ++stream) {
    saved_[stream - 1] = dup(stream);
    dup2(nowhere, stream);
  }
  close(nowhere);
}

Silence::~Silence() {
  std::fflush(stdout);
  for (int stream = 1; stream <= 2; ++stream) {
    if (saved_[stream - 1] < 0) continue;
    dup2(saved_[stream - 1], stream);
    close(saved_[stream - 1]);
  }
}

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), last_(std::chrono::steady_clock::now()) {
  const char* terminal = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) == 1 && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < (terminal_ ? std::chrono::steady_clock::duration(terminal_pause) : plain_pause)) return;
  last_ = now;
  if (!terminal_) {
    fmt::print(stderr, "{}\n", text);
    return;
  }
  fmt::print(stderr, "\r{}{}", text, std::string(shown_ > text.size() ? shown_ - text.size() : 0, ' '));
  std::fflush(stderr);
  shown_ = text.size();
}

void ProgressLine::clear() {
  if (!terminal_ || shown_ == 0) return;
  fmt::print(stderr, "\r{}\r", std::string(shown_, ' '));
  std::fflush(stderr);
  shown_ = 0;
}

TickingLine::TickingLine(bool quiet, std::function<std::string()> text) : line_(quiet), text_(std::move(text)) {
  if (quiet) return;
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, tick, [this] { return stopped_; })) line_.show(text_());
  });
}

TickingLine::~TickingLine() { stop(); }

void TickingLine::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  line_.clear();
}

}  // namespace taso::tools
