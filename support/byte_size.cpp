#include "support/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace taso {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 10> units{{{"", 1},
                                                                     {"B", 1},
                                                                     {"kB", 1e3},
                                                                     {"MB", 1e6},
                                                                     {"GB", 1e9},
                                                                     {"TB", 1e12},
                                                                     {"KiB", 1024.0},
                                                                     {"MiB", 1048576.0},
                                                                     {"GiB", 1073741824.0},
                                                                     {"TiB", 1099511627776.0}}};

}  // namespace

std::string byte_size_text(double bytes, bool up) {
  std::size_t unit = 5;
  while (unit + 1 < units.size() && bytes >= units[unit + 1].second) ++unit;
  if (unit == 5) return fmt::format("{:.0f} bytes", up ? std::ceil(bytes) : std::floor(bytes));
  const double number = bytes / units[unit].second;
  const double scale = number < 10 ? 100 : number < 100 ? 10 : 1;
  const double rounded = up ? std::ceil(number * scale - 1e-9) : std::floor(number * scale + 1e-9);
  return fmt::format("{} {}", rounded / scale, units[unit].first);
}

Expected<double> parse_byte_size(std::string_view text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc{} && std::isfinite(number)) {
    std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    for (const auto& [name, factor] : units)
      if (rest == name && number * factor >= 1 && number * factor <= 1e18) return number * factor;
  }
  return Error{ErrorCode::usage, fmt::format("'{}' is not a size such as 1.5GB, 80GiB or 4096", text), {}};
}

}  // namespace taso
