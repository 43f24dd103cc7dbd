/// The bank: all terms of a profile group up to a size, as classes of equal value.
///
/// A term is an operator applied to values; a value is an input or one output of a term. Terms are made bottom up, in
/// order of size, from one *representative* per class only (the first, hence smallest, term of that value). A
/// term whose value is already known is a *hit*: it and the representative are two ways to compute one thing, the raw
/// material of rules. The size of a value counts distinct operators (sharing counts once): `ops` those that run,
/// `weight_ops` those on weights, which are folded before the program runs.
///
/// Below the last level every class is stored with its value. On the last level, which has almost all terms, only
/// fingerprints are computed, of one term from each set of terms that are equal up to renaming of inputs; what becomes
/// a class or a hit is what shares its fingerprint with something else (generator/last_level.h). The order of
/// everything is independent of the number of threads, of the memory limit, and of checkpoints and shards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generator/class_store.h"
#include "generator/enumerate.h"
#include "generator/fingerprint.h"
#include "generator/instances.h"
#include "generator/level_file.h"
#include "generator/profile.h"
#include "generator/records.h"
#include "generator/symmetry.h"
#include "operators/evaluate.h"

namespace taso {

/// A term output whose value was known.
struct Hit {
  TermId term = 0;
  std::uint32_t port = 0;
  ClassId value = 0;
  std::uint8_t ops = 0, weight_ops = 0;  ///< Size of the term.
};

/// A value over the field in every world at every point.
using FieldValue = std::vector<RingTensor<Mod61>>;

/// How the last level is spread over memory, files and processes. Nothing here changes the result.
struct ScaleOptions {
  /// Bytes that the process may hold; beyond, fingerprints of the last level go to files. 0: no limit. An enumeration
  /// whose other tables are larger is refused.
  std::uint64_t memory_limit = 0;
  std::string temporary = "/tmp";  ///< Folder for those files.
  std::string checkpoint;          ///< Folder for finished segments of the last level; empty: none are written or read.
  /// This process evaluates the segments whose number is `shard` modulo `shards`; none if shard == shards.
  std::uint32_t shard = 0, shards = 1;
  /// Takes every segment that this process has evaluated; the bank then ends without the hits of the last level
  /// (Bank::complete). One thread at a time.
  std::function<Status(const Segment&)> send;
  /// Told after the last segment of an enumeration was sent; may be empty.
  std::function<Status()> sent_all;
  /// Hands all segments of an enumeration that other processes evaluated to `accept`, in any order; one that comes
  /// twice is taken once.
  std::function<Status(const Hash128& enumeration, const std::function<Status(const Segment&)>& accept)> receive;
};

/// What is expected of the last level, from counting a sample of its terms and from the speed of the level before.
struct LevelEstimate {
  std::uint64_t terms = 0;  ///< Up to renaming.
  std::uint64_t bytes = 0;  ///< Of the whole process.
  double seconds = 0;
};

struct BankOptions {
  int max_ops = 3;
  std::uint64_t seed = 1;
  unsigned threads = 1;
  std::int64_t max_elements = 4096;         ///< Larger tensors are left out.
  std::uint64_t max_terms = 4'000'000'000;  ///< The enumeration stops with an error beyond.
  ScaleOptions scale;
  /// Told of terms done, of how many (estimated), on the last level; may be empty. One thread at a time.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  /// Told, before the last level is evaluated, what is expected of it; may be empty.
  std::function<void(const LevelEstimate&)> estimate;
};

/// Counts of one level of the enumeration.
struct LevelCounts {
  std::uint64_t terms = 0, classes = 0, hits = 0;
  std::uint64_t evaluated = 0;  ///< Terms that were evaluated: on the last level, those that differ by more than names.
};

class Bank {
 public:
  static constexpr std::size_t points = evaluation_points;  ///< Evaluation points per world.

  Bank(const ProfileGroup& group, const OperatorRegistry& registry, BankOptions options);
  /// Enumerates. Fails when the profile asks for more terms than the limit.
  [[nodiscard]] Status run();
  /// False if the segments of this process were sent elsewhere: there are no hits of the last level.
  [[nodiscard]] bool complete() const { return complete_; }

