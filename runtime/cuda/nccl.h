/// The one door to NCCL: messages between the memories of devices, queued on a stream.
///
/// NCCL's header is needed at build; its library is opened when ranks are first to be connected, so that everything
/// else works where it is absent. Sends and receives that stand in one group progress independently of each other;
/// those of two ranks in one direction are matched in order (NCCL User Guide, Point-to-point communication).
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "runtime/backend.h"
#include "support/status.h"

namespace taso::cuda {

/// The version of the library, "2.28.9"; device_unavailable with the reason where there is none, or too old a one.
/// `library`: the name or path to open.
[[nodiscard]] Expected<std::string> nccl_version(const std::string& library = "libnccl.so.2");

/// What ranks need to find each other, as bytes.
[[nodiscard]] Expected<std::string> nccl_group(const std::string& library = "libnccl.so.2");

/// Joins the other ranks of the group, and waits for all of them; the calling thread's device is the rank's. Messages
/// are queued on `stream`, which must outlive the result.
[[nodiscard]] Expected<std::unique_ptr<DeviceMessages>> join_by_nccl(const std::string& group, int rank, int size,
                                                                     cudaStream_t stream,
                                                                     const std::string& library = "libnccl.so.2");

}  // namespace taso::cuda
