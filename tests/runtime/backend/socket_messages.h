/// Messages between test devices, of one process or several, over sockets of this machine: both ends wait for each of
/// them, as with NCCL, so that programs whose order is wrong stand still.
#pragma once

#include <memory>
#include <string>

#include "runtime/backend.h"

namespace taso::testing {

/// A name that no other group of this machine has.
[[nodiscard]] std::string new_group();

/// Joins the others of the group. `exchange` of the result does what is asked for at once.
[[nodiscard]] Expected<std::unique_ptr<DeviceMessages>> join_group(const std::string& group, int rank, int size);

}  // namespace taso::testing
