// Meshes that fit a topology (meshes.cases).
#include "partition/mesh.h"

#include <gtest/gtest.h>

#include "partition/topology.h"
#include "tests/support/cases.h"

namespace taso {
namespace {

using test::CaseCount;
using test::CaseValue;

// Levels of the given sizes, slowest first; their links are called "a", "b" and so on, each ten times as fast as the
// one before.
Topology topology_with(const std::vector<std::string>& sizes) {
  Topology topology;
  topology.name = "t";
  topology.device = {.memory = 1000, .flops = 1e9, .memory_bandwidth = 1e8};
  double bandwidth = 1e6;
  for (const std::string& size : sizes) {
    const auto link = static_cast<char>('a' + static_cast<char>(topology.levels.size()));
    topology.levels.push_back({std::stoll(size), std::string(1, link), bandwidth, 1 / bandwidth});
    bandwidth *= 10;
  }
  return topology;
}

// "2a 4b"; axes must have all of the link of their level.
std::string described(const Mesh& mesh, const Topology& topology) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes) {
    const MeshAxis& level = topology.levels.at(static_cast<std::size_t>(axis.link.at(0) - 'a'));
    EXPECT_EQ(axis.bandwidth, level.bandwidth);
    EXPECT_EQ(axis.latency, level.latency);
    text += (text.empty() ? "" : " ") + std::to_string(axis.size) + axis.link;
  }
  EXPECT_EQ(mesh.device.memory, topology.device.memory);
  EXPECT_EQ(mesh.device.flops, topology.device.flops);
  EXPECT_EQ(mesh.device.memory_bandwidth, topology.device.memory_bandwidth);
  EXPECT_EQ(mesh.devices(), topology.devices());
  return text;
}

class MeshCase : public testing::TestWithParam<test::TextCase> {};

TEST_P(MeshCase, BecomesAxesOrIsRefused) {
  const test::TextCase& one = GetParam();
  SCOPED_TRACE(one.place());
  ASSERT_NE(one.has("axes"), one.has("error"));
  const Topology topology = topology_with(test::words_of(one.text("levels")));
  if (!one.has("mesh")) {
    EXPECT_EQ(described(default_mesh(topology), topology), one.text("axes"));
    return;
  }
  const auto mesh = parse_mesh(one.text("mesh"), topology);
  if (one.has("axes")) {
    ASSERT_TRUE(mesh.ok()) << mesh.error().to_string();
    EXPECT_EQ(described(*mesh, topology), one.text("axes"));
    return;
  }
  ASSERT_FALSE(mesh.ok());
  EXPECT_EQ(mesh.error().to_string(), one.text("error"));
  EXPECT_EQ(mesh.error().exit_code(), 2);
}

INSTANTIATE_TEST_SUITE_P(Files, MeshCase,
                         testing::ValuesIn(test::load_cases("tests/partition/meshes.cases",
                                                            {{"levels", CaseValue::text, CaseCount::once},
                                                             {"mesh", CaseValue::text},
                                                             {"axes", CaseValue::text},
                                                             {"error", CaseValue::text}})),
                         test::case_name);

TEST(Mesh, AMessageIsOneLineWhateverTheText) {
  const Topology topology = topology_with({"8"});
  const auto control = parse_mesh("8\n\x7f", topology);
  ASSERT_FALSE(control.ok());
  EXPECT_EQ(control.error().to_string(),
            "mesh \"8\?\?\": size 1 is not an integer from 1 to 4096; a mesh is written as 4x8");
  const auto endless = parse_mesh(std::string(100000, '8'), topology);
  ASSERT_FALSE(endless.ok());
  EXPECT_EQ(
      endless.error().to_string(),
      "mesh \"" + std::string(60, '8') + "...\": size 1 is not an integer from 1 to 4096; a mesh is written as 4x8");
  std::string many = "2";
  for (int i = 0; i < 100; ++i) many += "x2";  // 2^101
  const auto excess = parse_mesh(many, topology);
  ASSERT_FALSE(excess.ok());
  EXPECT_EQ(excess.error().to_string(), "mesh \"" + many.substr(0, 60) +
                                            "...\": the sizes have the product of more than 4096, but t has 8 devices");
}

TEST(Mesh, TheLastAxisRunsFastest) {
  const auto mesh = parse_mesh("2x3x4", topology_with({"6", "4"}));
  ASSERT_TRUE(mesh.ok()) << mesh.error().to_string();
  EXPECT_EQ(mesh->to_string(), "2x3x4");
  std::int64_t device = 0;
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      for (std::int64_t k = 0; k < 4; ++k) EXPECT_EQ(mesh->coordinates(device++), (std::vector<std::int64_t>{i, j, k}));
  EXPECT_EQ(default_mesh(topology_with({})).to_string(), "1");
}

}  // namespace
}  // namespace taso
