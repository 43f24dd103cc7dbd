/// Graphs at all sizes of a model's symbolic extents: sizes as polynomials in the symbols, and the operators over them.
///
/// A graph for all sizes is a Graph (graph/graph.h) some of whose extents and integer attributes are no numbers but
/// names: each stands for a polynomial over the symbols, whose quotients by other polynomials and maxima are symbols,
/// too (verifier/unbounded/index_polynomial.h). Equal polynomials have equal names, so that matching, application and
/// normal form work as they do on numbers. What must hold for a step (conditions of its rule, its operators'
/// requirements, equal types of outputs) counts as holding only if it follows from the ranges of the symbols by the
/// prover's arithmetic (verifier/unbounded/facts.h).
///
/// As a second check, everything inferred is compared with numbers at sample sizes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/size_arithmetic.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// The sizes that a symbol may have.
struct SizeRange {
  std::int64_t least = 1;
  std::optional<std::int64_t> most;  ///< Nothing: no bound.
  bool operator==(const SizeRange&) const = default;
};

/// A symbolic extent, with its value at each sample.
struct SampledSymbol {
  std::string name;  ///< For a person.
  SizeRange range;
  std::vector<std::int64_t> samples;
};

/// Names for sizes.
///
/// Representation. A number is its own name up to 2^56; beyond stand names, each with a few bits of its hash, so that
/// no sum or product of names that was computed as if they were numbers is a name. Polynomials, and what is known of
/// the symbols, are behind `state_`. Not for several threads at once.
class SymbolicSizes final : public SampledSizes {
 public:
  /// All symbols have as many samples.
  explicit SymbolicSizes(const std::vector<SampledSymbol>& symbols);
  ~SymbolicSizes() override;
  SymbolicSizes(const SymbolicSizes&) = delete;
  SymbolicSizes& operator=(const SymbolicSizes&) = delete;

  [[nodiscard]] std::size_t sample_count() const override;
  /// How many symbols were given first.
  [[nodiscard]] std::size_t symbol_count() const;
  /// The name of symbol `i` of those given first.
  [[nodiscard]] std::int64_t symbol(std::size_t i) const;
  /// A new symbol, for a size of which nothing is known but that it is at least 1, or not negative if one of the
  /// symbols given first may be 0: its name.
  [[nodiscard]] std::int64_t unknown(const std::string& name, std::vector<std::int64_t> samples);
  /// The smaller one of two sizes, which is so as well: its name. Of the same two it is the same.
  [[nodiscard]] std::int64_t minimum(const std::string& name, std::int64_t a, std::int64_t b,
                                     std::vector<std::int64_t> samples);
  /// Of two sizes that are equal or, if `or_one`, one of which is 1: that they are equal is known from now on, if it
  /// follows from that. Whether it does, and was not known before.
  bool learn_equal(std::int64_t a, std::int64_t b, bool or_one);
  /// The size that has these values at the samples: one that has a name already, or a polynomial of low degree over the
  /// symbols that were given first and those that occur in `near`. Nothing where the samples do not determine one with
  /// some to spare, or where there are several that are not equal at all sizes.
  [[nodiscard]] std::optional<std::int64_t> fit(std::span<const std::int64_t> values,
                                                std::span<const std::int64_t> near) const override;
  /// The polynomial over the symbols that occur in `sizes`, for what is known to be one.
  [[nodiscard]] std::optional<std::int64_t> fit_of(std::span<const std::int64_t> values,
                                                   std::span<const std::int64_t> sizes) const;

  [[nodiscard]] Expected<std::int64_t> combine(Operation operation, std::int64_t a, std::int64_t b) const override;
  [[nodiscard]] bool follows(Condition::Relation relation, std::int64_t a, std::int64_t b) const override;
  [[nodiscard]] bool is_zero_where(std::int64_t size, std::int64_t other) const override;
  [[nodiscard]] bool is_number(std::int64_t size) const override;
  /// Whether a size follows from the symbols that were given first.
  [[nodiscard]] bool is_known(std::int64_t size) const;
  /// The names of the other symbols from which it follows.
  [[nodiscard]] std::vector<std::int64_t> unknowns_of(std::int64_t size) const;
  /// Whether no other polynomial over these symbols, which a file could compute, has its values at the samples:
  /// 2 * (height // 2) is the height where all samples are even.
  [[nodiscard]] bool is_told_by_samples(std::int64_t size) const;
  [[nodiscard]] std::optional<std::int64_t> at(std::int64_t size, std::size_t sample) const override;
  /// Over the symbols that were given first; nothing for maxima, quotients of what may be negative, and what depends on
  /// other symbols.
  [[nodiscard]] std::optional<std::vector<SizeTerm>> terms(std::int64_t size) const override;
  /// "2*height + 1", "7".
  [[nodiscard]] std::string to_string(std::int64_t size) const override;

