#include "optimizer/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/executor.h"
#include "runtime/lowering.h"
#include "runtime/weights.h"

namespace taso {
namespace {

/// An output that changes by less than this, relative to its magnitude, between random inputs shows little.
constexpr double kInsensitive = 1e-3;
/// How many operators are looked behind.
constexpr int kDepth = 16;

/// The one input of a node that is not a weight, if there is just one and its elements are as many as the output's.
std::optional<std::size_t> thread_of(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  if (node.kind != NodeKind::op || node.outputs.size() != 1) return std::nullopt;
  std::optional<std::size_t> place;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (graph.node(node.inputs[i].node).weight_only) continue;
    if (place) return std::nullopt;
    place = i;
  }
  if (!place) return std::nullopt;
  const TensorType& type = graph.type(node.inputs[*place]);
  if (!type.known || type.elements() != graph.type(value).elements()) return std::nullopt;
  return place;
}

/// The tensors behind two outputs from which both graphs do the same.
std::optional<std::pair<Value, Value>> common_tail(const Graph& a, const std::vector<Hash128>& weights_a, Value x,
                                                   const Graph& b, const std::vector<Hash128>& weights_b, Value y) {
  std::optional<std::pair<Value, Value>> found;
  for (int depth = 0; depth < kDepth; ++depth) {
    const auto i = thread_of(a, x), j = thread_of(b, y);
    if (!i || i != j) break;
    const Node &left = a.node(x.node), &right = b.node(y.node);
    if (left.op != right.op || left.attributes != right.attributes || left.inputs.size() != right.inputs.size()) break;
    bool same = true;
    for (std::size_t k = 0; k < left.inputs.size(); ++k)
      same = same && (k == *i || (weights_a[left.inputs[k].node] == weights_b[right.inputs[k].node] &&
                                  left.inputs[k].port == right.inputs[k].port));
    if (!same || a.type(left.inputs[*i]) != b.type(right.inputs[*i])) break;
    x = left.inputs[*i];
    y = right.inputs[*i];
    found = {x, y};
  }
  return found;
}

struct Prepared {
  Graph reference, result;
  std::vector<std::string> names;  ///< Of the tensors compared, which are the outputs of both graphs.
};

Prepared prepare(const Graph& reference, const Graph& result, const std::vector<std::string>& output_names) {
  CutGraph left = cut_at_opaque(reference, output_names), right = cut_at_opaque(result, output_names);
  Prepared prepared{std::move(left.graph), std::move(right.graph), std::move(left.output_names)};
  const std::vector<Hash128> weights_a = weight_hashes(prepared.reference), weights_b = weight_hashes(prepared.result);
  const std::size_t outputs = std::min(prepared.reference.outputs().size(), prepared.result.outputs().size());
  for (std::size_t i = 0; i < outputs; ++i) {
    const auto tail = common_tail(prepared.reference, weights_a, prepared.reference.outputs()[i], prepared.result,
                                  weights_b, prepared.result.outputs()[i]);
    if (!tail) continue;
    // Only if it is computed: an input of the graph is the same on both sides.
    if (prepared.reference.node(tail->first.node).kind != NodeKind::op) continue;
    prepared.reference.add_output(tail->first);
    prepared.result.add_output(tail->second);
    prepared.names.push_back("behind " + prepared.names[i]);
  }
  return prepared;
}

}  // namespace

std::string CheckReport::summary() const {
  if (tensors.empty()) return "nothing could be compared: no part of the graph can be executed";
  std::string text = fmt::format("{} tensor{} compared, largest relative difference {:.1e}", tensors.size(),
                                 tensors.size() == 1 ? "" : "s", worst);
  if (vacuous) text += "; the outputs hardly depend on the inputs, so this shows little";
  return text;
}

Expected<CheckReport> check(const Graph& reference, const Graph& result, const KernelLibrary& library,
                            const CheckOptions& options) {
  const Prepared prepared = prepare(reference, result, options.output_names);
  CheckReport report;
  if (prepared.reference.outputs().size() != prepared.result.outputs().size())
    return internal_error("the optimized graph has another number of outputs than the original");
  if (prepared.reference.outputs().empty()) return report;

  const ExecutorOptions executor_options{.threads = options.threads, .channels_last = true, .weights = nullptr};
  std::vector<std::vector<HostTensor>> inputs, expected;
  {
    TASO_ASSIGN(Executor executor, Executor::create(prepared.reference, library, executor_options));
    for (int i = 0; i < std::max(1, options.inputs); ++i) {
      inputs.push_back(executor.random_inputs(options.seed + static_cast<std::uint64_t>(i)));
      TASO_ASSIGN(std::vector<HostTensor> outputs, executor.run(inputs.back()));
      expected.push_back(std::move(outputs));
    }
  }
  std::vector<std::vector<HostTensor>> actual;
  {
    TASO_ASSIGN(Executor executor, Executor::create(prepared.result, library, executor_options));
    for (const std::vector<HostTensor>& input : inputs) {
      TASO_ASSIGN(std::vector<HostTensor> outputs, executor.run(input));
      actual.push_back(std::move(outputs));
    }
  }

  report.vacuous = inputs.size() > 1 && !prepared.reference.inputs().empty();
  for (std::size_t output = 0; output < expected[0].size(); ++output) {
    CheckedTensor tensor;
    tensor.name = output < prepared.names.size() ? prepared.names[output] : fmt::format("output {}", output);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Difference difference = compare(actual[i][output], expected[i][output], options.rtol, options.atol);
      tensor.within = tensor.within && difference.comparable && difference.violations == 0;
      tensor.max_difference = std::max(tensor.max_difference, difference.max_absolute);
      tensor.magnitude = std::max(tensor.magnitude, difference.reference_maximum);
      report.worst = std::max(report.worst, difference.max_relative);
      if (i > 0)
        tensor.sensitivity =
            std::max(tensor.sensitivity, compare(expected[i][output], expected[0][output], 0, 0).max_relative);
    }
    report.passed = report.passed && tensor.within;
    report.vacuous = report.vacuous && tensor.sensitivity < kInsensitive;
    report.tensors.push_back(std::move(tensor));
  }
  return report;
}

}  // namespace taso
