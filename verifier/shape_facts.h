/// What examined instances say of the shapes of an axiom: where lists of any length are among its attributes, the
/// encoding of the axiom needs it (theory.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
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
};

/// The facts of axioms, each found when it is first asked for (it costs a search for instances) and remembered. Any
/// number of threads may use one table.
class ShapeFactsTable {
 public:
  explicit ShapeFactsTable(const OperatorRegistry& registry) : registry_(registry), cache_(registry, max_cached) {}
  /// The reference stays valid.
  [[nodiscard]] const ShapeFacts& of(const Substitution& axiom);
  /// The facts of several axioms; threads that ask at once share the work.
  [[nodiscard]] std::vector<const ShapeFacts*> of(const std::vector<const Substitution*>& axioms);

 private:
  static constexpr std::size_t max_cached = 20'000;  // lowered operators that are remembered from axiom to axiom
  struct Entry {
    std::once_flag once;
    std::atomic<bool> begun = false;
    ShapeFacts facts;
  };
  [[nodiscard]] Entry& entry(const Substitution& axiom);
  void complete(Entry& entry, const Substitution& axiom);

  const OperatorRegistry& registry_;
  LoweredCache cache_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries_;  // by the axiom's text
};

}  // namespace taso
