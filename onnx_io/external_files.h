/// The files beside a model that hold its external data: inputs that the command line does not name.
#pragma once

#include <string>
#include <vector>

namespace taso {

/// Paths of the external data of a model, each once, in order of first use; subgraphs, functions and attributes count.
/// Nothing is opened but the model itself; none of one that cannot be read, as reading it says why.
[[nodiscard]] std::vector<std::string> external_data_of_model(const std::string& path);
/// The same of a file with one TensorProto.
[[nodiscard]] std::vector<std::string> external_data_of_tensor(const std::string& path);

}  // namespace taso
