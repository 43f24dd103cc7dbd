/// The files beside this one that a report's page contains, as CMake put them into the library.
#pragma once

#include <string_view>

namespace taso {

extern const std::string_view report_css;  ///< report.css
extern const std::string_view report_js;   ///< report.js

}  // namespace taso
