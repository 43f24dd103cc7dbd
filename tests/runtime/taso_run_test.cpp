// taso-run as users run it: exit codes, messages, files.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "graph/pattern.h"
#include "onnx_io/builder.h"
#include "onnx_io/tensor_file.h"
#include "operators/registry.h"
#include "support/file.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int code = 0;
  std::string out, err;
};

// A rule with a mark of proof, and false.
std::string wrong_fusion() {
  const auto operators = OperatorRegistry::load(std::string(TASO_SOURCE_DIR) + "/specs/operators");
  if (!operators) return operators.error().to_string();
  auto rules =
      parse_rules("rule wrong_fusion:\n  abs(matmul(a, b)) => matmul(a, b)\n  proof axioms\n", "r", *operators);
  if (!rules) return rules.error().to_string();
  seal_proofs(rules->at(0), *operators);
  return to_string(rules->at(0), *operators);
}

class TasoRun : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) / "taso_run_test" / test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// y = softmax(relu(x w) v), x f32[2, 3] (or [N, 3]).
  void build(const std::string& name, float factor = 1.0F, bool symbolic = false, const std::string& first = "Relu",
             const std::string& domain = "") {
    ModelBuilder model(17, "small");
    if (symbolic) {
      model.add_symbolic_input("x", {"N", "3"});
      model.add_symbolic_output("y", {"N", "2"});
    } else {
      model.add_input("x", {2, 3});
      model.add_output("y", {2, 2});
    }
    std::vector<float> w(12), v(8);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = factor * (static_cast<float>(i % 5) - 2);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = factor * (static_cast<float>(i % 3) - 1);
    model.add_initializer("w", {3, 4}, w);
    model.add_initializer("v", {4, 2}, v);
    if (!domain.empty()) model.add_opset(domain, 1);
    model.add_node("MatMul", {"x", "w"}, {"a"});
    model.add_node(first, {"a"}, {"b"}, {}, "middle", domain);
    model.add_node("MatMul", {"b", "v"}, {"c"});
    model.add_node("Softmax", {"c"}, {"y"});
    const Status saved = model.save(path(name));
    ASSERT_TRUE(saved) << saved.error().to_string();
  }

  Outcome run(const std::string& arguments, const std::string& backends = TASO_TEST_BACKENDS) const {
    const std::string command = "cd '" + folder_.string() + "' && XDG_CACHE_HOME='" + path("cache") +
                                "' TASO_BACKENDS='" + backends + "' '" + std::string(TASO_RUN) + "' " + arguments +
                                " >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, value_of(read_file(path("out.txt"))),
            value_of(read_file(path("err.txt")))};
  }

  void expect_error(const std::string& arguments, int code, const std::string& message) const {
    const Outcome result = run(arguments);
    EXPECT_EQ(result.code, code) << arguments << "\n" << result.err;
    EXPECT_EQ(result.err, message + "\n") << arguments;
    EXPECT_EQ(result.out, "");
  }

  std::filesystem::path folder_;
};

TEST_F(TasoRun, PrintsTimes) {
  build("m.onnx");
  const Outcome result = run("m.onnx --repeat 3");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("m.onnx: 3 kernels, median "));
  EXPECT_THAT(result.out, HasSubstr("of 3 runs"));
  EXPECT_EQ(run("m.onnx -q").out, "");
}

