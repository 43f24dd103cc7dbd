/// Models that no program may accept.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace taso::acceptance {

struct MalformedModel {
  std::string name;
  std::string bytes;
  /// What the error line must speak of.
  std::string says;
  /// Files beside the model: name and contents. A name that ends in '@' is a symbolic link to the contents.
  std::vector<std::pair<std::string, std::string>> companions;
};

[[nodiscard]] std::vector<MalformedModel> malformed_models();

}  // namespace taso::acceptance
