#include "partition/pase_problem.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "support/status.h"

namespace taso {
namespace {

/// The tensors that count, in the order of edges.
std::vector<PaseEdge> counted(const std::vector<PaseEdge>& edges, PaseParallelEdges parallel) {
  if (parallel == PaseParallelEdges::all) return edges;
  std::vector<PaseEdge> kept;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> place;
  for (const PaseEdge& edge : edges) {
    const auto [at, is_new] = place.emplace(std::pair(edge.producer, edge.consumer), kept.size());
    if (is_new)
      kept.push_back(edge);
    else
      kept[at->second] = edge;
  }
  return kept;
}

/// Tables of edges, one for all edges that are alike: same shape, written and read in the same ways.
class EdgeTables {
 public:
  explicit EdgeTables(const PaseMachine& machine) : machine_(machine) {}

  PartitionProblem::Table table(const std::vector<std::int64_t>& shape, PaseConfigurations written,
                                PaseConfigurations read) {
    const std::size_t from = number_of(std::move(written)), to = number_of(std::move(read));
    PartitionProblem::Table& table = tables_[{shape, from, to}];
    if (!table)
      table = std::make_shared<const std::vector<double>>(pase_edge_costs(shape, lists_[from], lists_[to], machine_));
    return table;
  }

 private:
  /// Equal lists have equal numbers.
  std::size_t number_of(PaseConfigurations list) {
    const auto place = std::find(lists_.begin(), lists_.end(), list);
    if (place != lists_.end()) return static_cast<std::size_t>(place - lists_.begin());
    lists_.push_back(std::move(list));
    return lists_.size() - 1;
  }
  const PaseMachine& machine_;
  std::vector<PaseConfigurations> lists_;
  std::map<std::tuple<std::vector<std::int64_t>, std::size_t, std::size_t>, PartitionProblem::Table> tables_;
};

}  // namespace

PaseProblem pase_problem(const PaseGraph& graph, std::int64_t devices, const PaseMachine& machine,
                         PaseParallelEdges parallel) {
  TASO_CHECK(devices > 0, "a partition over no device");
  PaseProblem made;
  for (const PaseLayer& layer : graph.layers) {
    made.configurations.push_back(pase_configurations(layer, devices, graph.cutoff));
    const PaseConfigurations& configurations = made.configurations.back();
    const auto decision = made.problem.add_decision(static_cast<std::uint32_t>(configurations.size()));
    made.problem.add_cost(
        {decision}, std::make_shared<const std::vector<double>>(pase_layer_costs(layer, configurations, machine)));
  }
  EdgeTables tables(machine);
  for (const PaseEdge& edge : counted(graph.edges, parallel)) {
    const PaseTensor& written = graph.layers[edge.producer].outputs[edge.output];
    const PaseTensor& read = graph.layers[edge.consumer].inputs[edge.input];
    made.problem.add_cost({edge.producer, edge.consumer},
                          tables.table(written.shape, pase_splits(written, made.configurations[edge.producer]),
                                       pase_splits(read, made.configurations[edge.consumer])));
    ++made.edges;
  }
  return made;
}

std::vector<std::uint32_t> pase_data_parallel(const PaseGraph& graph, const PaseProblem& problem) {
  std::vector<std::uint32_t> choice;
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer) {
    const PaseConfigurations& configurations = problem.configurations[layer];
    std::uint32_t best = 0;
    PaseConfigurations::Split most = 0;
    for (std::uint32_t i = 0; i < configurations.size(); ++i) {
      const auto splits = configurations[i];
      const PaseConfigurations::Split batch = splits[graph.layers[layer].batch_axis];
      const auto others = std::count_if(splits.begin(), splits.end(), [](auto split) { return split > 1; });
      if (others > (batch > 1 ? 1 : 0) || batch <= most) continue;
      most = batch;
      best = i;
    }
    choice.push_back(best);
  }
  return choice;
}

}  // namespace taso
