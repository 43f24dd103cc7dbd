#include "support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace taso {
namespace {

std::string reason() { return std::strerror(errno); }

}  // namespace

Expected<std::string> read_file(const std::string& path) {
  TASO_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  const auto bytes = file->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status write_file_atomically(const std::string& path, std::string_view contents) {
  return replace_file(path, [&](const std::string& temporary) -> Status {
    std::ofstream out(temporary, std::ios::binary);
    out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    out.close();
    if (!out) return bad_input("cannot write: " + reason(), {path});
    return {};
  });
}

Status replace_file(const std::string& path, const std::function<Status(const std::string&)>& write) {
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  Status status = write(temporary);
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0) status = bad_input("cannot write: " + reason(), {path});
  if (!status) ::unlink(temporary.c_str());
  return status;
}

Expected<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return bad_input("cannot open: " + reason(), {path});
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    const std::string why = S_ISREG(info.st_mode) ? reason() : "not a regular file";
    ::close(descriptor);
    return bad_input("cannot read: " + why, {path});
  }
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<std::size_t>(info.st_size);
  if (file->size_ > 0) {
    void* data = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
      ::close(descriptor);
      return bad_input("cannot map: " + reason(), {path});
    }
    file->data_ = static_cast<const std::byte*>(data);
  }
  ::close(descriptor);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace taso
