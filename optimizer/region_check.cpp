#include "optimizer/region_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "graph/reals.h"
#include "operators/element_evaluator.h"
#include "operators/evaluate.h"
#include "operators/rounding_ring.h"
#include "optimizer/region_pieces.h"
#include "runtime/executor.h"
#include "support/random.h"

namespace taso {
namespace {

/// See check_regions.
constexpr double exact_factor = 8, kernel_factor = 64;
/// Kernels' functions are exact to an absolute error: of the largest element of a tensor, in unit roundoffs.
constexpr double of_largest = 32;
/// Where the result reads what the original's side computes, which comes rounded: likewise, and of what is kept in a
/// narrower type, in roundoffs of that.
constexpr double of_rounded_operand = 256, of_kept_operand = 32;
constexpr std::size_t most_samples = 64;
/// A region is computed whole, where not even one element is within the allowance, if it takes no more operations.
constexpr double most_operations = 2e8;
/// Activations are kept for so many regions at a time.
constexpr std::int64_t batch_bytes = 256'000'000;

Expected<double> operations_of(const Graph& graph, const OperatorRegistry& registry) {
  double operations = 0;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::op) continue;
    std::vector<TensorType> types;
    for (const Value& input : node.inputs) types.push_back(graph.type(input));
    TASO_ASSIGN(const OperatorInstance instance, OperatorInstance::create(registry, node.op, node.attributes, types));
    operations += instance.work().flops;
  }
  return operations;
}

/// Whether all operators compute with reals, so that the ring of rounded numbers has their values. Others are compared
/// with all that the graph computes.
bool is_over_reals(const Graph& graph, const OperatorRegistry& registry) {
  const std::vector<NodeId> order = graph.topological_order();
  return std::all_of(order.begin(), order.end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return node.kind != NodeKind::op || registry.find(node.op)->over_reals;
  });
}

/// Elements of a piece's outputs: of all, computed at once, or of some, computed when asked for.
class PieceValues {
 public:
  PieceValues(const GraphPiece& piece, const OperatorRegistry& registry, std::vector<TensorElements> inputs)
      : piece_(piece),
        registry_(registry),
        inputs_(std::move(inputs)),
        evaluator_(piece.graph, registry, ring_, inputs_) {}

  [[nodiscard]] Status compute_all() {
    std::vector<RingTensor<RoundedNumber>> tensors;
    for (const TensorElements& input : inputs_) {
      RingTensor<RoundedNumber>& tensor = tensors.emplace_back();
      tensor.shape = input.type.shape;
      for (std::int64_t i = 0; i < input.type.elements(); ++i) {
        if (input.is_integer())
          tensor.integers.push_back(input.integer(i));
        else
          tensor.elements.push_back(RoundingRing::number(input.real(i)));
      }
    }
    TASO_ASSIGN(all_, evaluate(piece_.graph, registry_, ring_, tensors));
    return {};
  }
  [[nodiscard]] Expected<RoundedNumber> at(std::size_t output, std::int64_t offset) {
    if (!all_.empty()) return all_[output].elements[static_cast<std::size_t>(offset)];
    return evaluator_.at(piece_.graph.outputs()[output], offset);
  }
  [[nodiscard]] ElementEvaluator<RoundingRing>& evaluator() { return evaluator_; }

 private:
  const GraphPiece& piece_;
  const OperatorRegistry& registry_;
  RoundingRing ring_;
  std::vector<TensorElements> inputs_;
  ElementEvaluator<RoundingRing> evaluator_;
  std::vector<RingTensor<RoundedNumber>> all_;
};

/// One element on all sides.
struct Sample {
  std::int64_t offset = 0;
  RoundedNumber before, after;
  std::optional<double> by_kernels;
  std::optional<double> original;  ///< As the original computes it, in its own arithmetic.
};

std::vector<std::int64_t> index_of(std::int64_t offset, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = offset % shape[axis];
    offset /= shape[axis];
  }
  return index;
}

