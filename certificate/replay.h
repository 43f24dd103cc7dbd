/// Repeats what a certificate says, from the original file to the optimized one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "certificate/certificate.h"
#include "graph/pattern.h"
#include "onnx_io/model.h"
#include "operators/registry.h"

namespace taso {

/// What was repeated.
struct Replay {
  std::vector<Substitution> rules;           ///< Those of the certificate that steps use, in its order.
  std::map<std::string, std::size_t> uses;   ///< Per rule.
  std::vector<std::string> allowed_domains;  ///< As the certificate has them: the result's runtime must have these.
  std::optional<SymbolRanges> symbols;       ///< The ranges for which the result is the original.
};

/// Repeats steps in `graph`, which is in normal form, and counts them in `uses`. With `taken`, integers that a step
/// does not say are read from the graph (with_sizes_of in certificate/occurrence.h), and the matches as they then are
/// are appended there. An error of code not_proved says at which step what does not fit; `failed`, if given, gets its
/// number.
[[nodiscard]] Expected<Graph> repeat_steps(Graph graph, const std::vector<Substitution>& rules,
                                           const std::vector<CertificateStep>& steps, const OperatorCatalog& catalog,
                                           std::map<std::string, std::size_t>& uses,
                                           std::vector<Match>* taken = nullptr, std::size_t* failed = nullptr);

/// Repeats what was done in subgraphs of a model, each from its graph in normal form: the model with them in the place
/// of its own. Counts uses of rules. An error of code not_proved names the subgraph that is not there or not changed,
/// or the step that does not fit in it.
[[nodiscard]] Expected<Model> repeat_in_bodies(Model model, const std::vector<BodySteps>& bodies,
                                               const std::vector<Substitution>& rules, const OperatorRegistry& registry,
                                               std::map<std::string, std::size_t>& uses);

/// Imports the original, applies every step where it says, writes the result and compares it byte for byte with the
/// optimized file (and its external data). Uses the importer, the application of rules and the exporter (which
/// computes weights from the definitions); of the search nothing. Steps in a model with symbolic extents must hold at
/// all sizes in the certificate's ranges (certificate/symbolic_model.h). Whether the rules are true is another
/// question. An error of code not_proved says at which step, or in which file and tensor or node, the certificate does
/// not hold; bad_input, which file cannot be read. `temporary` is an existing folder for the repeated result.
[[nodiscard]] Expected<Replay> replay(const Certificate& certificate, const std::string& original,
                                      const std::string& optimized, const OperatorRegistry& registry,
                                      const std::string& temporary);

}  // namespace taso
