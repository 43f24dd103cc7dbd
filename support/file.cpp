#include "support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace taso {
namespace {

constexpr int kMostLinks = 40;  // as Linux has it

std::string reason() { return std::strerror(errno); }

Error cannot_write(const std::string& path, const std::string& why) {
  return bad_input("cannot write: " + why, {path.empty() ? "''" : path});
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// What stands at a path that is to be read, in words; nothing for a regular file or what cannot be opened anyway.
const char* unreadable_kind(const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return "it is a folder; expected a file";
  if (!S_ISREG(info.st_mode))
    return "not a regular file; pipes and devices cannot be mapped, copy the contents to a file";
  return nullptr;
}

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

Expected<OutputFile> find_output(const std::string& path) {
  if (path.empty()) return cannot_write(path, "the file name is empty");
  OutputFile output{path, false};
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return cannot_write(path, "it is a folder; expected a file name");
  if (exists && !S_ISREG(info.st_mode)) {
    output.written_through = true;
    if (::access(path.c_str(), W_OK) != 0) return cannot_write(path, reason());
    return output;
  }
  // A link that leads nowhere has no canonical path: links are followed one by one.
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(output.path, error); ++links) {
    const std::filesystem::path target = std::filesystem::read_symlink(output.path, error);
    if (error || links == kMostLinks) return cannot_write(path, "too many links, or one that cannot be read");
    output.path = (std::filesystem::path(output.path).parent_path() / target).string();  // an absolute one replaces all
  }
  const std::string folder = folder_of(output.path);
  if (!std::filesystem::is_directory(folder, error))
    return cannot_write(path, "the folder '" + folder + "' does not exist");
  if (std::filesystem::path(output.path).filename().empty())
    return cannot_write(path, "it is a folder; expected a file name");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return cannot_write(path, "the folder '" + folder + "': " + reason());
  return output;
}

Status replace_file(const std::string& path, const std::function<Status(const std::string&)>& write) {
  TASO_ASSIGN(const OutputFile output, find_output(path));
  if (output.written_through) return write(output.path);
  const std::string temporary = output.path + ".tmp" + std::to_string(::getpid());
  Status status = write(temporary);
  struct stat info {};
  if (status && ::stat(output.path.c_str(), &info) == 0 && ::chmod(temporary.c_str(), info.st_mode & 07777) != 0)
    status = cannot_write(path, reason());
  if (status && ::rename(temporary.c_str(), output.path.c_str()) != 0) status = cannot_write(path, reason());
  if (!status) ::unlink(temporary.c_str());
  return status;
}

Expected<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // Looked at before it is opened: opening a pipe takes its writer along, opening some devices does something.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return bad_input("cannot open: " + reason(), {path.empty() ? "''" : path});
  if (const char* kind = unreadable_kind(info)) return bad_input(std::string("cannot read: ") + kind, {path});
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return bad_input("cannot open: " + reason(), {path});
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
