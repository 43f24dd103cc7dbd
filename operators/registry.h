/// Operators as loaded from specification files (*.op): the one definition from which types, values and
/// costs follow. Grammar and meaning: docs/spec-language.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "operators/definition.h"
#include "support/status.h"

namespace taso {

class NodeMaps;  // operators/node_maps.h

/// Arithmetic and traffic of one operator application, derived from its definition.
struct Work {
  double flops = 0;          ///< Scalar additions, multiplications, divisions, comparisons, function calls.
  double bytes_read = 0;     ///< Each input once.
  double bytes_written = 0;  ///< Each output once.
};

/// What is done with declared facts, domains and laws of functions that are loaded.
enum class Trials : std::uint8_t {
  made,     ///< A false one is an error (operators/function_laws.h).
  omitted,  ///< All are believed: for tests that ask what trials are for.
};

/// All operators known to a run. Immutable after loading; shared by reference.
class OperatorRegistry final : public OperatorCatalog {
 public:
  /// Loads every *.op file of a folder, in name order, on top of the operators already in `base`, and then the maps of
  /// the folder `onnx` beside it, if there is one.
  [[nodiscard]] static Expected<OperatorRegistry> load(const std::string& folder,
                                                       const OperatorRegistry* base = nullptr);
  /// Parses one text (tests, taso-verify on a single file) on top of the operators already in `base`.
  [[nodiscard]] static Expected<OperatorRegistry> parse(std::string_view text, const std::string& file,
                                                        const OperatorRegistry* base = nullptr,
                                                        Trials trials = Trials::made);

  /// `base` with the maps (operators/node_maps.h) of every *.map file of a folder, in name order.
  [[nodiscard]] static Expected<OperatorRegistry> load_maps(const std::string& folder, const OperatorRegistry& base);
  /// The same with the maps of one text.
  [[nodiscard]] static Expected<OperatorRegistry> parse_maps(std::string_view text, const std::string& file,
                                                             const OperatorRegistry& base);

  [[nodiscard]] const OperatorDefinition* find(std::string_view op) const;
  /// Names in alphabetical order.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] const FunctionDefinition* find_function(std::string_view name) const;
  [[nodiscard]] const std::map<std::string, FunctionDefinition, std::less<>>& functions() const { return functions_; }
  [[nodiscard]] const std::map<std::string, SizeFunction, std::less<>>& size_functions() const {
    return size_functions_;
  }

  /// What nodes of models stand for operators, besides those that programs know.
  [[nodiscard]] const NodeMaps& node_maps() const;

  [[nodiscard]] bool defines(std::string_view op) const override;
  [[nodiscard]] const OperatorSignature* signature(std::string_view op) const override;
  /// An integer given for a real attribute becomes a real; lists whose length the definition fixes have it. That an
  /// `axis` is negative or an extent fits is for infer(), since shapes are not known here.
  [[nodiscard]] Expected<Attributes> complete(std::string_view op, const Attributes& attributes) const override;
  [[nodiscard]] Expected<std::vector<TensorType>> infer(std::string_view op, const Attributes& attributes,
                                                        std::span<const TensorType> inputs) const override;
  /// Whether infer() succeeds, for searches that try many types: cheaper where it does not.
  [[nodiscard]] bool accepts(std::string_view op, const Attributes& attributes,
                             std::span<const TensorType> inputs) const;
  /// The same with each of these values as attribute `name`: what the others decide is found out once. The other
  /// attributes are complete.
  [[nodiscard]] std::vector<bool> accepted(std::string_view op, const Attributes& attributes,
                                           std::span<const TensorType> inputs, const std::string& name,
                                           std::span<const AttributeValue> values) const;
  /// What infer() does for an operator, as text: its axes, attributes, sizes and requirements, and the size functions
  /// that these use. Two definitions with the same text infer the same types. Empty if there is no such operator.
  [[nodiscard]] std::string typing_text(std::string_view op) const;
  [[nodiscard]] std::size_t output_count(std::string_view op, const Attributes& attributes) const override;
  [[nodiscard]] bool is_commutative(std::string_view op) const override;
  [[nodiscard]] bool is_associative(std::string_view op) const override;
  [[nodiscard]] const PieceAttributes* pieces(std::string_view op) const override;
  [[nodiscard]] bool is_function(std::string_view name) const override;
  /// Of an abbreviation: it divides by numbers only, and calls such functions.
  [[nodiscard]] bool is_total_function(std::string_view name) const override;

  /// Per input: its integers are indices of an axis of this extent, as the definition reads them; 0 where it does not
  /// say. Empty for what infer() does not accept.
  [[nodiscard]] std::vector<std::int64_t> index_bounds(std::string_view op, const Attributes& attributes,
                                                       std::span<const TensorType> inputs) const;

  /// Arithmetic and traffic of an application that infer() accepts.
  [[nodiscard]] Expected<Work> work(std::string_view op, const Attributes& attributes,
                                    std::span<const TensorType> inputs) const;

 private:
  /// Parses and checks (text, file) pairs together.
  [[nodiscard]] Status add(const std::vector<std::pair<std::string, std::string>>& texts, Trials trials);

  std::map<std::string, OperatorDefinition, std::less<>> operators_;
  std::map<std::string, FunctionDefinition, std::less<>> functions_;
  std::map<std::string, SizeFunction, std::less<>> size_functions_;
  std::shared_ptr<const NodeMaps> node_maps_;  // null: none
};

}  // namespace taso
