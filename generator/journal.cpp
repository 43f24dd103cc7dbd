#include "generator/journal.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <type_traits>

#include "support/file.h"

namespace taso {
namespace {

/// Writes or reads every member of what an entry consists of: one description for both directions.
class Archive {
 public:
  Archive() = default;
  explicit Archive(std::string_view bytes) : bytes_(bytes), reading_(true) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  [[nodiscard]] std::string take() { return std::move(written_); }

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void value(T& value) {
    bytes_of(reinterpret_cast<char*>(&value), sizeof(value));
  }
  void value(std::string& text) {
    std::uint64_t size = text.size();
    if (!begin(size)) return;
    text.resize(size);
    bytes_of(text.data(), size);
  }
  void value(std::vector<bool>& flags) {
    std::uint64_t size = flags.size();
    if (!begin(size)) return;
    flags.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      std::uint8_t flag = flags[i] ? 1 : 0;
      value(flag);
      flags[i] = flag != 0;
    }
  }
  template <class T>
  void value(std::vector<T>& list) {
    std::uint64_t size = list.size();
    if (!begin(size)) return;
    list.resize(size);
    for (T& item : list) value(item);
  }
  template <class A, class B>
  void value(std::pair<A, B>& pair) {
    members(pair.first, pair.second);
  }
  template <class T>
  void value(std::optional<T>& optional) {
    std::uint8_t has = optional ? 1 : 0;
    value(has);
    if (reading_) optional = has != 0 ? std::optional<T>(std::in_place) : std::nullopt;
    if (optional) value(*optional);
  }
  void value(AttributeValue& attribute) {
    auto kind = static_cast<std::uint8_t>(attribute.index());
    value(kind);
    if (reading_) {
      switch (kind) {
        case 0:
          attribute = std::int64_t{0};
          break;
        case 1:
          attribute = 0.0;
          break;
        case 2:
          attribute = std::vector<std::int64_t>();
          break;
        case 3:
          attribute = SymbolValue();
          break;
        default:
          good_ = false;
          return;
      }
    }
    std::visit(
        [&](auto& held) {
          if constexpr (std::is_same_v<std::decay_t<decltype(held)>, SymbolValue>)
            value(held.name);
          else
            value(held);
        },
        attribute);
  }
  void value(AttributeExpression& e) { members(e.kind, e.literal, e.index, e.axis, e.operands); }
  void value(PatternValue& v) { members(v.is_variable, v.index, v.port); }
  void value(PatternNode& node) { members(node.op, node.inputs, node.attributes); }
  void value(Pattern& pattern) { members(pattern.nodes, pattern.outputs); }
  void value(Condition& condition) { members(condition.relation, condition.left, condition.right); }
  void value(SourceLocation& where) { members(where.file, where.line, where.column); }
  void value(TensorType& type) { members(type.element, type.shape, type.known); }
  void value(Substitution& r) {
    members(r.name, r.is_axiom, r.tensor_variables, r.attribute_variables, r.source, r.target, r.conditions, r.proofs,
            r.numeric_class, r.expect, r.where);
  }
  void value(GeneralRule& r) {
    members(r.rule, r.source_ops, r.target_ops, r.source_weight_ops, r.target_weight_ops, r.is_weight, r.example_types,
            r.example_attributes, r.opened);
  }
  void value(JournalEntry& entry) { members(entry.kind, entry.rule, entry.why); }

 private:
  template <class... Members>
  void members(Members&... of_one) {
    (value(of_one), ...);
  }
  /// Writes, or reads, `size` bytes at `data`.
  void bytes_of(char* data, std::size_t size) {
    if (!reading_) {
      written_.append(data, size);
    } else if (!good_ || bytes_.size() - at_ < size) {
      good_ = false;
    } else {
      std::memcpy(data, bytes_.data() + at_, size);
      at_ += size;
    }
  }
  /// The length of a list; each item takes at least one byte.
  bool begin(std::uint64_t& size) {
    value(size);
    if (reading_ && (!good_ || size > bytes_.size() - at_)) {
      good_ = false;
      size = 0;
    }
    return good_;
  }

