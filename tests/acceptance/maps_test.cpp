// Operators of another runtime, composed of others in a folder of specifications: read through a map, optimized by
// rules that are proved from the definitions, written as the same operators, and run. Nothing here is compiled into the
// programs: operators, map and rules are text (tests/data/composition).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>

#include "onnx_io/builder.h"
#include "support/file.h"
#include "tests/acceptance/numbers.h"
#include "tests/acceptance/process.h"

namespace taso::acceptance {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

onnx::ModelProto read_model(const fs::path& path) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(read_file(path).value()));
  return model;
}

/// "com.acme::Attention Mul ..." in the order of the file.
std::string types(const onnx::ModelProto& model) {
  std::string text;
  for (const auto& node : model.graph().node())
    text += (text.empty() ? "" : " ") + (node.domain().empty() ? "" : node.domain() + "::") + node.op_type();
  return text;
}

class Maps : public testing::Test {
 protected:
  void SetUp() override {
    const std::string own = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(testing::TempDir()) / ("taso-maps-" + own);
    specs_ = folder_ / "specs";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::copy(fs::path(TASO_SOURCE_DIR) / "tests/data/composition", specs_, fs::copy_options::recursive);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] ProcessResult run(const std::string& name, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program(name));
    arguments.insert(arguments.end(), {"--add-specs", specs_});
    return run_process(arguments);
  }

  /// Proves the rules of the folder, and puts marks of proof into its file.
  void prove_rules() const {
    const std::string rules = specs_ / "rules/acme.rules", proved = folder_ / "proved.rules";
    const ProcessResult result = run("taso-verify", {rules, "--store", proved});
    ASSERT_EQ(result.exit_code, 0) << result.output << result.errors;
    fs::rename(proved, rules);
  }

  /// Optimizes a model, compares result and original, and repeats the certificate.
  onnx::ModelProto optimize(const ModelBuilder& model, const std::vector<std::string>& options = {}) {
    const std::string before = folder_ / "model.onnx", after = folder_ / "out.onnx";
    EXPECT_TRUE(model.save(before).ok());
    std::vector<std::string> arguments = {before, "-o", after, "--cost", "launches", "--require-proofs", "-v"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult optimized = run("taso-opt", arguments);
    EXPECT_EQ(optimized.exit_code, 0) << optimized.errors;
    report_ = optimized.output + optimized.errors;
    arguments = {before, "--compare", after, "--repeat", "1"};
    if (std::find(options.begin(), options.end(), "--assume") != options.end())
      arguments.insert(arguments.end(), {"--input-shape", "x:4,8"});
    const ProcessResult same = run("taso-run", arguments);
    EXPECT_EQ(same.exit_code, 0) << same.errors << same.output;
    const ProcessResult certified = run("taso-verify", {"--certificate", (folder_ / "out.taso.json").string()});
    EXPECT_EQ(certified.exit_code, 0) << certified.errors << certified.output;
    return read_model(after);
  }

  /// Normalised, scaled, and attending to itself.
  static ModelBuilder attention_model(const std::string& rows) {
    ModelBuilder model(17, "acme");
    model.add_opset("com.acme", 1);
    model.add_symbolic_input("x", {rows, "8"});
    model.add_initializer("w", {8}, numbers(8));
    model.add_initializer("g", {8}, numbers(8, 0.1F));
    model.add_node("RmsNorm", {"x", "w"}, {"h"}, {{"eps", 0.25}}, "norm", "com.acme");
    model.add_node("Mul", {"h", "g"}, {"n"}, {}, "scale");
    model.add_node("Attention", {"n", "n", "x"}, {"a"}, {{"scale", 0.5}}, "attend", "com.acme");
    model.add_node("Activation", {"a"}, {"y"}, {{"kind", "Sigmoid"}}, "activate", "com.acme");
    model.add_symbolic_output("y", {rows, "8"});
    return model;
  }

  fs::path folder_, specs_;
  std::string report_;
};

TEST_F(Maps, ComposedOperatorsAreOptimizedAndRun) {
  prove_rules();
  const onnx::ModelProto before = [] {
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(attention_model("4").serialize()));
    return model;
  }();
  const onnx::ModelProto after = optimize(attention_model("4"));
  EXPECT_THAT(report_, HasSubstr("acme_norm_takes_scale"));
  EXPECT_EQ(types(after), "com.acme::RmsNorm com.acme::Attention com.acme::Activation");
  // The normalisation has another weight; the others are the nodes that they were.
  EXPECT_EQ(after.graph().node(0).attribute(0).name(), "eps");
  EXPECT_EQ(after.graph().node(0).attribute(0).f(), 0.25F);
  EXPECT_NE(after.graph().node(0).input(1), "w");
  for (const auto& [now, was] : {std::pair(1, 2), std::pair(2, 3)}) {
    EXPECT_EQ(after.graph().node(now).name(), before.graph().node(was).name());
    EXPECT_EQ(after.graph().node(now).attribute(0).SerializeAsString(),
              before.graph().node(was).attribute(0).SerializeAsString());
  }
  ASSERT_EQ(after.opset_import_size(), before.opset_import_size());
  for (int i = 0; i < after.opset_import_size(); ++i)
    EXPECT_EQ(after.opset_import(i).SerializeAsString(), before.opset_import(i).SerializeAsString());
}

