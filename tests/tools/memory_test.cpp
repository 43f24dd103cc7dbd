// Models that need more memory than there is end programs with one line.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "onnx_io/builder.h"
#include "support/file.h"

namespace taso {
namespace {

TEST(Memory, ExhaustionIsOneLine) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "taso_memory_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  constexpr std::int64_t many = 2'600'000'000;  // 10.4 GB of floats
  ModelBuilder input(17, "input");
  input.add_input("x", {many});
  input.add_node("Relu", {"x"}, {"y"});
  input.add_output("y", {many});
  ASSERT_TRUE(input.save(folder / "input.onnx"));
  ModelBuilder constant(17, "constant");
  constant.add_input("x", {1});
  constant.add_initializer("s", {1}, std::vector<std::int64_t>{many});
  constant.add_node("ConstantOfShape", {"s"}, {"c"});
  constant.add_node("Add", {"x", "c"}, {"y"});
  constant.add_output("y", {many});
  ASSERT_TRUE(constant.save(folder / "constant.onnx"));
  for (const std::string command :
       {"taso-run --as-is input.onnx", "taso-run --as-is --device reference input.onnx", "taso-run constant.onnx",
        "taso-opt constant.onnx -o o.onnx", "taso-opt input.onnx -o o.onnx"}) {
    const std::string limit = command.find("input") != std::string::npos ? "-d" : "-v";
    const std::string line = "cd '" + folder.string() + "' && ulimit " + limit +
                             " 6000000 && XDG_CACHE_HOME=. '" TASO_PROGRAMS "'/" + command + " -q >out 2>err";
    const int status = std::system(line.c_str());
    const std::string errors = read_file((folder / "err").string()).value();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << command << ": " << status << ": " << errors;
    EXPECT_NE(errors.find(": out of memory: this needs more than the system gives"), std::string::npos) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "o.onnx"));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace taso
