/// Where two models differ, for a person.
#pragma once

#include <string>

#include "support/status.h"

namespace taso {

/// The first thing in which two model files, with their external data, differ: "initializer \"w\"",
/// "node 3, \"conv\" (Conv)", "graph input \"x\"", "metadata \"key\""; "bytes that are no part of the graph" where none
/// of these does. bad_input if the first cannot be read; what is wrong with the second is a difference.
[[nodiscard]] Expected<std::string> first_difference(const std::string& path, const std::string& other);

}  // namespace taso