TEST_F(TasoRun, FusesUnlessAskedNotTo) {
  build("m.onnx");
  for (const auto& [arguments, fused, kernels] : {std::tuple{"--save-outputs fused", true, 3U},
                                                  {"--save-outputs as_is --as-is", false, 4U},
                                                  {"--device reference", false, 4U}}) {
    const Outcome result = run(std::string("m.onnx --repeat 1 --json j.json ") + arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    const auto json = nlohmann::json::parse(value_of(read_file(path("j.json"))));
    EXPECT_EQ(json["fused"], fused) << arguments;
    EXPECT_EQ(json["models"][0]["kernels"], kernels) << arguments;
  }
  const HostTensor fused = value_of(read_npy(path("fused/y.npy"))), as_is = value_of(read_npy(path("as_is/y.npy")));
  EXPECT_EQ(compare(fused, as_is, 1e-6, 0).violations, 0);
}

// A rule that claims a proof it does not have: what is compared with is not fused by it.
TEST_F(TasoRun, ComparesWithWhatTheFileSays) {
  build("m.onnx", 1.0F, false, "Abs");
  std::filesystem::create_directories(path("wrong/rules"));
  ASSERT_TRUE(write_file_atomically(path("wrong/rules/wrong.rules"), wrong_fusion()).ok());
  const Outcome result = run("m.onnx --compare m.onnx --repeat 1 --add-specs wrong");
  EXPECT_EQ(result.code, 4) << result.out << result.err;
  EXPECT_EQ(run("m.onnx --compare m.onnx --repeat 1 --add-specs wrong --as-is").code, 0);
}

TEST_F(TasoRun, SavesOutputsOfGivenInputs) {
  build("m.onnx");
  const HostTensor x = HostTensor::of_floats({2, 3}, std::vector<float>{1, 2, 3, -1, 0.5, 2});
  ASSERT_TRUE(write_npy(path("x.npy"), x).ok());
  ASSERT_TRUE(save_tensor(path("x.pb"), "x", *ConstantData::of_floats({2, 3}, x.floats())).ok());
  EXPECT_EQ(run("m.onnx --input x=x.npy --save-outputs one").code, 0);
  EXPECT_EQ(run("m.onnx --input x=x.pb --save-outputs two").code, 0);
  EXPECT_EQ(run("m.onnx --input x=x.pb --save-outputs three --device reference --repeat 1").code, 0);
  EXPECT_EQ(value_of(read_file(path("one/y.npy"))), value_of(read_file(path("two/y.npy"))));
  const HostTensor fast = value_of(read_npy(path("one/y.npy"))), slow = value_of(read_npy(path("three/y.npy")));
  EXPECT_EQ(to_string(fast.type()), "f32[2, 2]");
  EXPECT_EQ(compare(fast, slow, 1e-6, 0).violations, 0);
  EXPECT_NEAR(fast.floats()[0] + fast.floats()[1], 1.0F, 1e-6F);
  EXPECT_NE(fast.floats()[0], 0.5F);  // the softmax of zeros
}

TEST_F(TasoRun, RandomInputsFollowTheSeed) {
  build("m.onnx");
  for (const char* arguments : {"--seed 1 --save-outputs a", "--seed 1 --save-outputs b", "--seed 2 --save-outputs c"})
    ASSERT_EQ(run(std::string("m.onnx --repeat 1 ") + arguments).code, 0);
  EXPECT_EQ(value_of(read_file(path("a/y.npy"))), value_of(read_file(path("b/y.npy"))));
  EXPECT_NE(value_of(read_file(path("a/y.npy"))), value_of(read_file(path("c/y.npy"))));
}

TEST_F(TasoRun, Profile) {
  build("m.onnx");
  const Outcome result = run("m.onnx --profile --repeat 2 --json j.json --as-is");
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* text : {"median us", "matmul", "relu", "softmax", "implementation", "count"})
    EXPECT_THAT(result.out, HasSubstr(text));
  const auto json = nlohmann::json::parse(value_of(read_file(path("j.json"))));
  ASSERT_EQ(json["models"][0]["profile"].size(), 4u);
  EXPECT_EQ(json["models"][0]["profile"][1]["operator"], "relu");
  EXPECT_EQ(json["models"][0]["kernels"], 4);
  EXPECT_EQ(json["models"][0]["time"]["samples"], 2);
  EXPECT_EQ(json["models"][0]["inputs"][0]["type"], "f32[2, 3]");
  EXPECT_EQ(json["models"][0]["outputs"][0]["name"], "y");
  EXPECT_EQ(json["threads"], 1);
}

