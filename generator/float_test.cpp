#include "generator/float_test.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "operators/evaluate.h"
#include "support/random.h"

namespace taso {
namespace {

/// Single precision: every result is rounded to float.
class FloatRing {
 public:
  using Element = float;
  static constexpr bool folds_extrema = true;
  static float number(double value) { return static_cast<float>(value); }
  static float add(float a, float b) { return a + b; }
  static float subtract(float a, float b) { return a - b; }
  static float multiply(float a, float b) { return a * b; }
  static float divide(float a, float b) { return a / b; }
  static float call(const FunctionDefinition& function, float x) { return static_cast<float>(function.real(x)); }
  static float call(const FunctionDefinition& function, float x, float y) {
    return static_cast<float>(function.real2(x, y));
  }
  static float extremum(bool maximum, std::span<const float> values) {
    return maximum ? *std::max_element(values.begin(), values.end()) : *std::min_element(values.begin(), values.end());
  }
  static float infinity(bool negative) {
    return negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  }
  [[nodiscard]] static Status status() { return {}; }
};

double difference(float a, float b) {
  if (std::isfinite(a) && std::isfinite(b)) return std::abs(static_cast<double>(a) - static_cast<double>(b));
  const bool same = std::isnan(a) ? std::isnan(b) : a == b;
  return same ? 0 : std::numeric_limits<double>::infinity();
}

}  // namespace

double float_difference(const GeneralRule& rule, const OperatorRegistry& registry, std::uint64_t seed) {
  constexpr int draws = 4;
  const auto source = instantiate(rule.rule, rule.rule.source, rule.example_types, rule.example_attributes, registry);
  const auto target = instantiate(rule.rule, rule.rule.target, rule.example_types, rule.example_attributes, registry);
  if (!source || !target) return 0;
  Random random(seed, "floats");
  double most = 0;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<RingTensor<float>> inputs;
    for (const TensorType& type : rule.example_types) {
      RingTensor<float> tensor;
      tensor.shape = type.shape;
      tensor.elements.resize(static_cast<std::size_t>(type.elements()));
      // 24 bits, from -1 to 1.
      for (float& element : tensor.elements)
        element = static_cast<float>(static_cast<double>(random.below(1u << 24u)) / (1u << 23u) - 1.0);
      inputs.push_back(std::move(tensor));
    }
    FloatRing ring;
    const auto left = evaluate(*source, registry, ring, inputs);
    const auto right = evaluate(*target, registry, ring, inputs);
    if (!left || !right) return 0;
    for (std::size_t i = 0; i < left->size(); ++i)
      for (std::size_t j = 0; j < (*left)[i].elements.size(); ++j)
        most = std::max(most, difference((*left)[i].elements[j], (*right)[i].elements[j]));
  }
  return most;
}

std::vector<FloatOutlier> float_outliers(const std::vector<GeneralRule>& rules, const OperatorRegistry& registry,
                                         std::uint64_t seed) {
  std::vector<FloatOutlier> result;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const double most = float_difference(rules[i], registry, seed);
    if (most > float_threshold) result.push_back({i, most});
  }
  return result;
}

}  // namespace taso
