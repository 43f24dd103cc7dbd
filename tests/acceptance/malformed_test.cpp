// Every malformed model ends every program that reads models with exit code 3 and one line that names the file.
#include "tests/acceptance/malformed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/acceptance/process.h"

namespace taso::acceptance {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// A folder of its own for each test and model: tests may run at the same time.
fs::path folder_of(const std::string& name) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string own = std::string(test.test_suite_name()) + "." + test.name();
  std::replace(own.begin(), own.end(), '/', '.');
  return fs::path(testing::TempDir()) / "taso-malformed" / own / name;
}

fs::path write(const MalformedModel& model) {
  const fs::path folder = folder_of(model.name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  fs::path path = folder / "model.onnx";
  std::ofstream(path, std::ios::binary) << model.bytes;
  for (const auto& [name, contents] : model.companions) {
    if (name.ends_with('@'))
      fs::create_symlink(contents, folder / name.substr(0, name.size() - 1));
    else
      std::ofstream(folder / name, std::ios::binary) << contents;
  }
  return path;
}

void expect_refused(const ProcessResult& result, const std::string& path, const std::string& says) {
  EXPECT_EQ(result.exit_code, 3) << result.errors;
  EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr(path));
  const std::size_t message = result.errors.find(path);
  if (message != std::string::npos) {
    EXPECT_THAT(result.errors.substr(message + path.size()), HasSubstr(says));
  }
}

class Malformed : public testing::TestWithParam<MalformedModel> {};

TEST_P(Malformed, IsRefusedByTasoOpt) {
  const fs::path path = write(GetParam());
  const fs::path out = path.parent_path() / "out.onnx";
  const ProcessResult result =
      run_process({program("taso-opt"), path.string(), "-o", out.string(), "--cost", "launches"});
  expect_refused(result, path.string(), GetParam().says);
  EXPECT_FALSE(fs::exists(out));
}

TEST_P(Malformed, IsRefusedByTasoRun) {
  const fs::path path = write(GetParam());
  expect_refused(run_process({program("taso-run"), path.string()}), path.string(), GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(Models, Malformed, testing::ValuesIn(malformed_models()),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(Malformed, ThereAreEnough) { EXPECT_GE(malformed_models().size(), 20U); }

TEST(Malformed, EveryTruncationIsRefused) {
  const std::vector<MalformedModel> models = malformed_models();
  const auto sound = std::find_if(models.begin(), models.end(),
                                  [](const auto& model) { return model.name == "external_data_length_wrong"; });
  ASSERT_NE(sound, models.end());
  // The weights of this model lie outside: its bytes are all structure.
  for (std::size_t length = 0; length < sound->bytes.size(); length += 7) {
    const fs::path path = write({"truncation", sound->bytes.substr(0, length), "", {}});
    const ProcessResult result = run_process({program("taso-run"), path.string()});
    EXPECT_EQ(result.exit_code, 3) << "cut after " << length << " bytes: " << result.errors;
  }
}

TEST(Malformed, AFileThatDoesNotExist) {
  const std::string path = folder_of("none").string();
  expect_refused(run_process({program("taso-opt"), path, "-o", path + ".out"}), path, "");
}

TEST(Malformed, AFolder) {
  fs::create_directories(folder_of("folder"));
  const std::string path = folder_of("folder").string();
  expect_refused(run_process({program("taso-opt"), path, "-o", path + ".out"}), path, "");
}

}  // namespace
}  // namespace taso::acceptance
