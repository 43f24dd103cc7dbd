// The four programs as users run them. No output is an input or another output: outputs/*.cases, whose grammar
// outputs/README.md tells. What the programs say and write: programs/*.cases, with programs/README.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "onnx_io/builder.h"
#include "onnx_io/model.h"
#include "onnx_io/tensor_file.h"
#include "support/file.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& programs() {
  static const std::vector<std::string> all = {"taso-gen", "taso-opt", "taso-run", "taso-verify"};
  return all;
}

struct Outcome {
  int code = 0;
  std::string out, err;
};

/// Runs a command line of the shell in a folder. The programs are found by name.
Outcome run(const fs::path& folder, const std::string& command) {
  const fs::path aside = folder.string() + ".streams";
  fs::create_directories(aside);
  const std::string line = "cd '" + folder.string() + "' && PATH='" TASO_PROGRAMS "':\"$PATH\" XDG_CACHE_HOME='" +
                           (aside / "cache").string() + "' && export PATH XDG_CACHE_HOME && { " + command + "; } >'" +
                           (aside / "out").string() + "' 2>'" + (aside / "err").string() + "' </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file((aside / "out").string()).value(),
          read_file((aside / "err").string()).value()};
}

void write(const fs::path& path, const std::string& text) {
  const Status written = write_file_atomically(path.string(), text);
  ASSERT_TRUE(written) << written.error().to_string();
}

/// A model y = relu(relu(x)) @ w, whose weight lies in the file or, with a name, in one beside it.
void write_model(const fs::path& path, const std::string& data = "") {
  ModelBuilder model(17, "small");
  model.add_input("x", {2, 32});
  model.add_initializer("w", {32, 32}, std::vector<float>(1024, 0.25F));
  model.add_node("Relu", {"x"}, {"a"});
  model.add_node("Relu", {"a"}, {"b"});
  model.add_node("MatMul", {"b", "w"}, {"y"});
  model.add_output("y", {2, 32});
  const Model loaded = Model::parse(model.serialize(), path.string(), test::registry()).value();
  SaveOptions options;
  options.external_data = !data.empty();
  ASSERT_TRUE(loaded.save(loaded.graph(), path.string(), options));
  if (data.empty() || data == path.filename().string() + ".data") return;
  // The data under another name: the message names it twice as long as it is, so equal lengths keep it valid.
  std::string bytes = read_file(path.string()).value();
  const std::string was = path.filename().string() + ".data";
  ASSERT_EQ(was.size(), data.size()) << "give a name of as many letters";
  for (std::size_t at; (at = bytes.find(was)) != std::string::npos;) bytes.replace(at, was.size(), data);
  write(path, bytes);
  fs::rename(path.string() + ".data", path.parent_path() / data);
}

/// A model y = LayerNormalization(relu(relu(x)), s), whose last node has no meaning: its epsilon is negative.
void write_ill_typed_model(const fs::path& path) {
  ModelBuilder model(17, "small");
  model.add_input("x", {1, 2, 4, 4});
  model.add_node("Relu", {"x"}, {"a"});
  model.add_node("Relu", {"a"}, {"b"});
  model.add_input("s", {4});
  model.add_node("LayerNormalization", {"b", "s"}, {"y"}, {{"epsilon", -1.0}}, "last");
  model.add_output("y", {1, 2, 4, 4});
  const Status saved = model.save(path.string());
  ASSERT_TRUE(saved) << saved.error().to_string();
}

/// A model that computes with integers, which is carried.
void write_integer_model(const fs::path& path) {
  ModelBuilder model(17, "integers");
  model.add_input("x", {2, 8}, ElementType::i32);
  model.add_node("Relu", {"x"}, {"h"});
  model.add_node("Relu", {"h"}, {"y"});
  model.add_output("y", {2, 8}, ElementType::i32);
  const Status saved = model.save(path.string());
  ASSERT_TRUE(saved) << saved.error().to_string();
}

/// A model of values in f16.
void write_half_model(const fs::path& path) {
  ModelBuilder model(17, "half");
  model.add_input("x", {2, 8}, ElementType::f16);
  model.add_node("Tanh", {"x"}, {"h"});
  model.add_node("Relu", {"h"}, {"y"});
  model.add_output("y", {2, 8}, ElementType::f16);
  const Status saved = model.save(path.string());
  ASSERT_TRUE(saved) << saved.error().to_string();
}

/// A model of any number of rows.
void write_symbolic_model(const fs::path& path) {
  ModelBuilder model(17, "rows");
  model.add_symbolic_input("x", {"rows", "8"});
  model.add_node("Relu", {"x"}, {"h"});
  model.add_node("Relu", {"h"}, {"y"});
  model.add_symbolic_output("y", {"rows", "8"});
  const Status saved = model.save(path.string());
  ASSERT_TRUE(saved) << saved.error().to_string();
}

