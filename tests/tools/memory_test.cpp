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

// Libraries that do not look whether they were given memory crash: that is no end of a program either.
TEST(Memory, ALimitIsNeverACrash) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "taso_memory_limits_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ModelBuilder model(17, "convolutions");
  model.add_input("x0", {1, 512, 12, 12});
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i);
    model.add_initializer("w" + number, {512, 512, 3, 3}, std::vector<float>(512 * 512 * 9, 0.01F));
    model.add_node("Conv", {"x" + number, "w" + number}, {"x" + std::to_string(i + 1)},
                   {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
  }
  model.add_output("x8", {1, 512, 12, 12});
  ASSERT_TRUE(model.save(folder / "m.onnx"));
  int enough = 0, refused = 0;
  for (int megabytes = 100; megabytes <= 220; megabytes += 10) {
    const std::string line = "cd '" + folder.string() + "' && ulimit -v " + std::to_string(megabytes * 1000) +
                             " && XDG_CACHE_HOME=. '" TASO_PROGRAMS "/taso-run' -j 1 --repeat 1 m.onnx -q >out 2>err";
    const int status = std::system(line.c_str());
    const std::string errors = read_file((folder / "err").string()).value();
    ASSERT_TRUE(WIFEXITED(status)) << megabytes << " MB: " << errors;
    enough += WEXITSTATUS(status) == 0 ? 1 : 0;
    refused += WEXITSTATUS(status) == 3 ? 1 : 0;
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3)
        << megabytes << " MB: " << WEXITSTATUS(status) << errors;
  }
  EXPECT_GT(enough, 0);
  EXPECT_GT(refused, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace taso
