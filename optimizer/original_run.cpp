#include "optimizer/original_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "graph/reals.h"
#include "operators/evaluate.h"
#include "runtime/lowering.h"
#include "runtime/weights.h"
#include "support/random.h"

namespace taso {
namespace {

/// How inputs are changed to see what becomes of it, in roundoffs of the narrowest type: of f32 by 1e-7.
constexpr double small_change = 1e-7 * 0x1p24;
/// How often, at every input, where the first changes do not explain a difference.
constexpr std::uint64_t further_changes = 4;

/// Takes the signs off all floating-point elements: their first bit, in every format.
void make_positive(HostTensor& tensor) {
  const ElementType element = tensor.type().element;
  if (!is_real(element)) return;
  const std::size_t width = size_of(element);
  const std::span<std::byte> bytes = tensor.bytes();
  for (std::size_t i = width - 1; i < bytes.size(); i += width) bytes[i] &= std::byte{0x7f};
}

/// Inputs that differ from the given ones by `change` of their largest element at most; nothing if none is of floats.
std::optional<std::vector<HostTensor>> nudged(const std::vector<HostTensor>& inputs, double change,
                                              std::uint64_t seed) {
  Random random(seed, "small changes of inputs");
  std::vector<HostTensor> copies;
  bool any = false;
  for (const HostTensor& input : inputs) {
    HostTensor& copy = copies.emplace_back(input.copy());
    if (copy.type().element != ElementType::f32) continue;
    any = true;
    float magnitude = 0;
    for (const float value : copy.floats()) magnitude = std::max(magnitude, std::fabs(value));
    for (float& value : copy.floats())
      value += static_cast<float>(change * static_cast<double>(magnitude) * (2 * random.uniform() - 1));
  }
  return any ? std::optional(std::move(copies)) : std::nullopt;
}

}  // namespace

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

OriginalRun::OriginalRun(const Graph& whole, const Graph& cut, const KernelLibrary& host, OriginalRunOptions options)
    : narrowest_(cut.narrowest_type()),
      given_(whole),
      whole_(whole.in_working_types()),
      cut_(cut.in_working_types()),
      host_(host),
      options_(std::move(options)) {
  for (const NodeId id : cut.inputs()) input_types_.push_back(cut.node(id).outputs[0]);
  executor_options_.threads = options_.threads;
  executor_options_.layouts = options_.layouts;
  executor_options_.weights = std::make_shared<WeightStore>();
}

Status OriginalRun::run() {
  TASO_ASSIGN(Executor executor, Executor::create(cut_, host_, executor_options_));
  for (int i = 0; i < std::max(1, options_.inputs); ++i) {
    std::vector<HostTensor>& drawn =
        wide_inputs_.emplace_back(executor.random_inputs(options_.seed + static_cast<std::uint64_t>(i)));
    std::vector<HostTensor>& given = inputs_.emplace_back();
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      if (i > 0 && i + 1 == options_.inputs) make_positive(drawn[k]);
      given.push_back(drawn[k].converted(input_types_[k].element));
      drawn[k] = given.back().converted(drawn[k].type().element);
    }
    TASO_ASSIGN(std::vector<HostTensor> outputs, executor.run(drawn));
    outputs_.push_back(std::move(outputs));
  }
  deviations_.assign(outputs_.size(), std::vector<double>(outputs_[0].size(), 0));
  TASO_RETURN_IF_ERROR(deviate(executor, 0, 0));
  if (inputs_.size() > 1) TASO_RETURN_IF_ERROR(deviate(executor, inputs_.size() - 1, 0));
  return {};
}