/// Makes what every case finds in its folder; see outputs/README.md.
void make_files(const fs::path& folder) {
  fs::create_directories(folder / "empty");
  fs::create_directories(folder / "spec" / "profiles");
  write_model(folder / "m.onnx");
  write_model(folder / "n.onnx");
  write_model(folder / "d.onnx", "weight.bin1");
  write_model(folder / "e.onnx", "e.onnx.data");
  write_ill_typed_model(folder / "l.onnx");
  write_integer_model(folder / "f.onnx");
  write_half_model(folder / "h.onnx");
  write_symbolic_model(folder / "y.onnx");
  write(folder / "r.rules", "rule relu_twice:\n  relu(relu(x)) => relu(x)\n");
  write(folder / "s.rules", "rule neg_twice:\n  neg(neg(x)) => x\n");
  write(folder / "p.pb", "not read");
  write(folder / "a.axioms", "axiom add_commutes:\n  add(x, y) = add(y, x)\n");
  write(folder / "a.facts", "");
  write(folder / "gpu.json", R"({"name": "some GPU"})");
  write(folder / "shard.1", "not read");
  write(folder / "t.profile",
        "profile t\n\ngroup unary\n  max_ops 2\n  extent n: 2, 3\n  activation x [n]\n  apply neg(activation)\n");
  fs::copy_file(folder / "t.profile", folder / "spec" / "profiles" / "mine.profile");
  fs::create_directories(folder / "spec" / "operators");
  write(folder / "spec" / "operators" / "own.op",
        "operator twice(x[D..]) -> [D..]\n  \"Two times x.\"\n  out[I..] = x[I..] + x[I..]\n");
  const Status saved =
      save_tensor((folder / "x.pb").string(), "x", *ConstantData::of_floats({2, 32}, std::vector<float>(64, 0.5F)));
  ASSERT_TRUE(saved) << saved.error().to_string();
}

/// A fresh copy of what make_files made in `made`.
void prepare(const fs::path& folder, const fs::path& made) {
  fs::remove_all(folder);
  fs::remove_all(folder.string() + ".streams");
  fs::copy(made, folder, fs::copy_options::recursive);
}

/// Every path below a folder with what it holds: bytes, the text of a link, or nothing of a folder.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_symlink())
      all[name] = "-> " + fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file())
      all[name] = read_file(entry.path().string()).value();
    else
      all[name] = "";
  }
  return all;
}

std::vector<std::string> changes(const std::map<std::string, std::string>& before,
                                 const std::map<std::string, std::string>& after) {
  std::vector<std::string> names;
  for (const auto& [name, text] : after)
    if (!before.contains(name) || before.at(name) != text) names.push_back(name);
  for (const auto& [name, text] : before)
    if (!after.contains(name)) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

using test::CaseCount;
using test::CaseValue;
using test::TextCase;
using test::words_of;

/// Of outputs/*.cases: outputs/README.md.
std::vector<TextCase> output_cases() {
  return test::load_cases("tests/tools/outputs", {{"given", CaseValue::words, CaseCount::repeated},
                                                  {"run", CaseValue::words, CaseCount::once},
                                                  {"says", CaseValue::words, CaseCount::optional},
                                                  {"changes", CaseValue::text, CaseCount::optional},
                                                  {"code", CaseValue::integer, CaseCount::optional}});
}

/// Of programs/*.cases: programs/README.md.
std::vector<TextCase> program_cases() {
  return test::load_cases("tests/tools/programs", {{"given", CaseValue::words, CaseCount::repeated},
                                                   {"run", CaseValue::words, CaseCount::once},
                                                   {"code", CaseValue::integer, CaseCount::optional},
                                                   {"prints", CaseValue::words, CaseCount::repeated},
                                                   {"hides", CaseValue::words, CaseCount::repeated}});
}

class OutputCases : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("taso_outputs_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(made());
    make_files(made());
  }
  /// The files of a case, made once.
  [[nodiscard]] fs::path made() const { return folder_.string() + ".made"; }
  void TearDown() override {
    fs::remove_all(folder_);
    fs::remove_all(made());
    fs::remove_all(folder_.string() + ".streams");
  }
  fs::path folder_;
};

