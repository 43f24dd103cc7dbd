/// Numbers of bytes, as people write them.
#pragma once

#include <string>
#include <string_view>

#include "support/status.h"

namespace taso {

/// "2 GiB", "3.1 MiB", "17 bytes": three digits that count, rounded up (`up`) or down.
[[nodiscard]] std::string byte_size_text(double bytes, bool up);

/// A number of at least 1 byte: "1.5GB", "80GiB", "512 MB", "4096", of B, kB, MB, GB, TB (powers of 1000) and KiB, MiB,
/// GiB, TiB (of 1024). Fails (usage) with what is wrong.
[[nodiscard]] Expected<double> parse_byte_size(std::string_view text);

}  // namespace taso
