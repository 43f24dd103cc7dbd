#include "optimizer/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "operators/injectivity.h"
#include "operators/instance.h"
#include "runtime/backend.h"
#include "runtime/executor.h"
#include "runtime/lowering.h"
#include "runtime/weights.h"

namespace taso {
namespace {

/// An output that changes by less than this, relative to its magnitude, between random inputs shows little.
constexpr double insensitive_below = 1e-3;
/// How many operators are looked behind.
constexpr int softmax_depth = 16;
/// A tensor of which less than this is finite at every input is hardly compared.
constexpr double few_finite = 0.5;

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

/// Whether two graphs that compute the same by this node compute the same before it, at input `place`, but for a shift
/// that a softmax behind both hides: then the tensors there are compared as well. Of relu that need not be so: it maps
/// different tensors to one.
bool is_looked_behind(const Graph& graph, const Node& node, std::size_t place, const OperatorRegistry& registry) {
  std::vector<TensorType> inputs;
  inputs.reserve(node.inputs.size());
  for (const Value& input : node.inputs) inputs.push_back(graph.type(input));
  const Expected<OperatorInstance> instance = OperatorInstance::create(registry, node.op, node.attributes, inputs);
  return instance && injectivity(*instance, place, registry) != Injectivity::none;
}

/// The tensors behind two outputs from which both graphs do the same.
std::optional<std::pair<Value, Value>> common_tail(const Graph& a, const std::vector<Hash128>& weights_a, Value x,
                                                   const Graph& b, const std::vector<Hash128>& weights_b, Value y,
                                                   const OperatorRegistry& registry) {
  std::optional<std::pair<Value, Value>> found;
  for (int depth = 0; depth < softmax_depth; ++depth) {
    const auto i = thread_of(a, x), j = thread_of(b, y);
    if (!i || i != j) break;
    const Node &left = a.node(x.node), &right = b.node(y.node);
    if (left.op != right.op || left.attributes != right.attributes || left.inputs.size() != right.inputs.size()) break;
    bool same = true;
    for (std::size_t k = 0; k < left.inputs.size(); ++k)
      same = same && (k == *i || (weights_a[left.inputs[k].node] == weights_b[right.inputs[k].node] &&
                                  left.inputs[k].port == right.inputs[k].port));
    if (!same || a.type(left.inputs[*i]) != b.type(right.inputs[*i])) break;
    if (!is_looked_behind(a, left, *i, registry)) break;
    x = left.inputs[*i];
    y = right.inputs[*i];
    found = {x, y};
  }
  return found;
}

struct Comparison {
  Graph reference, result;
  std::vector<std::string> names;  ///< Of the tensors compared, which are the outputs of both graphs.
};

/// Takes the signs off all floating-point elements: their first bit, in every format.
void make_positive(HostTensor& tensor) {
  const ElementType element = tensor.type().element;
  if (element != ElementType::f16 && element != ElementType::bf16 && element != ElementType::f32 &&
      element != ElementType::f64)
    return;
  const std::size_t width = size_of(element);
  const std::span<std::byte> bytes = tensor.bytes();
  for (std::size_t i = width - 1; i < bytes.size(); i += width) bytes[i] &= std::byte{0x7f};
}

/// Largest change between two tensors of one type, relative to the second, where both are finite; nothing if that is
/// nowhere.
std::optional<double> relative_change(const HostTensor& a, const HostTensor& b) {
  const std::vector<double> left = a.to_doubles(), right = b.to_doubles();
  double change = 0, magnitude = 0;
  bool common = false;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (!std::isfinite(left[i]) || !std::isfinite(right[i])) continue;
    common = true;
    change = std::max(change, std::fabs(left[i] - right[i]));
    magnitude = std::max(magnitude, std::fabs(right[i]));
  }
  if (!common) return std::nullopt;
  return change == 0 ? 0 : magnitude > 0 ? change / magnitude : HUGE_VAL;
}

/// Rounding of a device: what the original itself loses there, relative to the largest magnitude, may be lost this many
/// times; but if it loses more than broken_loss, its kernels are wrong and nothing is excused by them.
constexpr double excused_factor = 2, broken_loss = 0.1;

/// Adds one input's outcome to the record of a tensor. `device`: the original's outcome on the device, if there is one.
void compare_finite(const HostTensor& result, const HostTensor& reference, const HostTensor* device,
                    const CheckOptions& options, CheckedTensor& tensor, double& worst) {
  if (!(result.type() == reference.type())) {
    tensor.within = false;
    return;
  }
  const std::vector<double> left = result.to_doubles(), right = reference.to_doubles();
  double magnitude = 0, largest = 0;
  std::int64_t compared = 0;
  for (const double value : right)
    if (std::isfinite(value)) magnitude = std::max(magnitude, std::fabs(value));
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (!std::isfinite(right[i])) continue;
    ++compared;
    if (std::isfinite(left[i]))
      largest = std::max(largest, std::fabs(left[i] - right[i]));
    else
      ++tensor.became_not_finite;
  }
  const auto elements = static_cast<std::int64_t>(right.size());
  tensor.compared += compared;
  tensor.not_finite += elements - compared;
  tensor.finite_share = std::max(tensor.finite_share,
                                 elements == 0 ? 1.0 : static_cast<double>(compared) / static_cast<double>(elements));
  double allowed = options.atol + options.rtol * magnitude;
  if (device != nullptr) {
    const double lost = relative_change(*device, reference).value_or(0);
    if (lost <= broken_loss) allowed = std::max(allowed, excused_factor * lost * magnitude);
  }
  tensor.within = tensor.within && tensor.became_not_finite == 0 && !(largest > allowed);
  tensor.max_difference = std::max(tensor.max_difference, largest);
  tensor.magnitude = std::max(tensor.magnitude, magnitude);
  if (largest > 0) worst = std::max(worst, magnitude > 0 ? largest / magnitude : HUGE_VAL);
  if (tensor.became_not_finite > 0) worst = HUGE_VAL;
}

