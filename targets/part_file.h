/// A part of a graph as an ONNX file of its own.
#pragma once

#include <cstdint>
#include <string>

#include "operators/registry.h"
#include "support/status.h"
#include "targets/runtime_parts.h"
#include "targets/worker_protocol.h"

namespace taso {

/// Seconds that a part takes, very roughly: of a slow core.
[[nodiscard]] double estimated_seconds(double flops, double bytes);

/// So many copies of a part, each with inputs and weights of its own, stand in one file: what a call of the runtime
/// costs besides counts for little then. By what the part computes and moves.
[[nodiscard]] int copies_of(const StandalonePart& part);

/// Writes the file as a model's file of that opset holds the part: weights are initializers, spellings those of the
/// export. Fails where the part has no form there.
[[nodiscard]] Expected<ModelRun> write_part(const StandalonePart& part, int copies, std::int64_t opset,
                                            const OperatorRegistry& registry, const std::string& path);

}  // namespace taso