  std::string_view bytes_;
  std::string written_;
  std::size_t at_ = 0;
  bool reading_ = false, good_ = true;
};

/// Begins every journal; the last digit is the version of the format.
constexpr std::string_view journal_magic = "tasogenjournal01";

struct JournalHeader {
  char magic[16];
  std::uint64_t high = 0, low = 0;
};

/// Before the bytes of each entry.
struct EntryHeader {
  std::uint64_t high = 0, low = 0;  ///< The key.
  std::uint64_t size = 0, check = 0;
};

std::uint64_t check_of(const EntryHeader& header, std::string_view bytes) {
  return Hasher().add(header.high).add(header.low).add(bytes).finish().low;
}

Error system_error(const std::string& path) {
  return bad_input(std::string("cannot write: ") + std::strerror(errno), {path, 0, 0});
}

}  // namespace

std::string to_bytes(const JournalEntry& entry) {
  Archive archive;
  JournalEntry copy = entry;  // the archive takes what it could also fill
  archive.value(copy);
  return archive.take();
}

std::optional<JournalEntry> entry_from_bytes(std::string_view bytes) {
  Archive archive(bytes);
  JournalEntry entry;
  archive.value(entry);
  if (!archive.good() || !archive.at_end()) return std::nullopt;
  return entry;
}

Expected<std::unique_ptr<Journal>> Journal::open(const std::string& path, const Hash128& inputs) {
  std::unique_ptr<Journal> journal(new Journal(path));
  JournalHeader header;
  std::memcpy(header.magic, journal_magic.data(), sizeof(header.magic));
  header.high = inputs.high;
  header.low = inputs.low;
  std::error_code error;
  std::uintmax_t good = 0;
  if (std::filesystem::exists(path, error)) {
    TASO_ASSIGN(const std::string bytes, read_file(path));
    // Shorter than a header: killed while it was begun.
    if (bytes.size() >= sizeof(header)) {
      if (std::memcmp(bytes.data(), journal_magic.data(), journal_magic.size()) != 0)
        return bad_input("not a journal of taso-gen of this version: give another folder to --checkpoint",
                         {path, 0, 0});
      if (std::memcmp(bytes.data(), &header, sizeof(header)) != 0)
        return bad_input(
            "made from another profile, specifications, options or version: give another folder to --checkpoint",
            {path, 0, 0});
      good = sizeof(header);
    }
    while (good > 0 && bytes.size() - good >= sizeof(EntryHeader)) {
      EntryHeader entry;
      std::memcpy(&entry, bytes.data() + good, sizeof(entry));
      if (entry.size > bytes.size() - good - sizeof(entry)) break;
      const std::string_view payload = std::string_view(bytes).substr(good + sizeof(entry), entry.size);
      if (entry.check != check_of(entry, payload)) break;
      auto read = entry_from_bytes(payload);
      if (!read) break;
      journal->entries_.insert_or_assign(Hash128{entry.high, entry.low}, std::move(*read));
      good += sizeof(entry) + entry.size;
    }
    // What follows was cut off, or is damaged: it is found again.
    std::filesystem::resize_file(path, good, error);
    if (error) return bad_input("cannot write: " + error.message(), {path, 0, 0});
  }
  journal->file_ = std::fopen(path.c_str(), "ab");
  if (journal->file_ == nullptr) return system_error(path);
  if (good == 0 && (std::fwrite(&header, sizeof(header), 1, journal->file_) != 1 || std::fflush(journal->file_) != 0))
    return system_error(path);
  return journal;
}

Journal::~Journal() {
  if (file_ != nullptr) std::fclose(file_);
}

const JournalEntry* Journal::find(const Hash128& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second;
}

void Journal::add(const Hash128& key, const JournalEntry& entry) {
  const std::string bytes = to_bytes(entry);
  EntryHeader header{key.high, key.low, bytes.size(), 0};
  header.check = check_of(header, bytes);
  std::string whole(reinterpret_cast<const char*>(&header), sizeof(header));
  whole += bytes;
  const std::lock_guard lock(mutex_);
  if (!status_) return;
  if (std::fwrite(whole.data(), 1, whole.size(), file_) != whole.size() || std::fflush(file_) != 0)
    status_ = system_error(path_);
}

Status Journal::status() {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace taso
