/// What the tests of onnx_io share. Includes protobuf.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "onnx_io/builder.h"
#include "onnx_io/model.h"
#include "support/file.h"
#include "tests/support/shipped.h"

namespace taso::test {

/// A fresh folder for each test.
class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("taso_" + std::string(info->test_suite_name()) + "_" + info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  std::filesystem::path folder_;
};

/// A handler that makes an ill-typed graph is a fault, though the programs carry its node and go on.
inline void expect_well_typed(const Model& model) {
  for (const IllTypedNode& node : model.ill_typed_nodes()) ADD_FAILURE() << node.node << ": " << node.reason;
}

inline onnx::ModelProto message(const std::string& bytes) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

inline onnx::ModelProto read_message(const std::string& path) { return message(read_file(path).value()); }

inline std::vector<float> numbers(std::int64_t count, float first = 0.0F, float step = 0.01F) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(first + step * static_cast<float>(i % 97));
  return values;
}

inline std::vector<std::string> op_types(const onnx::ModelProto& model) {
  std::vector<std::string> types;
  for (const auto& node : model.graph().node()) types.push_back(node.op_type());
  return types;
}

}  // namespace taso::test
