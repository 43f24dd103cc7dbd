/// What the attacks share: how they stop, and how bytes are changed.
#pragma once

#include <string>

#include "support/random.h"
#include "support/status.h"

namespace taso::testing {

/// Ends the program for a wrong command line or set-up: exit code 2.
[[noreturn]] void stop(const std::string& message);

template <class T>
T must(Expected<T> value) {
  if (!value) stop(value.error().to_string());
  return std::move(*value);
}
void must(const Status& status);

/// The number that is the whole of a text; stops where it is none.
[[nodiscard]] std::uint64_t number_argument(const std::string& option, const std::string& text);

/// One change: a byte replaced, one bit of it, bytes left out or repeated elsewhere.
void change_bytes(std::string& bytes, Random& random);

}  // namespace taso::testing
