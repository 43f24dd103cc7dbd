// No time is asserted: only that samples are taken, counted and summed up right.
#include "runtime/measure.h"

#include <set>

#include "runtime/lowering.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

TEST(Summarize, MedianMinimumSpread) {
  const Measurement one = summarize({5.0});
  EXPECT_EQ(one.median_us, 5.0);
  EXPECT_EQ(one.spread, 0.0);
  const Measurement five = summarize({9.0, 1.0, 4.0, 2.0, 3.0});
  EXPECT_EQ(five.median_us, 3.0);
  EXPECT_EQ(five.minimum_us, 1.0);
  EXPECT_DOUBLE_EQ(five.spread, (4.0 - 2.0) / 3.0);
  EXPECT_EQ(five.samples, 5);
  EXPECT_EQ(summarize({1.0, 2.0}).median_us, 1.5);
}

TEST(KernelTimer, MeasuresWhatTheLibraryMakes) {
  KernelTimer timer(library(), {.samples = 3, .rounds = 2, .max_spread = 0.0, .seed = 0});
  const LoweredGraph lowered = value_of(lower(graph_of(R"(
    input x f32[1, 8, 14, 14]
    weight w f32[16, 8, 3, 3]
    weight table f32[9, 4]
    input i i64[5]
    output global_avg_pool(conv2d(x, w)), gather(table, i; axis=-2))"),
                                              registry()));
  for (const LoweredStep& step : lowered.steps) {
    const Measurement measurement = value_of(timer.measure(step.kernel->request));
    EXPECT_GT(measurement.median_us, 0.0) << step.kernel->key;
    EXPECT_GE(measurement.samples, 3);
    EXPECT_LE(measurement.samples, 6);
    EXPECT_EQ(measurement.implementation, value_of(library().create(step.kernel->request))->implementation());
  }
}

/// Where a share of the model stays cached, a kernel with weights is timed both ways.
TEST(KernelTimer, WeighsCachedAndColdTimes) {
  KernelTimer timer(library(), {.samples = 3, .rounds = 1, .max_spread = 10, .seed = 0});
  for (const bool weights : {true, false}) {
    const LoweredGraph lowered =
        value_of(lower(graph_of(weights ? "input x f32[4, 64] weight w f32[64, 8] output matmul(x, w)"
                                        : "input x f32[4, 64] output relu(x)"),
                       registry()));
    KernelRequest request = lowered.steps[0].kernel->request;
    const std::string cold = request.key();
    for (const int tenths : {0, 4, 10}) {
      request.cached_tenths = tenths;
      const Measurement measurement = value_of(timer.measure(request));
      EXPECT_GT(measurement.median_us, 0.0);
      EXPECT_EQ(measurement.samples, tenths == 4 && weights ? 6 : 3);
      EXPECT_EQ(request.key(), cold + (tenths == 0 ? "" : tenths == 4 ? "; cached=40%" : "; cached=100%"));
    }
  }
}

/// What a kernel takes at least is no more than what it takes.
TEST(KernelTimer, KnowsSoonHowLongAKernelTakesAtLeast) {
  KernelTimer timer(library(), {.samples = 5, .rounds = 1, .max_spread = 10, .seed = 0});
  const LoweredGraph lowered =
      value_of(lower(graph_of("input x f32[64, 256] weight w f32[256, 256] output matmul(x, w)"), registry()));
  const KernelRequest& request = lowered.steps[0].kernel->request;
  const double least = value_of(timer.least_us(request));
  EXPECT_GT(least, 0);
  EXPECT_LE(least, 1.1 * value_of(timer.measure(request)).median_us);
}

TEST(CachedTenths, OfLittleAllOfMuchNothing) {
  const std::size_t cache = last_level_cache_bytes();
  EXPECT_EQ(cached_tenths(2 * cache + 1), 0);
  const int some = cached_tenths(cache / 2);
  EXPECT_GE(some, 0);
  EXPECT_LE(some, 10);
  const int one = cached_tenths(1);
  EXPECT_TRUE(one == 10 || (one == 0 && some == 0)) << one;  // 0: the system does not describe its caches
}

