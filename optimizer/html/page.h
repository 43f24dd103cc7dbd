/// What all pages of reports begin with.
#pragma once

#include <string>
#include <string_view>

namespace taso {

/// An HTML page up to its body, with the style of reports in it. It may load nothing from elsewhere.
[[nodiscard]] std::string page_begin(std::string_view title);

}  // namespace taso
