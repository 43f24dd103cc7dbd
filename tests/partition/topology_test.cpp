// Topologies: what is refused and how (topologies/*.cases: a file, and its error), what shipped ones are, which is
// taken.
#include "partition/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "support/file.h"
#include "tests/support/cases.h"

namespace taso {
namespace {

const std::string shipped = TASO_SOURCE_DIR "/specs/devices";

class BadTopology : public testing::TestWithParam<test::TextCase> {};

TEST_P(BadTopology, IsRefusedWithPlaceAndReason) {
  const auto topology = parse_topology(GetParam().text("topology"), "file");
  ASSERT_FALSE(topology.ok()) << GetParam().place();
  EXPECT_EQ(topology.error().to_string(), GetParam().text("error")) << GetParam().place();
  EXPECT_EQ(topology.error().exit_code(), 3);
}

INSTANTIATE_TEST_SUITE_P(Files, BadTopology,
                         testing::ValuesIn(test::load_cases("tests/partition/topologies",
                                                            {{"error", test::CaseValue::text, test::CaseCount::once},
                                                             {"topology", test::CaseValue::section,
                                                              test::CaseCount::once}})),
                         test::case_name);

std::string error_of(const std::string& text) {
  const auto topology = parse_topology(text, "file");
  return topology.ok() ? "no error" : topology.error().to_string();
}

// What a file of cases cannot hold.
TEST(Topology, OddTextsAreRefused) {
  EXPECT_EQ(error_of(""), "file: the file is empty; a topology is a JSON object (docs/topologies.md)");
  EXPECT_EQ(error_of(" \r\n\t\n"), "file: the file is empty; a topology is a JSON object (docs/topologies.md)");
  EXPECT_EQ(error_of(std::string(1000000, '[')), "file:1: lists and objects are nested deeper than 16");
  EXPECT_EQ(error_of("{\"levels\":\n" + std::string(20, '[')), "file:2: lists and objects are nested deeper than 16");
  const std::string name(1000000, 'n');
  EXPECT_EQ(error_of("{\"" + name + "\": 1}"),
            "file:1: unknown key \"" + name.substr(0, 40) + "...\"; known are name, source, devices, device, levels");
  EXPECT_EQ(error_of("{\n\"na\xff\": 1}"),
            "file:2: this is not JSON: syntax error while parsing object key - invalid string: ill-formed UTF-8 byte");
  EXPECT_EQ(error_of(std::string("{}\n\0}", 5)), "file:2: this is not JSON: a byte is zero");
}

TEST(Topology, AnIntegerMayHaveAnExponent) {
  const auto topology = parse_topology(
      R"({"name": "t", "source": "stated", "devices": 1.0, "levels": [],
          "device": {"memory": 8e10, "flops": 1, "memory_bandwidth": 1}})",
      "file");
  ASSERT_TRUE(topology.ok()) << topology.error().to_string();
  EXPECT_EQ(topology->devices(), 1);
  EXPECT_EQ(topology->device.memory, 80000000000);
}

// A file with one byte left out, put in or replaced is a topology or refused in one line, whatever the byte.
TEST(Topology, AnyOtherByteIsReadOrRefused) {
  const auto text = read_file(shipped + "/dgx-h100-x4.json");
  ASSERT_TRUE(text.ok()) << text.error().to_string();
  std::size_t refused = 0;
  const auto check = [&](const std::string& changed) {
    const auto topology = parse_topology(changed, "file");
    if (topology.ok()) {
      EXPECT_EQ(topology->devices(), 32) << changed;
      return;
    }
    ++refused;
    const std::string error = topology.error().to_string();
    EXPECT_THAT(error, testing::StartsWith("file:"));
    EXPECT_TRUE(std::none_of(error.begin(), error.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
        << error;
    EXPECT_EQ(topology.error().exit_code(), 3);
  };
  for (std::size_t i = 0; i < text->size(); ++i) {
    check(text->substr(0, i));
    check(text->substr(0, i) + text->substr(i + 1));
    for (const char byte : {'\0', '\n', '\\', '"', '{', ']', ',', '0', '-', 'e', '\xff'}) {
      std::string changed = *text;
      changed[i] = byte;
      check(changed);
      check(text->substr(0, i) + byte + text->substr(i));
    }
  }
  EXPECT_GT(refused, text->size());
}

TEST(Topology, AFileThatCannotBeReadIsAnError) {
  const auto topology = load_topology("no/such/file.json");
  ASSERT_FALSE(topology.ok());
  EXPECT_EQ(topology.error().exit_code(), 3);
  EXPECT_THAT(topology.error().to_string(), testing::StartsWith("no/such/file.json: "));
}

TEST(Topology, ShippedOnesLoad) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(shipped)) {
    const auto topology = load_topology(entry.path().string());
    ASSERT_TRUE(topology.ok()) << topology.error().to_string();
    EXPECT_EQ(topology->name + ".json", entry.path().filename().string());
    // No number is presented as measured.
    EXPECT_THAT(topology->source, testing::HasSubstr("tated, not measured")) << topology->name;
    names.insert(topology->name);
  }
  EXPECT_THAT(
      names, testing::IsSupersetOf({"cpu-ranks-2", "cpu-ranks-4", "cpu-ranks-8", "pcie-8", "dgx-h100", "dgx-h100-x4"}));
}

