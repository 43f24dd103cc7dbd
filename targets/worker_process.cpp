#include "targets/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace taso {
namespace {

using Clock = std::chrono::steady_clock;

/// A line of more bytes is no answer.
constexpr std::size_t longest_line = std::size_t{16} << 20;
/// How often it is asked whether to go on waiting.
constexpr int patience_ms = 100;
/// So much of an error message is quoted.
constexpr std::size_t longest_quotation = 200;

/// The shell's part: runs the program on descriptor 4, waits until descriptor 3 is closed, and kills the group.
constexpr const char* guardian = R"("$@" <&4 4<&- 3<&- &
exec > /dev/null 2>&1 4<&-
read -r _ <&3
kill -9 0)";

Error process_failure(std::string message) { return {ErrorCode::device_unavailable, std::move(message), {}}; }

Error no_process() { return process_failure(fmt::format("cannot start a process: {}", std::strerror(errno))); }

/// Milliseconds from now to a time, at most the patience.
int wait_ms(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, patience_ms));
}

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

/// An open file of this process.
class WorkerDescriptor {
 public:
  WorkerDescriptor() = default;
  explicit WorkerDescriptor(int number) : number_(number) {}
  WorkerDescriptor(WorkerDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  WorkerDescriptor& operator=(WorkerDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~WorkerDescriptor() { reset(); }
  void reset() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  /// Its number; above those that a child is given.
  [[nodiscard]] int get() const { return number_; }
  /// Moves it above the numbers that a child is given, so that none takes the place of another.
  [[nodiscard]] bool lift() {
    constexpr int first = 10;
    WorkerDescriptor lifted(::fcntl(number_, F_DUPFD_CLOEXEC, first));
    if (lifted.get() < 0) return false;
    std::swap(number_, lifted.number_);
    return true;
  }

 private:
  int number_ = -1;
};

struct WorkerProcess::State {
  WorkerDescriptor input, output, errors, alive;
  pid_t group = -1;
  std::string pending;  ///< Read, and not yet handed out.

  ~State() {
    if (group <= 0) return;
    ::kill(-group, SIGKILL);
    while (::waitpid(group, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  /// The last line that the program wrote to its errors, in brackets; empty if there is none.
  [[nodiscard]] std::string last_words() const {
    const off_t size = ::lseek(errors.get(), 0, SEEK_END);
    if (size <= 0) return "";
    std::string text(std::min<std::size_t>(static_cast<std::size_t>(size), std::size_t{8} << 10), '\0');
    const ssize_t got = ::pread(errors.get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
    text = text.substr(text.rfind('\n') + 1);
    if (text.size() > longest_quotation) text = text.substr(0, longest_quotation) + "...";
    return text.empty() ? "" : " (" + text + ")";
  }
};

WorkerProcess::WorkerProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
WorkerProcess::WorkerProcess(WorkerProcess&&) noexcept = default;
WorkerProcess& WorkerProcess::operator=(WorkerProcess&&) noexcept = default;
WorkerProcess::~WorkerProcess() = default;

Expected<WorkerProcess> WorkerProcess::start(const std::vector<std::string>& command) {
  auto state = std::make_unique<State>();
  int pair[2], out[2], life[2];
  // A socket: writing to a program that has ended is an error there, and no signal.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return no_process();
  WorkerDescriptor their_input(pair[1]);
  state->input = WorkerDescriptor(pair[0]);
  if (::pipe2(out, O_CLOEXEC) != 0) return no_process();
  WorkerDescriptor their_output(out[1]);
  state->output = WorkerDescriptor(out[0]);
  if (::pipe2(life, O_CLOEXEC) != 0) return no_process();
  WorkerDescriptor their_life(life[0]);
  state->alive = WorkerDescriptor(life[1]);
  state->errors = WorkerDescriptor(::memfd_create("taso-worker", MFD_CLOEXEC));
  if (state->errors.get() < 0 || !state->errors.lift() || !their_input.lift() || !their_output.lift() ||
      !their_life.lift())
    return no_process();
  (void)::fcntl(state->errors.get(), F_SETFL, O_APPEND);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, their_output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, state->errors.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, their_life.get(), 3);
  posix_spawn_file_actions_adddup2(&actions, their_input.get(), 4);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> words{"sh", "-c", guardian, "sh"};
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int failure = ::posix_spawn(&state->group, "/bin/sh", &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0) {
    state->group = -1;
    errno = failure;
    return no_process();
  }
  return WorkerProcess(std::move(state));
}

Status WorkerProcess::send(const std::string& line, double seconds) {
  const std::string text = line + "\n";
  const Clock::time_point until = after(seconds);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count =
        ::send(state_->input.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (Clock::now() >= until) return process_failure(fmt::format("it took no request for {} s", seconds));
      pollfd wait{state_->input.get(), POLLOUT, 0};
      (void)::poll(&wait, 1, wait_ms(until));
    } else if (errno != EINTR) {
      return process_failure("it has ended" + state_->last_words());
    }
  }
  return {};
}

Expected<std::string> WorkerProcess::receive(double seconds, const std::function<bool()>& cancelled) {
  const Clock::time_point until = after(seconds);
  std::string& pending = state_->pending;
  for (std::size_t searched = 0;;) {
    if (const std::size_t end = pending.find('\n', searched); end != std::string::npos) {
      std::string line = pending.substr(0, end);
      pending.erase(0, end + 1);
      return line;
    }
    searched = pending.size();
    if (searched > longest_line) return process_failure("it wrote a line of more than 16 MB");
    if (cancelled && cancelled()) return Error{ErrorCode::interrupted, "interrupted while a worker measured", {}};
    if (Clock::now() >= until)
      return process_failure(fmt::format("it did not answer within {} s{}", seconds, state_->last_words()));
    pollfd wait{state_->output.get(), POLLIN, 0};
    if (::poll(&wait, 1, wait_ms(until)) <= 0) continue;
    char part[4096];
    const ssize_t count = ::read(state_->output.get(), part, sizeof part);
    if (count > 0) {
      pending.append(part, static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return process_failure("it has ended" + state_->last_words());
    }
  }
}

}  // namespace taso
