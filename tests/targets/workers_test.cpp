// taso-opt with workers: workers.cases with one that runs nothing. And, where Python has them, with those of runtimes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "onnx_io/builder.h"
#include "support/file.h"
#include "tests/support/cases.h"

namespace taso {
namespace {

namespace fs = std::filesystem;
using test::CaseCount;
using test::CaseValue;
using test::TextCase;

struct Outcome {
  int code = 0;
  std::string said;  ///< On both streams.
};

class Workers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c 'import json' > /dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
    std::string name = (fs::temp_directory_path() / "taso-workers-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  /// Two heads of attention on products of the input, spelled out.
  static void save_attention(const std::string& file) {
    ModelBuilder model(17, "attention");
    model.add_input("x", {1, 5, 8});
    const std::vector<std::int64_t> heads = {1, 5, 2, 4}, rows = {1, 5, 8}, four = {4}, three = {3};
    model.add_initializer("heads", four, std::span<const std::int64_t>(heads));
    model.add_initializer("rows", three, std::span<const std::int64_t>(rows));
    for (const std::string name : {"q", "k", "v"}) {
      const std::vector<std::int64_t> perm =
          name == "k" ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 1, 3};
      model.add_initializer("w" + name, {8, 8}, std::vector<float>(64, static_cast<float>(name[0]) / 1024));
      model.add_node("MatMul", {"x", "w" + name}, {name});
      model.add_node("Reshape", {name, "heads"}, {name + "_heads"});
      model.add_node("Transpose", {name + "_heads"}, {name + "_turned"}, {{"perm", perm}});
    }
    model.add_node("MatMul", {"q_turned", "k_turned"}, {"scores"});
    model.add_node("Softmax", {"scores"}, {"weights"}, {{"axis", -1}});
    model.add_node("MatMul", {"weights", "v_turned"}, {"mixed"});
    model.add_node("Transpose", {"mixed"}, {"turned"}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
    model.add_node("Reshape", {"turned", "rows"}, {"y"});
    model.add_output("y", {1, 5, 8});
    EXPECT_TRUE(model.save(file));
  }

  /// An empty folder with models and rules.
  fs::path prepare() {
    const fs::path place = folder_ / std::to_string(count_++);
    fs::create_directories(place);
    ModelBuilder model(17, "small");
    model.add_input("x", {2, 32});
    model.add_initializer("w", {32, 32}, std::vector<float>(1024, 0.25F));
    model.add_node("Relu", {"x"}, {"a"});
    model.add_node("Relu", {"a"}, {"b"});
    model.add_node("MatMul", {"b", "w"}, {"y"});
    model.add_output("y", {2, 32});
    EXPECT_TRUE(model.save((place / "m.onnx").string()));
    ModelBuilder sum(17, "sum");
    sum.add_input("x", {2, 32});
    sum.add_node("Relu", {"x"}, {"a"});
    sum.add_node("Add", {"x", "a"}, {"y"});
    sum.add_output("y", {2, 32});
    EXPECT_TRUE(sum.save((place / "sum.onnx").string()));
    ModelBuilder half(17, "half");
    half.add_input("x", {2, 32}, ElementType::f16);
    half.add_node("Relu", {"x"}, {"a"});
    half.add_node("Relu", {"a"}, {"y"});
    half.add_output("y", {2, 32}, ElementType::f16);
    EXPECT_TRUE(half.save((place / "half.onnx").string()));
    save_attention((place / "attention.onnx").string());
    EXPECT_TRUE(write_file_atomically((place / "r.rules").string(), "rule relu_twice: relu(relu(x)) => relu(x)\n"));
    EXPECT_TRUE(write_file_atomically((place / "none.rules").string(), "rule none: tanh(tanh(x)) => tanh(tanh(x))\n"));
    return place;
  }

  Outcome run(const fs::path& place, const std::string& command) const {
    const std::string streams = (place / "said").string();
    const std::string line = "cd '" + place.string() + "' && PATH='" TASO_PROGRAMS "':\"$PATH\" XDG_CACHE_HOME='" +
                             (place / ".cache").string() +
                             "' FAKE='" TASO_SOURCE_DIR
                             "/tests/targets/fake_worker.py' && export PATH XDG_CACHE_HOME FAKE && "
                             "OPT=\"taso-opt m.onnx --rules r.rules --device worker:$FAKE -o\" && { " +
                             command + "; } >'" + streams + "' 2>&1 </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(streams).value()};
  }

  fs::path folder_;
  int count_ = 0;
};

TEST_F(Workers, CostNoResult) {
  const std::vector<TextCase> cases =
      test::load_cases("tests/targets/workers.cases", {{"given", CaseValue::words, CaseCount::repeated},
                                                       {"run", CaseValue::words, CaseCount::once},
                                                       {"code", CaseValue::integer, CaseCount::optional},
                                                       {"prints", CaseValue::words, CaseCount::repeated},
                                                       {"hides", CaseValue::words, CaseCount::repeated}});
  EXPECT_GE(cases.size(), 20U);
  const auto expect = [&](const TextCase& test, const fs::path& place) {
    SCOPED_TRACE(test.place() + ": " + test.name + ": " + test.text("run"));
    for (const std::string& command : test.all("given")) {
      const Outcome given = run(place, command);
      EXPECT_EQ(given.code, 0) << command << ": " << given.said;
    }
    const Outcome outcome = run(place, "( " + test.text("run") + " )");
    EXPECT_EQ(outcome.code, test.integer("code", 0)) << outcome.said;
    for (const std::string& text : test.all("prints")) EXPECT_THAT(outcome.said, ::testing::HasSubstr(text));
    for (const std::string& text : test.all("hides"))
      EXPECT_THAT(outcome.said, ::testing::Not(::testing::HasSubstr(text)));
  };
  std::vector<fs::path> places;
  for (std::size_t i = 0; i < cases.size(); ++i) places.push_back(prepare());
  // Most of the time they wait for workers that hang.
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 3; ++thread)
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < cases.size(); i = next++) expect(cases[i], places[i]);
    });
}

