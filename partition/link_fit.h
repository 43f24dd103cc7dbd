/// The link whose latency and bandwidth fit measured times of messages best.
#pragma once

#include <span>

namespace taso {

/// Messages of so many bytes took so many seconds each.
struct MessageTime {
  double bytes = 0, seconds = 0;
};

/// Hockney's model: a message takes latency + bytes / bandwidth seconds.
struct LinkFit {
  double latency = 0;    ///< Seconds; not negative.
  double bandwidth = 0;  ///< Bytes per second; above 0.
  [[nodiscard]] double seconds(double bytes) const { return latency + bytes / bandwidth; }
};

/// The fit of the least sum of squares of relative errors, so that short messages count like long ones. At least two
/// times of different numbers of bytes, all above 0 (TASO_CHECK).
[[nodiscard]] LinkFit fit_link(std::span<const MessageTime> times);

}  // namespace taso
