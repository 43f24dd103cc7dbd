/// A model whose inputs have symbolic extents, worked on at all sizes at once.
///
/// The imported graph becomes a graph for all sizes (verifier/symbolic_sizes.h): extents of inputs are symbols,
/// attributes that the importer computed from extents are polynomials in them, and types are inferred anew, so that
/// what the operators require follows for all sizes. A node of which it does not follow is opaque there: no step
/// touches it, and the extents of its outputs are symbols of their own. A step is taken in this graph, so that it holds
/// at all sizes or is refused.
///
/// The model is imported at sample sizes, and the graph made of these (certificate/sampled_graphs.h). The samples
/// follow from the file's hash, and not from anyone who writes a certificate.
///
/// As a second check, steps are repeated with the numbers of each sample, which must be those of the polynomials there,
/// and what is written for all sizes (onnx_io/symbolic_export.h) must be what is written at each. Samples at which
/// different nodes are equal by chance are left out of both, as long as they are fewer than half.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "certificate/certificate.h"
#include "graph/pattern.h"
#include "onnx_io/model.h"
#include "onnx_io/symbolic_constants.h"
#include "operators/registry.h"
#include "support/status.h"
#include "verifier/symbolic_sizes.h"

namespace taso {

struct NotKnown;  // certificate/sampled_graphs.h

/// Key of the entry in a model's metadata that says for which sizes it was optimized, if not for all.
inline constexpr const char* ranges_key = "taso.ranges";

/// A graph for all sizes, and the graphs that it is at the samples.
struct SizedGraph {
  Graph graph;
  std::vector<Graph> samples;          ///< Where numbers are not equal by chance, which may make equal nodes of others.
  std::vector<std::size_t> numbers;    ///< Of the samples: positions in SymbolicModel::samples().
  std::vector<CertificateStep> steps;  ///< That led to it, with the attributes that are the same at all sizes.
};

/// Immutable after load; copies share everything. Not for several threads at once.
class SymbolicModel {
 public:
  /// Takes a model at all sizes within the ranges; symbols without a range are at least 1. An error of code not_proved
  /// says why it cannot be taken so; usage, that `ranges` names what is no symbol of the model.
  [[nodiscard]] static Expected<SymbolicModel> load(const Model& model, const OperatorRegistry& registry,
                                                    const SymbolRanges& ranges);

  /// The ranges of all symbols: those given, within those of the file's metadata.
  [[nodiscard]] const SymbolRanges& ranges() const;
  /// The model at these sizes, if it has the same form there as at the samples; an error of code not_proved, if not.
  [[nodiscard]] Expected<Model> at(const SymbolSizes& sizes) const;
  /// The sizes of the samples.
  [[nodiscard]] const std::vector<SymbolSizes>& samples() const;
  /// Nodes that no step may touch, each with the reason: "node 7 (slice): that ... does not follow".
  [[nodiscard]] const std::vector<std::string>& untouched() const;

  /// The graph, in normal form, that steps make of the model. Integers that a step does not say are read from the nodes
  /// (with_sizes_of in certificate/occurrence.h). An error of code not_proved says at which step what does not follow;
  /// `failed`, if given, gets its number.
  [[nodiscard]] Expected<SizedGraph> repeat(const std::vector<Substitution>& rules,
                                            const std::vector<CertificateStep>& steps,
                                            std::map<std::string, std::size_t>& uses,
                                            std::size_t* failed = nullptr) const;
  /// Whether a file can hold this graph for all sizes.
  [[nodiscard]] Status can_save(const SizedGraph& graph) const;
  /// Writes the file; its metadata names the ranges of symbols that have any.
  [[nodiscard]] Expected<SaveReport> save(const SizedGraph& graph, const std::string& path,
                                          const SaveOptions& options) const;

 private:
  struct State;
  /// Extents that depend on elements, those that are so of themselves first: each time with those behind the ones
  /// before.
  [[nodiscard]] static Expected<std::vector<FreeExtents>> open_extents_of(const Model& model,
                                                                          const SymbolRanges& ranges);
  [[nodiscard]] static Expected<SymbolicModel> load_without_open(const Model& model, const OperatorRegistry& registry,
                                                                 const SymbolRanges& ranges);
  [[nodiscard]] static Expected<SymbolicModel> load_as_it_is(const Model& model, const OperatorRegistry& registry,
                                                             const SymbolRanges& ranges, NotKnown& not_known);
  [[nodiscard]] static Expected<SymbolicModel> load_in_some_way(const Model& model, const OperatorRegistry& registry,
                                                                const SymbolRanges& ranges, bool free_extents);
  [[nodiscard]] std::vector<Model::Sized> sized(const SizedGraph& graph) const;
  std::shared_ptr<const State> state_;
};

/// "height=1:256, width=32:": ranges that are no more than "at least 1" are left out; empty if all are. Names with
/// commas or quotation marks are quoted as in JSON.
[[nodiscard]] std::string to_string(const SymbolRanges& ranges);
/// Parses one, "SYMBOL=LEAST:MOST", "SYMBOL=LEAST:" or "SYMBOL=:MOST".
[[nodiscard]] Expected<std::pair<std::string, SizeRange>> parse_range(const std::string& text);

}  // namespace taso
