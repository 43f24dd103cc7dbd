// joined_definitions: how long operators take that are computed by one kernel from their definitions together
// (runtime/cpu/definition.cpp), beside the kernels that there are without such ones: every operator's own, and what
// else is one kernel (elements, rows, moves). Writes a markdown table. Median of seven executions of each kernel, one
// thread, operands in the caches as they fall.
// usage: joined_definitions [TEXT]: only graphs that contain the text.
#include <fmt/core.h>

#include <string>
#include <string_view>

#include "bench/kernel_time.h"
#include "graph/graph_text.h"
#include "operators/registry.h"
#include "runtime/cpu/kernels.h"
#include "runtime/executor.h"
#include "runtime/fusion.h"
#include "runtime/lowering.h"
#include "tools/specs.h"

namespace taso {
namespace {

constexpr const char* own_operators = R"(
operator own_softmax(x[A.., n]) -> [A.., n]
  let top[I.. < A] = max(t < n) x[I.., t]
  let power[I.. < A, t < n] = exp(x[I.., t] - top[I..])
  let total[I.. < A] = sum(t < n) power[I.., t]
  out[I.., i] = power[I.., i] / total[I..]
operator rms(x[A.., n], scale[n]) -> [A.., n]
  let square_mean[I.. < A] = (sum(t < n) square(x[I.., t])) / n
  out[I.., i] = x[I.., i] / sqrt(square_mean[I..] + 0.00001) * scale[i]
)";

/// Where the extents of a row and the number of rows are to be filled in: R, N, and half of N, H.
constexpr const char* forms[] = {
    "input x f32[R, N]\ninput s f32[N]\noutput mul(own_softmax(x), broadcast(s; shape=[R, N]))\n",
    "input x f32[R, N]\ninput y f32[R, N]\nweight s f32[N]\nz = add(x, y)\noutput z\noutput rms(z, s)\n",
    "input x f32[R, N]\noutput div(x, broadcast(sqrt(reduce_sum(mul(x, x); axes=[-1])); shape=[R, N]))\n",
    "input x f32[R, N]\noutput sub(x, broadcast(reduce_mean(x; axes=[-1]); shape=[R, N]))\n",
    "input x f32[R, N]\ninput y f32[R, N]\noutput reduce_sum(mul(x, y); axes=[-1])\n",
    "input x f32[R, N]\noutput relu(reduce_max(x; axes=[-1]))\n",
    "input x f32[R, N]\noutput sub(x, broadcast(log(reduce_sum(exp(x); axes=[-1])); shape=[R, N]))\n",
    "input x f32[R, N]\na, b = split(x; axis=-1, sizes=[H, H])\noutput mul(silu(a), b)\n",
    "input x f32[R, N]\na, b = split(x; axis=-1, sizes=[H, H])\noutput mul(a, b)\n",
    "input x f32[R, N]\noutput relu(slice(x; starts=[0, 0], sizes=[R, H], steps=[1, 1]))\n",
    "input x f32[R, N]\ninput s f32[R, 1]\noutput mul(x, broadcast(sigmoid(s); shape=[R, N]))\n",
    "input x f32[R, N]\ninput y f32[R, N]\noutput tanh(softmax(mul(x, broadcast(reduce_sum(y; axes=[-1]); shape=[R, "
    "N])); axis=-1))\n",
    "input x f32[R, N]\ninput y f32[R, N]\noutput reduce_sum(mul(softmax(x; axis=-1), y); axes=[-1])\n",
};
struct Extents {
  int rows, row;
};
constexpr Extents extents[] = {{64, 64}, {256, 1024}, {16384, 16}, {2048, 4096}, {8, 16384}};

std::string filled(std::string text, const Extents& by) {
  for (const auto& [letter, number] : {std::pair{'R', by.rows}, {'N', by.row}, {'H', by.row / 2}})
    for (std::size_t at = 0; (at = text.find(letter, at)) != std::string::npos;)
      text.replace(at, 1, std::to_string(number));
  return text;
}

double microseconds(const LoweredGraph& lowered, const KernelLibrary& library) {
  double sum = 0;
  for (const LoweredStep& step : lowered.steps) {
    const auto kernel = library.create(step.kernel->request);
    if (kernel) sum += kernel_microseconds(**kernel, step.kernel->request);
  }
  return sum;
}

int run(std::string_view wanted) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  const auto shipped = tools::load_operators(common);
  if (!shipped) return fmt::print(stderr, "joined_definitions: {}\n", shipped.error().to_string()), 1;
  const auto operators = OperatorRegistry::parse(own_operators, "own.op", &*shipped);
  if (!operators) return fmt::print(stderr, "joined_definitions: {}\n", operators.error().to_string()), 1;
  const KernelLibrary library(*operators, KernelSet::cpu);
  const auto without = [&](const KernelRequest& request) {
    return cpu::fused_elements(request, *operators).kernel || cpu::fused_moves(request, *operators).kernel;
  };
  fmt::print("| graph | rows | kernels before | us | kernels | us | ratio |\n|---|---:|---:|---:|---:|---:|---:|\n");
  for (const std::string_view form : forms) {
    if (form.find(wanted) == std::string_view::npos) continue;
    for (const Extents& some : extents) {
      const auto graph = parse_graph(filled(std::string(form), some), "graph", *operators);
      if (!graph) return fmt::print(stderr, "joined_definitions: {}\n", graph.error().to_string()), 1;
      const auto lowered = lower(*graph, *operators, {.channels_last = false});
      if (!lowered) return fmt::print(stderr, "joined_definitions: {}\n", lowered.error().to_string()), 1;
      const LoweredGraph before = fuse_steps(*lowered, {.fuses = without}), now = fused_for(*lowered, library);
      const double took = microseconds(before, library), takes = microseconds(now, library);
      std::string text(form.substr(form.rfind("output ") + 7));
      text.pop_back();
      fmt::print("| `{}` | {} x {} | {} | {:.0f} | {} | {:.0f} | {:.2f} |\n", text, some.rows, some.row,
                 before.steps.size(), took, now.steps.size(), takes, took / takes);
    }
  }
  return 0;
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) { return taso::run(argc > 1 ? argv[1] : ""); }
