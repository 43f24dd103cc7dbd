// Plans of random graphs, written out as models that are read again: all are found to be right, and of changed ones
// none that does not compute the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "onnx_io/model.h"
#include "partition/expansion_check.h"
#include "tests/partition/changed_graphs.h"
#include "tests/partition/drawn_models.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/strategy_tables.h"

namespace taso::test {
namespace {

constexpr std::uint64_t file_shards = 4;
/// What a model's weights are off by, as they are numbers of f32.
constexpr double weight_rounding = 1e-3;

const std::vector<std::vector<std::int64_t>>& file_meshes() {
  static const std::vector<std::vector<std::int64_t>> all = {{2}, {3}, {4}, {8}, {2, 2}, {3, 2}, {2, 2, 2}};
  return all;
}

class WrittenExpansions : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  WrittenExpansions() {
    std::string name = ::testing::TempDir() + "taso_written_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~WrittenExpansions() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Graph written(const DrawnModel& drawn) {
    const std::string path = folder_ + "/model.expanded.onnx";
    const Status status = write_expanded(drawn, strategies_, path);
    EXPECT_TRUE(status) << status.error().to_string();
    ImportOptions options;
    options.pieces = true;
    return value_of(Model::load(path, registry(), options)).graph();
  }

  /// Of some changes of a written plan those that change results, all of which must be refused.
  std::size_t count_refuted(const DrawnModel& drawn, const Graph& expanded, Random& random) {
    const auto expected = outputs_of(expanded, drawn.drawn.inputs);
    std::size_t refuted = 0;
    for (int change = 0; change < 4; ++change) {
      const std::optional<Graph> changed =
          change % 2 == 0 ? with_other_operand(expanded, random) : with_other_weight(expanded, random);
      if (!changed || equal(expected, outputs_of(*changed, drawn.drawn.inputs), weight_rounding)) continue;
      const Status status = check_expansion(drawn.graph, *changed, drawn.mesh, uses_of(drawn.plan), strategies_);
      EXPECT_FALSE(status) << to_text(*changed);
      ++refuted;
    }
    return refuted;
  }

  std::string folder_;
  StrategyTable strategies_ = every_strategy();
};

TEST_P(WrittenExpansions, AreFoundRightAndChangedOnesNot) {
  std::size_t right = 0, refused = 0, refuted = 0;
  Random random(GetParam(), "changes");
  for (std::uint64_t number = GetParam(); number < 4 * drawn_graphs; number += file_shards) {
    const Mesh mesh = mesh_of_sizes(file_meshes()[number / file_shards % file_meshes().size()]);
    const std::optional<DrawnModel> drawn = draw_model(number, folder_, mesh, strategies_);
    if (!drawn) continue;
    const Graph expanded = written(*drawn);
    const Status status = check_expansion(drawn->graph, expanded, mesh, uses_of(drawn->plan), strategies_);
    // A few right ones are not found to be right.
    if (!status) {
      EXPECT_TRUE(equal(outputs_of(drawn->graph, drawn->drawn.inputs), outputs_of(expanded, drawn->drawn.inputs),
                        weight_rounding))
          << "graph " << number << " on " << mesh.to_string() << ": " << status.error().message << "\n"
          << to_text(drawn->graph);
    }
    ++(status ? right : refused);
    refuted += count_refuted(*drawn, expanded, random);
  }
  EXPECT_LE(refused, right / 50);
  EXPECT_GT(right, 3 * drawn_graphs / (2 * file_shards));  // Of 4 * drawn_graphs / file_shards that are drawn.
  EXPECT_GT(refuted, right);
}

INSTANTIATE_TEST_SUITE_P(Shard, WrittenExpansions, ::testing::Range<std::uint64_t>(0, file_shards));

}  // namespace
}  // namespace taso::test
