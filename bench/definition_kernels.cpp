// definition_kernels: how long kernels made of definitions take (runtime/cpu/definition.cpp) beside those written by
// hand and the evaluation in double, for some operators; and the same of operators of a user, which have no other
// kernels. Writes a markdown table. Median of seven executions, one thread, operands in the caches as they fall.
// usage: definition_kernels [TEXT]: only graphs that contain the text.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>

#include "bench/kernel_time.h"
#include "graph/graph_text.h"
#include "operators/registry.h"
#include "runtime/kernel.h"
#include "runtime/lowering.h"
#include "tools/specs.h"

namespace taso {
namespace {

constexpr const char* own_operators = R"(
operator swish(x[D..]) -> [D..]
  out[I..] = x[I..] * sigmoid(x[I..])
operator gelu_by_tanh(x[D..]) -> [D..]
  out[I..] = 0.5 * x[I..] * (1 + tanh(0.7978845608 * (x[I..] + 0.044715 * x[I..] * x[I..] * x[I..])))
operator log_softmax(x[A.., n]) -> [A.., n]
  let top[I.. < A] = max(t < n) x[I.., t]
  let total[I.. < A] = sum(t < n) exp(x[I.., t] - top[I..])
  out[I.., i] = x[I.., i] - top[I..] - log(total[I..])
operator own_softmax(x[A.., n]) -> [A.., n]
  let top[I.. < A] = max(t < n) x[I.., t]
  let power[I.. < A, t < n] = exp(x[I.., t] - top[I..])
  let total[I.. < A] = sum(t < n) power[I.., t]
  out[I.., i] = power[I.., i] / total[I..]
operator rms(x[A.., n], scale[n]) -> [A.., n]
  let square_mean[I.. < A] = (sum(t < n) square(x[I.., t])) / n
  out[I.., i] = x[I.., i] / sqrt(square_mean[I..] + 0.00001) * scale[i]
operator l2_of_columns(x[n, m]) -> [m]
  out[j] = sqrt(sum(i < n) square(x[i, j]))
operator two_halves(x[D.., n]) -> [D.., n]
  out[I.., i] = if 2 * i < n then x[I.., i] else 0.5 * x[I.., i]
operator damped_above(x[D.., m, n]) -> [D.., m, n]
  out[I.., i, j] = if j <= i then x[I.., i, j] else 0.5 * x[I.., i, j]
operator causal_softmax(x[D.., m, n]) -> [D.., m, n]
  let s[I.. < D, i < m, j < n] = if j <= i then x[I.., i, j] else x[I.., i, j] - 10000
  let top[I.. < D, i < m] = max(j < n) s[I.., i, j]
  let power[I.. < D, i < m, j < n] = exp(s[I.., i, j] - top[I.., i])
  let total[I.. < D, i < m] = sum(j < n) power[I.., i, j]
  out[I.., i, j] = power[I.., i, j] / total[I.., i]
)";

constexpr const char* graphs[] = {
    "input x f32[256, 1024]\noutput relu(x)\n",
    "input x f32[256, 1024]\noutput gelu(x)\n",
    "input x f32[256, 1024]\ninput y f32[1024]\noutput add(x, broadcast(y; shape=[256, 1024]))\n",
    "input x f32[256, 1024]\noutput softmax(x)\n",
    "input x f32[256, 1024]\noutput own_softmax(x)\n",
    "input x f32[256, 1024]\nweight s f32[1024]\nweight b f32[1024]\noutput layer_norm(x, s, b)\n",
    "input x f32[32768, 8]\nweight s f32[8]\nweight b f32[8]\noutput layer_norm(x, s, b)\n",
    "input x f32[16384, 16]\nweight s f32[16]\nweight b f32[16]\noutput layer_norm(x, s, b)\n",
    "input x f32[8192, 32]\nweight s f32[32]\nweight b f32[32]\noutput layer_norm(x, s, b)\n",
    "input x f32[4096, 64]\nweight s f32[64]\nweight b f32[64]\noutput layer_norm(x, s, b)\n",
    "input x f32[2621, 100]\nweight s f32[100]\nweight b f32[100]\noutput layer_norm(x, s, b)\n",
    "input x f32[1024, 256]\nweight s f32[256]\nweight b f32[256]\noutput layer_norm(x, s, b)\n",
    "input x f32[512, 512]\nweight s f32[512]\nweight b f32[512]\noutput layer_norm(x, s, b)\n",
    "input x f32[32768, 8]\noutput softmax(x)\n",
    "input x f32[16384, 16]\noutput softmax(x)\n",
    "input x f32[8192, 32]\noutput softmax(x)\n",
    "input x f32[4096, 64]\noutput softmax(x)\n",
    "input x f32[2621, 100]\noutput softmax(x)\n",
    "input x f32[1024, 256]\noutput softmax(x)\n",
    "input x f32[512, 512]\noutput softmax(x)\n",
    "input x f32[256, 1024]\nweight s f32[1024]\noutput rms_norm(x, s)\n",
    "input x f32[2, 64, 32, 32]\nweight s f32[64]\nweight b f32[64]\noutput group_norm(x, s, b; groups=8)\n",
    "input x f32[2, 64, 32, 32]\nweight s f32[64]\nweight b f32[64]\noutput group_norm(x, s, b; groups=64)\n",
    "input x f32[2, 64, 32, 32]\nweight s f32[64]\nweight b f32[64]\nweight m f32[64]\nweight v f32[64]\n"
    "output batch_norm(x, s, b, m, v)\n",
    "input x f32[256, 1024]\noutput reduce_sum(x; axes=[-1])\n",
    "input x f32[256, 1024]\noutput reduce_sum(x; axes=[-2])\n",
    "input x f32[256, 1024]\noutput reduce_max(x; axes=[-1])\n",
    "input x f32[1, 64, 56, 56]\noutput max_pool2d(x; kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])\n",
    "input x f32[1, 64, 56, 56]\noutput lrn(x; size=5)\n",
    "input x f32[128, 256]\nweight w f32[256, 128]\noutput matmul(x, w)\n",
    "input x f32[1, 16, 28, 28]\nweight w f32[16, 16, 3, 3]\noutput conv2d(x, w; pads=[1, 1, 1, 1])\n",
    "input x f32[256, 1024]\noutput swish(x)\n",
    "input x f32[256, 1024]\noutput gelu_by_tanh(x)\n",
    "input x f32[256, 1024]\noutput log_softmax(x)\n",
    "input x f32[256, 1024]\nweight s f32[1024]\noutput rms(x, s)\n",
    "input x f32[256, 1024]\noutput l2_of_columns(x)\n",
    "input x f32[256, 1024]\noutput two_halves(x)\n",
    "input x f32[4, 256, 256]\noutput damped_above(x)\n",
    "input x f32[4, 256, 256]\noutput causal_softmax(x)\n",
};

int run(std::string_view wanted) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  const auto shipped = tools::load_operators(common);
  if (!shipped) return fmt::print(stderr, "definition_kernels: {}\n", shipped.error().to_string()), 1;
  const auto operators = OperatorRegistry::parse(own_operators, "own.op", &*shipped);
  if (!operators) return fmt::print(stderr, "definition_kernels: {}\n", operators.error().to_string()), 1;
  const KernelLibrary library(*operators, KernelSet::cpu);
  fmt::print("| operator | written by hand, us | of the definition, us | in double, us |\n|---|---:|---:|---:|\n");
  for (const char* text : graphs) {
    if (std::string_view(text).find(wanted) == std::string_view::npos) continue;
    const auto graph = parse_graph(text, "graph", *operators);
    if (!graph) return fmt::print(stderr, "definition_kernels: {}\n", graph.error().to_string()), 1;
    const auto lowered = lower(*graph, *operators, {.channels_last = false});
    if (!lowered) return fmt::print(stderr, "definition_kernels: {}\n", lowered.error().to_string()), 1;
    const KernelRequest& request = lowered->steps.back().kernel->request;
    std::optional<double> by_hand, of_definition, in_double;
    for (const auto& [name, offer] : library.offers(request)) {
      if (!offer.kernel) continue;
      std::optional<double>& place = name == "own definition" ? of_definition
                                     : name == "reference"    ? in_double
                                                              : by_hand;
      if (!place) place = kernel_microseconds(*offer.kernel, request);
    }
    const auto cell = [](const std::optional<double>& time) { return time ? fmt::format("{:.0f}", *time) : "-"; };
    const std::string key = request.key();
    fmt::print("| `{}` | {} | {} | {} |\n", key.substr(0, key.rfind("; threads")), cell(by_hand), cell(of_definition),
               cell(in_double));
  }
  return 0;
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) { return taso::run(argc > 1 ? argv[1] : ""); }