TEST_F(TasoRun, JsonOnStdoutIsAllThatIsPrinted) {
  build("m.onnx");
  const Outcome result = run("m.onnx --repeat 1 --json -");
  EXPECT_EQ(nlohmann::json::parse(result.out)["models"].size(), 1u);
}

TEST_F(TasoRun, ComparesEqualModels) {
  build("m.onnx");
  build("n.onnx", 1.000001F);
  const Outcome result = run("m.onnx --compare n.onnx --json j.json --repeat 3 --threads 2");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("m.onnx takes "));
  EXPECT_THAT(result.out, HasSubstr("y before softmax"));
  const auto json = nlohmann::json::parse(value_of(read_file(path("j.json"))));
  EXPECT_EQ(json["comparison"]["within"], true);
  EXPECT_EQ(json["comparison"]["outputs"].size(), 2u);
  EXPECT_EQ(json["models"].size(), 2u);
}

TEST_F(TasoRun, FindsDifferences) {
  build("m.onnx");
  build("n.onnx", 1.05F);
  const Outcome result = run("m.onnx --compare n.onnx --repeat 1");
  EXPECT_EQ(result.code, 4);
  EXPECT_EQ(result.err,
            "taso-run: n.onnx: its outputs differ from those of m.onnx by more than 0.0001 * max|reference| + 1e-06\n");
  EXPECT_THAT(result.out, HasSubstr("elements differ"));
  EXPECT_EQ(run("m.onnx --compare n.onnx --repeat 1 --check-rtol 0.2").code, 0);
}

TEST_F(TasoRun, RefusesToCompareOtherInterfaces) {
  build("m.onnx");
  ModelBuilder other(17, "other");
  other.add_input("x", {2, 5});
  other.add_output("y", {2, 5});
  other.add_node("Relu", {"x"}, {"y"});
  ASSERT_TRUE(other.save(path("inputs.onnx")).ok());
  expect_error("m.onnx --compare inputs.onnx", 3,
               "taso-run: inputs.onnx: its inputs (x f32[2, 5]) are not those of m.onnx (x f32[2, 3])");
  ModelBuilder outputs(17, "outputs");
  outputs.add_input("x", {2, 3});
  outputs.add_output("z", {2, 3});
  outputs.add_node("Relu", {"x"}, {"z"});
  ASSERT_TRUE(outputs.save(path("outputs.onnx")).ok());
  expect_error("m.onnx --compare outputs.onnx", 3,
               "taso-run: outputs.onnx: its outputs (z f32[2, 3]) are not those of m.onnx (y f32[2, 2])");
}

TEST_F(TasoRun, Layouts) {
  build("m.onnx");
  for (const std::string layouts : {"chosen", "channels-last", "row-major"})
    EXPECT_EQ(run("m.onnx --repeat 1 --layouts " + layouts).code, 0) << layouts;
  EXPECT_EQ(run("m.onnx --repeat 1 --layouts best").code, 2);
  const Outcome missing = run("m.onnx --repeat 1 --costs none.sqlite");
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("none.sqlite"));
}

TEST_F(TasoRun, SymbolicShapes) {
  build("m.onnx", 1.0F, true);
  const Outcome refused = run("m.onnx");
  EXPECT_EQ(refused.code, 3);
  EXPECT_EQ(refused.err, "taso-run: m.onnx: input 'x' has no known shape; give one with --input-shape\n");
  EXPECT_EQ(run("m.onnx --input-shape x:7,3 --repeat 1 --save-outputs out").code, 0);
  EXPECT_EQ(to_string(value_of(read_npy(path("out/y.npy"))).type()), "f32[7, 2]");
  // A given tensor says the shape.
  ASSERT_TRUE(write_npy(path("x.npy"), HostTensor(TensorType{ElementType::f32, {4, 3}, true})).ok());
  EXPECT_EQ(run("m.onnx --input x=x.npy --repeat 1 --save-outputs out").code, 0);
  EXPECT_EQ(to_string(value_of(read_npy(path("out/y.npy"))).type()), "f32[4, 2]");
}

