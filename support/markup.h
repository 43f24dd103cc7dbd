/// Text within XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace taso {

/// The text with what has a meaning in XML and HTML written as entities, for elements and quoted attributes. Line
/// breaks become entities, too, so that attributes keep them; other control characters, which XML 1.0 cannot hold, are
/// left out.
[[nodiscard]] std::string escape_markup(std::string_view text);

}  // namespace taso
