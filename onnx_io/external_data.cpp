#include "onnx_io/external_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "onnx_io/in_quotes.h"

namespace taso {
namespace {

/// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const { return value_; }

 private:
  int value_;
};

/// Opens folder/location step by step without following links; one of -1 if `may_be_absent` and there is none.
Expected<Descriptor> open_inside(const std::string& folder, const std::string& location, bool may_be_absent) {
  const std::filesystem::path relative(location);
  if (location.empty() || relative.is_absolute() || location.find('\0') != std::string::npos)
    return bad_input("external data location " + in_quotes(location) +
                     " must be a path relative to the model's folder");
  Descriptor current(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (current.get() < 0) return bad_input("cannot open the model's folder: " + std::string(std::strerror(errno)));
  for (auto part = relative.begin(); part != relative.end(); ++part) {
    if (*part == "..") return bad_input("external data location " + in_quotes(location) + " leaves the model's folder");
    const bool last = std::next(part) == relative.end();
    Descriptor next(::openat(current.get(), part->c_str(),
                             O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY)));
    if (next.get() < 0) {
      const int reason = errno;
      if (may_be_absent && reason == ENOENT) return Descriptor(-1);
      struct stat info {};
      if (::fstatat(current.get(), part->c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode))
        return bad_input("external data " + in_quotes(location) + " is reached through a symbolic link");
      return bad_input("cannot open external data " + in_quotes(location) + ": " + std::strerror(reason));
    }
    current = std::move(next);
  }
  return current;
}

Expected<SharedBytes> map_inside(const std::string& folder, const std::string& location) {
  TASO_ASSIGN(const Descriptor file, open_inside(folder, location, false));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return bad_input("external data " + in_quotes(location) + " is not a regular file");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return SharedBytes{};
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED)
    return bad_input("cannot map external data " + in_quotes(location) + ": " + std::strerror(errno));
  std::shared_ptr<const void> owner(data, [size](const void* address) { ::munmap(const_cast<void*>(address), size); });
  return SharedBytes{{static_cast<const std::byte*>(data), size}, std::move(owner), true};
}

}  // namespace

ExternalData::ExternalData(std::string model_path) {
  folder_ = std::filesystem::path(std::move(model_path)).parent_path().string();
  if (folder_.empty()) folder_ = ".";
}

Expected<bool> ExternalData::exists(const std::string& location) const {
  if (files_.contains(location)) return true;
  TASO_ASSIGN(const Descriptor file, open_inside(folder_, location, true));
  return file.get() >= 0;
}

Expected<SharedBytes> ExternalData::read(const std::string& location, std::int64_t offset,
                                         std::optional<std::int64_t> length) {
  auto place = files_.find(location);
  if (place == files_.end()) {
    TASO_ASSIGN(SharedBytes mapped, map_inside(folder_, location));
    place = files_.emplace(location, std::move(mapped)).first;
  }
  const SharedBytes& file = place->second;
  const auto size = static_cast<std::int64_t>(file.bytes.size());
  if (offset < 0 || (length && *length < 0)) return bad_input("external data has a negative offset or length");
  if (offset > size || (length && *length > size - offset))
    return bad_input("external data " + in_quotes(location) + " has " + std::to_string(size) + " bytes, but bytes " +
                     std::to_string(offset) + " to " +
                     (length ? std::to_string(offset) + "+" + std::to_string(*length) : std::string("the end")) +
                     " are asked for");
  return SharedBytes{
      file.bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length.value_or(size - offset))),
      file.owner, file.mapped};
}

}  // namespace taso
