#include "runtime/cuda/kernel_cache.h"

#include <filesystem>
#include <system_error>

#include "support/file.h"
#include "support/hash.h"

namespace taso::cuda {
namespace {

// An entry: this line; the lengths of the key and of the code, and the hash of both, a line each; the key; the code.
constexpr std::string_view first_line = "taso kernel 1\n";

std::string checksum_of(std::string_view key, std::string_view code) {
  return Hasher().add(key).add(code).finish().to_string();
}

std::string heading_of(std::string_view key, std::string_view code) {
  return std::string(first_line) + std::to_string(key.size()) + "\n" + std::to_string(code.size()) + "\n" +
         checksum_of(key, code) + "\n";
}

}  // namespace

std::string KernelCache::path_of(std::string_view key) const {
  return (std::filesystem::path(folder_) / (hash_text(key).to_string() + ".kernel")).string();
}

std::optional<std::string> KernelCache::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const Expected<std::string> read = read_file(path);
  if (!read) return std::nullopt;
  const std::string& entry = *read;
  // The lengths follow from the key and the entry's own: what has any others is no entry.
  const std::size_t key_at = entry.find(key);
  if (key.empty() || key_at == std::string::npos) return std::nullopt;
  const std::string_view code = std::string_view(entry).substr(key_at + key.size());
  if (code.empty() || entry.substr(0, key_at) != heading_of(key, code)) return std::nullopt;
  return std::string(code);
}

Status KernelCache::keep(std::string_view key, std::string_view code) const {
  if (folder_.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return Error{ErrorCode::bad_input, "the folder " + folder_ + " cannot be made: " + error.message(), {}};
  return write_file_atomically(path_of(key), heading_of(key, code) + std::string(key) + std::string(code));
}

std::string KernelBuilder::key_of(const std::string& source) const {
  std::string key = compiler_->identity() + "\nsm_" + std::to_string(architecture_) + "\n";
  for (const std::string& option : compiler_->options(architecture_)) key += option + "\n";
  return key + "\n" + source;
}

Expected<std::string> KernelBuilder::build(const std::string& source) {
  const std::string key = key_of(source);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = failed_.find(key); known != failed_.end()) return known->second;
  }
  if (std::optional<std::string> code = cache_.find(key)) {
    const std::scoped_lock lock(mutex_);
    ++counts_.found;
    return std::move(*code);
  }
  Expected<CompiledSource> compiled = compiler_->compile(source, architecture_);
  const Status kept = compiled ? cache_.keep(key, compiled->code) : Status();
  const std::scoped_lock lock(mutex_);
  if (!compiled) {
    ++counts_.failed;
    failed_.emplace(key, compiled.error());
    if (complaint_.empty()) complaint_ = compiled.error().message;
    return compiled.error();
  }
  ++counts_.compiled;
  if (!kept) {
    ++counts_.unwritten;
    if (complaint_.empty()) complaint_ = kept.error().message;
  }
  return std::move(compiled->code);
}

KernelBuilder::Counts KernelBuilder::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

std::string KernelBuilder::complaint() const {
  const std::scoped_lock lock(mutex_);
  return complaint_;
}

}  // namespace taso::cuda