TEST_F(TasoRun, UnknownOperators) {
  build("m.onnx", 1.0F, false, "Mystery", "my.domain");
  const Outcome result = run("m.onnx");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("m.onnx: "));
  EXPECT_THAT(result.err, HasSubstr("Mystery"));
  EXPECT_THAT(result.err, HasSubstr("nodes cannot be executed, mainly because of node"));
  EXPECT_THAT(result.err, HasSubstr("it is of another domain"));
  // The part before it, whose shapes are known, can be compared.
  build("n.onnx", 1.0F, false, "Mystery", "my.domain");
  build("wrong.onnx", 1.1F, false, "Mystery", "my.domain");
  const Outcome same = run("m.onnx --compare n.onnx --repeat 1");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.err, HasSubstr("; the parts between them are compared"));
  EXPECT_EQ(run("m.onnx --compare wrong.onnx --repeat 1").code, 4);
}

TEST_F(TasoRun, OnADevice) {
  build("m.onnx");
  for (const std::string math : {"fp32", "tf32", "fp16", "bf16"}) {
    const Outcome result =
        run("m.onnx --device host --check --profile --repeat 3 --json j.json --save-inputs in --save-outputs " + math +
            " --math " + math);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("m.onnx: 3 kernels (1 on the host: softmax), median "));
    EXPECT_THAT(result.out, HasSubstr("host: "));
    const auto json = nlohmann::json::parse(value_of(read_file(path("j.json"))));
    EXPECT_THAT(json["device"].get<std::string>(), HasSubstr("host test device; "));
    EXPECT_EQ(json["math"], math);
    EXPECT_EQ(json["models"][0]["on_host"], nlohmann::json::array({"softmax"}));
    EXPECT_EQ(json["check"]["within"], true);
    EXPECT_GT(json["models"][0]["time"]["median_us"], 0);
  }
  // The inputs are those that were used, and precision is what differs.
  EXPECT_EQ(run("m.onnx --input x=in/x.npy --save-outputs cpu").code, 0);
  const HostTensor cpu = value_of(read_npy(path("cpu/y.npy")));
  EXPECT_LT(relative_l2(value_of(read_npy(path("fp32/y.npy"))), cpu), 1e-6);
  EXPECT_GT(relative_l2(value_of(read_npy(path("bf16/y.npy"))), cpu), 1e-6);
  EXPECT_EQ(run("m.onnx --device host --compare m.onnx --math fp16 --repeat 1").code, 0);
  const Outcome device = run("--device host --print-device");
  EXPECT_EQ(device.code, 0) << device.err;
  EXPECT_EQ(device.out, "{\"name\":\"host test device\"}\n");
}

TEST_F(TasoRun, PlansLaunchesOfADeviceThatIsDescribed) {
  build("m.onnx");
  ASSERT_TRUE(write_file_atomically(path("d.json"), R"({"name": "other"})").ok());
  const std::string planned = "m.onnx --no-measure --device host --device-properties d.json ";
  EXPECT_EQ(
      run(planned).out,
      "m.onnx: 3 kernels, 2 launches planned, 1 on the host; on one stream 20.00 us, by a model, of whose 3 costs "
      "0 were measured\n");
  const Outcome each = run(planned + "--profile --math fp16 --json j.json");
  EXPECT_EQ(each.code, 0) << each.err;
  EXPECT_THAT(each.out, HasSubstr("\nlaunches  stream   begin us   model us  operator "));
  EXPECT_THAT(each.out, HasSubstr("       1       0        0.0       10.0  matmul_bias_act "));
  EXPECT_THAT(each.out, HasSubstr("       0       0       20.0        0.0  softmax                host: "));
  const auto json = nlohmann::json::parse(value_of(read_file(path("j.json"))));
  EXPECT_THAT(json["device"].get<std::string>(), HasSubstr("other"));
  EXPECT_EQ(json["models"][0]["launches"], 2);
  EXPECT_EQ(json["models"][0]["planned"].size(), 3U);
  EXPECT_THAT(json["models"][0]["planned"][0]["request"].get<std::string>(), HasSubstr("f16["));
  // Of the processor as well, with what there is.
  EXPECT_EQ(run("m.onnx --no-measure").out, "m.onnx: 3 kernels, 3 launches planned\n");
}

