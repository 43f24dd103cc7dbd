// taso-verify as a program: exit codes, messages, JSON, dumps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "support/file.h"

namespace taso {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string output;  ///< stdout and stderr.
};

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() : folder_(fs::path(::testing::TempDir()) / ("taso_verify_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~ProgramTest() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }

  std::string file(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    EXPECT_TRUE(write_file_atomically(path, text));
    return path;
  }

  static Outcome run(const std::string& arguments) {
    Outcome result;
    FILE* pipe = ::popen(("'" TASO_VERIFY "' --specs '" TASO_SOURCE_DIR "/specs' " + arguments + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return result;
    char buffer[4096];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    return result;
  }

  fs::path folder_;
};

TEST_F(ProgramTest, ProvedIsZero) {
  const Outcome result = run(file("a.rules", "rule twice: relu(relu(x)) => relu(x)\n"));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("proved   twice (axioms, bounded 3, exact"));
  EXPECT_THAT(result.output, HasSubstr("1 statements: 1 proved, 0 refuted, 0 unknown"));
}

TEST_F(ProgramTest, NotProvedIsFive) {
  const Outcome result = run(file("a.rules", "rule twice: tanh(tanh(x)) => tanh(x)\n"));
  EXPECT_EQ(result.exit_code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("refuted  twice"));
  EXPECT_THAT(result.output, HasSubstr("source = "));
}

TEST_F(ProgramTest, ExpectedVerdictsAreZeroAndOthersFive) {
  EXPECT_EQ(run(file("a.rules", "rule a: sub(x, y) => sub(y, x)\n  expect refuted\n")).exit_code, 0);
  const Outcome result = run(file("b.rules", "rule a: add(x, y) => add(y, x)\n  expect refuted\n"));
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.output, HasSubstr("expected: refuted"));
  EXPECT_THAT(result.output, HasSubstr("1 not as they should be"));
}

TEST_F(ProgramTest, WrongInputIsThree) {
  struct Case {
    std::string input, message;
  };
  const std::string empty = (folder_ / "empty").string();
  fs::create_directories(empty);
  for (const Case& c : {Case{"/no/such/file.rules", "/no/such/file.rules: no such file or folder"},
                        Case{empty, "the folder holds no .op, .axioms or .rules file"},
                        Case{file("graph_subst.pb", "x"), "protobuf format are not read; convert them to .rules text"},
                        Case{file("a.txt", "x"), "unknown kind of file; expected .rules, .axioms or .op"},
                        Case{file("bad.rules", "rule a: nonsense(x) => x\n"), "bad.rules:1:9: "}}) {
    const Outcome result = run(c.input);
    EXPECT_EQ(result.exit_code, 3) << result.output;
    EXPECT_THAT(result.output, HasSubstr(c.message));
  }
}

TEST_F(ProgramTest, WrongUsageIsTwo) {
  EXPECT_EQ(run("").exit_code, 2);
  EXPECT_EQ(run("--bound 0 " + file("a.rules", "")).exit_code, 2);
  EXPECT_EQ(run("--no-such-option").exit_code, 2);
}

TEST_F(ProgramTest, JsonHasEveryRuleInOrder) {
  const std::string rules = file("a.rules",
                                 "rule first: add(x, y) => add(y, x)\nrule second: sub(x, y) => sub(y, x)\n"
                                 "rule third: neg(neg(x)) => x\n");
  const Outcome result = run("-q --json - -j 3 " + rules);
  EXPECT_EQ(result.exit_code, 5);
  const std::size_t a = result.output.find("\"first\""), b = result.output.find("\"second\""),
                    c = result.output.find("\"third\"");
  ASSERT_NE(a, std::string::npos) << result.output;
  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
  for (const char* key : {"\"verdict\": \"refuted\"", "\"proofs\"", "\"conditions\"", "\"class\": \"exact\"",
                          "\"counterexample\"", "\"reason\""})
    EXPECT_THAT(result.output, HasSubstr(key));
  EXPECT_EQ(result.output, run("-q --json - -j 1 " + rules).output);
}

TEST_F(ProgramTest, GoalsAreDumped) {
  const std::string folder = (folder_ / "goals").string();
  EXPECT_EQ(run("--dump-smt2 " + folder + " " + file("a.rules", "rule twice: relu(relu(x)) => relu(x)\n")).exit_code,
            0);
  const auto text = read_file(folder + "/0000_twice.smt2");
  ASSERT_TRUE(text) << text.error().to_string();
  EXPECT_THAT(*text, HasSubstr("(check-sat)"));
}

TEST_F(ProgramTest, LawsOfAnOperatorFileAreVerified) {
  const std::string op = file("less.op",
                              "operator less(x[D..], y[D..]) -> [D..]\n  \"A difference.\"\n  law commutative\n"
                              "  out[I..] = x[I..] - y[I..]\n");
  const Outcome result = run(op);
  EXPECT_EQ(result.exit_code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("refuted  less.commutative"));
}

TEST_F(ProgramTest, LemmasMustFollowFromTheAxioms) {
  const Outcome result =
      run("--axioms " + file("a.axioms", "axiom once: relu(relu(x)) = relu(x)\n") + " " +
          file("b.axioms", "rule thrice: relu(relu(relu(x))) => relu(x)\nrule other: neg(neg(x)) => x\n"));
  EXPECT_EQ(result.exit_code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("proved   thrice"));
  EXPECT_THAT(result.output, HasSubstr("unknown  other"));
}

}  // namespace
}  // namespace taso
