/// Models as command lines of measuring programs name them.
#pragma once

#include <string>

#include "onnx_io/model.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// A model from a file, whose weights need not be there, or an example model that is built here without weights, with
/// options: "resnet152:wider=4:batch=8", "llama_7b:extent=512" (batch, depth, extent, narrower, wider: what
/// build-models calls so). Fails (usage) for another option.
[[nodiscard]] Expected<Model> read_model(const std::string& text, const OperatorRegistry& registry);

}  // namespace taso
