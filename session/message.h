/// What a session says while it works.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace taso {

/// How much a message matters.
enum class MessageLevel : std::uint8_t {
  detail,     ///< For those who want to know more.
  warning,    ///< Something is not as the user may expect.
  important,  ///< A warning also to those who want no warnings: something that was asked for cannot be had.
};

/// Receives messages, in one line each. May be empty.
using MessageSink = std::function<void(MessageLevel, const std::string&)>;

}  // namespace taso
