#include "partition/plan_problem.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <set>

#include "elimination/elimination.h"

namespace taso {
namespace {

/// The axes along which a value is a broadcast of what depends on constants alone.
std::vector<std::size_t> repeated_axes(const Graph& graph, Value value) {
  std::vector<std::size_t> axes;
  const Node& node = graph.node(value.node);
  if (!node.weight_only || !node.is_op("broadcast") || !graph.type(node.inputs[0]).known) return axes;
  const Shape &from = graph.type(node.inputs[0]).shape, &to = node.outputs[0].shape;
  const std::size_t added = to.size() - from.size();
  for (std::size_t axis = 0; axis < to.size(); ++axis)
    if (axis < added || from[axis - added] != to[axis]) axes.push_back(axis);
  return axes;
}

double cost_of(const Transfer& transfer) {
  return transfer.possible ? transfer.seconds : EliminationProblem::forbidden_cost;
}

}  // namespace

bool reads_what_there_is(const Graph& graph, NodeId id, const NodeConfiguration& configuration) {
  for (std::size_t input = 0; input < configuration.reads.size(); ++input)
    if (!configuration.reads[input].partial.empty() && !is_planned(graph.node(graph.node(id).inputs[input].node)))
      return false;
  return true;
}

bool is_planned(const Node& node) {
  return !node.weight_only && (node.kind == NodeKind::op || node.kind == NodeKind::opaque);
}

PlanProblem::PlanProblem(const Graph& graph, const Mesh& mesh, const Prepared& prepared,
                         const std::vector<StatePair>& state, const ConfigurationFilter& allowed)
    : graph_(graph), mesh_(mesh), nodes_(graph.id_bound()) {
  for (const NodeId id : graph.topological_order())
    if (is_planned(graph.node(id))) add_node(id, *prepared.at(id), allowed);
  find_values(state);
}

void PlanProblem::add_node(NodeId id, const PreparedNode& prepared, const ConfigurationFilter& allowed) {
  PlacedNode& node = nodes_[id];
  node.position = order_.size();
  node.prepared = &prepared;
  for (std::uint32_t i = 0; i < prepared.configurations.size(); ++i)
    if (reads_what_there_is(graph_, id, prepared.configurations[i]) &&
        (!allowed || allowed(id, prepared.configurations[i])))
      node.configurations.push_back(i);
  if (node.configurations.empty()) node.configurations.push_back(0);
  order_.push_back(id);
  auto costs = std::make_shared<std::vector<double>>();
  for (const std::uint32_t i : node.configurations) costs->push_back(prepared.costs[i]);
  node.decision = problem_.add_decision(static_cast<std::uint32_t>(costs->size()));
  problem_.add_cost({node.decision}, std::move(costs));
}

const NodeConfiguration& PlanProblem::configuration(NodeId id, std::uint32_t way) const {
  const PlacedNode& node = nodes_[id];
  return node.prepared->configurations[node.configurations[way]];
}

double PlanProblem::cost(NodeId id, std::uint32_t way) const {
  const PlacedNode& node = nodes_[id];
  return node.prepared->costs[node.configurations[way]];
}

const Placement& PlanProblem::held(const PlannedValue& value, std::uint32_t way) const {
  return value.kept ? *value.placements[way] : configuration(value.value.node, way).makes[value.value.port];
}

void PlanProblem::find_values(const std::vector<StatePair>& state) {
  for (const NodeId id : order_) {
    const Node& node = graph_.node(id);
    for (std::size_t input = 0; input < node.inputs.size(); ++input)
      readers_[node.inputs[input]].push_back({id, input});
  }
  std::set<Value> done;
  for (const StatePair& pair : state) {
    add_state(pair);
    done.insert(pair.input);
    done.insert(pair.output);
  }
  for (const NodeId id : order_)
    for (std::uint32_t port = 0; port < graph_.node(id).outputs.size(); ++port) {
      const Value value{id, port};
      if (done.insert(value).second && graph_.type(value).known)
        add_value({value,
                   static_cast<std::int64_t>(size_of(graph_.type(value).element)),
                   true,
                   std::find(graph_.outputs().begin(), graph_.outputs().end(), value) != graph_.outputs().end(),
                   std::nullopt,
                   {},
                   {}});
    }
  for (const auto& [value, readers] : readers_)
    if (!done.contains(value) && graph_.type(value).known)
      supplied_.push_back({value, static_cast<std::int64_t>(size_of(graph_.type(value).element)),
                           graph_.node(value.node).weight_only, readers, repeated_axes(graph_, value)});
}

/// Both values of a pair are kept where one decision says.
void PlanProblem::add_state(const StatePair& pair) {
  const auto bytes = static_cast<std::int64_t>(size_of(graph_.type(pair.output).element));
  PlannedValue before{pair.input, bytes, false, false, std::nullopt, {}, readers_[pair.input]};
  PlannedValue after{pair.output, bytes, true, true, std::nullopt, {}, readers_[pair.output]};
  Placements candidates = made(pair.output);
  whole_.push_back(std::make_unique<Placement>(everywhere(graph_.type(pair.output).shape, mesh_)));
  candidates.push_back(whole_.back().get());
  for (const auto* value : {&before, &after})
    for (const ValueReader& reader : value->readers)
      for (const Placement* placement : read_by(reader)) candidates.push_back(placement);
  keep(after, candidates);
  before.kept = after.kept;
  before.placements = after.placements;
  for (const ValueReader& reader : before.readers)
    problem_.add_cost({*before.kept, decision(reader.node)}, table(before.placements, read_by(reader), bytes));
  values_.push_back(std::move(before));
  values_.push_back(std::move(after));
}

PlanProblem::Placements PlanProblem::made(Value value) const {
  Placements placements;
  for (std::uint32_t way = 0; way < ways(value.node); ++way)
    placements.push_back(&configuration(value.node, way).makes[value.port]);
  return placements;
}

PlanProblem::Placements PlanProblem::read_by(const ValueReader& reader) const {
  Placements placements;
  for (std::uint32_t way = 0; way < ways(reader.node); ++way) placements.push_back(&read(reader, way));
  return placements;
}

void PlanProblem::add_value(PlannedValue value) {
  if (const auto found = readers_.find(value.value); found != readers_.end()) value.readers = found->second;
  if (value.readers.size() == 1 && !value.output) {
    const ValueReader& reader = value.readers[0];
    problem_.add_cost({decision(value.value.node), decision(reader.node)},
                      table(made(value.value), read_by(reader), value.element_bytes));
  } else if (!value.readers.empty() || value.output) {
    Placements candidates = made(value.value);
    for (const ValueReader& reader : value.readers)
      for (const Placement* placement : read_by(reader)) candidates.push_back(placement);
    keep(value, candidates);
  }
  values_.push_back(std::move(value));
}

/// A decision where the value is kept, and what moves there and from there.
void PlanProblem::keep(PlannedValue& value, const Placements& candidates) {
  std::set<Placement> seen;
  for (const Placement* placement : candidates)
    if (seen.insert(*placement).second &&
        (!value.output || (placement->partial.empty() && covers(*placement, graph_.type(value.value).shape))))
      value.placements.push_back(placement);
  if (value.placements.empty()) {
    whole_.push_back(std::make_unique<Placement>(everywhere(graph_.type(value.value).shape, mesh_)));
    value.placements.push_back(whole_.back().get());
  }
  value.kept = problem_.add_decision(static_cast<std::uint32_t>(value.placements.size()));
  problem_.add_cost({decision(value.value.node), *value.kept},
                    table(made(value.value), value.placements, value.element_bytes));
  for (const ValueReader& reader : value.readers)
    problem_.add_cost({*value.kept, decision(reader.node)},
                      table(value.placements, read_by(reader), value.element_bytes));
}

/// Costs from each placement to each other; of equal ones looked up.
PartitionProblem::Table PlanProblem::table(const Placements& have, const Placements& need, std::int64_t element_bytes) {
  PartitionProblem::Table& known = tables_[std::tuple(have, need, element_bytes)];
  if (known) return known;
  // Configurations share placements: each pair of different ones is asked once.
  std::map<Placement, std::size_t> from, to;
  std::vector<std::size_t> rows, columns;
  Placements sources, targets;
  const auto number = [](const Placements& all, std::map<Placement, std::size_t>& numbers,
                         std::vector<std::size_t>& places, Placements& different) {
    for (const Placement* placement : all) {
      const auto [at, fresh] = numbers.try_emplace(*placement, numbers.size());
      if (fresh) different.push_back(placement);
      places.push_back(at->second);
    }
  };
  number(have, from, rows, sources);
  number(need, to, columns, targets);
  std::vector<double> costs(sources.size() * targets.size());
  tbb::parallel_for(std::size_t{0}, sources.size(), [&](std::size_t i) {
    TransferSource source(*sources[i], element_bytes, mesh_);
    for (std::size_t j = 0; j < targets.size(); ++j) costs[i * targets.size() + j] = cost_of(source.to(*targets[j]));
  });
  auto made = std::make_shared<std::vector<double>>();
  made->reserve(rows.size() * columns.size());
  for (const std::size_t row : rows)
    for (const std::size_t column : columns) made->push_back(costs[row * targets.size() + column]);
  known = std::move(made);
  return known;
}

PlanProblem::Choice PlanProblem::repeated() const {
  Choice choice(problem_.decisions(), 0);
  const auto repeats = [](const AxisUse& use) { return use.kind == AxisUse::Kind::repeat; };
  for (const NodeId id : order_)
    for (std::uint32_t way = ways(id); way-- > 0;) {
      const std::vector<AxisUse>& axes = configuration(id, way).axes;
      if (std::all_of(axes.begin(), axes.end(), repeats)) choice[decision(id)] = way;
    }
  for (const PlannedValue& value : values_) {
    if (!value.kept) continue;
    const Placement whole = everywhere(graph_.type(value.value).shape, mesh_);
    for (std::uint32_t way = 0; way < value.placements.size(); ++way)
      if (*value.placements[way] == whole) choice[*value.kept] = way;
  }
  return choice;
}

PartitionPlan PlanProblem::plan_of(const Choice& choice) const {
  PartitionPlan plan;
  plan.mesh = mesh_;
  plan.choice = choice;
  plan.decisions = problem_.decisions();
  for (const NodeId id : order_) {
    const std::uint32_t way = choice[decision(id)];
    plan.nodes.push_back({id, configuration(id, way), cost(id, way), 0});
    plan.compute_seconds += cost(id, way);
  }
  // In the order of the nodes that make; what is there before comes first.
  std::vector<const PlannedValue*> values;
  for (const PlannedValue& value : values_) values.push_back(&value);
  std::stable_sort(values.begin(), values.end(), [&](const PlannedValue* a, const PlannedValue* b) {
    const auto key = [&](const PlannedValue& v) { return std::pair(v.made ? position(v.value.node) + 1 : 0, v.value); };
    return key(*a) < key(*b);
  });
  for (const PlannedValue* value : values) read_value(*value, choice, plan);
  plan.seconds = plan.compute_seconds + plan.transfer_seconds;
  return plan;
}

KeptAs PlanProblem::kept_as(const PlannedValue& value, const Choice& choice) const {
  const Placement& placement = held(value, choice[holder(value)]);
  const NodeId maker = value.value.node;
  const auto made_as = [&](std::uint32_t way) {
    return configuration(maker, way).makes[value.value.port] == placement;
  };
  if (made_as(choice[decision(maker)])) return {};
  // Of a pair of state those who read the other value, too.
  std::vector<ValueReader> readers = value.readers;
  for (const PlannedValue& other : values_)
    if (!other.made && other.kept == value.kept)
      readers.insert(readers.end(), other.readers.begin(), other.readers.end());
  for (const ValueReader& reader : readers)
    if (read(reader, choice[decision(reader.node)]) == placement)
      return {KeptAs::Kind::read, reader.node, reader.input, std::nullopt};
  if (placement == everywhere(graph_.type(value.value).shape, mesh_))
    return {KeptAs::Kind::everywhere, 0, 0, std::nullopt};
  for (std::uint32_t way = 0; way < ways(maker); ++way)
    if (made_as(way)) return {KeptAs::Kind::made, 0, 0, configuration(maker, way).axes};
  for (const ValueReader& reader : readers)
    for (std::uint32_t way = 0; way < ways(reader.node); ++way)
      if (read(reader, way) == placement)
        return {KeptAs::Kind::read, reader.node, reader.input, configuration(reader.node, way).axes};
  TASO_CHECK(false, "a value is kept as nobody makes or reads it");
  return {};
}

void PlanProblem::read_value(const PlannedValue& value, const Choice& choice, PartitionPlan& plan) const {
  if (value.readers.empty() && !value.kept) return;
  const auto move = [&](std::optional<NodeId> reader, const Placement& have, const Placement& need) {
    const Transfer moved = transfer(have, need, value.element_bytes, mesh_);
    if (moved.bytes == 0 && moved.possible) return;
    plan.transfers.push_back({value.value, reader, moved});
    plan.transfer_seconds += moved.seconds;
    plan.transfer_bytes += moved.bytes;
  };
  const Placement& held_in = held(value, choice[holder(value)]);
  if (value.kept) {
    if (value.made)
      move(std::nullopt, configuration(value.value.node, choice[decision(value.value.node)]).makes[value.value.port],
           held_in);
    plan.kept.emplace(value.value, held_in);
    if (value.made) plan.kept_as.emplace(value.value, kept_as(value, choice));
  }
  for (const ValueReader& reader : value.readers)
    move(reader.node, held_in, read(reader, choice[decision(reader.node)]));
}

}  // namespace taso