TEST(KernelTimer, NoKernelIsAnError) {
  KernelTimer timer(library(), {.samples = 1, .rounds = 1, .max_spread = 1.0, .seed = 0});
  KernelRequest request;
  request.op = "no_such_operator";
  EXPECT_FALSE(timer.measure(request).ok());
}

TEST(TimeInterleaved, EveryExecutorInEveryRound) {
  const Graph graph = graph_of("input x f32[100]\noutput relu(x)");
  Executor a = value_of(Executor::create(graph, library())), b = value_of(Executor::create(graph, library()));
  const std::vector<HostTensor> inputs = a.random_inputs(1);
  const std::vector<Executor*> executors = {&a, &b};
  const std::vector<std::span<const HostTensor>> spans = {inputs, inputs};
  WholeOptions options;
  options.minimum_rounds = 4;
  options.maximum_rounds = 9;
  options.time_limit_s = 0;
  auto times = value_of(time_interleaved(executors, spans, options));
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].samples, 4);
  EXPECT_EQ(times[1].samples, 4);
  EXPECT_GT(times[0].median_us, 0.0);
  options.time_limit_s = 1000;
  EXPECT_EQ(value_of(time_interleaved(executors, spans, options))[0].samples, 9);
  options.cancelled = [] { return true; };
  EXPECT_EQ(time_interleaved(executors, spans, options).error().code, ErrorCode::interrupted);
  int questions = 0;
  options.cancelled = [&] { return ++questions > 20; };  // 4 warm-up runs, then 2 or 3 questions a round
  const int samples = value_of(time_interleaved(executors, spans, options))[0].samples;
  EXPECT_GE(samples, 1);
  EXPECT_LT(samples, 9);
}

TEST(SampleInterleaved, OnADeviceBlocksOfRunsAreQueued) {
  /// What runs whole in so many microseconds; notes how many runs were asked for at once.
  const auto program = [](double us, std::set<int>& asked) -> WholeRun {
    return [us, &asked](int runs) -> Expected<double> {
      asked.insert(runs);
      return us;
    };
  };
  std::set<int> tiny, small, middle, large, on_host;
  const std::vector<WholeRun> programs = {program(20, tiny), program(1000, small), program(5000, middle),
                                          program(30'000, large), program(20, on_host)};
  WholeOptions options;
  options.minimum_rounds = options.maximum_rounds = 2;
  options.device_warm_up_s = 1e-3;
  const auto samples = value_of(sample_interleaved(programs, options, {1, 1, 1, 1, 0}));
  EXPECT_EQ(samples.size(), programs.size());
  EXPECT_EQ(samples[0], (std::vector<double>{20, 20}));
  EXPECT_EQ(tiny, (std::set<int>{1, 20}));
  EXPECT_EQ(small, (std::set<int>{1, 20}));
  EXPECT_EQ(middle, (std::set<int>{1, 4}));
  EXPECT_EQ(large, (std::set<int>{1}));
  EXPECT_EQ(on_host, (std::set<int>{1, 4}));
  options.cancelled = [] { return true; };
  EXPECT_EQ(sample_interleaved(programs, options, {1, 1, 1, 1, 0}).error().code, ErrorCode::interrupted);
}

TEST(KernelTimer, StopsWhenCancelled) {
  const Graph graph = graph_of("input x f32[100]\noutput relu(x)");
  const LoweredGraph lowered = value_of(lower(graph, library().registry(), {}));
  MeasureOptions options;
  options.cancelled = [] { return true; };
  KernelTimer timer(library(), options);
  EXPECT_EQ(timer.measure(lowered.steps.at(0).kernel->request).error().code, ErrorCode::interrupted);
}

}  // namespace
}  // namespace taso::testing
