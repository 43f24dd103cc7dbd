/// Single tensors in ONNX's TensorProto format (.pb): inputs for taso-run, stored outputs of tests.
#pragma once

#include <memory>
#include <string>

#include "graph/constant.h"
#include "support/status.h"

namespace taso {

/// Reads a TensorProto file. bad_input if it is not one, or if its data does not fit its shape.
[[nodiscard]] Expected<std::shared_ptr<const ConstantData>> load_tensor(const std::string& path);
/// Writes a TensorProto file.
[[nodiscard]] Status save_tensor(const std::string& path, const std::string& name, const ConstantData& tensor);

}  // namespace taso
