/// The last level of the bank: fingerprints of all terms up to renaming, and classes only where two terms meet.
///
/// 1. Of the terms op(a, b, ...) that renamings of inputs take into one another, the one with the smallest tuple
///    of classes is evaluated: its fingerprint under *every* renaming, by looking up the images of a, b, ... . The
///    smallest of these fingerprints is the same for all terms whose values are equal up to renaming: it goes into the
///    records, together with the place of the term in the enumeration. Classes of smaller size have records, too.
/// 2. Equal records are terms that are equal up to renaming (and a term that is equal to a renaming of itself says
///    so with a flag). Only these terms are made again.
/// 3. In each group the first term keeps its names and the others are renamed so that all are equal: classes and hits.
///    Terms with several outputs, all of them known, have the groups of their outputs in their own names as well.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "generator/bank.h"
#include "generator/records.h"

namespace taso {

class LastLevel {
 public:
  /// Units of one segment.
  static constexpr std::uint32_t segment_units = 64;

  LastLevel(Bank& bank, int level);
  [[nodiscard]] Status run();

 private:
  /// A term that shares its value with something.
  struct Member {
    std::uint64_t place = 0;
    Term term;
    Hash128 fingerprint;                  ///< Of the output, in the term's own names.
    std::vector<std::uint8_t> renamings;  ///< Those that give the smallest fingerprint.
  };
  /// Terms that are equal up to renaming.
  struct Group {
    Hash128 key;
    ClassId known = Symmetry::none;  ///< A smaller class of that value.
    std::vector<std::uint64_t> places;
    std::vector<std::size_t> members;
  };
  using Scratch = BlockEvaluator::Scratch;

  static std::uint64_t place_of(int weight_ops, std::uint32_t unit, std::uint32_t index, std::uint32_t port,
                                std::size_t orbit, bool self);
  static bool is_class(std::uint64_t place) { return place >> 60 == 0; }
  static int weight_ops_of(std::uint64_t place) { return static_cast<int>(place >> 60) - 1; }
  static std::uint32_t unit_of(std::uint64_t place) { return static_cast<std::uint32_t>(place >> 38) & 0x3fffff; }
  static std::uint32_t index_of(std::uint64_t place) { return static_cast<std::uint32_t>(place >> 10) & 0xfffffff; }
  static std::uint32_t port_of(std::uint64_t place) { return static_cast<std::uint32_t>(place >> 7) & 7; }
  static std::size_t orbit_of(std::uint64_t place) { return (place >> 1 & 63) + 1; }
  static bool is_self(std::uint64_t place) { return (place & 1) != 0; }

  [[nodiscard]] std::uint64_t inputs_of(std::span<const ClassId> arguments) const;
  /// The terms of some rows of a block of which no renaming is earlier, in order.
  template <class Emit>
  void for_each_first(const Block& block, std::size_t begin, std::size_t end, const Emit& emit) const {
    // An earlier class at the first argument makes an earlier term.
    for (std::size_t row = begin; row < end; ++row) {
      if (!block.types.empty() && !first_[block.rows[row]]) continue;
      enumerator_.for_each(block, row, row + 1, [&](std::span<const ClassId> arguments, int weight_ops) {
        if (is_first(block, arguments)) emit(arguments, weight_ops);
      });
    }
  }
  [[nodiscard]] const Block& block_of(std::uint32_t unit) const;
  /// Whether no renaming gives a smaller tuple of classes.
  [[nodiscard]] bool is_first(const Block& block, std::span<const ClassId> arguments) const;
  bool rename(const Block& block, std::span<const ClassId> arguments, std::size_t element,
              std::span<ClassId> renamed) const;
  void evaluate_unit(const Block& block, const BlockEvaluator& evaluator, std::uint32_t unit, Scratch& scratch,
                     Segment& segment) const;
  void estimate();
  [[nodiscard]] Hash128 enumeration_hash() const;
  [[nodiscard]] Status evaluate_all();
  [[nodiscard]] Status receive_all(const Hash128& enumeration, std::vector<bool>& done);
  [[nodiscard]] Status accept(const Segment& segment);
  [[nodiscard]] Status add_known();
  [[nodiscard]] Status find_groups();
  void make_members();
  void make_classes();
  ClassId class_of(Group& group, std::size_t frame, const Hash128& fingerprint);
  TermId term_id(const Term& term, std::uint64_t place);
  [[nodiscard]] std::string segment_file(std::uint32_t segment) const;

  Bank& bank_;
  int level_;
  TermEnumerator enumerator_;
  RecordStore records_;
  LevelCounts counts_;
  std::uint64_t outputs_ = 0, expected_ = 0;
  double expected_fingerprints_ = 0;  ///< Renamed terms counted each.
  std::vector<bool> first_;           ///< Per class: no renaming takes it to an earlier class.
  std::vector<Group> groups_;
  std::vector<Member> members_;
  std::vector<std::pair<std::uint64_t, Hit>> hits_;  ///< With the places of their terms.
  std::map<Term, TermId> made_;
  std::map<Hash128, ClassId> classes_;
};

}  // namespace taso
