#include "support/mod61.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "support/random.h"

namespace taso {
namespace {

__extension__ using Wide = unsigned __int128;

/// The residue computed by long division.
std::uint64_t residue(Wide value) { return static_cast<std::uint64_t>(value % Mod61::prime); }

Mod61 any(Random& random) { return Mod61::from_bits(random.next()); }

TEST(Mod61, AgreesWithLongDivision) {
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const Mod61 a = any(random), b = any(random);
    EXPECT_EQ((a + b).value(), residue(Wide{a.value()} + b.value()));
    EXPECT_EQ((a * b).value(), residue(Wide{a.value()} * b.value()));
    EXPECT_EQ(a - b + b, a);
    EXPECT_EQ(a + -a, Mod61());
  }
}

TEST(Mod61, EdgesAreReduced) {
  const std::uint64_t p = Mod61::prime;
  EXPECT_EQ(Mod61::from_bits(p).value(), 0U);
  EXPECT_EQ(Mod61::from_bits(~std::uint64_t{0}).value(), residue(~std::uint64_t{0}));
  EXPECT_EQ(Mod61(std::int64_t{-1}).value(), p - 1);
  EXPECT_EQ(Mod61(std::numeric_limits<std::int64_t>::min()) + Mod61(std::numeric_limits<std::int64_t>::max()),
            Mod61(std::int64_t{-1}));
  const Mod61 last(std::int64_t{-1});
  EXPECT_EQ(last * last, Mod61(std::int64_t{1}));
  EXPECT_EQ((last + last).value(), p - 2);
  EXPECT_EQ((-Mod61()).value(), 0U) << "there is one zero";
  EXPECT_EQ((Mod61() - Mod61()).value(), 0U);
}

TEST(Mod61, Inverse) {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    const Mod61 a = any(random);
    EXPECT_EQ(a * a.inverse(), Mod61(std::int64_t{1}));
  }
  EXPECT_EQ(Mod61().inverse(), Mod61());
  EXPECT_EQ(Mod61(std::int64_t{3}).power(0), Mod61(std::int64_t{1}));
  EXPECT_EQ(Mod61(std::int64_t{3}).power(5), Mod61(std::int64_t{243}));
}

}  // namespace
}  // namespace taso
