/// Which of several engines of a library computes what on a device. A backend finds that out by timing them, once, and
/// programs keep it for those that come later.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "support/status.h"

namespace taso {

/// One choice. Texts are of one line, in the backend's words.
struct EngineChoice {
  std::string engine;  ///< With which division of the work, and how set: "conv+bias+relu; engine 44; knobs 2=1 14=3".
  double seconds = 0;  ///< Of one execution by it.
  double took_s = 0;   ///< To find it out.
};

/// The choices of one device, with these versions of its libraries and in this arithmetic (Backend::identity).
/// Thread-safe.
class EngineChoices {
 public:
  virtual ~EngineChoices() = default;
  /// The engine that was chosen under a key: a request's, without what does not matter to engines.
  [[nodiscard]] virtual std::optional<std::string> find(const std::string& key) = 0;
  /// Keeps a choice; it must have reached the disk before the program goes on, as the program may be killed at any
  /// time.
  [[nodiscard]] virtual Status record(const std::string& key, const EngineChoice& choice) = 0;
  /// The engine that find() gives has failed when it ran: it is not found again. Kept as record() keeps.
  [[nodiscard]] virtual Status withdraw(const std::string& key) = 0;
};

}  // namespace taso
