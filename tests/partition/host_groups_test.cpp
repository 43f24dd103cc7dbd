// Ranks and their hosts.
#include "partition/host_groups.h"

#include <gtest/gtest.h>

#include <vector>

namespace taso {
namespace {

std::string groups_of(const std::vector<std::string>& hosts) {
  const auto groups = host_groups(hosts);
  return groups ? std::to_string(groups->hosts) + "x" + std::to_string(groups->per_host) : groups.error().to_string();
}

TEST(HostGroups, EveryHostHasAsManyRanks) {
  EXPECT_EQ(groups_of({"a"}), "1x1");
  EXPECT_EQ(groups_of({"a", "a", "a"}), "1x3");
  EXPECT_EQ(groups_of({"b", "a"}), "2x1");
  EXPECT_EQ(groups_of({"b", "b", "a", "a", "c", "c"}), "3x2");
}

TEST(HostGroups, AnyOtherOrderIsRefused) {
  const std::string rest =
      ", in this order; every host must have as many, with consecutive numbers (mpirun --map-by ppr:N:node)";
  EXPECT_EQ(groups_of({"a", "b", "a", "b"}), "ranks run on hosts a, b, a, b" + rest);
  EXPECT_EQ(groups_of({"a", "a", "b"}), "ranks run on hosts a, a, b" + rest);
  EXPECT_EQ(groups_of({"a", "b", "b"}), "ranks run on hosts a, b, b" + rest);
  EXPECT_EQ(groups_of({"a", "b", "b", "a"}), "ranks run on hosts a, b, b, a" + rest);
}

}  // namespace
}  // namespace taso
