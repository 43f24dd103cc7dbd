/// What examined instances say of the shapes of an axiom: the encoding of the axiom needs it
/// (verifier/theory/theory.h).
///
/// Facts are found by a search, which costs more than most proofs. They are therefore recorded in a file beside that of
/// the axioms (specs/axioms/*.facts, written by `taso-verify --record-facts`), under a key of everything on which they
/// depend: the axiom and what types of its operators are inferred from. An axiom that is not recorded as it stands
/// is used only where all types are known to fit.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "support/hash.h"
#include "support/status.h"
#include "verifier/lowered_cache.h"

namespace taso {

struct ShapeFacts {
  /// Per output, attribute variables that always equal its shape: the shapes to which operands of element-wise
  /// operators are broadcast.
  std::vector<std::vector<std::size_t>> result_shapes;
  /// The sides may both be well-typed and yet have different shapes, as in reshape(x; shape=s) = x: then the axiom
  /// holds where the shapes are equal.
  bool may_differ = false;
  /// Per output, whether the use from left to right ([0]) or from right to left ([1]) may make an ill-typed term
  /// (verifier/axiom_use.h): then it is to be made only where its types are known to fit.
  std::vector<bool> may_be_ill_typed[2];
  bool operator==(const ShapeFacts&) const = default;
};

/// Of how many instances uses of axioms are examined for their record.
inline constexpr std::size_t examined_uses = 3000;

/// The facts of axioms: recorded ones, and others found when they are first asked for and remembered. Of an axiom
/// without a record every use is taken for one that may be ill-typed. Any number of threads may use one table.
class ShapeFactsTable {
 public:
  explicit ShapeFactsTable(const OperatorRegistry& registry) : registry_(registry), cache_(registry, max_cached) {}
  /// The reference stays valid.
  [[nodiscard]] const ShapeFacts& of(const Substitution& axiom);
  /// The facts of several axioms; threads that ask at once share the work.
  [[nodiscard]] std::vector<const ShapeFacts*> of(const std::vector<const Substitution*>& axioms);

  /// What the record of an axiom says (Substitution::facts); nothing if there is none, or one of another axiom or of
  /// other operators.
  [[nodiscard]] std::optional<ShapeFacts> recorded(const Substitution& axiom) const;
  /// Finds the facts of an axiom anew, its uses among so many instances.
  [[nodiscard]] ShapeFacts examine(const Substitution& axiom, std::size_t instances = examined_uses);
  /// The line of a record: "NAME KEY [differ] [shape=OUTPUT:VARIABLE]... [ill-typed=left:OUTPUT]...", where a use from
  /// left to right is called left; without a line break.
  [[nodiscard]] std::string line(const Substitution& axiom, const ShapeFacts& facts) const;

 private:
  static constexpr std::size_t max_cached = 20'000;  // lowered operators that are remembered from axiom to axiom
  struct Entry {
    std::once_flag once;
    std::atomic<bool> begun = false;
    ShapeFacts facts;
  };
  [[nodiscard]] Hash128 key(const Substitution& axiom) const;
  [[nodiscard]] Entry& entry(const Substitution& axiom);
  void complete(Entry& entry, const Substitution& axiom);

  const OperatorRegistry& registry_;
  LoweredCache cache_;
  std::mutex mutex_;
  std::unordered_map<Hash128, std::unique_ptr<Entry>> entries_;
};

/// The lines of a record by the names of axioms. bad_input where a line is not of the form that
/// ShapeFactsTable::line() writes.
[[nodiscard]] Expected<std::map<std::string, std::string>> read_shape_facts(std::string_view text,
                                                                            const std::string& file);

}  // namespace taso
