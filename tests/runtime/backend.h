/// The test backend (tests/runtime/backend), loaded as programs load theirs.
#pragma once

#include <memory>
#include <string>

#include "runtime/backend.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {

inline Expected<std::shared_ptr<Backend>> load_test_backend(BackendOptions options = {},
                                                            const std::string& name = "host",
                                                            const std::string& folder = TASO_TEST_BACKENDS) {
  options.module_folder = folder;
  return load_backend(name, options);
}

/// Kernels of the test device; another device each time, so that no test sees what another has left there.
inline KernelLibrary device_library(MathMode math = MathMode::strict) {
  return {registry(), value_of(load_test_backend({math, 0, ""}))};
}

}  // namespace taso::testing
