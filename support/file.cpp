#include "support/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>  // mkstemp is POSIX
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/file_place.h"

namespace taso {
namespace {

constexpr int most_links = 40;  // as Linux has it

std::string reason() { return std::strerror(errno); }

Error cannot_write(const std::string& path, const std::string& why) {
  return bad_input("cannot write: " + why, {path.empty() ? "''" : path});
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// A path in /proc, where nothing can be made.
bool is_in_proc(const std::string& path) {
  struct statfs system {};
  return ::statfs(folder_of(path).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/// A link of /proc/PID/fd: it stands for what the process has open, and its text need not be a path that exists.
bool is_descriptor_link(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_symlink(path, error) && is_in_proc(path);
}

/// The number of an open descriptor of this process that a link of /proc/self/fd names.
std::optional<int> own_descriptor(const std::string& link) {
  std::error_code error;
  if (!is_descriptor_link(link)) return std::nullopt;
  const std::string folder = std::filesystem::canonical(folder_of(link), error).string();
  if (error || folder != "/proc/" + std::to_string(::getpid()) + "/fd") return std::nullopt;
  const std::string name = std::filesystem::path(link).filename().string();
  int number = -1;
  const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (status != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

/// The end of the symbolic links that begin at a path, followed one by one: one that leads nowhere has no canonical
/// path. Links of /proc/PID/fd are ends. Nothing if there are too many links, or one that cannot be read.
std::optional<std::string> follow_links(std::string path) {
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(path, error) && !is_descriptor_link(path); ++links) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error || links == most_links) return std::nullopt;
    path = (std::filesystem::path(path).parent_path() / target).string();  // an absolute one replaces all
  }
  return path;
}

FilePlace place_of(const struct stat& info) {
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) return {info.st_rdev, S_ISCHR(info.st_mode) ? 0U : 1U, true, ""};
  return {info.st_dev, info.st_ino, false, ""};
}

Status write_all(int descriptor, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot_write(path, reason());
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
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

FilePlace place_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return place_of(info);
  std::filesystem::path folder = std::filesystem::path(follow_links(path).value_or(path)), below;
  while (::stat(folder.empty() ? "." : folder.c_str(), &info) != 0 && folder.has_relative_path()) {
    if (folder.has_filename()) below = below.empty() ? folder.filename() : folder.filename() / below;
    folder = folder.parent_path();
  }
  FilePlace place = place_of(info);
  place.below = below.lexically_normal().generic_string();
  while (place.below.ends_with('/')) place.below.pop_back();
  return place;
}

std::optional<FilePlace> place_of_descriptor(int descriptor) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return std::nullopt;
  return place_of(info);
}

Expected<OutputFile> find_output(const std::string& path) {
  if (path.empty()) return cannot_write(path, "the file name is empty");
  OutputFile output{path, false};
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return cannot_write(path, "it is a folder; expected a file name");
  const std::optional<std::string> end = follow_links(path);
  if (!end) return cannot_write(path, "too many links, or one that cannot be read");
  if (exists && (!S_ISREG(info.st_mode) || is_descriptor_link(*end))) {
    output.written_through = true;
    if (::access(path.c_str(), W_OK) != 0) return cannot_write(path, reason());
    return output;
  }
  if (is_in_proc(*end)) return cannot_write(path, "nothing is open by this name");
  output.path = *end;
  const std::string folder = folder_of(output.path);
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return cannot_write(path, "the folder '" + folder + "' does not exist");
  if (std::filesystem::path(output.path).filename().empty())
    return cannot_write(path, "it is a folder; expected a file name");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return cannot_write(path, "the folder '" + folder + "': " + reason());
  return output;
}

namespace {

using WriteFile = std::function<Status(const std::string&)>;

/// Writes through an open descriptor, from where it stands: opening its file anew would begin at the front.
Status write_descriptor(const std::string& path, int descriptor, const WriteFile& write) {
  std::error_code error;
  std::string temporary = (std::filesystem::temp_directory_path(error) / "taso-XXXXXX").string();
  const int made = ::mkstemp(temporary.data());
  if (made < 0) return cannot_write(path, "a temporary file, " + temporary + ": " + reason());
  ::close(made);
  Status status = write(temporary);
  if (status) {
    const Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(temporary);
    status = file ? write_all(descriptor, (*file)->bytes(), path) : Status(file.error());
  }
  ::unlink(temporary.c_str());
  return status;
}

/// Makes an empty file beside another, of a name that nothing has.
Expected<std::string> make_beside(const std::string& file, const std::string& path) {
  const std::string begin = file + ".tmp" + std::to_string(::getpid());
  std::string name = begin;
  for (int n = 1;; ++n) {
    const int made = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made >= 0) {
      ::close(made);
      return name;
    }
    if (errno != EEXIST) return cannot_write(path, reason());
    name = begin + "." + std::to_string(n);
  }
}

}  // namespace

Status replace_file(const std::string& path, const WriteFile& write) {
  TASO_ASSIGN(const OutputFile output, find_output(path));
  if (const std::optional<int> descriptor = own_descriptor(follow_links(path).value_or(path)))
    return write_descriptor(path, *descriptor, write);
  if (output.written_through) return write(output.path);
  TASO_ASSIGN(const std::string temporary, make_beside(output.path, path));
  Status status = write(temporary);
  struct stat info {};
  if (status && ::stat(output.path.c_str(), &info) == 0 && ::chmod(temporary.c_str(), info.st_mode & 07777) != 0)
    status = cannot_write(path, reason());
  if (status && ::rename(temporary.c_str(), output.path.c_str()) != 0) status = cannot_write(path, reason());
  if (!status) ::unlink(temporary.c_str());
  return status;
}

namespace {

/// Moves the files of a folder into another one, which is made if need be.
Status move_files(const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return cannot_write(to, error.message());
  for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
    const fs::path target = fs::path(to) / entry.path().filename();
    fs::rename(entry.path(), target, error);
    if (error) return cannot_write(target.string(), error.message());
  }
  if (error) return cannot_write(to, error.message());
  return {};
}

}  // namespace

Status fill_folder(const std::string& folder, const std::function<Status(const std::string&)>& write) {
  std::filesystem::path plain = folder;
  if (!plain.has_filename()) plain = plain.parent_path();  // It ends in a slash.
  std::string temporary = plain.string() + ".tmp-XXXXXX";
  if (::mkdtemp(temporary.data()) == nullptr) return cannot_write(folder, reason());
  Status status = write(temporary);
  if (status) status = move_files(temporary, folder);
  std::error_code error;
  std::filesystem::remove_all(temporary, error);
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

void release_pages(std::span<const std::byte> mapped) {
  if (mapped.empty()) return;
  // The pages that it shares with what lies beside it, too: those come back as well.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(mapped.data()) % page;
  ::madvise(const_cast<std::byte*>(mapped.data()) - before, mapped.size() + before, MADV_DONTNEED);
}

}  // namespace taso