TEST_F(Maps, AtAllSizesOfASymbolicExtent) {
  prove_rules();
  const onnx::ModelProto after = optimize(attention_model("N"), {"--assume", "N=4"});
  EXPECT_EQ(types(after), "com.acme::RmsNorm com.acme::Attention com.acme::Activation");
  EXPECT_EQ(after.graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "N");
}

TEST_F(Maps, WindowsOfComposedConvolutions) {
  prove_rules();
  ModelBuilder model(17, "acme");
  model.add_opset("com.acme", 1);
  model.add_input("x", {1, 2, 6, 6});
  model.add_initializer("k", {3, 2, 3, 3}, numbers(54));
  model.add_node("ConvRelu", {"x", "k"}, {"c"}, {{"padding", 1}}, "conv", "com.acme");
  model.add_node("Relu", {"c"}, {"y"}, {}, "relu");
  model.add_output("y", {1, 3, 6, 6});
  const onnx::ModelProto after = optimize(model);
  EXPECT_EQ(types(after), "com.acme::ConvRelu");
  EXPECT_EQ(after.graph().node(0).attribute(0).i(), 1);
}

TEST_F(Maps, WithoutTheFolderTheyAreCarried) {
  const std::string before = folder_ / "model.onnx", after = folder_ / "out.onnx";
  ASSERT_TRUE(attention_model("4").save(before).ok());
  const ProcessResult optimized = run_process({program("taso-opt"), before, "-o", after, "--cost", "launches", "-v"});
  EXPECT_EQ(optimized.exit_code, 0) << optimized.errors;
  EXPECT_THAT(optimized.output + optimized.errors, HasSubstr("it is of another domain"));
  EXPECT_EQ(types(read_model(after)), "com.acme::RmsNorm Mul com.acme::Attention com.acme::Activation");
}

TEST_F(Maps, AWrongMapIsOneLine) {
  const std::string map = specs_ / "onnx/acme.map", before = folder_ / "model.onnx";
  ASSERT_TRUE(attention_model("4").save(before).ok());
  ASSERT_TRUE(write_file_atomically(map,
                                    "com.acme::RmsNorm (x, w; eps: real = 1e-6) -> y\n"
                                    "  = acme_norm(x, w; eps=eps)\n")
                  .ok());
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"taso-run", before},
        std::vector<std::string>{"taso-opt", before, "-o", folder_ / "out.onnx"},
        std::vector<std::string>{"taso-verify", "--rule", "neg(neg(x)) => x"}}) {
    const ProcessResult result = run(arguments[0], {arguments.begin() + 1, arguments.end()});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.errors, arguments[0] + ": " + map + ":2:21: acme_norm has no attribute 'eps'; it has epsilon\n");
  }
}

/// taso-gen finds rules over operators that apply others as over any: nobody writes them.
TEST_F(Maps, GeneratedRulesOverComposedOperatorsAreUsed) {
  const fs::path rules = specs_ / "rules/acme.rules";
  const ProcessResult generated = run("taso-gen", {"--profile", "composed", "--verify", "-q", "-o", rules});
  ASSERT_EQ(generated.exit_code, 0) << generated.errors;
  EXPECT_THAT(read_file(rules).value(), HasSubstr("attention(concat(q, r; axis="));
  ModelBuilder model(17, "acme");
  model.add_opset("com.acme", 1);
  for (const char* name : {"q", "r"}) model.add_input(name, {2, 4});
  for (const char* name : {"k", "v"}) model.add_input(name, {3, 4});
  model.add_node("Attention", {"q", "k", "v"}, {"a"}, {}, "first", "com.acme");
  model.add_node("Attention", {"r", "k", "v"}, {"b"}, {}, "second", "com.acme");
  model.add_node("Concat", {"a", "b"}, {"y"}, {{"axis", 0}}, "beside");
  model.add_output("y", {4, 4});
  EXPECT_EQ(types(optimize(model)), "Concat com.acme::Attention");
}

/// Recurrent operators in a folder of one's own: tests/data/recurrences.
class RecurrentMaps : public Maps {
 protected:
  void SetUp() override {
    Maps::SetUp();
    fs::remove_all(specs_);
    fs::copy(fs::path(TASO_SOURCE_DIR) / "tests/data/recurrences", specs_, fs::copy_options::recursive);
  }
};

