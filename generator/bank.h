/// The bank: all terms of a profile group up to a size, as classes of equal value.
///
/// A term is an operator applied to values; a value is an input or one output of a term. Terms are made bottom up, in
/// order of size, from one *representative* per class only (the first, hence smallest, term of that value). A
/// term whose value is already known is a *hit*: it and the representative are two ways to compute one thing, the raw
/// material of rules. The size of a value counts distinct operators (sharing counts once): `ops` those that run,
/// `weight_ops` those on weights, which are folded before the program runs.
///
/// Values are tensors over GF(2^61-1), one per world and evaluation point; a class is identified by a 128-bit hash of
/// the shapes and elements of all of them. The order of everything is independent of the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "generator/profile.h"
#include "operators/evaluate.h"
#include "support/hash.h"

namespace taso {

using ClassId = std::uint32_t;
using TermId = std::uint32_t;
using TypeId = std::uint32_t;

/// An operator of the group applied to representatives.
struct Term {
  static constexpr std::size_t max_arguments = 5;
  std::uint32_t op = 0;  ///< Index into ProfileGroup::operators.
  std::uint8_t count = 0;
  std::array<ClassId, max_arguments> arguments{};
  [[nodiscard]] std::span<const ClassId> inputs() const { return {arguments.data(), count}; }
};

/// A class of equal values with its representative.
struct ValueClass {
  bool is_input = false;
  bool is_weight = false;   ///< Made of weights only.
  std::uint32_t index = 0;  ///< The input's number, or the representative's TermId.
  std::uint32_t port = 0;   ///< Output of the representative.
  TypeId type = 0;
  std::uint8_t ops = 0, weight_ops = 0;
  std::vector<TermId> terms;  ///< Distinct terms of the representative, itself included; ascending.
};

/// A term output whose value was known.
struct Hit {
  TermId term = 0;
  std::uint32_t port = 0;
  ClassId value = 0;
  std::uint8_t ops = 0, weight_ops = 0;  ///< Size of the term.
};

/// A value over the field in every world at every point.
using FieldValue = std::vector<RingTensor<Mod61>>;

/// Operators of a group, made concrete on demand for given argument types, in every world.
class InstanceCache {
 public:
  struct Entry {
    bool typed = false;
    std::vector<OperatorInstance> worlds;
    std::vector<TypeId> outputs;
  };
  InstanceCache(const ProfileGroup& group, const OperatorRegistry& registry);
  /// Null if the application is ill-typed in some world. Not thread-safe; the entry stays valid.
  const Entry* find(std::uint32_t op, std::span<const TypeId> arguments);
  /// The number of a tuple of shapes, one per world.
  TypeId intern(std::vector<Shape> shapes);
  [[nodiscard]] const std::vector<Shape>& shapes(TypeId type) const { return *types_[type]; }
  [[nodiscard]] std::size_t type_count() const { return types_.size(); }

 private:
  const ProfileGroup& group_;
  const OperatorRegistry& registry_;
  std::vector<std::vector<Attributes>> attributes_;  ///< Per operator, per world.
  std::map<std::vector<Shape>, TypeId> type_ids_;
  std::vector<const std::vector<Shape>*> types_;
  std::map<std::vector<std::uint32_t>, Entry> entries_;
};

struct BankOptions {
  int max_ops = 3;
  std::uint64_t seed = 1;
  unsigned threads = 1;
  std::size_t points = 2;              ///< Evaluation points per world.
  std::int64_t max_elements = 4096;    ///< Larger tensors are left out.
  std::size_t max_terms = 20'000'000;  ///< The enumeration stops with an error beyond.
};

/// Counts of one level of the enumeration.
struct LevelCounts {
  std::uint64_t terms = 0, classes = 0, hits = 0;
};

class Bank {
 public:
  Bank(const ProfileGroup& group, const OperatorRegistry& registry, BankOptions options);
  /// Enumerates. Fails when the profile asks for more terms than the limit.
  [[nodiscard]] Status run();

  [[nodiscard]] const ProfileGroup& group() const { return group_; }
  [[nodiscard]] const std::vector<ValueClass>& classes() const { return classes_; }
  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] const std::vector<Hit>& hits() const { return hits_; }
  /// Terms with several outputs, with the classes of the outputs.
  struct MultiTerm {
    TermId term = 0;
    std::uint8_t ops = 0, weight_ops = 0;
    std::vector<ClassId> outputs;
  };
  [[nodiscard]] const std::vector<MultiTerm>& multi_terms() const { return multi_terms_; }
  /// Counts per number of operators; entry 0 is inputs and weights.
  [[nodiscard]] const std::vector<LevelCounts>& levels() const { return levels_; }
  [[nodiscard]] InstanceCache& instances() { return instances_; }
  [[nodiscard]] const BankOptions& options() const { return options_; }

  /// A random value of a type, the same for the same name.
  [[nodiscard]] FieldValue random_value(TypeId type, const std::string& name) const;
  /// The outputs of one application; an empty list if it divides by zero in the field or fails otherwise.
  [[nodiscard]] std::vector<FieldValue> apply(const InstanceCache::Entry& instance,
                                              std::span<const FieldValue* const> arguments) const;
  /// Sorted union of the representatives' terms.
  [[nodiscard]] std::vector<TermId> union_of_terms(std::span<const ClassId> values) const;
  [[nodiscard]] bool is_weight_term(TermId term) const { return group_.operators[terms_[term].op].on_weights; }
  [[nodiscard]] const OperatorRegistry& registry() const { return registry_; }

 private:
  struct Task {
    Term term;
    const InstanceCache::Entry* instance = nullptr;
  };
  struct Result;
  void add_inputs();
  [[nodiscard]] Status make_tasks(int level, int weight_level, std::vector<std::vector<Task>>& by_weight_ops);
  void run_tasks(const std::vector<Task>& tasks, int level, int weight_ops, bool keep_values);
  void add_class(ValueClass value, Hash128 fingerprint, FieldValue values, bool keep_values);

  const ProfileGroup& group_;
  const OperatorRegistry& registry_;
  BankOptions options_;
  InstanceCache instances_;
  std::vector<ValueClass> classes_;
  std::vector<FieldValue> values_;  ///< Per class; empty on the last level.
  std::vector<Term> terms_;
  std::vector<Hit> hits_;
  std::vector<MultiTerm> multi_terms_;
  std::vector<LevelCounts> levels_;
  std::unordered_map<Hash128, ClassId> by_fingerprint_;
  /// classes_of_[type][ops]: ids of activations (first) and weights (second).
  std::vector<std::vector<std::array<std::vector<ClassId>, 2>>> classes_of_;
  /// Classes whose representative contains a term that is not on weights.
  std::unordered_map<TermId, std::vector<ClassId>> containing_;
};

}  // namespace taso
