// Models with symbolic extents, through the programs.
#pragma once

#include "tests/acceptance/partly_understood.h"

namespace taso::acceptance {

// Models with symbolic extents: one file, optimized, for all sizes.
class Symbolic : public Carried {
 protected:
  // Optimizes with the extents left symbolic, checks the certificate, and compares with the original at every one of
  // these shapes of the inputs.
  onnx::ModelProto optimize_for_all(const onnx::ModelProto& model, const std::vector<std::vector<std::string>>& shapes,
                                    const std::vector<std::string>& options = {}) {
    const onnx::ModelProto result = run_optimizer(model, options);
    for (const std::vector<std::string>& inputs : shapes) {
      std::vector<std::string> arguments;
      for (const std::string& input : inputs) arguments.insert(arguments.end(), {"--input-shape", input});
      compare(arguments);
    }
    EXPECT_EQ(result.graph().input(0).SerializeAsString(), model.graph().input(0).SerializeAsString());
    EXPECT_EQ(result.graph().output(0).SerializeAsString(), model.graph().output(0).SerializeAsString());
    return result;
  }
};

}  // namespace taso::acceptance
