/// Generated kernels on the device.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <string>

#include "runtime/cuda/source.h"
#include "support/status.h"

namespace taso::cuda {

/// Whether this CUDA loads machine code that it is given: since 12.8.
[[nodiscard]] bool can_load_kernels();

/// The kernels of one generated text, loaded for all devices of their architecture.
class LoadedKernels {
 public:
  /// device_unavailable where the driver does not take the code, or it lacks one of the program's kernels.
  [[nodiscard]] static Expected<std::shared_ptr<const LoadedKernels>> load(const std::string& code,
                                                                           const GeneratedProgram& program);
  LoadedKernels(const LoadedKernels&) = delete;
  LoadedKernels& operator=(const LoadedKernels&) = delete;
  ~LoadedKernels();

  /// Queues one of them. Pointers are device memory.
  [[nodiscard]] Status launch(const GeneratedKernel& kernel, const Buffers& buffers, cudaStream_t stream) const;

 private:
  LoadedKernels() = default;
  void* library_ = nullptr;
  std::map<std::string, const void*> kernels_;  ///< By name.
};

}  // namespace taso::cuda
