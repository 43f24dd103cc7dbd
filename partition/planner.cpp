#include "partition/planner.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "operators/instance.h"

namespace taso {

/// What is the same of equal applications: configurations, and what their pieces cost.
struct Planner::Prepared {
  std::vector<NodeConfiguration> configurations;
  std::vector<double> seconds;
};

namespace {

/// The one configuration of a node that is carried: everything everywhere, as far as types are known.
NodeConfiguration carried(const Graph& graph, const Node& node, const Mesh& mesh) {
  NodeConfiguration configuration;
  configuration.axes.resize(mesh.axes.size());
  const auto placed = [&](const TensorType& type) { return type.known ? everywhere(type.shape, mesh) : Placement{}; };
  for (const Value& input : node.inputs) configuration.reads.push_back(placed(graph.type(input)));
  for (const TensorType& type : node.outputs) configuration.makes.push_back(placed(type));
  return configuration;
}

bool is_planned(const Node& node) {
  return !node.weight_only && (node.kind == NodeKind::op || node.kind == NodeKind::opaque);
}

bool types_known(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value& v) { return graph.type(v).known; }) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), [](const TensorType& type) { return type.known; });
}

using Placements = std::vector<const Placement*>;

double seconds_of(const Transfer& transfer) {
  return transfer.possible ? transfer.seconds : EliminationProblem::forbidden_cost;
}

}  // namespace

/// Makes the problem of one plan, and reads its solution.
class Planner::Builder {
 public:
  explicit Builder(Planner& planner, const ConfigurationFilter& allowed) : planner_(planner), graph_(planner.graph_) {
    for (const NodeId id : graph_.topological_order()) {
      if (!is_planned(graph_.node(id))) continue;
      order_.push_back(id);
      const Prepared& prepared = *planner_.prepared_.at(id);
      std::vector<std::uint32_t>& ways = ways_[id];
      for (std::uint32_t i = 0; i < prepared.configurations.size(); ++i)
        if (i == 0 || !allowed || allowed(id, prepared.configurations[i])) ways.push_back(i);
    }
  }

  PartitionPlan run() {
    for (const NodeId id : order_) add_node(id);
    find_readers();
    for (const NodeId id : order_)
      for (std::uint32_t port = 0; port < graph_.node(id).outputs.size(); ++port) add_value({id, port});
    const PartitionSolution solution = solve_exact(problem_, planner_.options_.solver);
    return read(solution);
  }

 private:
  struct Reader {
    NodeId node = 0;
    std::size_t input = 0;
  };
  /// A value that is kept: its decision, and the placements to choose from.
  struct Kept {
    PartitionProblem::Decision decision = 0;
    Placements placements;
  };

  [[nodiscard]] const NodeConfiguration& configuration(NodeId id, std::uint32_t way) const {
    return planner_.prepared_.at(id)->configurations[ways_.at(id)[way]];
  }

  void add_node(NodeId id) {
    const Prepared& prepared = *planner_.prepared_.at(id);
    auto table = std::make_shared<std::vector<double>>();
    for (const std::uint32_t way : ways_.at(id)) table->push_back(prepared.seconds[way]);
    decisions_[id] = problem_.add_decision(static_cast<std::uint32_t>(table->size()));
    problem_.add_cost({decisions_[id]}, std::move(table));
  }

