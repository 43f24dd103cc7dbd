/// Repeats what a certificate says, from the original file to the optimized one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "certificate/certificate.h"
#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso {

/// What was repeated.
struct Replay {
  std::vector<Substitution> rules;          ///< Those of the certificate that steps use, in its order.
  std::map<std::string, std::size_t> uses;  ///< Per rule.
};

/// Repeats steps in `graph`, which is in normal form, and counts them in `uses`. With `anew`, the values of the rules'
/// attribute variables are read from the graph (match_at_same_place): a graph of the same form at other sizes; rules
/// with inequalities between extents are refused then, as they say nothing of sizes that are not tried. An error of
/// code not_proved says at which step what does not fit.
[[nodiscard]] Expected<Graph> repeat_steps(Graph graph, const std::vector<Substitution>& rules,
                                           const std::vector<CertificateStep>& steps, const OperatorCatalog& catalog,
                                           bool anew, std::map<std::string, std::size_t>& uses);

/// Imports the original, applies every step where it says, writes the result and compares it byte for byte with the
/// optimized file (and its external data). Uses the importer, the application of rules and the exporter (which
/// computes weights from the definitions); of the search nothing. A model with symbolic extents is taken through all
/// steps at each of the certificate's sizes. Whether the rules are true is another question. An error of code
/// not_proved says at which step, or in which file, the certificate does not hold; bad_input, which file cannot be
/// read. `temporary` is an existing folder for the repeated result.
[[nodiscard]] Expected<Replay> replay(const Certificate& certificate, const std::string& original,
                                      const std::string& optimized, const OperatorRegistry& registry,
                                      const std::string& temporary);

}  // namespace taso