 private:
  friend class SymbolicCatalog;
  struct State;
  [[nodiscard]] std::optional<SizeFactor> factor_of(std::uint32_t symbol) const;
  std::unique_ptr<State> state_;
};

/// The operators of a registry over sizes. Both must outlive the catalog.
class SymbolicCatalog final : public SizedCatalog {
 public:
  SymbolicCatalog(const OperatorRegistry& registry, const SymbolicSizes& sizes);
  ~SymbolicCatalog() override;

  [[nodiscard]] bool defines(std::string_view op) const override { return registry_.defines(op); }
  [[nodiscard]] const OperatorSignature* signature(std::string_view op) const override {
    return registry_.signature(op);
  }
  [[nodiscard]] Expected<Attributes> complete(std::string_view op, const Attributes& attributes) const override {
    return registry_.complete(op, attributes);
  }
  /// An error says what does not follow for all sizes. Attributes follow from the symbols that were given first: no
  /// file could say others.
  [[nodiscard]] Expected<std::vector<TensorType>> infer(std::string_view op, const Attributes& attributes,
                                                        std::span<const TensorType> inputs) const override;
  [[nodiscard]] std::size_t output_count(std::string_view op, const Attributes& attributes) const override {
    return registry_.output_count(op, attributes);
  }
  [[nodiscard]] bool is_commutative(std::string_view op) const override { return registry_.is_commutative(op); }
  [[nodiscard]] bool is_associative(std::string_view op) const override { return registry_.is_associative(op); }
  [[nodiscard]] bool is_elementwise(std::string_view op) const {
    const OperatorDefinition* definition = registry_.find(op);
    return definition != nullptr && definition->elementwise;
  }
  [[nodiscard]] const PieceAttributes* pieces(std::string_view op) const override { return registry_.pieces(op); }
  [[nodiscard]] bool is_function(std::string_view name) const override { return registry_.is_function(name); }
  [[nodiscard]] bool is_total_function(std::string_view name) const override {
    return registry_.is_total_function(name);
  }
  [[nodiscard]] const SizeArithmetic& sizes() const override { return sizes_; }

  /// The same of a node of the model, whose attributes may follow from any extents.
  [[nodiscard]] Expected<std::vector<TensorType>> infer_of_model(std::string_view op, const Attributes& attributes,
                                                                 std::span<const TensorType> inputs) const;
  /// The same of a node that does not exist where it computes nothing: where that is needed, it is a fact from now on
  /// that its outputs have elements.
  [[nodiscard]] Expected<std::vector<TensorType>> infer_with_elements(std::string_view op, const Attributes& attributes,
                                                                      std::span<const TensorType> inputs) const;
  /// Forgets what did not follow: more is known now.
  void forget() const;

  /// Attributes and types at a sample; nothing beyond 64 bits.
  [[nodiscard]] std::optional<Attributes> at(const Attributes& attributes, std::size_t sample) const;
  [[nodiscard]] std::optional<TensorType> at(const TensorType& type, std::size_t sample) const;

 private:
  [[nodiscard]] bool are_known(const Attributes& attributes) const;
  [[nodiscard]] Expected<std::vector<TensorType>> infer_anew(std::string_view op, const Attributes& attributes,
                                                             std::span<const TensorType> inputs,
                                                             bool with_elements) const;

  const OperatorRegistry& registry_;
  const SymbolicSizes& sizes_;
  struct Memory;
  std::unique_ptr<Memory> memory_;  ///< Of what was inferred.
};

}  // namespace taso
