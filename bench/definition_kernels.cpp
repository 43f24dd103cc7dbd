// definition_kernels: how long kernels made of definitions take (runtime/cpu/definition.cpp) beside those written by
// hand and the evaluation in double, for some operators; and the same of operators of a user, which have no other
// kernels. Writes a markdown table. Median of seven executions, one thread, operands in the caches as they fall.
// usage: definition_kernels [TEXT]: only graphs that contain the text.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph_text.h"
#include "operators/registry.h"
#include "runtime/aligned_buffer.h"
#include "runtime/kernel.h"
#include "runtime/lowering.h"
#include "support/random.h"
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
)";

constexpr const char* graphs[] = {
    "input x f32[256, 1024]\noutput relu(x)\n",
    "input x f32[256, 1024]\noutput gelu(x)\n",
    "input x f32[256, 1024]\ninput y f32[1024]\noutput add(x, broadcast(y; shape=[256, 1024]))\n",
    "input x f32[256, 1024]\noutput softmax(x)\n",
    "input x f32[256, 1024]\noutput own_softmax(x)\n",
    "input x f32[256, 1024]\nweight s f32[1024]\nweight b f32[1024]\noutput layer_norm(x, s, b)\n",
    "input x f32[16384, 16]\nweight s f32[16]\nweight b f32[16]\noutput layer_norm(x, s, b)\n",
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
};

double microseconds(const Kernel& kernel, const KernelRequest& request) {
  Random random(1, "operands");
  std::vector<AlignedBuffer> buffers;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    AlignedBuffer plain(static_cast<std::size_t>(request.inputs[i].type.bytes()));
    for (std::int64_t k = 0; k < request.inputs[i].type.elements(); ++k) {
      // Weights are positive, as a variance is.
      const auto value = static_cast<float>(request.inputs[i].weight ? random.uniform() : 2 * random.uniform() - 1);
      std::memcpy(plain.data() + static_cast<std::size_t>(k) * sizeof value, &value, sizeof value);
    }
    if (request.inputs[i].weight && !kernel.packed_format(i).empty()) {
      AlignedBuffer packed(kernel.packed_bytes(i));
      kernel.pack(i, plain.data(), packed.data());
      buffers.push_back(std::move(packed));
    } else {
      buffers.push_back(std::move(plain));
    }
  }
  for (const AlignedBuffer& buffer : buffers) inputs.push_back(buffer.data());
  std::vector<AlignedBuffer> results;
  for (const Operand& output : request.outputs) results.emplace_back(static_cast<std::size_t>(output.type.bytes()));
  for (AlignedBuffer& result : results) outputs.push_back(result.data());
  AlignedBuffer workspace(kernel.workspace_bytes());
  std::vector<double> times;
  for (int sample = 0; sample < 8; ++sample) {
    const auto start = std::chrono::steady_clock::now();
    if (const Status done = kernel.execute({inputs, outputs, workspace.data()}); !done) return -1;
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (sample > 0) times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + 3, times.end());
  return times[3];
}

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
      if (!place) place = microseconds(*offer.kernel, request);
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
