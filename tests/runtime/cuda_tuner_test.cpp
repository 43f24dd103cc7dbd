// The choice of the fastest engine, with engines whose times are made up; how choices are written; which drivers serve.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/products.h"
#include "runtime/cuda/tuner.h"

namespace taso::cuda {
namespace {

/// An engine with seconds of one execution, of one of many, and which of both fails.
struct MadeUpEngine {
  double once = 0, settled = 0;
  bool fails_at_once = false, fails_later = false;
};

/// What was timed, in order: "0 0+ 1" are one execution of engine 0, many of it, one of engine 1.
struct Found {
  Expected<FastestCandidate> fastest;
  std::string timed;
};

Found find_among(const std::vector<MadeUpEngine>& engines) {
  std::string timed;
  const auto seconds = [&](std::size_t engine, bool fails, double value, const char* mark) -> Expected<double> {
    timed += (timed.empty() ? "" : " ") + std::to_string(engine) + mark;
    if (fails) return Error{ErrorCode::device_unavailable, "engine " + std::to_string(engine) + " fails", {}};
    return value;
  };
  TimedCandidates candidates;
  candidates.count = engines.size();
  candidates.once = [&](std::size_t i) { return seconds(i, engines[i].fails_at_once, engines[i].once, ""); };
  candidates.settled = [&](std::size_t i, double once) {
    EXPECT_EQ(once, engines[i].once);
    return seconds(i, engines[i].fails_later, engines[i].settled, "+");
  };
  return {find_fastest(candidates), timed};
}

TEST(CudaTuner, TakesTheFastest) {
  const Found found = find_among({{3e-5, 2e-5}, {3e-5, 1e-5}, {3e-5, 3e-5}, {3e-5, 1e-5}});
  ASSERT_TRUE(found.fastest.ok());
  EXPECT_EQ(found.fastest->index, 1U) << "the first of equal ones";
  EXPECT_EQ(found.fastest->seconds, 1e-5);
  EXPECT_EQ(found.fastest->description(), "best of 4");
  EXPECT_EQ(found.timed, "0 0+ 1 1+ 2 2+ 3 3+");
}

TEST(CudaTuner, GivesUpWhatIsHopeless) {
  const Found found = find_among({{2e-5, 1e-5}, {6.1e-5, 1e-6}, {5.9e-5, 2e-5}, {1e-5, 5e-6}, {3.1e-5, 1e-7}});
  ASSERT_TRUE(found.fastest.ok());
  EXPECT_EQ(found.timed, "0 0+ 1 2 2+ 3 3+ 4") << "three times the fastest so far is too much";
  EXPECT_EQ(found.fastest->index, 3U);
  EXPECT_EQ(found.fastest->description(), "best of 3, 2 abandoned");
}

TEST(CudaTuner, LeavesOutWhatFails) {
  const Found found = find_among({{1e-6, 1e-6, true}, {1e-6, 1e-6, false, true}, {3e-5, 2e-5}, {3e-5, 3e-5}});
  ASSERT_TRUE(found.fastest.ok());
  EXPECT_EQ(found.fastest->index, 2U) << "an engine that fails is no measure for others";
  EXPECT_EQ(found.fastest->failed, 2U);
  EXPECT_EQ(found.fastest->description(), "best of 2, 2 failed");
  const Found none = find_among({{1, 1, true}, {1, 1, false, true}});
  ASSERT_FALSE(none.fastest.ok());
  EXPECT_EQ(none.fastest.error().message, "none of 2 engines runs: engine 1 fails");
  EXPECT_EQ(find_among({}).fastest.error().message, "none of 0 engines runs: there is none");
}

/// Which round was taken from, and why none was.
struct Taken {
  std::string tried, reason;
};

/// Tries rounds of divisions, each with engines as they are made up. One without engines has none that is planned.
Taken take_among(const std::vector<std::vector<std::size_t>>& rounds,
                 const std::vector<std::vector<MadeUpEngine>>& engines_of) {
  Taken taken;
  taken.reason = *take_first(rounds, [&](const std::vector<std::size_t>& round) -> Expected<std::string> {
    std::vector<MadeUpEngine> engines;
    for (const std::size_t division : round) {
      taken.tried += (taken.tried.empty() ? "" : " ") + std::to_string(division);
      engines.insert(engines.end(), engines_of[division].begin(), engines_of[division].end());
    }
    const Found found = find_among(engines);
    return found.fastest ? std::string() : found.fastest.error().message;
  });
  return taken;
}

TEST(CudaTuner, GoesOnWithTheNextDivisionWhereAllEnginesFail) {
  const MadeUpEngine right{1e-5, 1e-5}, fails{1e-6, 1e-6, true}, fails_later{1e-6, 1e-6, false, true};
  Taken taken = take_among({{0, 2}, {1}, {3}}, {{fails}, {fails_later, right}, {fails, fails_later}, {right}});
  EXPECT_EQ(taken.tried, "0 2 1") << "the last need not be tried";
  EXPECT_EQ(taken.reason, "");
  taken = take_among({{0}, {1}, {2}}, {{}, {fails}, {right}});
  EXPECT_EQ(taken.tried, "0 1 2");
  EXPECT_EQ(taken.reason, "");
  taken = take_among({{0}, {1}}, {{fails, fails_later}, {}});
  EXPECT_EQ(taken.tried, "0 1");
  EXPECT_EQ(taken.reason, "none of 2 engines runs: engine 1 fails") << "what one wanted to have";
  const auto lost = take_first({{0}, {1}}, [](const std::vector<std::size_t>& round) -> Expected<std::string> {
    EXPECT_EQ(round[0], 0U) << "an error is not tried again";
    return Error{ErrorCode::device_unavailable, "the device is lost", {}};
  });
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().message, "the device is lost");
}

TEST(CudaTuner, AlgorithmsAreReadBack) {
  ChosenAlgorithm algorithm;
  algorithm.words = {0, 1, 0xffffffffffffffff, 42, 0, 0, 7, 0x8000000000000000};
  algorithm.description = "best of 8, 1 failed";
  EXPECT_EQ(to_string(algorithm), "algorithm 0 1 ffffffffffffffff 2a 0 0 7 8000000000000000; best of 8, 1 failed");
  EXPECT_EQ(parse_algorithm(to_string(algorithm)), algorithm);
  for (const char* wrong :
       {"", "algorithm", "algorithm 0 1 2 3 4 5 6; best of 8", "algorithm 0 1 2 3 4 5 6 7",
        "algorithm 0 1 2 3 4 5 6 7 8; best of 8", "algorithm 0 1 2 3 4 5 6 x; best of 8", "engine 1; knobs; best of 8"})
    EXPECT_FALSE(parse_algorithm(wrong).has_value()) << wrong;
}

TEST(CudaDriver, ComplaintsNameTheDriverThatIsNeeded) {
  EXPECT_EQ(driver_complaint(12040, 13000), "CUDA 13.0 needs driver >= 580, and this one is of CUDA 12.4");
  EXPECT_EQ(driver_complaint(11080, 12060), "CUDA 12.6 needs driver >= 525, and this one is of CUDA 11.8");
  EXPECT_EQ(driver_complaint(13000, 14000), "CUDA 14.0 needs a newer driver, and this one is of CUDA 13.0");
  EXPECT_EQ(driver_complaint(13000, 13010), "") << "minor versions are compatible";
  EXPECT_EQ(driver_complaint(14000, 13000), "");
  EXPECT_EQ(driver_complaint(0, 13000), "") << "no driver: CUDA says so itself";
}

}  // namespace
}  // namespace taso::cuda
