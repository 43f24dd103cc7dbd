/// Small models that rules rewrite, with certificates of it: where fuzz_certificate starts.
#pragma once

#include <string>
#include <vector>

#include "certificate/certificate.h"

namespace taso::test {

/// The files are FOLDER/NAME.onnx and FOLDER/NAME.optimized.onnx.
struct CertifiedModel {
  std::string name;
  Certificate certificate;
};

/// Writes the models and what some applications of the shipped rules make of them: in a graph of fixed extents, at all
/// sizes of symbolic ones, and in a subgraph of a node of control flow. Ends the program if something fails.
[[nodiscard]] std::vector<CertifiedModel> write_certified_models(const std::string& folder);

}  // namespace taso::test
