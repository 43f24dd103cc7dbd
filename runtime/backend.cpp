#include "runtime/backend.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace taso {
namespace {

/// Where modules are looked for, in order.
std::vector<std::filesystem::path> module_folders(const BackendOptions& options) {
  if (!options.module_folder.empty()) return {options.module_folder};
  std::error_code failure;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return {};
  return {program.parent_path() / ".." / "lib" / "taso", program.parent_path()};
}

Error unavailable(std::string_view name, const std::string& reason) {
  return {ErrorCode::device_unavailable, "device '" + std::string(name) + "' is not available: " + reason, {}};
}

}  // namespace

Status Backend::mark(std::size_t, std::size_t) { return internal_error("a mark on the only stream"); }
Status Backend::wait(std::size_t, std::size_t) { return internal_error("a wait on the only stream"); }

const char* to_string(MathMode mode) {
  switch (mode) {
    case MathMode::strict:
      return "fp32";
    case MathMode::tf32:
      return "tf32";
  }
  return "?";
}

int cached_tenths(const Backend& backend, double bytes) {
  return bytes < 0.7 * static_cast<double>(backend.cache_bytes()) ? 10 : 0;
}

Expected<DeviceBuffer> DeviceBuffer::create(std::shared_ptr<Backend> backend, std::size_t bytes) {
  DeviceBuffer buffer;
  TASO_ASSIGN(buffer.data_, backend->allocate(bytes));
  buffer.backend_ = std::move(backend);
  buffer.size_ = bytes;
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : backend_(std::move(other.backend_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) backend_->release(data_);
}

Expected<std::shared_ptr<Backend>> load_backend(std::string_view name, const BackendOptions& options) {
  const std::string file = "taso_" + std::string(name) + ".so";
  std::string looked;
  for (const std::filesystem::path& folder : module_folders(options)) {
    const std::filesystem::path path = folder / file;
    looked += (looked.empty() ? "" : ", ") + folder.lexically_normal().string();
    std::error_code failure;
    if (!std::filesystem::exists(path, failure)) continue;
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) return unavailable(name, dlerror());
    const auto open = reinterpret_cast<OpenBackend>(dlsym(module, "taso_open_backend"));
    if (open == nullptr) return unavailable(name, path.string() + " is no backend of this program");
    std::string error;
    std::shared_ptr<Backend> backend(open(backend_abi, options, &error));
    if (!backend) return unavailable(name, error);
    return backend;
  }
  return unavailable(name, "there is no " + file + " in " + looked + " (this build has no such backend)");
}

}  // namespace taso
