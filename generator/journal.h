/// What became of candidates, kept in a file while they are generalised and proved, so that a run that was killed goes
/// on.
///
/// The file is a header with a hash of all that outcomes depend on, then one entry per candidate: its key, what was
/// found, a checksum. Entries are appended as soon as they are known, in any order. A process that dies
/// leaves at most one entry cut off, which is dropped when the file is opened again. What is derived from other rules
/// is not kept: it depends on the order of the candidates and is found again.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "generator/forms.h"
#include "support/hash.h"

namespace taso {

/// What generalising and proving made of one candidate.
struct JournalEntry {
  std::uint8_t kind = 0;  ///< The generator's number of what happened to it.
  GeneralRule rule;
  std::string why;
};

/// Bytes of an entry and back; empty if the bytes are none.
[[nodiscard]] std::string to_bytes(const JournalEntry& entry);
[[nodiscard]] std::optional<JournalEntry> entry_from_bytes(std::string_view bytes);

class Journal {
 public:
  /// Opens a journal of the same inputs, or begins one. Refuses a file of other inputs.
  [[nodiscard]] static Expected<std::unique_ptr<Journal>> open(const std::string& path, const Hash128& inputs);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// The entry of a key, if there is one. Entries added later are not seen.
  [[nodiscard]] const JournalEntry* find(const Hash128& key) const;
  /// Adds an entry; any thread may do so. What goes wrong is told by `status`.
  void add(const Hash128& key, const JournalEntry& entry);
  /// The first error of `add`.
  [[nodiscard]] Status status();

 private:
  explicit Journal(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::FILE* file_ = nullptr;
  std::mutex mutex_;  ///< Of the file and of the status.
  Status status_;
  std::unordered_map<Hash128, JournalEntry> entries_;
};

}  // namespace taso
