// From taso-opt to taso-verify --certificate: what was done is believed, what was tampered with is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "certificate/certificate.h"
#include "onnx_io/builder.h"
#include "support/file.h"

namespace taso {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using ::testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string output;  ///< stdout and stderr.
};

// Three products with biases of one tensor, and an activation: there is something to fuse, to merge and to fold.
void build_model(const std::string& path, float scale, ElementType element = ElementType::f32) {
  ModelBuilder model(17, "small");
  model.add_input("x", {1, 8}, element);
  std::size_t next = 0;  // branches with equal weights would be one
  const auto values = [&](std::size_t count) {
    std::vector<float> result(count);
    for (float& value : result) value = scale * (static_cast<float>(next++ * 7919 % 101) / 50 - 1);
    return result;
  };
  for (const std::string name : {"q", "k", "v"}) {
    model.add_initializer("w" + name, {8, 48}, values(384));
    model.add_initializer("b" + name, {48}, values(48));
    const bool half = element == ElementType::f16;
    for (const std::string weight : {"w", "b"})
      if (half) model.add_node("Cast", {weight + name}, {"half_" + weight + name}, {{"to", 10}});
    const std::string prefix = half ? "half_" : "";
    model.add_node("MatMul", {"x", prefix + "w" + name}, {"m" + name});
    model.add_node("Add", {"m" + name, prefix + "b" + name}, {"s" + name});
    model.add_node("Relu", {"s" + name}, {name});
    model.add_output(name, {1, 48}, element);
  }
  const Status saved = model.save(path);
  ASSERT_TRUE(saved) << saved.error().to_string();
}

class CertificateProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("taso_certificate_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ::unsetenv("GITHUB_ACTIONS");
    build_model(path("m.onnx"), 0.3F);
  }
  void TearDown() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Outcome run(const std::string& program, const std::string& arguments) const {
    Outcome result;
    const std::string command = "cd '" + folder_.string() + "' && XDG_CACHE_HOME=. '" + program + "' --specs '" +
                                TASO_SOURCE_DIR "/specs' " + arguments + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return result;
    char buffer[4096];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    return result;
  }
  void optimize(const std::string& arguments = "") const {
    const Outcome result = run(TASO_OPT, "m.onnx -o o.onnx --cost launches -q " + arguments);
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  [[nodiscard]] Outcome check(const std::string& arguments = "") const {
    return run(TASO_VERIFY, "--certificate o.taso.json " + arguments);
  }
  [[nodiscard]] ordered_json certificate() const { return ordered_json::parse(*read_file(path("o.taso.json"))); }
  void write(const ordered_json& json) const { ASSERT_TRUE(write_file_atomically(path("o.taso.json"), json.dump(1))); }
  // What the certificate says of a file, told anew.
  static ordered_json identity(const FileIdentity& file) {
    return {{"file", file.name}, {"bytes", file.bytes}, {"hash", file.hash.to_string()}};
  }

  fs::path folder_;
};

TEST_F(CertificateProgram, WhatWasDoneIsBelieved) {
  optimize();
  const ordered_json json = certificate();
  ASSERT_GT(json["steps"].size(), 3U);
  const Outcome result = check();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("o.taso.json: " + std::to_string(json["steps"].size()) + " applications of " +
                                       std::to_string(json["rules"].size()) + " rules repeated"));
  EXPECT_THAT(result.output, HasSubstr(" 0 refuted, 0 unknown"));
  // The same bytes at any number of threads.
  const std::string first = *read_file(path("o.taso.json"));
  optimize("-j 1");
  EXPECT_EQ(*read_file(path("o.taso.json")), first);
  // Files may lie elsewhere.
  fs::create_directories(folder_ / "elsewhere");
  fs::rename(folder_ / "m.onnx", folder_ / "elsewhere/original.onnx");
  EXPECT_THAT(check().output, HasSubstr("m.onnx: the original model is not there; name it by --original"));
  EXPECT_EQ(check().exit_code, 3);
  EXPECT_EQ(check("--original elsewhere/original.onnx --optimized o.onnx").exit_code, 0);
}

TEST_F(CertificateProgram, AnotherElementTypeIsRefused) {
  optimize();
  fs::rename(path("o.onnx"), path("single.onnx"));
  build_model(path("m.onnx"), 0.3F, ElementType::f16);
  optimize();
  ordered_json json = certificate();
  ASSERT_GT(json["steps"].size(), 3U);
  EXPECT_EQ(check().exit_code, 0) << check().output;
  json["optimized"] = identity(*identify_file(path("single.onnx")));
  write(json);
  EXPECT_EQ(check("--optimized single.onnx").exit_code, 5);
  EXPECT_THAT(check("--optimized single.onnx").output, HasSubstr("single.onnx: the steps lead to another file"));
}

TEST_F(CertificateProgram, WeightsMayLieOutside) {
  optimize("--save-as-external-data");
  EXPECT_FALSE(certificate()["external_data"].is_null());
  EXPECT_EQ(check().exit_code, 0) << check().output;
  std::string data = *read_file(path("o.onnx.data"));
  data[data.size() / 2] = static_cast<char>(data[data.size() / 2] ^ 1);
  ASSERT_TRUE(write_file_atomically(path("o.onnx.data"), data));
  EXPECT_EQ(check().exit_code, 5);
  EXPECT_THAT(check().output, HasSubstr("o.onnx.data: not the file that the certificate names"));
  ordered_json json = certificate();
  json["external_data"] = identity(*identify_file(path("o.onnx.data")));
  write(json);
  EXPECT_EQ(check().exit_code, 5);
  EXPECT_THAT(check().output, HasSubstr("o.onnx.data: the steps lead to another file: it differs in initializer \""));
}

