#include "partition/tofu_problem.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace taso {

/// The tilings of a shape to choose from, and the boxes of each.
struct TofuProblem::Tiled {
  Shape shape;
  std::vector<TensorTiling> tilings;
  std::vector<std::vector<IndexBox>> boxes;
};

/// The configurations of equal applications to choose from.
struct TofuProblem::Configured {
  std::vector<NodeConfiguration> list;
  std::vector<std::int64_t> summands;  ///< Per configuration: how many partial results every element has.
};

namespace {

std::size_t repeats_of(const NodeConfiguration& configuration) {
  return static_cast<std::size_t>(std::count_if(configuration.axes.begin(), configuration.axes.end(),
                                                [](const AxisUse& use) { return use.kind == AxisUse::Kind::repeat; }));
}

/// Every step a strategy, as far as that is possible.
std::vector<NodeConfiguration> cut_only(std::vector<NodeConfiguration> list) {
  std::erase_if(list, [](const NodeConfiguration& configuration) {
    return std::any_of(configuration.axes.begin(), configuration.axes.end(),
                       [](const AxisUse& use) { return use.kind == AxisUse::Kind::partial; });
  });
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const NodeConfiguration& configuration : list) least = std::min(least, repeats_of(configuration));
  std::erase_if(list, [&](const NodeConfiguration& configuration) { return repeats_of(configuration) > least; });
  return list;
}

std::string key_of(const std::vector<AxisUse>& uses) {
  std::string key;
  for (const AxisUse& use : uses) key += "|" + use.variable + use.reducer;
  return key;
}

}  // namespace

/// Adds the decisions, then the costs; equal applications of equal decisions share their tables.
class TofuProblem::Builder {
 public:
  Builder(TofuProblem& built, const Graph& graph, const TofuCoarsening& coarsening, const TilingSteps& steps,
          bool replicate, StrategyTable& strategies, const TofuDecisions& decided)
      : built_(built),
        graph_(graph),
        coarsening_(coarsening),
        steps_(steps),
        replicate_(replicate),
        strategies_(strategies),
        decided_(decided) {
    for (const std::int64_t size : steps) mesh_.axes.push_back({size, "", 0, 0});
  }

  void run() {
    for (std::size_t c = 0; c < coarsening_.first.size(); ++c) {
      const TensorTiling first = decided_.tilings.empty() ? TensorTiling{} : decided_.tilings[c];
      built_.tensors_.push_back(tiled(graph_.type(coarsening_.first[c]).shape, first));
      built_.problem_.add_decision(static_cast<std::uint32_t>(built_.tensors_.back()->tilings.size()));
    }
    for (std::size_t c = 0; c < coarsening_.classes.size(); ++c) {
      const std::vector<AxisUse> first = decided_.uses.empty() ? std::vector<AxisUse>{} : decided_.uses[c];
      built_.operators_.push_back(configured(coarsening_.classes[c].first, first));
      built_.problem_.add_decision(static_cast<std::uint32_t>(built_.operators_.back()->list.size()));
    }
    for (std::size_t c = 0; c < coarsening_.classes.size(); ++c) add_costs(c);
  }

 private:
  using Table = PartitionProblem::Table;

  [[nodiscard]] std::shared_ptr<const Tiled> tiled(const Shape& shape, const TensorTiling& first) {
    std::shared_ptr<const Tiled>& known = tiled_[{shape, first}];
    if (known) return known;
    auto made = std::make_shared<Tiled>();
    made->shape = shape;
    made->tilings = tilings_of(shape, steps_, replicate_, first);
    for (const TensorTiling& tiling : made->tilings) made->boxes.push_back(boxes_of(shape, tiling, steps_));
    return known = made;
  }

  [[nodiscard]] bool understood(const Node& node) const {
    const auto known = [&](const Value& value) { return graph_.type(value).known; };
    return node.kind == NodeKind::op && std::all_of(node.inputs.begin(), node.inputs.end(), known) &&
           std::all_of(node.outputs.begin(), node.outputs.end(), [](const TensorType& type) { return type.known; });
  }

  [[nodiscard]] std::shared_ptr<const Configured> configured(NodeId id, const std::vector<AxisUse>& first) {
    const Node& node = graph_.node(id);
    std::string key = node.op + to_string(node.attributes);
    for (const Value& input : node.inputs) key += " " + to_string(graph_.type(input));
    if (!understood(node)) key = "?" + std::to_string(id);
    std::shared_ptr<const Configured>& known = configured_[key + key_of(first)];
    if (known) return known;
    auto made = std::make_shared<Configured>();
    if (understood(node)) {
      ConfigurationOptions options;
      options.decided = first;
      NodeConfigurations all = configurations_of(graph_, id, mesh_, strategies_, options);
      built_.complete_ = built_.complete_ && all.complete;
      made->list = cut_only(std::move(all.list));
    } else {
      made->list.push_back(carried(node));
    }
    for (const NodeConfiguration& configuration : made->list) {
      std::int64_t summands = 1;
      for (std::size_t step = 0; step < configuration.axes.size(); ++step)
        if (!configuration.axes[step].reducer.empty()) summands *= steps_[step];
      made->summands.push_back(summands);
    }
    return known = made;
  }

  /// An operator that is not understood reads and makes everything everywhere.
  [[nodiscard]] NodeConfiguration carried(const Node& node) const {
    NodeConfiguration configuration;
    configuration.axes.resize(steps_.size());
    const auto placed = [&](const TensorType& type) {
      return type.known ? everywhere(type.shape, mesh_) : Placement{};
    };
    for (const Value& input : node.inputs) configuration.reads.push_back(placed(graph_.type(input)));
    for (const TensorType& type : node.outputs) configuration.makes.push_back(placed(type));
    return configuration;
  }

