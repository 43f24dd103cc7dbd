/// NVRTC, the compiler of CUDA C++ that comes as a library: opened when it is asked for, so that nothing needs it.
/// Knows nothing of the rest of CUDA, and of NVRTC no more than the functions that it calls by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/status.h"

namespace taso::cuda {

/// Machine code of a text for one architecture, and what the compiler had to say; empty if nothing.
struct CompiledSource {
  std::string code;
  std::string log;
};

/// What turns a text into machine code.
class SourceCompiler {
 public:
  virtual ~SourceCompiler() = default;
  /// What the code depends on besides text, architecture and options: "NVRTC 13.0".
  [[nodiscard]] virtual std::string identity() const = 0;
  /// The options of a compilation for an architecture (90 for compute capability 9.0), in order.
  [[nodiscard]] virtual std::vector<std::string> options(int architecture) const = 0;
  /// Thread-safe. device_unavailable with the compiler's first line where it fails.
  [[nodiscard]] virtual Expected<CompiledSource> compile(const std::string& source, int architecture) const = 0;
};

/// NVRTC as one of the libraries that `names` says, the first that can be opened: names, or paths. device_unavailable
/// with the loader's words about the first where there is none.
class Nvrtc final : public SourceCompiler {
 public:
  [[nodiscard]] static Expected<std::shared_ptr<const Nvrtc>> open(const std::vector<std::string>& names);

  [[nodiscard]] std::string identity() const override { return "NVRTC " + version_; }
  [[nodiscard]] std::vector<std::string> options(int architecture) const override;
  [[nodiscard]] Expected<CompiledSource> compile(const std::string& source, int architecture) const override;
  /// The architectures that it compiles for, in order.
  [[nodiscard]] const std::vector<int>& architectures() const { return architectures_; }

 private:
  Nvrtc() = default;
  struct Functions;
  [[nodiscard]] Status load(const std::string& name);

  std::shared_ptr<const Functions> functions_;
  std::string version_;
  std::vector<int> architectures_;
};

/// Names of the library of a CUDA version, as CUDA numbers its versions (13000): it has to be of the same major
/// version, as the driver may know no later one.
[[nodiscard]] std::vector<std::string> nvrtc_names(int cuda);

/// The architecture to compile for, for devices of one: itself, or the last before it of the same major version, whose
/// code runs there too. 0: `known` has none.
[[nodiscard]] int architecture_for(int device, const std::vector<int>& known);

}  // namespace taso::cuda