TEST_F(TasoRun, RunsBranchesOnSeveralStreams) {
  ModelBuilder model(17, "branches");
  model.add_input("x", {4, 4});
  model.add_output("y", {4, 4});
  model.add_initializer("w", {4, 4}, std::vector<float>(16, 0.5F));
  for (const char* branch : {"a", "b", "c"}) {
    model.add_node("Tanh", {"x"}, {std::string(branch) + "0"});
    model.add_node("MatMul", {std::string(branch) + "0", "w"}, {std::string(branch) + "1"});
  }
  model.add_node("Add", {"a1", "b1"}, {"ab"});
  model.add_node("Mul", {"ab", "c1"}, {"y"});
  ASSERT_TRUE(model.save(path("m.onnx")).ok());
  ASSERT_TRUE(write_file_atomically(path("d.json"), R"({"name": "other"})").ok());
  const std::string planned = "m.onnx --as-is --no-measure --device host --device-properties d.json ";
  EXPECT_EQ(run(planned).out,
            "m.onnx: 8 kernels, 8 launches planned; on 3 streams 43.00 us instead of 80.00 us, by a model, of whose 8 "
            "costs 0 were measured\n");
  EXPECT_THAT(run(planned + "--streams 2").out, HasSubstr("; on 2 streams "));
  EXPECT_THAT(run(planned + "--streams 1").out, HasSubstr("; on one stream 80.00 us, "));
  EXPECT_THAT(run(planned + "--profile").out, HasSubstr("       1       2        0.0       10.0  tanh "));
  // What was measured stands in the database, and decides; the test device runs one kernel at a time.
  const auto run_json = [&](const std::string& options) {
    const Outcome result = run("m.onnx --as-is --device host --repeat 1 --check --json j.json " + options);
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(value_of(read_file(path("j.json"))));
  };
  const auto first = run_json(""), second = run_json("");
  EXPECT_EQ(first["measured_steps"], 5) << "tanh, matmul, add, mul and a wait";
  EXPECT_EQ(second["measured_steps"], 0);
  EXPECT_EQ(run_json("--streams 1")["models"][0]["streams"], 1);
}

TEST_F(TasoRun, SaysWhatFailedAndIsComputedInAnotherWay) {
  build("m.onnx", 1.0F, false, "Abs");
  const Outcome result = run("m.onnx --as-is --device failing --check --repeat 1 --json j.json --costs c.sqlite");
  EXPECT_EQ(result.code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr(" failed when it ran (the test device cannot execute fused): it is computed in "
                                    "another way\n"));
  EXPECT_FALSE(nlohmann::json::parse(value_of(read_file(path("j.json"))))["fallbacks"].empty());
}

TEST_F(TasoRun, FusesOnADeviceThatDoes) {
  build("m.onnx", 1.0F, false, "Abs");
  const Outcome result = run("m.onnx --as-is --device fusing --check --profile --repeat 1");
  EXPECT_EQ(result.code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr("fused "));
  EXPECT_THAT(result.out, HasSubstr("t0 = "));
}

