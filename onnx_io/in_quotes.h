/// How messages name what stands in a model.
#pragma once

#include <string>
#include <string_view>

namespace taso {

[[nodiscard]] inline std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

}  // namespace taso
