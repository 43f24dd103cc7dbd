/// A scan of an ONNX file on the level of protobuf's wire format, which takes the weights out before parsing.
///
/// The parsed message (the skeleton) is the whole model but for the bytes of large tensors; these stay in the mapped
/// file. So a model of any size is read without copying its weights, and protobuf's 2 GiB limit concerns the
/// skeleton alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/status.h"
#include "support/wire.h"

namespace taso::wire {

/// The data of one tensor, taken out of the skeleton.
struct TakenData {
  std::span<const std::byte> bytes;
  /// Field of TensorProto that held it: 9 (raw_data) or 4 (float_data, packed: the same little-endian bytes).
  int field = 9;
};

/// A model without its large tensors.
struct Skeleton {
  std::string bytes;                                                    ///< A serialized ModelProto.
  std::map<std::size_t, TakenData> initializers;                        ///< By position among graph.initializer.
  std::map<std::pair<std::size_t, std::size_t>, TakenData> attributes;  ///< By (node, attribute) position: attribute.t.
  std::map<std::size_t, std::span<const std::byte>> nodes;              ///< Original bytes of nodes in `attributes`.
};

/// Takes every tensor payload of at least `minimum` bytes out of the graph's initializers and its nodes' tensor
/// attributes. bad_input ("truncated", "not an ONNX model") if the bytes are not a protobuf message.
[[nodiscard]] Expected<Skeleton> take_weights_out(std::span<const std::byte> file, const std::string& path,
                                                  std::size_t minimum = 256);

}  // namespace taso::wire
