#include "runtime/cuda/nccl.h"

namespace taso::cuda {
namespace {

Error absent() {
  return Error{ErrorCode::device_unavailable, "the CUDA backend was built without the header of NCCL (nccl.h)", {}};
}

}  // namespace

Expected<std::string> nccl_version(const std::string& /*library*/) { return absent(); }
Expected<std::string> nccl_group(const std::string& /*library*/) { return absent(); }
Expected<std::unique_ptr<DeviceMessages>> join_by_nccl(const std::string& /*group*/, int /*rank*/, int /*size*/,
                                                       cudaStream_t /*stream*/, const std::string& /*library*/) {
  return absent();
}

}  // namespace taso::cuda