class RegionChecker {
 public:
  RegionChecker(const Graph& original, const KernelLibrary& library, const RegionCheckOptions& options,
                std::int64_t reads)
      : original_(original),
        library_(library.registry(), library.set()),
        options_(options),
        reads_(reads),
        random_(options.seed, "elements of regions") {}

  /// Compares one region on activations of the original. True if at least one finite element of each output was.
  Expected<bool> check(const PreparedRegion& region, const std::map<Value, HostTensor>& activations,
                       RegionReport& report) {
    const auto elements_of = [&](const std::vector<Value>& leaves) {
      std::vector<TensorElements> inputs;
      for (const Value leaf : leaves) {
        const HostTensor& tensor = activations.at(leaf);
        inputs.push_back({tensor.type(), tensor.bytes(), false});
      }
      return inputs;
    };
    PieceValues before(region.before, library_.registry(), elements_of(region.before.leaves));
    PieceValues after(region.after, library_.registry(), elements_of(region.after_leaves));
    TASO_ASSIGN(const std::vector<std::optional<HostTensor>> kernels, run_kernels(region, activations));
    TASO_ASSIGN(const bool all, prepare_values(region, before, after));
    bool complete = true;
    for (std::size_t output = 0; output < region.values.size(); ++output) {
      const auto original = activations.find(region.values[output]);
      TASO_ASSIGN(const std::vector<Sample> samples,
                  take_samples(region, output, all, before, after, kernels[output],
                               original == activations.end() ? nullptr : &original->second));
      complete = judge(region, output, samples, report) > 0 && complete;
      if (report.wrong) break;
    }
    return complete;
  }

 private:
  /// The result's kernels for the region; nothing for outputs that no kernel computes.
  Expected<std::vector<std::optional<HostTensor>>> run_kernels(const PreparedRegion& region,
                                                               const std::map<Value, HostTensor>& activations) {
    std::vector<std::optional<HostTensor>> results(region.values.size());
    Graph graph = region.after.graph;
    std::vector<Value> computed;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < region.values.size(); ++i) {
      const Value output = graph.outputs()[i];
      const Node& node = graph.node(output.node);
      if (node.kind != NodeKind::op || node.weight_only) continue;
      computed.push_back(output);
      places.push_back(i);
    }
    if (computed.empty()) return results;
    graph.set_outputs(std::move(computed));
    graph.remove_dead();
    ExecutorOptions executor_options;
    executor_options.threads = options_.threads;
    executor_options.layouts = layouts_of(region.after);
    Expected<Executor> executor = Executor::create(graph, library_, executor_options);
    if (!executor && executor_options.layouts) {
      // Choices for the whole graph need not fit a part of it.
      executor_options.layouts = nullptr;
      executor = Executor::create(graph, library_, executor_options);
    }
    if (!executor) return executor.error();
    std::vector<HostTensor> inputs;
    for (const Value leaf : region.after_leaves) inputs.push_back(activations.at(leaf).copy());
    TASO_ASSIGN(std::vector<HostTensor> outputs, executor->run(inputs));
    for (std::size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move(outputs[i]);
    return results;
  }

  /// The layouts chosen for nodes of the whole graph, where they say something of the node alone.
  [[nodiscard]] std::shared_ptr<const LayoutAssignment> layouts_of(const GraphPiece& piece) const {
    if (!options_.result_layouts) return nullptr;
    auto assignment = std::make_shared<LayoutAssignment>(piece.graph.id_bound());
    for (const auto& [id, copy] : piece.copies) {
      if (id >= options_.result_layouts->size()) continue;
      const auto& configuration = (*options_.result_layouts)[id];
      if (configuration && configuration->kind != Configuration::Kind::in_place && !configuration->claims)
        (*assignment)[copy] = configuration;
    }
    return assignment;
  }

