/// A plan for several devices on an HTML page: how it compares with other plans, the time line of computing and moving,
/// and the tensors with the parts that devices hold.
#pragma once

#include <string>
#include <vector>

#include "session/device_plan.h"

namespace taso {

/// A section of a page with the style of reports (optimizer/html/report.css). Equal plans give equal bytes.
[[nodiscard]] std::string plan_section(const DevicePlan& plan);
/// A page of its own, for the model of that name.
[[nodiscard]] std::string plan_page(const DevicePlan& plan, const std::string& model);

}  // namespace taso
