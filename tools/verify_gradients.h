/// taso-verify --gradients: whether tables of gradients say what follows from the operators' definitions.
#pragma once

#include <string>
#include <vector>

#include "support/status.h"
#include "tools/common.h"

namespace taso::tools {

/// Checks the tables in files or folders (*.grad); without any those of the specifications, gradients/*.grad. The
/// operators of gradients/operators are known besides those of the specifications. Prints a line for every entry; the
/// exit code: 0 where all hold, 5 otherwise.
[[nodiscard]] Expected<int> run_gradients(const CommonOptions& common, const std::vector<std::string>& tables,
                                          bool print);

}  // namespace taso::tools
