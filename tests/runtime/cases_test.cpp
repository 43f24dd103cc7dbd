// Every case of cases/*.cases is a graph; its outputs under all ways to run it agree with the operators' definitions,
// and it is lowered as its keys say:
//
//   steps conv2d, reorder     kernels in order, layouts chosen freely
//   row_steps conv2d          kernels in order when everything is row-major
//   own conv2d                this operator must not run on the reference
//   graph:                    graph/graph_text.h
#include "tests/support/cases.h"

#include "runtime/lowering.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

const test::CaseKeys& runtime_keys() {
  static const test::CaseKeys keys = {{"steps", test::CaseValue::text, test::CaseCount::optional},
                                      {"row_steps", test::CaseValue::text, test::CaseCount::optional},
                                      {"own", test::CaseValue::words, test::CaseCount::optional},
                                      {"graph", test::CaseValue::section, test::CaseCount::once}};
  return keys;
}

std::string steps_of(const LoweredGraph& lowered) {
  std::string text;
  for (const LoweredStep& step : lowered.steps) text += (text.empty() ? "" : ", ") + step.kernel->request.op;
  return text;
}

class Cases : public ::testing::TestWithParam<test::TextCase> {};

TEST_P(Cases, RunAsDefined) {
  const Graph graph = graph_of(GetParam());
  const std::vector<HostTensor> inputs = inputs_for(graph, 7);
  const std::vector<std::vector<double>> expected = reference_outputs(graph, inputs);
  struct Way {
    const char* name;
    KernelSet set;
    bool channels_last;
    int threads;
  };
  for (const Way& way :
       {Way{"one thread", KernelSet::cpu, true, 1}, Way{"row-major", KernelSet::cpu, false, 1},
        Way{"two threads", KernelSet::cpu, true, 2}, Way{"reference", KernelSet::reference, false, 1}}) {
    Executor executor = value_of(Executor::create(graph, library(way.set), {way.threads, way.channels_last, nullptr}));
    expect_near(value_of(executor.run(inputs)), expected, 2e-5, way.name);
    // A second run finds the same memory and gives the same bytes.
    const auto first = value_of(executor.run(inputs)), second = value_of(executor.run(inputs));
    for (std::size_t i = 0; i < first.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(first[i].bytes(), second[i].bytes())) << way.name;
  }
}

TEST_P(Cases, LoweredAsStated) {
  const Graph graph = graph_of(GetParam());
  const auto expect_steps = [&](const char* key, bool channels_last) {
    if (!GetParam().has(key)) return;
    EXPECT_EQ(steps_of(value_of(lower(graph, registry(), {.channels_last = channels_last}))), GetParam().text(key));
  };
  expect_steps("steps", true);
  expect_steps("row_steps", false);
}

TEST_P(Cases, FastKernelsWhereStated) {
  const std::string& own = GetParam().text("own");
  if (own.empty()) return;
  if (library().device().find("oneDNN") == std::string::npos) GTEST_SKIP() << "built without oneDNN";
  const Graph graph = graph_of(GetParam());
  bool seen = false;
  for (const bool channels_last : {true, false})
    for (const LoweredStep& step : value_of(lower(graph, registry(), {.channels_last = channels_last})).steps) {
      if (step.kernel->request.op != own) continue;
      seen = true;
      const auto kernel = value_of(library().create(step.kernel->request));
      EXPECT_NE(kernel->implementation(), "reference") << step.kernel->key;
    }
  EXPECT_TRUE(seen) << "no step is " << own;
}

INSTANTIATE_TEST_SUITE_P(Runtime, Cases, ::testing::ValuesIn(test::load_cases("tests/runtime/cases", runtime_keys())),
                         test::case_name);

}  // namespace
}  // namespace taso::testing