  void find_readers() {
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      for (std::size_t input = 0; input < node.inputs.size(); ++input)
        if (decisions_.contains(node.inputs[input].node)) readers_[node.inputs[input]].push_back({id, input});
    }
  }

  [[nodiscard]] Placements made(Value value) const {
    Placements placements;
    for (std::uint32_t way = 0; way < ways_.at(value.node).size(); ++way)
      placements.push_back(&configuration(value.node, way).makes[value.port]);
    return placements;
  }
  [[nodiscard]] Placements read_by(const Reader& reader) const {
    Placements placements;
    for (std::uint32_t way = 0; way < ways_.at(reader.node).size(); ++way)
      placements.push_back(&configuration(reader.node, way).reads[reader.input]);
    return placements;
  }

  void add_value(Value value) {
    const TensorType& type = graph_.type(value);
    if (!type.known) return;
    const auto found = readers_.find(value);
    const std::vector<Reader> none;
    const std::vector<Reader>& readers = found == readers_.end() ? none : found->second;
    const bool output = std::find(graph_.outputs().begin(), graph_.outputs().end(), value) != graph_.outputs().end();
    const auto bytes = static_cast<std::int64_t>(size_of(type.element));
    const Placements producers = made(value);
    if (readers.size() == 1 && !output) {
      problem_.add_cost({decisions_.at(value.node), decisions_.at(readers[0].node)},
                        table(producers, read_by(readers[0]), bytes));
      return;
    }
    if (readers.empty() && !output) return;
    Kept& kept = kept_[value];
    std::set<Placement> seen;
    const auto add = [&](const Placements& placements) {
      for (const Placement* placement : placements)
        if ((!output || placement->partial.empty()) && seen.insert(*placement).second)
          kept.placements.push_back(placement);
    };
    add(producers);
    for (const Reader& reader : readers) add(read_by(reader));
    if (kept.placements.empty()) {
      whole_.push_back(std::make_unique<Placement>(everywhere(type.shape, planner_.mesh_)));
      kept.placements.push_back(whole_.back().get());
    }
    kept.decision = problem_.add_decision(static_cast<std::uint32_t>(kept.placements.size()));
    problem_.add_cost({decisions_.at(value.node), kept.decision}, table(producers, kept.placements, bytes));
    for (const Reader& reader : readers)
      problem_.add_cost({kept.decision, decisions_.at(reader.node)}, table(kept.placements, read_by(reader), bytes));
  }

  /// Seconds from each placement to each other; of equal ones looked up.
  [[nodiscard]] PartitionProblem::Table table(const Placements& have, const Placements& need, std::int64_t bytes) {
    const auto key = std::tuple(have, need, bytes);
    PartitionProblem::Table& known = tables_[key];
    if (known) return known;
    // Configurations share placements: each pair of different ones is asked once.
    std::map<Placement, std::size_t> from, to;
    std::vector<std::size_t> rows, columns;
    std::vector<const Placement*> sources, targets;
    const auto number = [](const Placements& all, std::map<Placement, std::size_t>& numbers,
                           std::vector<std::size_t>& places, std::vector<const Placement*>& different) {
      for (const Placement* placement : all) {
        const auto [at, fresh] = numbers.try_emplace(*placement, numbers.size());
        if (fresh) different.push_back(placement);
        places.push_back(at->second);
      }
    };
    number(have, from, rows, sources);
    number(need, to, columns, targets);
    std::vector<double> seconds(sources.size() * targets.size());
    tbb::parallel_for(std::size_t{0}, sources.size(), [&](std::size_t i) {
      TransferSource source(*sources[i], bytes, planner_.mesh_);
      for (std::size_t j = 0; j < targets.size(); ++j)
        seconds[i * targets.size() + j] = seconds_of(source.to(*targets[j]));
    });
    auto made = std::make_shared<std::vector<double>>();
    made->reserve(rows.size() * columns.size());
    for (const std::size_t row : rows)
      for (const std::size_t column : columns) made->push_back(seconds[row * targets.size() + column]);
    known = std::move(made);
    return known;
  }

  PartitionPlan read(const PartitionSolution& solution) {
    PartitionPlan plan;
    plan.mesh = planner_.mesh_;
    plan.lower_bound = solution.lower_bound;
    plan.exact = solution.exact;
    plan.complete = planner_.complete_;
    plan.order = solution.order;
    plan.decisions = problem_.decisions();
    plan.ways = solution.ways;
    std::vector<double> weights(static_cast<std::size_t>(plan.mesh.devices()), 0);
    for (const NodeId id : order_) {
      const std::uint32_t way = ways_.at(id)[solution.choice[decisions_.at(id)]];
      const Prepared& prepared = *planner_.prepared_.at(id);
      plan.nodes.push_back({id, prepared.configurations[way], prepared.seconds[way]});
      plan.compute_seconds += prepared.seconds[way];
      add_weights(id, prepared.configurations[way], weights);
    }
    for (const double bytes : weights) plan.weight_bytes = std::max(plan.weight_bytes, bytes);
    for (const NodeId id : order_)
      for (std::uint32_t port = 0; port < graph_.node(id).outputs.size(); ++port)
        read_value({id, port}, solution, plan);
    plan.seconds = plan.compute_seconds + plan.transfer_seconds;
    return plan;
  }

  /// Each weight once, where several nodes read the same of it.
  void add_weights(NodeId id, const NodeConfiguration& configuration, std::vector<double>& weights) {
    const Node& node = graph_.node(id);
    for (std::size_t input = 0; input < node.inputs.size(); ++input) {
      const Value value = node.inputs[input];
      if (!graph_.node(value.node).weight_only || !graph_.type(value).known) continue;
      const Placement& placement = configuration.reads[input];
      if (!counted_.insert({value, placement}).second) continue;
      const auto bytes = static_cast<double>(size_of(graph_.type(value).element));
      for (std::size_t device = 0; device < weights.size(); ++device)
        weights[device] += bytes * static_cast<double>(volume_of(placement.boxes[device]));
    }
  }

  void read_value(Value value, const PartitionSolution& solution, PartitionPlan& plan) {
    const auto found = readers_.find(value);
    if (!graph_.type(value).known || (found == readers_.end() && !kept_.contains(value))) return;
    const auto bytes = static_cast<std::int64_t>(size_of(graph_.type(value).element));
    const auto move = [&](std::optional<NodeId> reader, const Placement& have, const Placement& need) {
      const Transfer moved = transfer(have, need, bytes, planner_.mesh_);
      if (moved.bytes == 0 && moved.possible) return;
      plan.transfers.push_back({value, reader, moved});
      plan.transfer_seconds += moved.seconds;
      plan.transfer_bytes += moved.bytes;
    };
    const Placement* have = &configuration(value.node, solution.choice[decisions_.at(value.node)]).makes[value.port];
    if (const auto kept = kept_.find(value); kept != kept_.end()) {
      const Placement* placement = kept->second.placements[solution.choice[kept->second.decision]];
      move(std::nullopt, *have, *placement);
      plan.kept.emplace(value, *placement);
      have = placement;
    }
    if (found == readers_.end()) return;
    for (const Reader& reader : found->second)
      move(reader.node, *have,
           configuration(reader.node, solution.choice[decisions_.at(reader.node)]).reads[reader.input]);
  }

  Planner& planner_;
  const Graph& graph_;
  std::vector<NodeId> order_;
  std::map<NodeId, std::vector<std::uint32_t>> ways_;
  PartitionProblem problem_;
  std::map<NodeId, PartitionProblem::Decision> decisions_;
  std::map<Value, std::vector<Reader>> readers_;
  std::map<Value, Kept> kept_;
  std::vector<std::unique_ptr<Placement>> whole_;
  std::map<std::tuple<Placements, Placements, std::int64_t>, PartitionProblem::Table> tables_;
  std::set<std::pair<Value, Placement>> counted_;
};