/// The whole way with the worker of a runtime that a Python has.
class Runtimes : public Workers {
 protected:
  void optimize(const std::string& device, const std::string& module, const std::string& name) {
    std::string python = TASO_ORACLE_PYTHON;
    const auto has = [&] {
      return std::system((python + " -c 'import numpy, " + module + "' > /dev/null 2>&1").c_str()) == 0;
    };
    if (!has()) python = TASO_SOURCE_DIR "/build/targets/bin/python";
    if (!has()) GTEST_SKIP() << "neither " << TASO_ORACLE_PYTHON << " nor " << python << " has " << module;
    const fs::path place = prepare();
    const Outcome outcome = run(
        place, "taso-opt m.onnx -o o.onnx --device " + device + " --worker-python '" + python + "' --costs c.sqlite");
    EXPECT_EQ(outcome.code, 0) << outcome.said;
    EXPECT_THAT(outcome.said, ::testing::HasSubstr(name));
    EXPECT_TRUE(fs::exists(place / "o.onnx"));
    const Outcome again = run(place, "taso-opt m.onnx -o p.onnx --device " + device + " --worker-python '" + python +
                                         "' --costs c.sqlite --no-measure && cmp o.onnx p.onnx");
    EXPECT_EQ(again.code, 0) << again.said;
  }
};

/// Ends with an error if two models compute different results in ONNX Runtime.
constexpr const char* compare_outputs = R"(
import sys, numpy, onnxruntime
first, second = [onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]) for file in sys.argv[1:3]]
random = numpy.random.default_rng(1)
feed = {one.name: random.uniform(-1, 1, one.shape).astype(numpy.float32) for one in first.get_inputs()}
for one, other in zip(first.run(None, feed), second.run(None, feed)):
    if not numpy.allclose(one, other, rtol=1e-4, atol=1e-5):
        sys.exit("the results differ")
print("equal")
)";

TEST_F(Runtimes, ResultsAreEqualThere) {
  const std::string python = TASO_ORACLE_PYTHON;
  if (std::system((python + " -c 'import numpy, onnxruntime' > /dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << python << " has no onnxruntime";
  const fs::path place = prepare();
  std::ofstream(place / "compare.py") << compare_outputs;
  const std::string options = " --device ort --worker-python '" + python + "' --cost launches -q";
  for (const std::string& run_of :
       {"taso-opt m.onnx -o o.onnx --rules r.rules" + options + " && taso-run --print-graph --as-is o.onnx",
        "taso-opt attention.onnx -o o.onnx --allow-domain com.microsoft" + options +
            " && grep -c MultiHeadAttention o.onnx"}) {
    const std::string model = run_of.substr(9, run_of.find(".onnx") - 9) + ".onnx";
    const Outcome outcome = run(place, run_of + " && '" + python + "' compare.py " + model + " o.onnx");
    EXPECT_EQ(outcome.code, 0) << outcome.said;
    EXPECT_THAT(outcome.said, ::testing::HasSubstr("equal"));
  }
}

TEST_F(Runtimes, OnnxRuntime) { optimize("ort", "onnxruntime", "ONNX Runtime "); }
TEST_F(Runtimes, OpenVino) { optimize("openvino", "openvino", "OpenVINO "); }

TEST_F(Runtimes, AProviderThatIsNotThereIsNamed) {
  const std::string python = TASO_ORACLE_PYTHON;
  if (std::system((python + " -c 'import numpy, onnxruntime' > /dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << python << " has no onnxruntime";
  const fs::path place = prepare();
  const Outcome outcome =
      run(place, "taso-opt m.onnx -o o.onnx --device ort:AbsentExecutionProvider --worker-python '" + python + "'");
  EXPECT_EQ(outcome.code, 6);
  EXPECT_THAT(outcome.said, ::testing::HasSubstr("no provider AbsentExecutionProvider among CPUExecutionProvider"));
}

TEST_F(Runtimes, APythonWithoutTheRuntimeSaysWhatToDo) {
  const fs::path place = prepare();
  // No module of any installation is found.
  const Outcome outcome =
      run(place,
          "printf '#!/bin/sh\\nexec python3 -S -I \"$@\"\\n' > bare && chmod +x bare && taso-opt m.onnx -o o.onnx "
          "--device ort --worker-python $PWD/bare");
  EXPECT_EQ(outcome.code, 6);
  EXPECT_THAT(outcome.said, ::testing::HasSubstr("scripts/setup --targets installs it, --worker-python names another"));
}

}  // namespace
}  // namespace taso