  /// Whether all elements are computed at once.
  Expected<bool> prepare_values(const PreparedRegion& region, PieceValues& before, PieceValues& after) {
    bool all = options_.full;
    if (!all) {
      for (auto* values : {&before, &after}) values->evaluator().allow(reads_ / 2);
      for (std::size_t output = 0; output < region.values.size() && !all; ++output)
        for (auto* values : {&before, &after}) {
          const Expected<RoundedNumber> element = values->at(output, 0);
          if (!element && !values->evaluator().exhausted()) return element.error();
          all = all || !element;
        }
      if (!all) return false;
      TASO_ASSIGN(const double left, operations_of(region.before.graph, library_.registry()));
      TASO_ASSIGN(const double right, operations_of(region.after.graph, library_.registry()));
      if (left + right > most_operations) return false;
    }
    for (auto* values : {&before, &after}) TASO_RETURN_IF_ERROR(values->compute_all());
    return true;
  }

  Expected<std::vector<Sample>> take_samples(const PreparedRegion& region, std::size_t output, bool all,
                                             PieceValues& before, PieceValues& after,
                                             const std::optional<HostTensor>& kernels, const HostTensor* original) {
    const std::int64_t elements = original_.type(region.values[output]).elements();
    const auto count = options_.full ? elements : std::min(elements, static_cast<std::int64_t>(most_samples));
    const std::int64_t share = reads_ / 2 / static_cast<std::int64_t>(region.values.size());
    if (!all)
      for (auto* values : {&before, &after}) values->evaluator().allow(share);
    std::vector<Sample> samples;
    for (std::int64_t i = 0; i < count; ++i) {
      Sample sample;
      sample.offset =
          count == elements ? i : static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(elements)));
      for (const auto& [values, element] : {std::pair(&before, &sample.before), std::pair(&after, &sample.after)}) {
        Expected<RoundedNumber> computed = values->at(output, sample.offset);
        if (!computed) {
          if (values->evaluator().exhausted()) return samples;
          return computed.error();
        }
        *element = *computed;
      }
      const auto at = static_cast<std::size_t>(sample.offset);
      if (kernels) sample.by_kernels = load_real(kernels->bytes().data(), kernels->type().element, at);
      if (original != nullptr) sample.original = load_real(original->bytes().data(), original->type().element, at);
      samples.push_back(sample);
    }
    return samples;
  }

  /// Number of elements compared.
  std::int64_t judge(const PreparedRegion& region, std::size_t output, const std::vector<Sample>& samples,
                     RegionReport& report) const {
    constexpr double unit = 0x1p-24;
    double magnitude = 0;
    for (const Sample& sample : samples)
      if (std::isfinite(sample.before.value)) magnitude = std::max(magnitude, std::fabs(sample.before.value));
    const double narrow = unit_roundoff(original_.type(region.values[output]).element);
    const double of_operand = std::max(of_rounded_operand * unit, narrow > unit ? of_kept_operand * narrow : 0);
    const double besides = (options_.rtol + (region.reads_rounded ? of_operand : 0)) * magnitude;
    std::int64_t compared = 0;
    double worst = 1;
    const auto consider = [&](const Sample& sample, double expected, double actual, double allowed,
                              WrongElement::Cause cause) {
      const double difference = std::isfinite(actual) ? std::fabs(actual - expected) : HUGE_VAL;
      const double share = difference == 0 ? 0 : difference / allowed;
      report.worst = std::max(report.worst, share);
      if (share <= worst) return;
      worst = share;
      const Value value = region.values[output];
      report.wrong = WrongElement{
          region.number, value, index_of(sample.offset, original_.type(value).shape), expected, actual, allowed, cause};
    };
    for (const Sample& sample : samples) {
      const double deviation = sample.before.deviation() + sample.after.deviation();
      if (!std::isfinite(sample.before.value) || !std::isfinite(deviation)) continue;
      ++compared;
      const double kernels = of_largest * unit * magnitude + besides;
      consider(sample, sample.before.value, sample.after.value, exact_factor * unit * deviation + besides,
               WrongElement::Cause::rule);
      if (sample.by_kernels)
        consider(sample, sample.before.value, *sample.by_kernels, kernel_factor * unit * deviation + kernels,
                 WrongElement::Cause::kernels);
      if (sample.original && std::isfinite(*sample.original))
        consider(sample, *sample.original, sample.by_kernels.value_or(sample.after.value),
                 kernel_factor * unit * sample.after.deviation() + options_.original_rtol * magnitude + kernels,
                 WrongElement::Cause::rounding);
    }
    report.elements += compared;
    return compared;
  }

  const Graph& original_;
  KernelLibrary library_;  // Of the host.
  const RegionCheckOptions& options_;
  std::int64_t reads_;  // For one region.
  Random random_;
};

