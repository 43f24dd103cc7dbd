/// Fingerprints of the last level: sorted by value, on disk beyond a limit, saved and merged by segments.
///
/// A record is a fingerprint (the smallest over all renamings) and the place of a term in the enumeration. Records are
/// distributed over partitions by fingerprint; equal fingerprints are found by sorting one partition at a time. When
/// the records in memory exceed the limit, all partitions are appended to files; what is found does not depend on that.
///
/// A *segment* is the records of a run of units. With a folder for checkpoints a segment is written when its units
/// are done (under another name first, so that a file with its proper name is complete), and read instead of
/// evaluated when it is there. Shards are segments written by different processes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "support/hash.h"
#include "support/status.h"

namespace taso {

struct Record {
  std::uint64_t low = 0, high = 0;  ///< The fingerprint.
  std::uint64_t place = 0;
  auto operator<=>(const Record&) const = default;
};

class RecordStore {
 public:
  static constexpr std::size_t partitions = 256;
  /// `memory_limit` in bytes, 0 for none; files go into a folder that is made below `folder` and removed at the end.
  RecordStore(std::uint64_t memory_limit, std::string folder);
  ~RecordStore();
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  /// Adds records; any thread may do so.
  [[nodiscard]] Status add(const std::vector<Record>& records);
  /// All records of a partition, sorted. May be called once for each, from any thread.
  [[nodiscard]] Expected<std::vector<Record>> take(std::size_t partition);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] bool spilled() const { return spilled_; }

 private:
  struct Partition {
    std::mutex mutex;
    std::vector<std::vector<Record>> chunks;
    std::uint64_t in_file = 0;
  };
  [[nodiscard]] std::string file(std::size_t partition) const;
  [[nodiscard]] Status spill();

  std::uint64_t limit_;
  std::string folder_, made_;
  std::vector<Partition> parts_;
  std::mutex spilling_;
  std::atomic<std::uint64_t> size_{0}, in_memory_{0};
  bool spilled_ = false;
};

/// What a segment says of the terms in it, beside the records.
struct SegmentCounts {
  std::uint64_t terms = 0;      ///< All terms, renamed ones included.
  std::uint64_t evaluated = 0;  ///< Terms up to renaming.
  std::uint64_t outputs = 0;    ///< Outputs of all terms.
};

/// The records of the units [begin, end) of one enumeration.
struct Segment {
  Hash128 enumeration;  ///< Of what is enumerated: segments of another are not taken.
  std::uint32_t begin = 0, end = 0;
  SegmentCounts counts;
  std::vector<Record> records;
};

/// Bytes with a checksum, and back; the error of a damaged segment says so. `at` moves behind the segment.
[[nodiscard]] std::string to_bytes(const Segment& segment);
[[nodiscard]] Expected<Segment> segment_from_bytes(std::string_view bytes, std::size_t& at, const std::string& file);

}  // namespace taso
