/// What is known of the shapes of outputs whose extents depend on elements: as many as a mask chooses, as a list says.
/// Internal to onnx_io: includes protobuf.
#pragma once

#include <vector>

#include "onnx_io/import.h"

namespace taso {

/// A tensor of a known rank and element type, of which not all extents follow from those of the node's inputs.
struct OpenOutput {
  ElementType element = ElementType::other;
  std::vector<StatedExtent> extents;
};

/// The outputs of a node, by position, as ONNX's own operators have them (NonZero, Compress, Unique,
/// NonMaxSuppression; TopK, Range, Slice, Reshape, Expand, ... where what says how much is computed). Empty: of an
/// operator that is not of these, or of inputs of which too little is known.
[[nodiscard]] std::vector<OpenOutput> open_outputs(NodeContext& context);

}  // namespace taso
