/// Random graphs (drawn_graphs.h) as ONNX models, each with a plan that is written out as a model, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/graph.h"
#include "onnx_io/model.h"
#include "partition/mesh.h"
#include "partition/operator_piece.h"
#include "partition/planner.h"
#include "support/status.h"
#include "tests/partition/drawn_graphs.h"

namespace taso::test {

struct DrawnModel {
  DrawnGraph drawn;
  Model model;  ///< As it is read again,
  Graph graph;  ///< its graph in normal form,
  Mesh mesh;
  PartitionPlan plan;  ///< and a drawn plan of that.
};

/// Graph `number` as the file FOLDER/model.onnx. Nothing where it has no form as one, or not all of it is understood as
/// it is read again: tensors without elements.
[[nodiscard]] std::optional<DrawnModel> draw_model(std::uint64_t number, const std::string& folder, const Mesh& mesh,
                                                   StrategyTable& strategies);

/// The plan written out as taso-opt --emit onnx does.
[[nodiscard]] Status write_expanded(const DrawnModel& drawn, StrategyTable& strategies, const std::string& path);

}  // namespace taso::test
