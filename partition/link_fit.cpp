#include "partition/link_fit.h"

#include <algorithm>

#include "support/status.h"

namespace taso {

// With u = 1 / T and v = b / T of each time, (latency u + v / bandwidth - 1)^2 is summed up: two normal equations.
LinkFit fit_link(std::span<const MessageTime> times) {
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (const MessageTime& time : times) {
    TASO_CHECK(time.seconds > 0 && time.bytes > 0, "messages have bytes and take time");
    const double u = 1 / time.seconds, v = time.bytes / time.seconds;
    uu += u * u;
    uv += u * v;
    vv += v * v;
    u1 += u;
    v1 += v;
  }
  const double determinant = uu * vv - uv * uv;
  TASO_CHECK(determinant > 0, "two numbers of bytes are needed");
  double latency = (u1 * vv - v1 * uv) / determinant, per_byte = (v1 * uu - u1 * uv) / determinant;
  // Where one of them would be negative, the least sum is on the border: the other one alone.
  if (latency < 0) {
    latency = 0;
    per_byte = v1 / vv;
  } else if (per_byte <= 0) {
    per_byte = 0;
    latency = u1 / uu;
  }
  return {latency, 1 / std::max(per_byte, 1e-21)};
}

}  // namespace taso
