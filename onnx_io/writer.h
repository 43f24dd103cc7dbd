/// Writes a model file without holding its weights in memory. Internal to onnx_io: includes protobuf.
#pragma once

#include <cstdint>
#include <string>

#include "onnx_io/export.h"

namespace taso {

/// Writes the document with its graph replaced. The message is put together from serialized parts and from the mapped
/// bytes of weights; sizes are computed first, so that the decision for external data does not depend on a failed
/// attempt.
[[nodiscard]] Expected<SaveReport> write_model(const Document& document, const ImportedModel& imported,
                                               const ExportedGraph& exported, const ImportOptions& import_options,
                                               const std::string& path, const SaveOptions& options);

/// What is written of weights.
enum class Weights : std::uint8_t {
  whole,
  shapes,  ///< Of large ones of type f32 only the shape (ImportOptions::absent_weights).
};

/// Of Weights::shapes: the fewest elements of a weight of which only the shape is written. Small ones may be what an
/// operator needs the numbers of.
inline constexpr std::int64_t smallest_shape = 256;

/// The bytes of the file that write_model writes, with the weights inside: bad_input if these are more than 2 GiB.
[[nodiscard]] Expected<std::string> model_bytes(const Document& document, const ImportedModel& imported,
                                                const ExportedGraph& exported, const ImportOptions& import_options,
                                                Weights weights = Weights::whole);

/// The graph as a message, its weights inside; initializers of the document as they stand in its message.
[[nodiscard]] Expected<onnx::GraphProto> graph_message(const Document& document, const ImportedModel& imported,
                                                       const ExportedGraph& exported);

/// The structural check: names are defined once and before their use, domains imported, outputs defined and typed. Does
/// not depend on the version of the linked ONNX.
[[nodiscard]] Status check_structure(const onnx::ModelProto& header, const onnx::GraphProto& frame,
                                     const ExportedGraph& exported, const Document& document);

}  // namespace taso