PieceCost roofline(const OperatorRegistry& registry, const DeviceRates& rates) {
  return [&registry, rates](const OperatorPiece& piece) {
    const Expected<OperatorInstance> instance =
        OperatorInstance::create(registry, piece.op, piece.attributes, piece.inputs);
    if (!instance) return EliminationProblem::forbidden_cost;
    const Work& work = instance->work();
    return std::max(work.flops / rates.flops, (work.bytes_read + work.bytes_written) / rates.memory_bandwidth);
  };
}

Planner::Planner(const Graph& graph, const Mesh& mesh, StrategyTable& strategies, PlannerOptions options)
    : graph_(graph), mesh_(mesh), strategies_(strategies), options_(std::move(options)) {
  if (!options_.cost) options_.cost = roofline(strategies.registry(), mesh.device);
  std::map<std::string, std::shared_ptr<const Prepared>> equal;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (!is_planned(node)) continue;
    const bool understood = node.kind == NodeKind::op && types_known(graph, node);
    ConfigurationOptions limits = options_.configurations;
    if (const auto at = options_.decided.find(id); at != options_.decided.end()) limits.decided = at->second;
    std::string key;
    if (understood) {
      key = node.op + to_string(node.attributes);
      for (const Value& input : node.inputs) key += " " + to_string(graph.type(input));
      for (const AxisUse& use : limits.decided) {
        key += " | " + use.variable + use.reducer;
        for (const std::size_t input : use.inputs) key += " " + std::to_string(input);
      }
    }
    std::shared_ptr<const Prepared>* known = understood ? &equal[key] : nullptr;
    if (known != nullptr && *known) {
      prepared_[id] = *known;
      continue;
    }
    auto prepared = std::make_shared<Prepared>();
    if (understood) {
      NodeConfigurations made = configurations_of(graph, id, mesh, strategies_, limits);
      prepared->configurations = std::move(made.list);
      complete_ = complete_ && made.complete;
      for (const NodeConfiguration& configuration : prepared->configurations)
        prepared->seconds.push_back(options_.cost(configuration.largest));
    } else {
      prepared->configurations.push_back(carried(graph, node, mesh));
      prepared->seconds.push_back(0);
    }
    prepared_[id] = prepared;
    if (known != nullptr) *known = prepared;
  }
}

Expected<PartitionPlan> Planner::plan(const ConfigurationFilter& allowed) { return Builder(*this, allowed).run(); }

const std::vector<NodeConfiguration>& Planner::configurations(NodeId id) const {
  return prepared_.at(id)->configurations;
}

ConfigurationFilter only_repeat() {
  return [](NodeId, const NodeConfiguration& configuration) {
    return std::all_of(configuration.axes.begin(), configuration.axes.end(),
                       [](const AxisUse& use) { return use.kind == AxisUse::Kind::repeat; });
  };
}

ConfigurationFilter only_data_parallel(const Graph& graph) {
  return [&graph](NodeId id, const NodeConfiguration& configuration) {
    const std::string first = "@-" + std::to_string(graph.node(id).outputs[0].shape.size());
    return std::all_of(configuration.axes.begin(), configuration.axes.end(), [&](const AxisUse& use) {
      return use.kind == AxisUse::Kind::cut && use.variable.ends_with(first);
    });
  };
}

}  // namespace taso