TEST(Topology, AllOfAFileIsRead) {
  const auto topology = load_topology(shipped + "/dgx-h100-x4.json");
  ASSERT_TRUE(topology.ok()) << topology.error().to_string();
  EXPECT_EQ(topology->devices(), 32);
  EXPECT_EQ(topology->device.memory, 80000000000);
  EXPECT_EQ(topology->device.flops, 67e12);
  EXPECT_EQ(topology->device.memory_bandwidth, 3350e9);
  ASSERT_EQ(topology->levels.size(), 2U);
  EXPECT_EQ(topology->levels[0].size, 4);
  EXPECT_EQ(topology->levels[0].link, "InfiniBand");
  EXPECT_EQ(topology->levels[0].bandwidth, 50e9);
  EXPECT_EQ(topology->levels[0].latency, 5e-6);
  EXPECT_EQ(topology->levels[1].size, 8);
  EXPECT_EQ(topology->levels[1].link, "NVSwitch");
  EXPECT_EQ(topology->levels[1].bandwidth, 450e9);
  EXPECT_EQ(topology->levels[1].latency, 3e-6);
}

TEST(Topology, WhatIsWrittenIsReadBack) {
  Topology topology{.name = "n \"1\"", .source = "s", .device = {123456789012345, 1.5e10, 1e10 / 3}, .levels = {}};
  topology.levels = {{.size = 2, .link = "slow", .bandwidth = 1e9 / 3, .latency = 1e-6 / 3},
                     {.size = 4, .link = "fast", .bandwidth = 4e9, .latency = 0}};
  const auto read = parse_topology(topology_text(topology), "file");
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(topology_text(*read), topology_text(topology));
  EXPECT_EQ(read->device.memory_bandwidth, topology.device.memory_bandwidth);
  EXPECT_EQ(read->levels[0].latency, topology.levels[0].latency);
  EXPECT_EQ(read->levels[1].link, "fast");
}

TEST(TopologyOf, TheFirstShippedOneByName) {
  const std::vector<std::pair<std::int64_t, std::string>> expected{
      {2, "cpu-ranks-2"}, {4, "cpu-ranks-4"}, {8, "cpu-ranks-8"}, {32, "dgx-h100-x4"},
      {1, "flat-1"},      {3, "flat-3"},      {4096, "flat-4096"}};
  for (const auto& [devices, name] : expected) {
    const auto topology = topology_of(devices, shipped);
    ASSERT_TRUE(topology.ok()) << topology.error().to_string();
    EXPECT_EQ(topology->name, name);
    EXPECT_EQ(topology->devices(), devices);
  }
}

TEST(TopologyOf, WhatIsAssumedIsWhatRanksOnAHostHave) {
  for (const std::int64_t devices : {2, 4, 8}) {
    const auto ranks = topology_of(devices, shipped);
    ASSERT_TRUE(ranks.ok()) << ranks.error().to_string();
    const Topology flat = flat_topology(devices);
    EXPECT_EQ(flat.device.memory, ranks->device.memory);
    EXPECT_EQ(flat.device.flops, ranks->device.flops);
    EXPECT_EQ(flat.device.memory_bandwidth, ranks->device.memory_bandwidth);
    ASSERT_EQ(flat.levels.size(), 1U);
    ASSERT_EQ(ranks->levels.size(), 1U);
    EXPECT_EQ(flat.levels[0].size, ranks->levels[0].size);
    EXPECT_EQ(flat.levels[0].link, ranks->levels[0].link);
    EXPECT_EQ(flat.levels[0].bandwidth, ranks->levels[0].bandwidth);
    EXPECT_EQ(flat.levels[0].latency, ranks->levels[0].latency);
  }
  EXPECT_TRUE(flat_topology(1).levels.empty());
}

TEST(TopologyOf, NumbersOfDevicesThatCannotBe) {
  for (const std::int64_t devices : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{4097}, std::int64_t{1000000}}) {
    const auto topology = topology_of(devices, shipped);
    ASSERT_FALSE(topology.ok());
    EXPECT_EQ(topology.error().to_string(), std::to_string(devices) + " devices: their number must be from 1 to 4096");
    EXPECT_EQ(topology.error().exit_code(), 2);
  }
}

TEST(TopologyOf, AFolderThatIsWrong) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "taso_topology_test";
  std::filesystem::remove_all(folder);
  const auto missing = topology_of(8, folder.string());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().to_string(),
            folder.string() + ": cannot read the folder of topologies: No such file or directory");
  EXPECT_EQ(missing.error().exit_code(), 3);

  std::filesystem::create_directories(folder);
  std::ofstream(folder / "notes.txt") << "no topology";
  const auto none = topology_of(8, folder.string());
  ASSERT_TRUE(none.ok()) << none.error().to_string();
  EXPECT_EQ(none->name, "flat-8");

  // A wrong file is an error, also where another one has the number.
  std::filesystem::copy(shipped + "/pcie-8.json", folder / "a.json");
  std::ofstream(folder / "b.json") << "{}";
  const auto wrong = topology_of(8, folder.string());
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().to_string(), (folder / "b.json").string() + ":1: 'name' is missing");
}

}  // namespace
}  // namespace taso
