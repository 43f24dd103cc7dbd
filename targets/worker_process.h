/// A program that answers lines with lines, as a child process that can be ended at any time.
///
/// The program runs in a process group of its own, under a shell that waits for the end of this process: however that
/// ends, the whole group is killed. It writes its errors to a file in memory, whose last line messages quote.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/status.h"

namespace taso {

class WorkerProcess {
 public:
  /// Starts a program with its arguments; it is looked for in $PATH where its name has no '/'. A program that is not
  /// there is told by the first receive(). device_unavailable where the system starts no process.
  [[nodiscard]] static Expected<WorkerProcess> start(const std::vector<std::string>& command);
  WorkerProcess(WorkerProcess&&) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) noexcept;
  /// Kills the program and all that it has started.
  ~WorkerProcess();

  /// Writes a line, which has no line end yet. Fails where the program does not take it within so many seconds.
  [[nodiscard]] Status send(const std::string& line, double seconds);
  /// The next line that the program writes, without its end. Fails with a message that says what the program did: it
  /// ended, said nothing for so many seconds, or wrote a line without end. Code interrupted where `cancelled` said so.
  [[nodiscard]] Expected<std::string> receive(double seconds, const std::function<bool()>& cancelled);

 private:
  struct State;
  explicit WorkerProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taso
