// What tests of models need of which taso understands a part.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "onnx_io/builder.h"
#include "support/file.h"
#include "tests/acceptance/numbers.h"
#include "tests/acceptance/process.h"

namespace taso::acceptance {
inline onnx::ModelProto message(const std::string& bytes) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

inline std::map<std::string, int> counts(const onnx::ModelProto& model) {
  std::map<std::string, int> result;
  for (const auto& node : model.graph().node()) ++result[node.op_type()];
  return result;
}

// The bytes of all nodes of these types, by their first output.
inline std::map<std::string, std::string> nodes(const onnx::ModelProto& model,
                                                const std::vector<std::string>& op_types) {
  std::map<std::string, std::string> result;
  for (const auto& node : model.graph().node())
    if (std::find(op_types.begin(), op_types.end(), node.op_type()) != op_types.end())
      result[node.output(0)] = node.SerializeAsString();
  return result;
}

class Carried : public testing::Test {
 protected:
  void SetUp() override {
    std::string own = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(own.begin(), own.end(), '/', '.');
    folder_ = std::filesystem::path(testing::TempDir()) / ("taso-carried-" + own);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Optimizes, compares, and gives the result. What the program said is in `warnings_` and `report_`.
  onnx::ModelProto optimize(const onnx::ModelProto& model, const std::vector<std::string>& options = {}) {
    const onnx::ModelProto result = run_optimizer(model, options);
    compare(options);
    return result;
  }

  // Optimizes, and checks the certificate.
  onnx::ModelProto run_optimizer(const onnx::ModelProto& model, const std::vector<std::string>& options) {
    EXPECT_TRUE(write_file_atomically(before(), model.SerializeAsString()).ok());
    std::vector<std::string> arguments = {program("taso-opt"), before(), "-o", after(), "--cost", "launches"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult optimized = run_process(arguments);
    EXPECT_EQ(optimized.exit_code, 0) << optimized.errors;
    warnings_ = optimized.errors;
    report_ = optimized.output;
    const ProcessResult certified = verify();
    EXPECT_EQ(certified.exit_code, 0) << certified.errors << certified.output;
    return message(read_file(after()).value());
  }

  ProcessResult verify() { return run_process({program("taso-verify"), "--certificate", folder_ / "out.taso.json"}); }

  void compare(const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {program("taso-run"), before(), "--compare", after(), "--repeat", "1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult same = run_process(arguments);
    EXPECT_EQ(same.exit_code, 0) << testing::PrintToString(options) << ": " << same.errors << same.output;
  }

  [[nodiscard]] std::string before() const { return folder_ / "model.onnx"; }
  [[nodiscard]] std::string after() const { return folder_ / "out.onnx"; }

  std::filesystem::path folder_;
  std::string warnings_, report_;
};

// Two products of one tensor, whose sum is one product after optimization.
inline void add_siblings(ModelBuilder& model, const std::string& input, std::int64_t features,
                         const std::string& suffix = "") {
  for (const char* side : {"l", "r"}) {
    const std::string name = side + suffix;
    model.add_initializer("w" + name, {features, 4}, numbers(features * 4, side[0] == 'l' ? -0.4F : 0.1F));
    model.add_node("MatMul", {input, "w" + name}, {name}, {}, "product_" + name);
  }
}

}  // namespace taso::acceptance