  [[nodiscard]] const ProfileGroup& group() const { return group_; }
  [[nodiscard]] const std::vector<ValueClass>& classes() const { return store_.classes; }
  [[nodiscard]] const std::vector<Term>& terms() const { return store_.terms; }
  [[nodiscard]] const std::vector<Hit>& hits() const { return hits_; }
  /// Terms with several outputs, with the classes of the outputs.
  struct MultiTerm {
    TermId term = 0;
    std::uint8_t ops = 0, weight_ops = 0;
    std::vector<ClassId> outputs;
  };
  [[nodiscard]] const std::vector<MultiTerm>& multi_terms() const { return multi_terms_; }
  /// How many outputs a term has.
  [[nodiscard]] std::size_t output_count(TermId term) const { return output_counts_[term]; }
  /// Counts per number of operators; entry 0 is inputs and weights.
  [[nodiscard]] const std::vector<LevelCounts>& levels() const { return levels_; }
  /// Operators of the group, by number, that no term of the enumeration applies: no value has a role and a type that
  /// they take, or all would be weights.
  [[nodiscard]] std::vector<std::size_t> never_applied() const;
  /// Renamings of inputs, with images of the classes below the last level.
  [[nodiscard]] const Symmetry& symmetry() const { return symmetry_; }
  [[nodiscard]] InstanceCache& instances() { return instances_; }
  [[nodiscard]] const BankOptions& options() const { return options_; }

  /// A random value of a type, the same for the same name.
  [[nodiscard]] FieldValue random_value(TypeId type, const std::string& name) const;
  /// The outputs of one application; an empty list if it divides by zero in the field or fails otherwise.
  [[nodiscard]] std::vector<FieldValue> apply(const InstanceCache::Entry& instance,
                                              std::span<const FieldValue* const> arguments) const;
  /// The distinct operators of a representative, itself included; ascending.
  [[nodiscard]] std::span<const TermId> terms_of(ClassId id) const { return store_.terms_of(id); }
  /// Sorted union of the representatives' terms.
  [[nodiscard]] std::vector<TermId> union_of_terms(std::span<const ClassId> values) const;
  [[nodiscard]] bool is_weight_term(TermId term) const { return store_.is_weight_term(term); }
  [[nodiscard]] const OperatorRegistry& registry() const { return registry_; }

 private:
  friend class LastLevel;
  void add_inputs();
  /// Notes which operators the terms of a level apply.
  void note_applied(const TermEnumerator& enumerator);
  [[nodiscard]] Hash128 enumeration_hash(const TermEnumerator& enumerator, int level) const;
  [[nodiscard]] Status evaluate_level(const TermEnumerator& enumerator, int level, std::vector<FoundTerm>& found);
  /// One level whose classes are kept with their values.
  [[nodiscard]] Status add_level(int level, int weight_level);
  void insert(std::vector<FoundTerm>& found, int level, std::vector<std::vector<TermId>>& fresh,
              std::size_t block_count);
  void add_values(const TermEnumerator& enumerator, const std::vector<std::vector<TermId>>& fresh);
  void align_representatives(ClassId first_class, TermId first_term, std::size_t first_hit);
  TermId add_term(const Term& term, std::size_t outputs);
  ClassId add_class(ValueClass value, const Hash128& fingerprint, std::span<const TermId> terms);
  [[nodiscard]] Error too_many(int level) const;
  /// An error if the tables, and what is about to be added, exceed the memory limit; `what` names them.
  [[nodiscard]] Status fits(std::uint64_t more, const std::string& what) const;

  const ProfileGroup& group_;
  const OperatorRegistry& registry_;
  BankOptions options_;
  InstanceCache instances_;
  ClassStore store_;
  Channel channel_;
  Symmetry symmetry_;
  /// Per generator of the symmetry: the images of the classes.
  std::vector<std::vector<ClassId>> generator_images_;
  std::vector<Hit> hits_;
  std::vector<MultiTerm> multi_terms_;
  std::vector<std::uint8_t> output_counts_;
  std::vector<LevelCounts> levels_;
  std::vector<bool> applied_;  ///< Per operator of the group.
  std::uint64_t evaluated_ = 0;
  double seconds_per_term_ = 0;  ///< Evaluation only, on the level before the last.
  bool complete_ = true;
};

}  // namespace taso