TEST_F(RecurrentMaps, AnLstmOfABatchInPiecesIsOne) {
  prove_rules();
  const std::int64_t steps = 5, features = 3, states = 2;
  ModelBuilder model(17, "acme");
  model.add_opset("com.acme", 1);
  model.add_input("x", {steps, 2, features});
  model.add_input("y", {steps, 2, features});
  model.add_initializer("w", {features, 4 * states}, numbers(features * 4 * states));
  model.add_initializer("r", {states, 4 * states}, numbers(states * 4 * states));
  float first = 0.1F;
  for (const char* name : {"h", "c", "g", "d"})
    model.add_initializer(name, {2, states}, numbers(2 * states, first += 0.1F));
  model.add_node("Lstm", {"x", "w", "r", "h", "c"}, {"p"}, {}, "first", "com.acme");
  model.add_node("Lstm", {"y", "w", "r", "g", "d"}, {"q"}, {}, "second", "com.acme");
  model.add_node("Concat", {"p", "q"}, {"z"}, {{"axis", 1}}, "beside");
  model.add_output("z", {steps, 4, states});
  // Instances with four gates are too large for the rule's numeric class to be derived: it is the widest.
  const onnx::ModelProto after = optimize(model, {"--fp", "fast"});
  EXPECT_THAT(report_, HasSubstr("lstm_of_one_batch"));
  EXPECT_EQ(types(after), "Concat com.acme::Lstm");
}

TEST_F(RecurrentMaps, OnnxsOwnLstm) {
  prove_rules();
  const std::int64_t steps = 5, features = 3, states = 2;
  ModelBuilder model(17, "acme");
  model.add_input("x", {steps, 2, features});
  model.add_input("y", {steps, 2, features});
  model.add_initializer("w", {1, 4 * states, features}, numbers(features * 4 * states));
  model.add_initializer("r", {1, 4 * states, states}, numbers(states * 4 * states));
  model.add_initializer("b", {1, 8 * states}, numbers(8 * states, 0.05F));
  float first = 0.1F;
  for (const char* name : {"h", "c", "g", "d"})
    model.add_initializer(name, {1, 2, states}, numbers(2 * states, first += 0.1F));
  model.add_node("LSTM", {"x", "w", "r", "b", "", "h", "c"}, {"p", "ph", "pc"}, {{"hidden_size", states}}, "first");
  model.add_node("LSTM", {"y", "w", "r", "b", "", "g", "d"}, {"q"}, {{"hidden_size", states}}, "second");
  model.add_node("Concat", {"p", "q"}, {"z"}, {{"axis", 2}}, "beside");
  model.add_output("z", {steps, 1, 4, states});
  const onnx::ModelProto after = optimize(model, {"--fp", "fast"});
  EXPECT_THAT(report_, HasSubstr("onnx_lstm_of_one_batch"));
  EXPECT_EQ(types(after), "Concat LSTM");
}

TEST_F(RecurrentMaps, AnLstmWhoseLastStateIsReadIsTheShippedOperator) {
  ModelBuilder model(17, "acme");
  model.add_input("x", {5, 2, 3});
  model.add_initializer("w", {1, 8, 3}, numbers(24));
  model.add_initializer("r", {1, 8, 2}, numbers(16));
  model.add_initializer("b", {1, 16}, numbers(16, 0.05F));
  model.add_initializer("h", {1, 2, 2}, numbers(4));
  model.add_node("LSTM", {"x", "w", "r", "b", "", "h", "h"}, {"p", "ph"}, {{"hidden_size", std::int64_t{2}}}, "only");
  model.add_output("ph", {1, 2, 2});
  const std::string before = folder_ / "model.onnx", after = folder_ / "out.onnx";
  ASSERT_TRUE(model.save(before).ok());
  const ProcessResult optimized = run("taso-opt", {before, "-o", after, "--cost", "launches", "-v"});
  EXPECT_EQ(optimized.exit_code, 0) << optimized.errors;
  EXPECT_EQ(types(read_model(after)), "LSTM");
  EXPECT_THAT(optimized.output + optimized.errors, HasSubstr("\nlstm "));
}

TEST_F(RecurrentMaps, GeneratedRulesMakeSumsOfSumsOne) {
  const fs::path rules = specs_ / "rules/acme.rules";
  const ProcessResult generated = run("taso-gen", {"--profile", "recurrent", "--verify", "-q", "-o", rules});
  ASSERT_EQ(generated.exit_code, 0) << generated.errors;
  EXPECT_THAT(read_file(rules).value(), HasSubstr("add(cumsum(x), cumsum(y)) => cumsum(add(x, y))"));
  ModelBuilder model(17, "acme");
  model.add_opset("com.acme", 1);
  model.add_input("x", {40, 3});
  model.add_input("y", {40, 3});
  model.add_node("CumulativeSum", {"x"}, {"a"}, {}, "first", "com.acme");
  model.add_node("CumulativeSum", {"y"}, {"b"}, {}, "second", "com.acme");
  model.add_node("Add", {"a", "b"}, {"z"}, {}, "both");
  model.add_output("z", {40, 3});
  EXPECT_EQ(types(optimize(model)), "Add com.acme::CumulativeSum");
}

}  // namespace
}  // namespace taso::acceptance