// Outputs of another model than the file's: a constant that the file does not have cannot pass.
TEST_F(TasoRun, CheckFindsWhatIsOutsideTheBound) {
  build("m.onnx", 1.0F, false, "Abs");
  std::filesystem::create_directories(path("wrong/rules"));
  ASSERT_TRUE(write_file_atomically(path("wrong/rules/wrong.rules"), wrong_fusion()).ok());
  const Outcome result = run("m.onnx --check --repeat 1 --add-specs wrong --device host");
  EXPECT_EQ(result.code, 4) << result.out;
  EXPECT_EQ(result.err, "taso-run: m.onnx: its outputs differ from float64 by a relative L2 norm of more than 1e-05\n");
  EXPECT_THAT(result.out, HasSubstr("not within it"));
}

TEST_F(TasoRun, ComparesWithReferencesComputedBefore) {
  build("m.onnx");
  ASSERT_EQ(run("m.onnx --device reference --repeat 1 --save-outputs refs").code, 0);
  const Outcome right = run("m.onnx --check --references refs --repeat 1");
  EXPECT_EQ(right.code, 0) << right.err;
  // They are what is compared with: others are found out, and those of another seed are others.
  EXPECT_EQ(run("m.onnx --check --references refs --repeat 1 --seed 7").code, 4);
  const Outcome missing = run("m.onnx --check --references nowhere --repeat 1");
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("taso-run: nowhere/y.npy: "));
  ASSERT_EQ(run("m.onnx --repeat 1 --save-inputs in").code, 0);
  std::filesystem::rename(path("in/x.npy"), path("in/y.npy"));
  EXPECT_EQ(run("m.onnx --check --references in --repeat 1").err,
            "taso-run: in/y.npy: a reference of type f32[2, 3] for the output 'y', which is f32[2, 2]\n");
  EXPECT_EQ(run("m.onnx --references refs --repeat 1").err, "taso-run: --references: it goes with --check\n");
}

TEST_F(TasoRun, ChoosesEnginesOnce) {
  build("m.onnx");
  const auto choices = [&](const std::string& options) {
    const Outcome result = run("m.onnx --device host --repeat 1 --json j.json " + options);
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(value_of(read_file(path("j.json"))))["tuning"]["choices"].get<int>();
  };
  EXPECT_EQ(choices(""), 2) << "two products";
  EXPECT_EQ(choices(""), 0) << "in the default database of costs";
  EXPECT_EQ(choices("--costs c.sqlite"), 2);
  EXPECT_EQ(choices("--costs c.sqlite"), 0);
  EXPECT_EQ(choices("--costs c.sqlite --math tf32"), 2) << "other arithmetic, other engines";
  const Outcome profile = run("m.onnx --device host --repeat 1 --profile --costs c.sqlite");
  EXPECT_THAT(profile.out, HasSubstr(" (engine "));
}

TEST_F(TasoRun, SaysHowABackendMakesKernels) {
  build("m.onnx");
  const std::string costs = path("cache") + "/taso/costs.sqlite";
  EXPECT_THAT(run("m.onnx --device host --repeat 1 -v").err,
              HasSubstr("kernels would be generated, and kept in " + costs + ".kernels\n"));
  EXPECT_THAT(run("m.onnx --device host --repeat 1 -v --costs own.sqlite --precompiled-kernels").err,
              HasSubstr("kernels would be precompiled, and kept in own.sqlite.kernels\n"));
  for (const char* quiet : {"", " -v -q"})
    EXPECT_EQ(run(std::string("m.onnx --device host --repeat 1") + quiet).err.find("kernels would be"),
              std::string::npos);
}

