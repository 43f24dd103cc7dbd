#include "optimizer/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "graph/reals.h"
#include "operators/injectivity.h"
#include "operators/instance.h"
#include "optimizer/original_run.h"
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

/// How many times what the original is off by itself the result may be.
constexpr double deviation_factor = 10;

/// Rounding of a device: what the original itself loses there, relative to the largest magnitude, may be lost this many
/// times; but if it loses more than broken_loss, its kernels are wrong and nothing is excused by them.
constexpr double excused_factor = 2, broken_loss = 0.1;

/// What the original computes at one input: on the host; on the device, if there is one, or in narrow types; how far it
/// is from that by itself, relative to the largest magnitude.
struct Expectation {
  const HostTensor& host;
  const HostTensor* device = nullptr;
  const HostTensor* beyond_range = nullptr;  ///< Where this is not finite, nothing is expected; may be null.
  double own_deviation = 0;
};

/// Relative to the largest magnitude of a tensor: some roundings of each of many layers.
double tolerance_of(ElementType type) {
  if (type == ElementType::f16) return 2e-2;
  return type == ElementType::bf16 ? 1.6e-1 : 1e-4;
}

/// Adds one input's outcome to the record of a tensor.
void compare_finite(const HostTensor& result, const Expectation& expectation, const CheckOptions& options,
                    CheckedTensor& tensor, double& worst) {
  const HostTensor& reference = expectation.host;
  if (result.type().shape != reference.type().shape) {
    tensor.within = false;
    return;
  }
  const std::vector<double> left = result.to_doubles();
  std::vector<double> right = reference.to_doubles();
  // What is beyond the range of its type in the original itself is left out.
  if (expectation.beyond_range != nullptr) {
    const std::vector<double> own = expectation.beyond_range->to_doubles();
    for (std::size_t i = 0; i < right.size(); ++i)
      if (!std::isfinite(own[i])) right[i] = own[i];
  }
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
  if (const double own = deviation_factor * expectation.own_deviation * magnitude; largest > allowed && own > allowed) {
    allowed = own;
    tensor.excused = true;
  }
  tensor.own_deviation = std::max(tensor.own_deviation, expectation.own_deviation);
  if (expectation.device != nullptr) {
    const double lost = relative_change(*expectation.device, reference).value_or(0);
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

/// What is compared, per input and output.
struct Outcomes {
  const std::vector<std::string>& names;
  const std::vector<std::vector<HostTensor>>& expected;
  const std::vector<std::vector<HostTensor>>& on_device_expected;  ///< Empty without a device and narrow types.
  bool narrow = false;  ///< Values are kept in narrower types than they are computed in.
  const std::vector<std::vector<HostTensor>>& actual;
  const std::vector<std::vector<double>>& deviations;
};

/// Writes the tensors, and what follows from them, into a report.
void compare_outputs(const Outcomes& outcomes, const CheckOptions& options, CheckReport& report) {
  report.tensors.clear();
  report.worst = 0;
  report.passed = report.wrong_region.empty();
  report.vacuous = outcomes.expected.size() > 1;
  for (std::size_t output = 0; output < outcomes.expected[0].size(); ++output) {
    CheckedTensor tensor;
    bool several = false;  // elements were finite at more than one input
    tensor.name = output < outcomes.names.size() ? outcomes.names[output] : fmt::format("output {}", output);
    for (std::size_t i = 0; i < outcomes.expected.size(); ++i) {
      const HostTensor* const own =
          outcomes.on_device_expected.empty() ? nullptr : &outcomes.on_device_expected[i][output];
      const Expectation expectation{outcomes.expected[i][output], own, outcomes.narrow ? own : nullptr,
                                    outcomes.deviations[i][output]};
      compare_finite(outcomes.actual[i][output], expectation, options, tensor, report.worst);
      for (std::size_t j = 0; j < i; ++j)
        if (const auto change = relative_change(outcomes.expected[i][output], outcomes.expected[j][output])) {
          several = true;
          tensor.sensitivity = std::max(tensor.sensitivity, *change);
        }
    }
    report.passed = report.passed && tensor.within;
    report.vacuous = report.vacuous && tensor.sensitivity < insensitive_below && (several || tensor.compared == 0);
    report.tensors.push_back(std::move(tensor));
  }
}

/// Runs a graph on several inputs.
Expected<std::vector<std::vector<HostTensor>>> run_on(const std::vector<std::vector<HostTensor>>& inputs,
                                                      const Graph& graph, const KernelLibrary& library,
                                                      const ExecutorOptions& options) {
  std::vector<std::vector<HostTensor>> results;
  TASO_ASSIGN(Executor executor, Executor::create(graph, library, options));
  for (const std::vector<HostTensor>& input : inputs) {
    TASO_ASSIGN(std::vector<HostTensor> outputs, executor.run(input));
    results.push_back(std::move(outputs));
  }
  return results;
}

/// The applications that made some regions, for people.
std::string applied_in(const std::vector<std::size_t>& regions, const Rewritten& rewritten,
                       const CheckOptions& options) {
  std::vector<std::string> applied;
  for (const std::size_t region : regions)
    for (const std::size_t number : rewritten.regions[region].applications) {
      const RuleApplication& application = rewritten.applications[number];
      applied.push_back(fmt::format("{} at {}", application.rule, place_of(application, options.node_names)));
    }
  constexpr std::size_t shown = 8;
  const std::size_t more = applied.size() > shown ? applied.size() - shown : 0;
  applied.resize(applied.size() - more);
  return fmt::format("{}{}", fmt::join(applied, "; "), more > 0 ? fmt::format("; and {} more", more) : "");
}

/// Which regions were not checked by themselves, as the end of a message; empty if all were.
std::string describe_unchecked(const RegionReport& report, const Rewritten& rewritten, const CheckOptions& options) {
  if (report.unchecked.empty()) return "";
  return fmt::format("; not checked by {}{}: {}", report.unchecked.size() == 1 ? "itself" : "themselves",
                     options.full ? "" : " (--check full does, where it can)",
                     applied_in(report.unchecked, rewritten, options));
}

/// Says what is wrong in a region.
std::string describe(const WrongElement& wrong, const Graph& original, const Rewritten& rewritten,
                     const CheckOptions& options) {
  const Node& node = original.node(wrong.value.node);
  std::string name = fmt::format("the output of {}", node.op);
  if (node.origin >= 0 && static_cast<std::size_t>(node.origin) < options.node_names.size())
    name += fmt::format(" '{}'", options.node_names[static_cast<std::size_t>(node.origin)]);
  constexpr const char* note[] = {"", ", though it is right in double precision",
                                  ", which is the original's rounding there: without it this is another model"};
  return fmt::format(
      "{} is the first tensor that is wrong by itself: element [{}] is {:.9g} instead of {:.9g} (allowed: {:.1e} more "
      "or "
      "less){}; applied before it: {}",
      name, fmt::join(wrong.index, ", "), wrong.actual, wrong.expected, wrong.allowed,
      note[static_cast<std::size_t>(wrong.cause)], applied_in({wrong.region}, rewritten, options));
}

}  // namespace

std::string CheckReport::summary() const {
  std::int64_t compared = 0, not_finite = 0;
  for (const CheckedTensor& tensor : tensors) {
    compared += tensor.compared;
    not_finite += tensor.not_finite;
  }
  std::string text;
  if (tensors.empty()) {
    text = "nothing could be compared: no part of the graph can be executed";
  } else if (compared == 0 && not_finite > 0) {
    text = "nothing could be compared end to end: no element of the original is finite";
  } else {
    text = fmt::format("{} tensor{} compared, largest relative difference {:.1e}", tensors.size(),
                       tensors.size() == 1 ? "" : "s", worst);
    if (not_finite > 0)
      text += fmt::format("; {} of {} elements left out, which are not finite in the original", not_finite,
                          compared + not_finite);
  }
  if (regions.regions > 0)
    text += fmt::format("; {} of {} rewritten regions right by themselves ({} elements)", regions.checked,
                        regions.regions, regions.elements);
  if (vacuous) text += "; the outputs hardly depend on the inputs, so this shows little";
  return text;
}

std::string CheckReport::failure() const {
  if (passed) return "";
  if (!wrong_region.empty()) return "numeric check failed: " + wrong_region + "; nothing was written";
  const std::string by_themselves =
      regions.checked > 0 && regions.checked == regions.regions
          ? fmt::format("; each of the {} rewritten regions is right by itself", regions.regions)
          : not_checked;
  for (const CheckedTensor& tensor : tensors) {
    if (tensor.within) continue;
    if (tensor.became_not_finite > 0)
      return fmt::format(
          "numeric check failed: {} of {} elements of '{}' are NaN or infinite where the original's are "
          "finite{}; nothing was written",
          tensor.became_not_finite, tensor.compared + tensor.not_finite, tensor.name, by_themselves);
    return fmt::format(
        "numeric check failed: '{}' differs by {:.3g} where the largest magnitude is {:.3g} (allowed: "
        "{:.3g} of it){}; nothing was written",
        tensor.name, tensor.max_difference, tensor.magnitude, rtol, by_themselves);
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
  // Of the tensors, the one that the original is least sure of.
  const auto largest =
      std::max_element(tensors.begin(), tensors.end(), [](const CheckedTensor& a, const CheckedTensor& b) {
        return std::pair(a.excused, a.own_deviation) < std::pair(b.excused, b.own_deviation);
      });
  if (largest != tensors.end() && largest->excused)
    remarks.push_back(
        fmt::format("the original amplifies rounding: '{}' is off from itself by {:.2g} % (in double precision, or "
                    "where inputs change by "
                    "1e-7), so that {:.2g} % between original and result say little; what counts are the {} of {} "
                    "rewritten regions that "
                    "were checked by themselves",
                    largest->name, largest->own_deviation * 100,
                    largest->magnitude > 0 ? 100 * largest->max_difference / largest->magnitude : 0, regions.checked,
                    regions.regions));
  return remarks;
}

Expected<CheckReport> check(const Graph& reference, const Graph& result, const KernelLibrary& library,
                            const CheckOptions& given_options, const Rewritten& rewritten) {
  CheckOptions options = given_options;
  const ElementType narrowest = reference.narrowest_type().value_or(ElementType::f32);
  if (options.rtol_by_type) options.rtol = std::max(options.rtol, tolerance_of(narrowest));
  const bool narrow = working_type(narrowest) != narrowest;
  const Comparison prepared = prepare(reference, result, options.output_names, library.registry());
  CheckReport report;
  report.rtol = options.rtol;
  if (prepared.reference.outputs().size() != prepared.result.outputs().size())
    return internal_error("the optimized graph has another number of outputs than the original");
  if (prepared.reference.outputs().empty()) return report;

  const KernelLibrary host(library.registry(), library.set());
  OriginalRun original(reference, prepared.reference, host,
                       {.inputs = options.inputs,
                        .seed = options.seed,
                        .threads = options.threads,
                        .layouts = options.reference_layouts});
  TASO_RETURN_IF_ERROR(original.run());
  if (options.full) TASO_RETURN_IF_ERROR(original.compare_with_doubles(1));
  if (!rewritten.regions.empty()) {
    RegionCheckOptions region_options;
    region_options.seed = options.seed;
    region_options.threads = options.threads;
    region_options.full = options.full;
    region_options.rtol = options.region_rtol;
    region_options.original_rtol = options.rtol;
    region_options.result_layouts = options.result_layouts;
    const auto activations = [&](std::span<const Value> values, int attempt) {
      return original.activations(values, attempt);
    };
    TASO_ASSIGN(report.regions, check_regions(reference, result, rewritten.regions, activations, host, region_options));
    report.not_checked = describe_unchecked(report.regions, rewritten, options);
    if (report.regions.wrong) report.wrong_region = describe(*report.regions.wrong, reference, rewritten, options);
    report.passed = !report.regions.wrong;
  }

  const auto& inputs = original.inputs();
  const auto& expected = original.outputs();
  const bool on_device = library.backend() && library.backend()->can_run();
  ExecutorOptions executor_options;
  executor_options.threads = options.threads;
  std::vector<std::vector<HostTensor>> on_device_expected;
  if (on_device || narrow) {
    executor_options.layouts = options.reference_layouts;
    if (on_device) executor_options.float_storage = options.float_storage;
    TASO_ASSIGN(on_device_expected, run_on(inputs, prepared.reference, on_device ? library : host, executor_options));
  }
  executor_options.layouts = options.result_layouts;
  TASO_ASSIGN(const std::vector<std::vector<HostTensor>> actual,
              run_on(inputs, prepared.result, on_device ? library : host, executor_options));

  const auto compare = [&] {
    compare_outputs({prepared.names, expected, on_device_expected, narrow, actual, original.deviations()}, options,
                    report);
    report.vacuous = report.vacuous && !prepared.reference.inputs().empty();
  };
  compare();
  // Every place is right by itself, and yet the whole is not: perhaps the original rounds so much.
  if (!report.passed && report.wrong_region.empty() && !rewritten.regions.empty() && report.regions.unchecked.empty()) {
    TASO_RETURN_IF_ERROR(original.look_closer());
    compare();
  }
  return report;
}

}  // namespace taso
