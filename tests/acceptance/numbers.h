/// Contents of weights for models that tests make.
#pragma once

#include <cstdint>
#include <vector>

namespace taso::acceptance {

/// `count` numbers from `first` on, 0.03 apart, in an order that repeats after 29.
[[nodiscard]] inline std::vector<float> numbers(std::int64_t count, float first = -0.4F) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(first + 0.03F * static_cast<float>(i * 7 % 29));
  return values;
}

}  // namespace taso::acceptance