TEST_F(CertificateProgram, CanBeLeftOut) {
  optimize("--no-certificate");
  EXPECT_FALSE(fs::exists(folder_ / "o.taso.json"));
  EXPECT_EQ(check().exit_code, 3);
  const Outcome lonely = run(TASO_VERIFY, "--original m.onnx --rule 'relu(relu(x)) => relu(x)'");
  EXPECT_EQ(lonely.exit_code, 2);
  EXPECT_THAT(lonely.output, HasSubstr("--original and --optimized belong to a --certificate"));
}

TEST_F(CertificateProgram, AnotherModelIsRefused) {
  optimize();
  // One bit of a weight of the result.
  const std::string good = *read_file(path("o.onnx"));
  std::string bad = good;
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
  ASSERT_TRUE(write_file_atomically(path("o.onnx"), bad));
  EXPECT_EQ(check().exit_code, 5);
  EXPECT_THAT(check().output, HasSubstr("o.onnx: not the file that the certificate names as the result"));
  // ... with the certificate changed accordingly.
  ordered_json json = certificate();
  json["optimized"] = identity(*identify_file(path("o.onnx")));
  write(json);
  EXPECT_EQ(check().exit_code, 5);
  EXPECT_THAT(check().output, HasSubstr("o.onnx: the steps lead to another file: it differs in initializer \""));
  ASSERT_TRUE(write_file_atomically(path("o.onnx"), good));
  json["optimized"] = identity(*identify_file(path("o.onnx")));
  write(json);
  EXPECT_EQ(check().exit_code, 0) << check().output;
  // Another original.
  build_model(path("m.onnx"), 0.2F);
  EXPECT_EQ(check().exit_code, 5);
  EXPECT_THAT(check().output, HasSubstr("m.onnx: not the file that the certificate names as the original"));
  json["original"] = identity(*identify_file(path("m.onnx")));
  write(json);
  EXPECT_EQ(check().exit_code, 5);
  EXPECT_THAT(check().output, HasSubstr("o.onnx: the steps lead to another file: it differs in initializer \""));
}

TEST_F(CertificateProgram, OtherStepsAreRefused) {
  optimize();
  const ordered_json good = certificate();
  auto refused = [&](const ordered_json& json, const std::string& message) {
    write(json);
    const Outcome result = check();
    EXPECT_NE(result.exit_code, 0) << json["steps"].dump(1);
    EXPECT_THAT(result.output, HasSubstr(message));
  };
  for (std::size_t i = 0; i < good["steps"].size(); ++i) {
    ordered_json json = good;
    json["steps"].erase(i);
    refused(json, "");
    json = good;
    json["steps"][i]["nodes"][0] = 99999;
    refused(json, "step " + std::to_string(i) + ": ");
    json = good;
    json["steps"][i]["variables"][0] = {0, 7};
    refused(json, "step " + std::to_string(i) + ": ");
    json = good;
    json["steps"][i]["rule"] = "no_such_rule";
    refused(json, "step " + std::to_string(i) + ": the certificate has no rule 'no_such_rule'");
    json["steps"][i]["rule"] = "two\nlines";
    refused(json, "step " + std::to_string(i) + ": the certificate has no rule 'two?lines'");
  }
  ordered_json json = good;
  json["rules"].push_back(json["rules"][0]);
  refused(json, "a second rule");
  json = good;
  json["rules"][0] = "rule broken:\n";
  refused(json, "rules[0] of the certificate:");
}

// A certificate that repeats well with a rule that is not true proves nothing.
TEST_F(CertificateProgram, FalseRulesAreRefused) {
  ASSERT_TRUE(write_file_atomically(path("false.rules"),
                                    "rule lost_bias:\n  add(matmul(x, w), y) => matmul(x, w)\n  proof unbounded\n"));
  const Outcome made = run(TASO_OPT, "m.onnx -o o.onnx --rules false.rules --cost launches --no-check -q");
  ASSERT_EQ(made.exit_code, 0) << made.output;
  ASSERT_EQ(certificate()["steps"].size(), 3U);
  const Outcome result = check();
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.output, HasSubstr("3 applications of 1 rules repeated"));
  EXPECT_THAT(result.output, HasSubstr("refuted  lost_bias"));
}

TEST_F(CertificateProgram, RulesOfOneNameAreToldApart) {
  ASSERT_TRUE(write_file_atomically(path("a.rules"), "rule r:\n  neg(neg(x)) => x\n"));
  ASSERT_TRUE(write_file_atomically(path("b.rules"),
                                    "rule r:\n  add(matmul(x, w), broadcast(b; shape=s)) => matmul_bias_act(x, w, b)\n"
                                    "  if rank(b) == 1\n  class exact\nrule r_2:\n  relu(matmul_bias_act(x, w, b)) => "
                                    "matmul_bias_act(x, w, b; act=relu)\n  class exact\n"));
  optimize("--rules a.rules --rules b.rules");
  const ordered_json json = certificate();
  ASSERT_EQ(json["steps"].size(), 6U) << json["steps"].dump(1);
  EXPECT_EQ(json["steps"][0]["rule"], "r_2");
  EXPECT_EQ(check().exit_code, 0) << check().output;
  EXPECT_EQ(
      run(TASO_OPT, "m.onnx -o o.onnx --rules a.rules --rules b.rules --cost launches -q --disable-rule r").exit_code,
      0);
  EXPECT_EQ(certificate()["steps"].size(), 0U) << "both are disabled, and nothing is left for the third";
}

}  // namespace
}  // namespace taso
