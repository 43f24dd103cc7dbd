// Data-driven: every case of cases/*.txt is a graph; its outputs under all ways to run it agree with the operators'
// definitions, and it is lowered as its directives say. Adding a case needs no code.
//
//   --- name of the case
//   # steps: conv2d, reorder           kernels in order, layouts chosen freely
//   # row steps: conv2d                kernels in order when everything is row-major
//   # own: conv2d                      this operator must not run on the reference
//   ...graph text (graph/graph_text.h)...
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/lowering.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

struct Case {
  std::string file, name, text;
  std::map<std::string, std::string> directives;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.file << ": " << one.name; }

std::vector<Case> read_cases() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TASO_SOURCE_DIR) + "/tests/runtime/cases"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const auto& path : files) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("--- ", 0) == 0) {
        cases.push_back({path.stem().string(), line.substr(4), "", {}});
        continue;
      }
      if (cases.empty() || cases.back().file != path.stem().string()) continue;
      cases.back().text += line + "\n";
      if (const std::size_t colon = line.find(": "); line.rfind("# ", 0) == 0 && colon != std::string::npos)
        cases.back().directives[line.substr(2, colon - 2)] = line.substr(colon + 2);
      if (line.rfind("# ", 0) == 0 && line.back() == ':') cases.back().directives[line.substr(2, line.size() - 3)] = "";
    }
  }
  return cases;
}

std::string steps_of(const LoweredGraph& lowered) {
  std::string text;
  for (const LoweredStep& step : lowered.steps) text += (text.empty() ? "" : ", ") + step.kernel->request.op;
  return text;
}

class Cases : public ::testing::TestWithParam<Case> {};

TEST_P(Cases, RunAsDefined) {
  const Graph graph = graph_of(GetParam().text, GetParam().name);
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
  const Graph graph = graph_of(GetParam().text, GetParam().name);
  const auto& directives = GetParam().directives;
  if (const auto steps = directives.find("steps"); steps != directives.end()) {
    EXPECT_EQ(steps_of(value_of(lower(graph, registry(), {.channels_last = true}))), steps->second);
  }
  if (const auto steps = directives.find("row steps"); steps != directives.end()) {
    EXPECT_EQ(steps_of(value_of(lower(graph, registry(), {.channels_last = false}))), steps->second);
  }
}

TEST_P(Cases, FastKernelsWhereStated) {
  const auto own = GetParam().directives.find("own");
  if (own == GetParam().directives.end()) return;
  if (library().device().find("oneDNN") == std::string::npos) GTEST_SKIP() << "built without oneDNN";
  const Graph graph = graph_of(GetParam().text, GetParam().name);
  bool seen = false;
  for (const bool channels_last : {true, false})
    for (const LoweredStep& step : value_of(lower(graph, registry(), {.channels_last = channels_last})).steps) {
      if (step.kernel->request.op != own->second) continue;
      seen = true;
      const auto kernel = value_of(library().create(step.kernel->request));
      EXPECT_NE(kernel->implementation(), "reference") << step.kernel->key;
    }
  EXPECT_TRUE(seen) << "no step is " << own->second;
}

std::string test_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.file + "_" + info.param.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Runtime, Cases, ::testing::ValuesIn(read_cases()), test_name);

}  // namespace
}  // namespace taso::testing
