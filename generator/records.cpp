#include "generator/records.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace taso {
namespace {

std::size_t partition_of(const Record& record) {
  // The smallest of several fingerprints is not evenly distributed: mix.
  return static_cast<std::size_t>(((record.low ^ (record.high << 3)) * 0x9e3779b97f4a7c15ULL) >> 56);
}

Error system_error(const std::string& what, const std::string& file) {
  return {ErrorCode::bad_input, what + " '" + file + "': " + std::strerror(errno), {}};
}

}  // namespace

RecordStore::RecordStore(std::uint64_t memory_limit, std::string folder)
    : limit_(memory_limit), folder_(std::move(folder)), parts_(partitions) {}

RecordStore::~RecordStore() {
  std::error_code ignored;
  if (!made_.empty()) std::filesystem::remove_all(made_, ignored);
}

std::string RecordStore::file(std::size_t partition) const { return made_ + "/" + std::to_string(partition); }

Status RecordStore::add(const std::vector<Record>& records) {
  // Sorted by partition first: each lock is taken once.
  std::vector<std::uint32_t> begin(partitions + 1, 0);
  for (const Record& record : records) ++begin[partition_of(record) + 1];
  for (std::size_t i = 0; i < partitions; ++i) begin[i + 1] += begin[i];
  std::vector<Record> sorted(records.size());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (const Record& record : records) sorted[next[partition_of(record)]++] = record;
  for (std::size_t i = 0; i < partitions; ++i) {
    if (begin[i] == begin[i + 1]) continue;
    Partition& part = parts_[i];
    const std::lock_guard lock(part.mutex);
    auto from = sorted.begin() + begin[i];
    const auto end = sorted.begin() + begin[i + 1];
    while (from != end) {
      constexpr std::size_t chunk = 1024;
      if (part.chunks.empty() || part.chunks.back().size() == chunk) {
        // The first chunk grows as needed, so that a small enumeration takes little.
        part.chunks.emplace_back();
        if (part.chunks.size() > 1) part.chunks.back().reserve(chunk);
      }
      const auto count =
          std::min<std::ptrdiff_t>(end - from, static_cast<std::ptrdiff_t>(chunk - part.chunks.back().size()));
      part.chunks.back().insert(part.chunks.back().end(), from, from + count);
      from += count;
    }
  }
  size_ += records.size();
  in_memory_ += records.size();
  if (limit_ != 0 && in_memory_ * sizeof(Record) > limit_) return spill();
  return {};
}

Status RecordStore::spill() {
  const std::lock_guard lock(spilling_);
  if (in_memory_ * sizeof(Record) <= limit_) return {};  // another thread did it
  if (made_.empty()) {
    std::string pattern = folder_ + "/taso-gen-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) return system_error("cannot make a folder for temporary files in", folder_);
    made_ = pattern;
  }
  spilled_ = true;
  for (std::size_t i = 0; i < partitions; ++i) {
    Partition& part = parts_[i];
    const std::lock_guard part_lock(part.mutex);
    if (part.chunks.empty()) continue;
    std::FILE* const out = std::fopen(file(i).c_str(), "ab");
    if (out == nullptr) return system_error("cannot write", file(i));
    std::uint64_t written = 0;
    bool good = true;
    for (const std::vector<Record>& chunk : part.chunks) {
      good = good && std::fwrite(chunk.data(), sizeof(Record), chunk.size(), out) == chunk.size();
      written += chunk.size();
    }
    good = std::fclose(out) == 0 && good;
    if (!good) return system_error("cannot write", file(i));
    part.in_file += written;
    part.chunks.clear();
    in_memory_ -= written;
  }
  return {};
}

Expected<std::vector<Record>> RecordStore::take(std::size_t partition) {
  Partition& part = parts_[partition];
  std::size_t count = part.in_file;
  for (const std::vector<Record>& chunk : part.chunks) count += chunk.size();
  std::vector<Record> records(part.in_file);
  records.reserve(count);
  if (part.in_file > 0) {
    std::FILE* const in = std::fopen(file(partition).c_str(), "rb");
    if (in == nullptr) return system_error("cannot read", file(partition));
    const std::size_t read = std::fread(records.data(), sizeof(Record), records.size(), in);
    std::fclose(in);
    if (read != records.size()) return system_error("cannot read", file(partition));
    std::remove(file(partition).c_str());
  }
  for (std::vector<Record>& chunk : part.chunks) {
    records.insert(records.end(), chunk.begin(), chunk.end());
    chunk = {};
  }
  part.chunks.clear();
  std::sort(records.begin(), records.end());
  return records;
}

namespace {

/// Begins every segment; the last digit is the version of the format.
constexpr std::uint64_t segment_magic = 0x74617367656e3031ULL;
constexpr std::size_t header_words = 9;

}  // namespace

std::string to_bytes(const Segment& segment) {
  const std::uint64_t header[header_words] = {
      segment_magic,
      segment.enumeration.high,
      segment.enumeration.low,
      std::uint64_t{segment.begin} << 32 | segment.end,
      segment.counts.terms,
      segment.counts.evaluated,
      segment.counts.outputs,
      segment.records.size(),
      hash_bytes(std::as_bytes(std::span(segment.records))).low,
  };
  std::string bytes(sizeof(header) + sizeof(std::uint64_t) + segment.records.size() * sizeof(Record), '\0');
  const std::uint64_t check = hash_bytes(std::as_bytes(std::span(header))).low;
  std::memcpy(bytes.data(), header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), &check, sizeof(check));
  if (!segment.records.empty())
    std::memcpy(bytes.data() + sizeof(header) + sizeof(check), segment.records.data(),
                segment.records.size() * sizeof(Record));
  return bytes;
}

Expected<Segment> segment_from_bytes(std::string_view bytes, std::size_t& at, const std::string& file) {
  const Error damaged = bad_input(
      "not a whole segment of taso-gen's enumeration (damaged or cut off); remove the file "
      "and make it again",
      {file, 0, 0});
  std::uint64_t header[header_words];
  std::uint64_t check = 0;
  if (bytes.size() - at < sizeof(header) + sizeof(check)) return damaged;
  std::memcpy(header, bytes.data() + at, sizeof(header));
  std::memcpy(&check, bytes.data() + at + sizeof(header), sizeof(check));
  at += sizeof(header) + sizeof(check);
  if (header[0] != segment_magic || check != hash_bytes(std::as_bytes(std::span(header))).low) return damaged;
  Segment segment;
  segment.enumeration = {header[1], header[2]};
  segment.begin = static_cast<std::uint32_t>(header[3] >> 32);
  segment.end = static_cast<std::uint32_t>(header[3]);
  segment.counts = {header[4], header[5], header[6]};
  if (header[7] > (bytes.size() - at) / sizeof(Record)) return damaged;
  segment.records.resize(header[7]);
  if (!segment.records.empty())
    std::memcpy(segment.records.data(), bytes.data() + at, segment.records.size() * sizeof(Record));
  at += segment.records.size() * sizeof(Record);
  if (header[8] != hash_bytes(std::as_bytes(std::span(segment.records))).low) return damaged;
  return segment;
}

}  // namespace taso
