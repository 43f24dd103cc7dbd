/// Physical orders of a tensor's axes in memory.
#pragma once

#include <cstdint>

namespace taso {

enum class Layout : std::uint8_t {
  row_major,      ///< Last axis innermost; every tensor can have it.
  channels_last,  ///< Rank 4 only: logical [n, c, h, w] stored as n, h, w, c.
};

/// "row" or "nhwc".
[[nodiscard]] constexpr const char* to_string(Layout layout) {
  switch (layout) {
    case Layout::row_major:
      return "row";
    case Layout::channels_last:
      return "nhwc";
  }
  return "?";
}

}  // namespace taso
