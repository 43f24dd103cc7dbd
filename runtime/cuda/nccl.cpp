#include "runtime/cuda/nccl.h"

#include <dlfcn.h>
#include <nccl.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace taso::cuda {
namespace {

/// Sends and receives can be captured since 2.9, the last error be asked for since 2.13.
constexpr int least_version = 21300;

Error unavailable(std::string message) { return Error{ErrorCode::device_unavailable, std::move(message), {}}; }

/// "2.28.9" from 22809, as NCCL numbers its versions since 2.9.
std::string version_text(int number) {
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

/// The functions of the library that are used, by the types that its header gives them.
class Nccl {
 public:
  /// Opened once in a process, by name, and never closed.
  [[nodiscard]] static Expected<const Nccl*> open(const std::string& name) {
    static std::mutex mutex;
    static std::map<std::string, Nccl> opened;
    const std::lock_guard lock(mutex);
    if (const auto there = opened.find(name); there != opened.end()) return &there->second;
    Nccl library;
    TASO_RETURN_IF_ERROR(library.load(name));
    return &opened.emplace(name, library).first->second;
  }

  /// Success, or "what: NCCL's words".
  [[nodiscard]] Status check(ncclResult_t result, const std::string& what, ncclComm_t communicator = nullptr) const {
    if (result == ncclSuccess || result == ncclInProgress) return {};
    std::string text = what + ": NCCL: " + error_string(result);
    if (const char* more = last_error(communicator); more != nullptr && *more != '\0')
      text += " (" + std::string(more, std::strcspn(more, "\n")) + ")";
    return unavailable(std::move(text));
  }

  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) comm_init_rank = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  int version = 0;

 private:
  [[nodiscard]] Status load(const std::string& name) {
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return unavailable("NCCL cannot be loaded: " + std::string(dlerror()));
    const auto find = [&](auto& function, const char* symbol) -> Status {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      if (function == nullptr) return unavailable(name + " has no function " + symbol);
      return {};
    };
    TASO_RETURN_IF_ERROR(find(get_version, "ncclGetVersion"));
    TASO_RETURN_IF_ERROR(find(get_unique_id, "ncclGetUniqueId"));
    TASO_RETURN_IF_ERROR(find(error_string, "ncclGetErrorString"));
    if (get_version(&version) != ncclSuccess) return unavailable(name + " does not tell its version");
    if (version < least_version)
      return unavailable("NCCL " + version_text(version) + " is too old; " + version_text(least_version) +
                         " is needed");
    TASO_RETURN_IF_ERROR(find(comm_init_rank, "ncclCommInitRank"));
    TASO_RETURN_IF_ERROR(find(comm_destroy, "ncclCommDestroy"));
    TASO_RETURN_IF_ERROR(find(comm_abort, "ncclCommAbort"));
    TASO_RETURN_IF_ERROR(find(group_start, "ncclGroupStart"));
    TASO_RETURN_IF_ERROR(find(group_end, "ncclGroupEnd"));
    TASO_RETURN_IF_ERROR(find(send, "ncclSend"));
    TASO_RETURN_IF_ERROR(find(receive, "ncclRecv"));
    return find(last_error, "ncclGetLastError");
  }
};

class NcclMessages final : public DeviceMessages {
 public:
  NcclMessages(const Nccl& nccl, cudaStream_t stream) : nccl_(nccl), stream_(stream) {}
  NcclMessages(const NcclMessages&) = delete;
  NcclMessages& operator=(const NcclMessages&) = delete;
  ~NcclMessages() override {
    if (communicator_ != nullptr && !aborted_.exchange(true)) nccl_.comm_destroy(communicator_);
  }

  [[nodiscard]] Status join(const ncclUniqueId& group, int rank, int size) {
    return nccl_.check(nccl_.comm_init_rank(&communicator_, size, group, rank), "ranks cannot be connected");
  }

  Status exchange(std::span<const Message> messages) override {
    TASO_RETURN_IF_ERROR(nccl_.check(nccl_.group_start(), "messages cannot be grouped", communicator_));
    Status queued;
    for (const Message& message : messages)
      if (queued) queued = queue(message);
    // In any case, or what comes later would belong to the group.
    const Status ended = nccl_.check(nccl_.group_end(), "messages cannot be queued", communicator_);
    return queued ? ended : queued;
  }

  void abort() override {
    if (!aborted_.exchange(true)) nccl_.comm_abort(communicator_);
  }

 private:
  [[nodiscard]] Status queue(const Message& message) const {
    const std::string peer = "rank " + std::to_string(message.peer);
    if (message.from != nullptr)
      return nccl_.check(nccl_.send(message.from, message.bytes, ncclInt8, message.peer, communicator_, stream_),
                         "nothing can be sent to " + peer, communicator_);
    return nccl_.check(nccl_.receive(message.into, message.bytes, ncclInt8, message.peer, communicator_, stream_),
                       "nothing can be received from " + peer, communicator_);
  }

  const Nccl& nccl_;
  cudaStream_t stream_;
  ncclComm_t communicator_ = nullptr;
  std::atomic<bool> aborted_ = false;  ///< Or destroyed.
};

}  // namespace

Expected<std::string> nccl_version(const std::string& library) {
  TASO_ASSIGN(const Nccl* nccl, Nccl::open(library));
  return version_text(nccl->version);
}

Expected<std::string> nccl_group(const std::string& library) {
  TASO_ASSIGN(const Nccl* nccl, Nccl::open(library));
  ncclUniqueId id{};
  TASO_RETURN_IF_ERROR(nccl->check(nccl->get_unique_id(&id), "ranks cannot be connected"));
  return std::string(id.internal, sizeof(id.internal));
}

Expected<std::unique_ptr<DeviceMessages>> join_by_nccl(const std::string& group, int rank, int size,
                                                       cudaStream_t stream, const std::string& library) {
  TASO_ASSIGN(const Nccl* nccl, Nccl::open(library));
  ncclUniqueId id{};
  if (group.size() != sizeof(id.internal)) return internal_error("a group of NCCL has another number of bytes");
  std::memcpy(id.internal, group.data(), group.size());
  auto messages = std::make_unique<NcclMessages>(*nccl, stream);
  TASO_RETURN_IF_ERROR(messages->join(id, rank, size));
  return std::unique_ptr<DeviceMessages>(std::move(messages));
}

}  // namespace taso::cuda
