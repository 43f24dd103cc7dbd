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

/// Imports the original, applies every step where it says, writes the result and compares it byte for byte with the
/// optimized file (and its external data). Uses the importer, the application of rules and the exporter (which
/// computes weights from the definitions); of the search nothing. Whether the rules are true is another question.
/// An error of code not_proved says at which step, or in which file, the certificate does not hold; bad_input, which
/// file cannot be read. `temporary` is an existing folder for the repeated result.
[[nodiscard]] Expected<Replay> replay(const Certificate& certificate, const std::string& original,
                                      const std::string& optimized, const OperatorRegistry& registry,
                                      const std::string& temporary);

}  // namespace taso
