// Functions of ONNX as they are computed in f32, compared with double precision: also where what they are composed of
// would cancel, or would be subnormal, one after the other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "onnx_io/builder.h"
#include "onnx_io/model.h"
#include "runtime/executor.h"
#include "tests/support/shipped.h"

namespace taso::acceptance {
namespace {

struct OnnxFunction {
  std::string op_type;
  std::function<double(double)> exact;
  std::vector<OnnxAttribute> attributes = {};
  double least = -HUGE_VAL;  ///< Of the argument.
};

double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }

/// x, or factor * (e^(x / scale) - 1) below 0.
double exponential_unit(double x, double factor, double scale) { return x > 0 ? x : factor * std::expm1(x / scale); }

constexpr double selu_alpha = 1.67326319217681884765625, selu_gamma = 1.05070102214813232421875;

const std::vector<OnnxFunction>& onnx_functions() {
  static const std::vector<OnnxFunction> all = {
      {"Acosh", [](double x) { return std::acosh(x); }},
      {"Asin", [](double x) { return std::asin(x); }},
      {"Asinh", [](double x) { return std::asinh(x); }},
      {"Atan", [](double x) { return std::atan(x); }},
      {"Atanh", [](double x) { return std::atanh(x); }},
      {"Celu", [](double x) { return exponential_unit(x, 2, 2); }, {{"alpha", 2.0}}},
      {"Elu", [](double x) { return exponential_unit(x, 1, 1); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Gelu", [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }},
      {"HardSwish", [](double x) { return x * std::fmin(1, std::fmax(0, (x + 3) / 6)); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Mish", [](double x) { return x * std::tanh(softplus(x)); }, {}, -87},  // e^x is subnormal below
      {"Selu", [](double x) { return selu_gamma * exponential_unit(x, selu_alpha, 1); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Sinh", [](double x) { return std::sinh(x); }},
      {"Softplus", softplus},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
  };
  return all;
}

/// All magnitudes and both signs, and closer between -110 and 110.
std::vector<float> arguments() {
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < 0xff800000U; bits += 120011) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isnormal(value)) x.push_back(value);
  }
  for (int i = -22000; i <= 22000; ++i) x.push_back(static_cast<float>(i) * 0.005F + 0.0003F);
  return x;
}

TEST(Accuracy, OfFunctionsThatAreComposed) {
  const KernelLibrary library(test::registry());
  const std::vector<float> x = arguments();
  const Shape shape = {static_cast<std::int64_t>(x.size())};
  for (const OnnxFunction& function : onnx_functions()) {
    ModelBuilder builder(20, "accuracy");
    builder.add_input("x", shape);
    builder.add_node(function.op_type, {"x"}, {"y"}, function.attributes, "node");
    builder.add_output("y", shape);
    const auto model = Model::parse(builder.serialize(), "accuracy.onnx", test::registry());
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    ASSERT_TRUE(model->carried_nodes().empty()) << function.op_type;
    auto executor = Executor::create(model->graph(), library);
    ASSERT_TRUE(executor.ok()) << executor.error().to_string();
    const HostTensor input = HostTensor::of_floats(shape, x);
    const auto outputs = executor->run(std::span(&input, 1));
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    double worst = 0;
    float where = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = function.exact(static_cast<double>(x[i]));
      if (static_cast<double>(x[i]) < function.least || !std::isnormal(static_cast<float>(exact))) continue;
      const double error = std::fabs((static_cast<double>((*outputs)[0].floats()[i]) - exact) / exact);
      if (error <= worst) continue;
      worst = error;
      where = x[i];
    }
    EXPECT_LT(worst, 1e-6) << function.op_type << " at " << where;
  }
}

}  // namespace
}  // namespace taso::acceptance