Comparison prepare(const Graph& reference, const Graph& result, const std::vector<std::string>& output_names,
                   const OperatorRegistry& registry) {
  auto [left, right] = cut_alike(reference, result, output_names, output_names);
  Comparison prepared{std::move(left.graph), std::move(right.graph), std::move(left.output_names)};
  const std::vector<Hash128> weights_a = weight_hashes(prepared.reference), weights_b = weight_hashes(prepared.result);
  const std::size_t outputs = std::min(prepared.reference.outputs().size(), prepared.result.outputs().size());
  for (std::size_t i = 0; i < outputs; ++i) {
    const auto tail = common_tail(prepared.reference, weights_a, prepared.reference.outputs()[i], prepared.result,
                                  weights_b, prepared.result.outputs()[i], registry);
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
  std::int64_t compared = 0, not_finite = 0;
  for (const CheckedTensor& tensor : tensors) {
    compared += tensor.compared;
    not_finite += tensor.not_finite;
  }
  if (compared == 0 && not_finite > 0) return "nothing could be compared: no element of the original is finite";
  if (not_finite > 0)
    text += fmt::format("; {} of {} elements left out, which are not finite in the original", not_finite,
                        compared + not_finite);
  if (vacuous) text += "; the outputs hardly depend on the inputs, so this shows little";
  return text;
}

std::string CheckReport::failure() const {
  if (passed) return "";
  for (const CheckedTensor& tensor : tensors) {
    if (tensor.within) continue;
    if (tensor.became_not_finite > 0)
      return fmt::format(
          "numeric check failed: {} of {} elements of '{}' are NaN or infinite where the original's are "
          "finite; nothing was written",
          tensor.became_not_finite, tensor.compared + tensor.not_finite, tensor.name);
    return fmt::format(
        "numeric check failed: '{}' differs by {:.3g} where the largest magnitude is {:.3g} (allowed: "
        "{:.3g} of it); nothing was written",
        tensor.name, tensor.max_difference, tensor.magnitude, rtol);
  }
  return "numeric check failed; nothing was written";
}

std::vector<std::string> CheckReport::remarks() const {
  std::vector<std::string> remarks;
  for (const CheckedTensor& tensor : tensors)
    if (tensor.finite_share < few_finite)
      remarks.push_back(
          fmt::format("warning: the check says little of '{}': at best {:.0f} % of its elements are finite "
                      "in the original on random inputs",
                      tensor.name, std::floor(tensor.finite_share * 100)));
  return remarks;
}

Expected<CheckReport> check(const Graph& reference, const Graph& result, const KernelLibrary& library,
                            const CheckOptions& options) {
  const Comparison prepared = prepare(reference, result, options.output_names, library.registry());
  CheckReport report;
  report.rtol = options.rtol;
  if (prepared.reference.outputs().size() != prepared.result.outputs().size())
    return internal_error("the optimized graph has another number of outputs than the original");
  if (prepared.reference.outputs().empty()) return report;

  const KernelLibrary host(library.registry(), library.set());
  const bool on_device = library.backend() && library.backend()->can_run();
  ExecutorOptions executor_options{
      .threads = options.threads, .channels_last = true, .weights = nullptr, .layouts = options.reference_layouts};
  std::vector<std::vector<HostTensor>> inputs, expected;
  {
    TASO_ASSIGN(Executor executor, Executor::create(prepared.reference, host, executor_options));
    for (int i = 0; i < std::max(1, options.inputs); ++i) {
      inputs.push_back(executor.random_inputs(options.seed + static_cast<std::uint64_t>(i)));
      if (i > 0 && i + 1 == options.inputs)
        for (HostTensor& tensor : inputs.back()) make_positive(tensor);
      TASO_ASSIGN(std::vector<HostTensor> outputs, executor.run(inputs.back()));
      expected.push_back(std::move(outputs));
    }
  }
  std::vector<std::vector<HostTensor>> actual, on_device_expected;
  if (on_device) {
    executor_options.float_storage = options.float_storage;
    TASO_ASSIGN(Executor executor, Executor::create(prepared.reference, library, executor_options));
    for (const std::vector<HostTensor>& input : inputs) {
      TASO_ASSIGN(std::vector<HostTensor> outputs, executor.run(input));
      on_device_expected.push_back(std::move(outputs));
    }
  }
  executor_options.layouts = options.result_layouts;
  {
    TASO_ASSIGN(Executor executor, Executor::create(prepared.result, on_device ? library : host, executor_options));
    for (const std::vector<HostTensor>& input : inputs) {
      TASO_ASSIGN(std::vector<HostTensor> outputs, executor.run(input));
      actual.push_back(std::move(outputs));
    }
  }

  report.vacuous = inputs.size() > 1 && !prepared.reference.inputs().empty();
  for (std::size_t output = 0; output < expected[0].size(); ++output) {
    CheckedTensor tensor;
    bool several = false;  // elements were finite at more than one input
    tensor.name = output < prepared.names.size() ? prepared.names[output] : fmt::format("output {}", output);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      compare_finite(actual[i][output], expected[i][output], on_device ? &on_device_expected[i][output] : nullptr,
                     options, tensor, report.worst);
      for (std::size_t j = 0; j < i; ++j)
        if (const std::optional<double> change = relative_change(expected[i][output], expected[j][output])) {
          several = true;
          tensor.sensitivity = std::max(tensor.sensitivity, *change);
        }
    }
    report.passed = report.passed && tensor.within;
    report.vacuous = report.vacuous && tensor.sensitivity < insensitive_below && (several || tensor.compared == 0);
    report.tensors.push_back(std::move(tensor));
  }
  return report;
}

}  // namespace taso