Expected<std::vector<HostTensor>> OriginalRun::activations(std::span<const Value> values, int attempt) const {
  Graph graph = whole_;
  graph.set_outputs({values.begin(), values.end()});
  CutGraph cut = cut_at_opaque(graph);
  std::map<std::string, HostTensor> inputs;
  for (std::size_t i = 0; i < cut_.inputs().size(); ++i) {
    HostTensor tensor = (attempt == 0 ? wide_inputs_.front() : wide_inputs_.back())[i].copy();
    if (attempt > 0) make_positive(tensor);
    inputs.emplace(cut_.node(cut_.inputs()[i]).name, std::move(tensor));
  }
  // What is an input itself is not run.
  std::vector<HostTensor> results(values.size());
  std::vector<Value> outputs;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value output = cut.graph.outputs()[i];
    const Node& node = cut.graph.node(output.node);
    if (node.kind == NodeKind::input) {
      results[i] = inputs.at(node.name).copy();
    } else {
      outputs.push_back(output);
      places.push_back(i);
    }
  }
  const auto in_own_types = [&] {
    for (std::size_t i = 0; i < values.size(); ++i) results[i] = results[i].converted(given_.type(values[i]).element);
  };
  if (outputs.empty()) {
    in_own_types();
    return results;
  }
  cut.graph.set_outputs(std::move(outputs));
  cut.graph.remove_dead(false);
  TASO_ASSIGN(Executor executor, Executor::create(cut.graph, host_, executor_options_));
  std::vector<HostTensor> arguments = executor.random_inputs(options_.seed);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (const auto known = inputs.find(executor.input_names()[i]); known != inputs.end())
      arguments[i] = known->second.copy();
  TASO_ASSIGN(std::vector<HostTensor> computed, executor.run(arguments));
  for (std::size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move(computed[i]);
  in_own_types();
  return results;
}

Status OriginalRun::deviate(Executor& executor, std::size_t input, std::uint64_t draw) {
  const double unit = unit_roundoff(narrowest_.value_or(ElementType::f32));
  const auto changed = nudged(wide_inputs_[input], small_change * unit, options_.seed + draw);
  if (!changed) return {};
  TASO_ASSIGN(const std::vector<HostTensor> outputs, executor.run(*changed));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const double deviation = relative_change(outputs[i], outputs_[input][i]).value_or(0);
    for (std::size_t other = input; other < (input == 0 ? inputs_.size() : input + 1); ++other)
      deviations_[other][i] = std::max(deviations_[other][i], deviation);
  }
  return {};
}

Status OriginalRun::look_closer() {
  {
    TASO_ASSIGN(Executor executor, Executor::create(cut_, host_, executor_options_));
    for (std::size_t input = 0; input < inputs_.size(); ++input)
      for (std::uint64_t draw = 1; draw <= further_changes; ++draw)
        TASO_RETURN_IF_ERROR(deviate(executor, input, draw));
  }
  TASO_RETURN_IF_ERROR(compare_with_doubles(inputs_.size()));
  for (std::size_t i = 0; i < deviations_[0].size(); ++i) {
    double largest = 0;
    for (const std::vector<double>& deviations : deviations_) largest = std::max(largest, deviations[i]);
    for (std::vector<double>& deviations : deviations_) deviations[i] = largest;
  }
  return {};
}

Status OriginalRun::compare_with_doubles(std::size_t inputs) {
  for (std::size_t input = 0; input < std::min(inputs, inputs_.size()); ++input) {
    std::vector<RingTensor<double>> tensors;
    for (const HostTensor& given : wide_inputs_[input]) {
      RingTensor<double>& tensor = tensors.emplace_back();
      tensor.shape = given.type().shape;
      const ElementType element = given.type().element;
      if (is_real(element))
        tensor.elements = given.to_doubles();
      else
        tensor.integers = given.to_integers();
    }
    DoubleRing ring;
    const auto exact = evaluate(cut_, host_.registry(), ring, tensors);
    if (!exact) return {};
    for (std::size_t i = 0; i < exact->size(); ++i) {
      const std::vector<double> computed = outputs_[input][i].to_doubles();
      const std::vector<double>& wanted = (*exact)[i].elements;
      double difference = 0, magnitude = 0;
      for (std::size_t k = 0; k < std::min(computed.size(), wanted.size()); ++k) {
        if (!std::isfinite(computed[k]) || !std::isfinite(wanted[k])) continue;
        difference = std::max(difference, std::fabs(computed[k] - wanted[k]));
        magnitude = std::max(magnitude, std::fabs(computed[k]));
      }
      if (difference > 0 && magnitude > 0)
        deviations_[input][i] = std::max(deviations_[input][i], difference / magnitude);
    }
  }
  return {};
}

}  // namespace taso