/// The values of the original that a region reads and makes.
void add_values(const PreparedRegion& region, std::set<Value>& leaves) {
  leaves.insert(region.values.begin(), region.values.end());
  leaves.insert(region.before.leaves.begin(), region.before.leaves.end());
  leaves.insert(region.after_leaves.begin(), region.after_leaves.end());
}

std::int64_t bytes_of(const Graph& graph, const std::set<Value>& values) {
  std::int64_t bytes = 0;
  for (const Value value : values)
    bytes += graph.type(value).elements() * static_cast<std::int64_t>(size_of(graph.type(value).element));
  return bytes;
}

/// Checks regions in order; gives those of which not every output showed something finite.
Expected<std::vector<const PreparedRegion*>> check_all(const std::vector<const PreparedRegion*>& regions, int attempt,
                                                       const Graph& original, const Activations& activations,
                                                       RegionChecker& checker, RegionReport& report) {
  std::vector<const PreparedRegion*> left;
  for (std::size_t begin = 0, end = 0; begin < regions.size(); begin = end) {
    std::set<Value> leaves;
    do add_values(*regions[end++], leaves);
    while (end < regions.size() && bytes_of(original, leaves) < batch_bytes);
    const std::vector<Value> values(leaves.begin(), leaves.end());
    std::map<Value, HostTensor> tensors;
    if (!values.empty()) {
      TASO_ASSIGN(std::vector<HostTensor> computed, activations(values, attempt));
      for (std::size_t i = 0; i < values.size(); ++i) tensors.emplace(values[i], std::move(computed[i]));
    }
    for (std::size_t i = begin; i < end; ++i) {
      TASO_ASSIGN(const bool complete, checker.check(*regions[i], tensors, report));
      if (report.wrong) return left;
      if (complete)
        ++report.checked;
      else
        left.push_back(regions[i]);
    }
  }
  return left;
}

}  // namespace

Expected<RegionReport> check_regions(const Graph& original, const Graph& result, std::span<const ChangedRegion> regions,
                                     const Activations& activations, const KernelLibrary& library,
                                     const RegionCheckOptions& options) {
  RegionReport report;
  report.regions = regions.size();
  const RegionPreparation preparation(original, result, regions);
  std::vector<PreparedRegion> prepared;
  for (std::size_t i = 0; i < regions.size(); ++i)
    if (std::optional<PreparedRegion> region = preparation.prepare(regions[i], i);
        region && is_over_reals(region->before.graph, library.registry()) &&
        is_over_reals(region->after.graph, library.registry()))
      prepared.push_back(std::move(*region));
  std::stable_sort(prepared.begin(), prepared.end(),
                   [](const PreparedRegion& a, const PreparedRegion& b) { return a.place < b.place; });
  std::vector<const PreparedRegion*> list;
  for (const PreparedRegion& region : prepared) list.push_back(&region);
  RegionChecker checker(original, library, options, options.reads / std::max<std::int64_t>(1, std::ssize(list)));
  for (int attempt = 0; attempt < 2 && !list.empty(); ++attempt) {
    TASO_ASSIGN(list, check_all(list, attempt, original, activations, checker, report));
    if (report.wrong) return report;
  }
  std::set<std::size_t> unchecked;
  for (std::size_t i = 0; i < regions.size(); ++i) unchecked.insert(i);
  for (const PreparedRegion& region : prepared)
    if (std::find(list.begin(), list.end(), &region) == list.end()) unchecked.erase(region.number);
  report.unchecked.assign(unchecked.begin(), unchecked.end());
  return report;
}

}  // namespace taso
