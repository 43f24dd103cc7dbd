/// Definitions as text again, for messages and generated documentation. Private to the folder.
#pragma once

#include <span>
#include <string>

#include "operators/definition.h"

namespace taso {

[[nodiscard]] std::string to_text(const Expression& expression);
/// "(g*c)", "B..", "h".
[[nodiscard]] std::string to_text(const AxisSpec& axis);
/// "[n, (g*c), h, w]".
[[nodiscard]] std::string to_text(std::span<const AxisSpec> axes);

}  // namespace taso
