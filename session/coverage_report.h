/// How much of models is understood, and why the rest is not: what `taso-opt --coverage` tells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "certificate/symbolic_model.h"
#include "onnx_io/model.h"
#include "operators/coverage.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// What is understood of one model, as an optimization would find it.
struct ModelCoverage {
  std::string path;
  std::string error;       ///< Why the file cannot be read; nothing else is set then.
  std::int64_t nodes = 0;  ///< Of the file.
  Coverage coverage;
  std::string sizes;    ///< Of symbolic extents, for which the rest is said: "batch=2 length=128"; empty: none.
  std::string problem;  ///< Why symbolic extents cannot be kept open; empty: they can, or there are none.
  std::int64_t fixed_nodes = 0;  ///< Nodes that are understood, but that no step may touch at all sizes.
};

/// The files `*.onnx` of each folder and what is below it, in alphabetical order, and every other path as it is.
/// Fails with bad_input where a folder cannot be read or has no such file.
[[nodiscard]] Expected<std::vector<std::string>> models_of(const std::vector<std::string>& paths);

/// Reads a model as `taso-opt` does, and nothing but that.
[[nodiscard]] ModelCoverage coverage_of_model(const std::string& path, const OperatorRegistry& registry,
                                              const ImportOptions& import, const SymbolSizes& sizes,
                                              const SymbolRanges& ranges);

/// For people: a line per model, below it the first `causes` reasons; after several models a line with sums. The same
/// facts for programs: a list, with the entry "coverage" of reports (optimizer/report.h).
[[nodiscard]] std::string to_text(const std::vector<ModelCoverage>& models, std::size_t causes);
[[nodiscard]] std::string to_json(const std::vector<ModelCoverage>& models);

}  // namespace taso