// Nothing is written where the line is wrong; where it is right, what the case names and nothing else.
TEST_F(OutputCases, AreRefusedOrWriteWhatTheySay) {
  const std::vector<TextCase> cases = output_cases();
  EXPECT_GE(cases.size(), 80U);
  for (const TextCase& test : cases) {
    const std::string& command = test.text("run");
    const std::int64_t code = test.integer("code", test.has("changes") ? 0 : 2);
    SCOPED_TRACE(test.place() + ": " + test.name + ": " + command);
    EXPECT_EQ(test.has("says"), code == 2) << "what is refused says why";
    prepare(folder_, made());
    for (const std::string& preparation : test.all("given")) {
      const Outcome given = run(folder_, preparation);
      ASSERT_EQ(given.code, 0) << preparation << ": " << given.err;
    }
    const auto before = contents(folder_);
    const Outcome result = run(folder_, command);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_EQ(changes(before, contents(folder_)), words_of(test.text("changes")));
    if (code != 2) continue;
    std::string says = test.text("says");
    for (std::size_t at; (at = says.find("$PWD")) != std::string::npos;) says.replace(at, 4, folder_.string());
    EXPECT_EQ(result.err, words_of(command).front() + ": " + says + "\n");
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(OutputCases, AndProgramsSayWhatTheyDo) {
  const std::vector<TextCase> cases = program_cases();
  EXPECT_GE(cases.size(), 20U);
  for (const TextCase& test : cases) {
    const std::string& command = test.text("run");
    SCOPED_TRACE(test.place() + ": " + test.name + ": " + command);
    prepare(folder_, made());
    for (const std::string& preparation : test.all("given")) {
      const Outcome given = run(folder_, preparation);
      ASSERT_EQ(given.code, 0) << preparation << ": " << given.err;
    }
    const Outcome result = run(folder_, "( " + command + " )");
    EXPECT_EQ(result.code, test.integer("code", 0)) << result.err;
    for (const std::string& text : test.all("prints")) EXPECT_THAT(result.out + result.err, ::testing::HasSubstr(text));
    for (const std::string& text : test.all("hides"))
      EXPECT_THAT(result.out + result.err, ::testing::Not(::testing::HasSubstr(text)));
  }
}

/// An option of a program's --help and the type of its value, or a positional argument.
struct ListedOption {
  std::string name, type;
};

std::vector<ListedOption> listed_options(const std::string& help) {
  std::vector<ListedOption> options;
  static const std::regex option("^  (?:-[A-Za-z],)?(--[a-z0-9-]+)(?: (\\S+))?.*");
  static const std::regex positional("^  ([A-Za-z]+) (\\S+).*");
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, option))
      options.push_back({match[1], line.size() > static_cast<std::size_t>(match.position(2)) ? match[2].str() : ""});
    else if (std::regex_match(line, match, positional))
      options.push_back({"", match[2]});
  }
  return options;
}

// Whatever option of --help takes a file or a folder, --json may not name the same: an option that says nothing of its
// file would not be noticed.
TEST_F(OutputCases, CoverEveryOptionThatTakesAFile) {
  const std::map<std::string, std::string> rest = {{"taso-gen", "--profile ./t.profile"},
                                                   {"taso-opt", "m.onnx -o o.onnx"},
                                                   {"taso-run", "m.onnx"},
                                                   {"taso-verify", "r.rules"}};
  for (const std::string& program : programs()) {
    prepare(folder_, made());
    fs::create_directories(folder_ / "dir" / "operators");
    for (const char* extension : {".op", ".rules", ".axioms", ".segment"})
      write(folder_ / "dir" / "operators" / (std::string("f") + extension), "");
    fs::create_symlink("operators/f.segment", folder_ / "dir" / "f.segment");
    std::size_t found = 0;
    for (const auto& [name, type] : listed_options(run(folder_, program + " --help").out)) {
      static const std::regex file("FILE|DIR|MODEL|OTHER|INPUT|PATH");
      EXPECT_FALSE(type.starts_with("TEXT") && !type.starts_with("TEXT:")) << program << " " << name << ": " << type;
      if (!std::regex_search(type, file) || name == "--json") continue;
      ++found;
      SCOPED_TRACE(program + " " + name + " " + type);
      const std::string equals = type.find('=') != std::string::npos ? "n=" : "";
      std::string others = rest.at(program);
      if (name == "--profile") others = "";
      if (name.empty()) others = program == "taso-opt" ? "-o o.onnx" : "";
      if (name == "--output" && program == "taso-opt") others = "m.onnx";
      if (name == "--measure-links") others = "";
      if (name == "--references") others = "m.onnx --check";
      if (name == "--device-properties" && program == "taso-run") others = "m.onnx --no-measure --device host";
      if (name == "--trace") others = "m.onnx --plan p.json";
      bool refused = false;
      for (const std::string json :
           {"./same.file", "dir/operators/f.op", "dir/operators/f.axioms", "dir/operators/f.segment"}) {
        const std::string named = json == "./same.file" ? json : "dir";
        const Outcome result =
            run(folder_, program + " " + others + " " + name + " " + equals + named + " --json " + json);
        refused =
            result.code == 2 && result.err.find("an output must be neither an input nor another") != std::string::npos;
        if (refused) break;
      }
      EXPECT_TRUE(refused);
    }
    EXPECT_GE(found, 5U) << program;
  }
}

}  // namespace
}  // namespace taso
