// Costs of communication in a database of costs.
#include "optimizer/collective_costs.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/shipped.h"

namespace taso::test {
namespace {

const MeasuredRanks& two_ranks() {
  static const MeasuredRanks ranks{"a core; taso 1; threads=1", 2, "mpi", "Open MPI v4.1.4; messages 1"};
  return ranks;
}

TEST(CollectiveCosts, RanksAreADeviceOfTheirOwn) {
  EXPECT_EQ(two_ranks().identity(), "a core; taso 1; threads=1; ranks=2; transport=mpi; Open MPI v4.1.4; messages 1");
  const auto read = measured_ranks(two_ranks().identity());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->device, two_ranks().device);
  EXPECT_EQ(read->ranks, 2);
  EXPECT_EQ(read->transport, "mpi");
  EXPECT_EQ(read->version, two_ranks().version);
}

TEST(CollectiveCosts, OtherDevicesAreNoRanks) {
  for (const char* other : {"a core; threads=1", "a core; ranks=2", "a core; transport=mpi; 1; ranks=2",
                            "a core; ranks=two; transport=mpi; 1", "a core; ranks=2; transport=mpi"})
    EXPECT_FALSE(measured_ranks(other)) << other;
}

TEST(CollectiveCosts, TheLastMeasurementStands) {
  CostDatabase database = CostDatabase::in_memory(two_ranks().identity());
  const MeasuredCollective gather{"all_gather", 2, "wire"}, scatter{"reduce_scatter", 2, "wire"};
  ASSERT_TRUE(record_collective(database, gather, 4, 1e-6));
  ASSERT_TRUE(record_collective(database, gather, 1024, 2e-6));
  ASSERT_TRUE(record_collective(database, gather, 1024, 3e-6));
  ASSERT_TRUE(record_collective(database, scatter, 8, 5e-6));
  ASSERT_TRUE(record_collective(database, {"all_gather", 4, "wire"}, 16, 7e-6));
  const std::map<double, double> expected = {{4, 1e-6}, {1024, 3e-6}};
  EXPECT_EQ(value_of(recorded_collective(database, gather)), expected);
  EXPECT_TRUE(value_of(recorded_collective(database, {"all_gather", 2, "another wire"})).empty());
  // As text, and back.
  const auto entries = value_of(import_text(export_text(database.entries()), "costs"));
  EXPECT_EQ(entries, database.entries());
  EXPECT_EQ(entries[1].key, "all_gather among 2 over wire, 4 bytes");
}

TEST(CollectiveCosts, KeysWithoutBytes) {
  CostDatabase database = CostDatabase::in_memory(two_ranks().identity());
  ASSERT_TRUE(database.record("collective", "copy, many bytes", 1));
  EXPECT_EQ(recorded_collective(database, {"copy", 1, ""}).error().message,
            "a collective of the key 'copy, many bytes', which says no number of bytes");
}

}  // namespace
}  // namespace taso::test
