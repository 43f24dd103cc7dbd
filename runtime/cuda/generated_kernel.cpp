#include "runtime/cuda/generated_kernel.h"

#include <algorithm>
#include <string>
#include <vector>

namespace taso::cuda {
namespace {

Status checked(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return {};
  (void)cudaGetLastError();  // it is reported here, and is not the next launch's
  return Error{ErrorCode::device_unavailable, std::string(what) + ": " + cudaGetErrorString(result), {}};
}

}  // namespace

#if CUDART_VERSION >= 12080

bool can_load_kernels() { return true; }

Expected<std::shared_ptr<const LoadedKernels>> LoadedKernels::load(const std::string& code,
                                                                   const GeneratedProgram& program) {
  std::shared_ptr<LoadedKernels> made(new LoadedKernels);
  cudaLibrary_t library = nullptr;
  TASO_RETURN_IF_ERROR(checked(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                               "CUDA cannot load a generated kernel"));
  made->library_ = library;
  for (const GeneratedStep& step : program.steps)
    for (const GeneratedKernel& kernel : step.kernels) {
      cudaKernel_t found = nullptr;
      TASO_RETURN_IF_ERROR(
          checked(cudaLibraryGetKernel(&found, library, kernel.name.c_str()), "CUDA does not find a generated kernel"));
      made->kernels_[kernel.name] = found;
    }
  return std::shared_ptr<const LoadedKernels>(std::move(made));
}

LoadedKernels::~LoadedKernels() {
  if (library_ != nullptr) (void)cudaLibraryUnload(static_cast<cudaLibrary_t>(library_));
}

#else

bool can_load_kernels() { return false; }

Expected<std::shared_ptr<const LoadedKernels>> LoadedKernels::load(const std::string&, const GeneratedProgram&) {
  return Error{ErrorCode::device_unavailable, "this CUDA loads no generated kernels", {}};
}

LoadedKernels::~LoadedKernels() = default;

#endif

Status LoadedKernels::launch(const GeneratedKernel& kernel, const Buffers& buffers, cudaStream_t stream) const {
  // CUDA copies what the arguments point to before it returns.
  std::vector<const std::byte*> pointers;
  for (const Slot& slot : kernel.operands) pointers.push_back(address_of(slot, buffers));
  unsigned long long* error = buffers.error;
  unsigned long long number = buffers.number;
  std::vector<void*> arguments;
  for (const std::byte*& pointer : pointers) arguments.push_back(static_cast<void*>(&pointer));
  if (kernel.notes_errors) {
    arguments.push_back(static_cast<void*>(&error));
    arguments.push_back(&number);
  }
  return checked(cudaLaunchKernel(kernels_.at(kernel.name), dim3(static_cast<unsigned>(kernel.blocks)),
                                  dim3(generated_threads), arguments.data(), 0, stream),
                 "CUDA could not launch a generated kernel");
}

}  // namespace taso::cuda
