/// What the modules of host_backend.cpp differ in. Each of them is that file and one that says so.
#pragma once

namespace taso::testing {

struct BackendKind {
  const char* name = "";
  bool is_faulty = false;
  bool fuses = false;
  bool is_failing = false;
};
[[nodiscard]] BackendKind backend_kind();

}  // namespace taso::testing
