#include "verifier/magnitude.h"

#include <algorithm>
#include <cmath>

#include "operators/lowered_body.h"

namespace taso {
namespace {

constexpr double magnitudes[] = {1.0 / 256, 1, 256};
constexpr double least_factor = 4;
constexpr std::size_t most_instances = 6, most_assignments = 243;

// Upper bounds of absolute values.
class MagnitudeRing {
 public:
  using Element = double;
  static constexpr bool folds_extrema = true;
  static double number(double value) { return std::abs(value); }
  static double add(double a, double b) { return a + b; }
  static double subtract(double a, double b) { return a + b; }
  static double multiply(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }
  static double divide(double a, double b) { return a == 0 ? 0 : a / b; }
  static double call(const FunctionDefinition& function, double x) {
    const double up = std::abs(function.real(x)), down = std::abs(function.real(-x));
    return std::isnan(down) ? up : std::max(up, down);
  }
  static double call(const FunctionDefinition& function, double x, double y) { return std::abs(function.real2(x, y)); }
  static double extremum(bool /*maximum*/, std::span<const double> values) {
    return *std::max_element(values.begin(), values.end());
  }
  static double infinity(bool /*negative*/) { return 0; }
  [[nodiscard]] static Status status() { return {}; }
};

}  // namespace

std::optional<Growth> find_growth(const std::vector<TypedInstance>& instances) {
  std::optional<Growth> worst;
  const std::size_t step = std::max<std::size_t>(1, instances.size() / most_instances);
  for (std::size_t at = 0; at < instances.size(); at += step) {
    const TypedInstance& typed = instances[at];
    std::size_t assignments = 1;
    for (std::size_t v = 0; v < typed.instance.variables.size() && assignments < most_assignments; ++v)
      assignments *= std::size(magnitudes);
    for (std::size_t assignment = 0; assignment < assignments; ++assignment) {
      std::vector<RingTensor<double>> inputs;
      std::size_t digits = assignment;
      double largest = 0;
      for (const TensorType& type : typed.instance.variables) {
        RingTensor<double> tensor;
        tensor.shape = type.shape;
        const double magnitude = magnitudes[digits % std::size(magnitudes)];
        digits /= std::size(magnitudes);
        if (type.element == ElementType::f32) {
          tensor.elements.assign(static_cast<std::size_t>(type.elements()), magnitude);
          largest = std::max(largest, magnitude);
        } else {
          tensor.integers.assign(static_cast<std::size_t>(type.elements()), 0);
        }
        inputs.push_back(std::move(tensor));
      }
      MagnitudeRing ring;
      using Results = std::vector<RingTensor<double>>;
      const auto source = typed.source.run(ring, inputs, [&](const OperatorInstance&, const Results& results) {
        for (const auto& result : results)
          for (const double element : result.elements) largest = std::max(largest, element);
      });
      if (!source || !std::isfinite(largest) || largest <= 0) continue;
      const auto target = typed.target.run(ring, inputs, [&](const OperatorInstance& instance, const Results& results) {
        for (const auto& result : results)
          for (const double element : result.elements)
            if (element >= least_factor * largest && (!worst || element / largest > worst->factor))
              worst = Growth{instance.body().op, element / largest};
      });
      if (!target) continue;
    }
  }
  return worst;
}

}  // namespace taso