#ifdef TASO_CUDA_MODULE
TEST_F(TasoRun, PrintsGeneratedKernels) {
  build("m.onnx");
  const std::string command = "m.onnx --as-is --print-kernels --device cuda --device-properties '" +
                              test::source_folder() + "/tests/data/cuda/h200_by_hand.json' ";
  const Outcome precompiled = run(command + "-v --precompiled-kernels", TASO_CUDA_FOLDER);
  EXPECT_EQ(precompiled.code, 0) << precompiled.err;
  EXPECT_THAT(precompiled.out, HasSubstr("x own "));
  EXPECT_EQ(precompiled.out.find("__global__"), std::string::npos);
  EXPECT_THAT(precompiled.err, HasSubstr("kernels are not generated: precompiled ones were asked for\n"));
  const Outcome result = run(command + "-v", TASO_CUDA_FOLDER);
  EXPECT_EQ(result.code, 0) << result.err;
  if (result.err.find("kernels are generated by NVRTC ") == std::string::npos) GTEST_SKIP() << result.err;
  EXPECT_THAT(result.err, HasSubstr(" for sm_90 and kept in " + path("cache") + "/taso/costs.sqlite.kernels\n"));
  EXPECT_THAT(result.out, HasSubstr("1 x generated softmax: softmax; axis=-1; f32[2, 2]:row"));
  EXPECT_THAT(result.out, HasSubstr("  extern \"C\" __global__ void __launch_bounds__(256) step_0(const float* x0, "));
  EXPECT_EQ(run(command, TASO_CUDA_FOLDER).out, result.out) << "the same text every time";
  EXPECT_FALSE(std::filesystem::exists(path("cache") + "/taso")) << "nothing is compiled";
}
#endif

TEST_F(TasoRun, Errors) {
  build("m.onnx");
  ASSERT_TRUE(write_npy(path("x.npy"), HostTensor(TensorType{ElementType::f32, {2, 4}, true})).ok());
  expect_error("none.onnx", 3, run("none.onnx").err.substr(0, run("none.onnx").err.size() - 1));
  EXPECT_THAT(run("none.onnx").err, HasSubstr("none.onnx"));
  EXPECT_EQ(run("m.onnx --device nosuch").code, 6);
  EXPECT_THAT(run("m.onnx --device nosuch").err,
              HasSubstr("taso-run: device 'nosuch' is not available: there is no taso_nosuch.so in "));
  expect_error("m.onnx --device ../x", 2, "taso-run: --device ../x: expected cpu, reference or the name of a backend");
  expect_error("m.onnx --device reference --math tf32", 2,
               "taso-run: --math tf32: kernels of --device reference compute in fp32");
  expect_error("--print-device", 2, "taso-run: --print-device: --device cpu has no properties");
  expect_error("m.onnx --device host --device-properties x.npy", 2,
               "taso-run: --device-properties: a device that is not there runs nothing; give --no-measure");
  expect_error("m.onnx --streams 2", 2, "taso-run: --streams 2: --device cpu runs one kernel at a time");
  EXPECT_EQ(run("m.onnx --streams 1").code, 0);
  expect_error("m.onnx --plan p.json --device host --messages device --streams 2", 2,
               "taso-run: --streams: messages from device to device are in one stream; leave it out, or give "
               "--messages host");
  EXPECT_EQ(run("m.onnx --device host --streams 9").code, 2);
  expect_error("m.onnx --no-measure --check", 2, "taso-run: --check: --no-measure runs nothing; leave it out");
  expect_error("m.onnx --check --compare m.onnx", 2,
               "taso-run: --check: one model is compared with float64; leave out --compare");
  expect_error("", 2, "taso-run: MODEL is required");
  expect_error("m.onnx --input z=x.npy", 3, "taso-run: m.onnx: the model has no input 'z'; its inputs are: x");
  expect_error("m.onnx --input x=x.npy", 3, "taso-run: m.onnx: input 'x' is f32[2, 3], a tensor f32[2, 4] was given");
  expect_error("m.onnx --input x", 2, "taso-run: --input x: expected NAME=FILE");
  expect_error("m.onnx --input x=x.npy --input x=x.npy", 2, "taso-run: --input x=x.npy: the input is given twice");
  expect_error("m.onnx --input x=x.txt", 3, "taso-run: x.txt: an input file is .npy or .pb");
  EXPECT_EQ(run("m.onnx --repeat 0").code, 2);
  EXPECT_EQ(run("m.onnx --no-such-option").code, 2);
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_EQ(run("--version").code, 0);
}

}  // namespace
}  // namespace taso::testing
