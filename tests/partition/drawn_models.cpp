#include "tests/partition/drawn_models.h"

#include <utility>

#include "graph/rewrite.h"
#include "partition/expand.h"
#include "tests/onnx_io/carrier.h"
#include "tests/partition/ways_to_plan.h"

namespace taso::test {

std::optional<DrawnModel> draw_model(std::uint64_t number, const std::string& folder, const Mesh& mesh,
                                     StrategyTable& strategies) {
  constexpr int opset = 17;
  DrawnGraph drawn = draw_graph(number);
  const std::string path = folder + "/model.onnx";
  if (!carrier(drawn.graph, opset).save(drawn.graph, path)) return std::nullopt;
  Model model = value_of(Model::load(path, registry()));
  if (!model.carried_nodes().empty()) return std::nullopt;
  Graph graph = model.graph();
  normalize(graph, registry());
  PartitionPlan plan = *plan_in_way(ways_to_plan()[number % 2], graph, mesh, strategies, number);
  return DrawnModel{std::move(drawn), std::move(model), std::move(graph), mesh, std::move(plan)};
}

Status write_expanded(const DrawnModel& drawn, StrategyTable& strategies, const std::string& path) {
  TASO_ASSIGN(const Expansion expansion, expand(drawn.graph, drawn.plan, strategies));
  SaveOptions options;
  options.verbatim = false;
  const Expected<SaveReport> saved = drawn.model.save(on_one_device(expansion), path, options);
  return saved ? Status() : Status(saved.error());
}

}  // namespace taso::test