  void add_costs(std::size_t operator_class) {
    const auto& members = coarsening_.classes[operator_class];
    const NodeId id = members.first;
    const auto count = static_cast<double>(members.count);
    const Node& node = graph_.node(id);
    const auto decision = static_cast<PartitionProblem::Decision>(coarsening_.first.size() + operator_class);
    const auto add = [&](Value value, std::size_t place, bool made) {
      const auto tensor = coarsening_.tensors.find(value);
      if (tensor == coarsening_.tensors.end()) return;
      const double bytes = static_cast<double>(size_of(graph_.type(value).element)) * count;
      built_.problem_.add_cost(
          {decision, static_cast<PartitionProblem::Decision>(tensor->second)},
          table(built_.operators_[operator_class], built_.tensors_[tensor->second], place, made, bytes));
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i) add(node.inputs[i], i, false);
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) add({id, port}, port, true);
  }

  [[nodiscard]] Table table(const std::shared_ptr<const Configured>& configured,
                            const std::shared_ptr<const Tiled>& tiled, std::size_t place, bool made, double bytes) {
    Table& known = tables_[{configured.get(), tiled.get(), place, made, bytes}];
    if (known) return known;
    std::vector<double> elements = made ? kept(*configured, *tiled, place) : read(*configured, *tiled, place);
    for (double& number : elements) number *= bytes;
    return known = std::make_shared<const std::vector<double>>(std::move(elements));
  }

  [[nodiscard]] static std::vector<double> read(const Configured& configured, const Tiled& tiled, std::size_t input) {
    const std::size_t width = tiled.tilings.size();
    std::vector<double> elements(configured.list.size() * width);
    tbb::parallel_for(std::size_t{0}, configured.list.size(), [&](std::size_t way) {
      for (std::size_t t = 0; t < width; ++t)
        elements[way * width + t] = fetched(configured.list[way].reads[input].boxes, tiled.boxes[t]);
    });
    return elements;
  }

  /// Reduced where it is kept, or in some tiling first and fetched from there.
  [[nodiscard]] std::vector<double> kept(const Configured& configured, const Tiled& tiled, std::size_t port) {
    const std::shared_ptr<const Tiled> between = this->tiled(tiled.shape, {});
    const std::size_t width = tiled.tilings.size();
    std::vector<double> moved(between->tilings.size() * width);
    for (std::size_t a = 0; a < between->tilings.size(); ++a)
      for (std::size_t t = 0; t < width; ++t) moved[a * width + t] = fetched(tiled.boxes[t], between->boxes[a]);
    std::vector<double> elements(configured.list.size() * width, std::numeric_limits<double>::infinity());
    tbb::parallel_for(std::size_t{0}, configured.list.size(), [&](std::size_t way) {
      for (std::size_t a = 0; a < between->tilings.size(); ++a) {
        const double first =
            reduced(configured.list[way].makes[port].boxes, configured.summands[way], between->boxes[a]);
        for (std::size_t t = 0; t < width; ++t)
          elements[way * width + t] = std::min(elements[way * width + t], first + moved[a * width + t]);
      }
    });
    return elements;
  }

  TofuProblem& built_;
  const Graph& graph_;
  const TofuCoarsening& coarsening_;
  const TilingSteps& steps_;
  bool replicate_;
  StrategyTable& strategies_;
  const TofuDecisions& decided_;
  Mesh mesh_;
  std::map<std::pair<Shape, TensorTiling>, std::shared_ptr<const Tiled>> tiled_;
  std::map<std::string, std::shared_ptr<const Configured>> configured_;
  std::map<std::tuple<const Configured*, const Tiled*, std::size_t, bool, double>, Table> tables_;
};

TofuProblem::TofuProblem(const Graph& graph, const TofuCoarsening& coarsening, const TilingSteps& steps, bool replicate,
                         StrategyTable& strategies, const TofuDecisions& decided) {
  Builder(*this, graph, coarsening, steps, replicate, strategies, decided).run();
}

TofuProblem::~TofuProblem() = default;

const std::vector<TensorTiling>& TofuProblem::tilings(std::size_t tensor_class) const {
  return tensors_[tensor_class]->tilings;
}

const std::vector<NodeConfiguration>& TofuProblem::configurations(std::size_t operator_class) const {
  return operators_[operator_class]->list;
}

TofuDecisions TofuProblem::decisions_of(const std::vector<std::uint32_t>& choice) const {
  TofuDecisions decisions;
  for (std::size_t c = 0; c < tensors_.size(); ++c) decisions.tilings.push_back(tensors_[c]->tilings[choice[c]]);
  for (std::size_t c = 0; c < operators_.size(); ++c)
    decisions.uses.push_back(operators_[c]->list[choice[tensors_.size() + c]].axes);
  return decisions;
}

std::vector<std::uint32_t> TofuProblem::choice_of(const TofuDecisions& decisions) const {
  std::vector<std::uint32_t> choice;
  for (std::size_t c = 0; c < decisions.tilings.size(); ++c) {
    const auto& all = tilings(c);
    const auto at = std::find(all.begin(), all.end(), decisions.tilings[c]);
    TASO_CHECK(at != all.end(), "a tiling that the problem does not have");
    choice.push_back(static_cast<std::uint32_t>(at - all.begin()));
  }
  for (std::size_t c = 0; c < decisions.uses.size(); ++c) {
    const auto& all = configurations(c);
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const NodeConfiguration& one) { return one.axes == decisions.uses[c]; });
    choice.push_back(at == all.end() ? 0 : static_cast<std::uint32_t>(at - all.begin()));
  }
  return choice;
}

}  // namespace taso
