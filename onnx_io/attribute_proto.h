/// Attributes of new nodes as messages. Internal to onnx_io: includes protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include "onnx_io/builder.h"

namespace taso {

/// Appends an attribute to a node.
void append_attribute(onnx::NodeProto& node, const OnnxAttribute& attribute);

}  // namespace taso
