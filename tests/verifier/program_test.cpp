// taso-verify as a program: exit codes, messages, JSON, dumps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/file.h"
#include "tests/rule_io/rule_file.h"
#include "tests/support/cases.h"

namespace taso {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string output;  ///< stdout and stderr.
};

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() : folder_(fs::path(::testing::TempDir()) / ("taso_verify_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    ::unsetenv("GITHUB_ACTIONS");  // tests run there, too
  }
  ~ProgramTest() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }

  std::string file(const std::string& name, const std::string& text) {
    std::string path = (folder_ / name).string();
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
  const std::string rules = file("a.rules", "rule twice: relu(relu(x)) => relu(x)\n");
  const Outcome result = run(rules);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("proved   twice (unbounded, bounded 3, exact"));
  EXPECT_THAT(run("--full " + rules).output, HasSubstr("proved   twice (unbounded, axioms, bounded 3, exact"));
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
  for (const Case& c :
       {Case{"/no/such/file.rules", "/no/such/file.rules: no such file or folder"},
        Case{empty, "the folder holds no .op, .axioms or .rules file"},
        Case{file("graph_subst.pb", "x"), "graph_subst.pb: not a rule file of TASO: a number is cut off"},
        Case{file("empty.pb", ""), "empty.pb: not a rule file of TASO: it holds no rule"},
        Case{file("a.txt", "x"), "unknown kind of file; expected .rules, .axioms, .op, or .pb of the"},
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
                              "operator lesser(x[D..], y[D..]) -> [D..]\n  \"A difference.\"\n  law commutative\n"
                              "  out[I..] = x[I..] - y[I..]\n");
  const Outcome result = run(op);
  EXPECT_EQ(result.exit_code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("refuted  lesser.commutative"));
}

TEST_F(ProgramTest, LemmasMustBeProved) {
  const Outcome result =
      run("--axioms " + file("a.axioms", "axiom once: relu(relu(x)) = relu(x)\n") + " " +
          file("b.axioms",
               "rule thrice: relu(relu(relu(x))) => relu(x)\nrule other: add(exp(x), exp(x)) => exp(add(x, x))\n"));
  EXPECT_EQ(result.exit_code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("proved   thrice"));
  EXPECT_THAT(result.output, HasSubstr("refuted  other"));
}

TEST_F(ProgramTest, FalsehoodsMustNotFollow) {
  const std::string axioms =
      file("a.axioms",
           "axiom planted: sub(x, y) = sub(y, x)\n"
           "axiom first: split(concat(x, y; axis=a); axis=a, sizes=[dim(x, a), dim(y, a)]).0 = x\n") +
      " ";
  const std::string report = "--report --obligations 20 --axioms " + axioms + "--falsehoods ";
  const std::string statements = " " + file("b.axioms", "axiom twice: neg(neg(x)) = x\n");
  const Outcome follows = run(report + file("a.rules", "rule f: sub(relu(x), y) => sub(y, relu(x))\n") + statements);
  EXPECT_EQ(follows.exit_code, 5) << follows.output;
  EXPECT_THAT(follows.output,
              HasSubstr("something FALSE follows: x = y among the terms of 3 axioms or one of 1 falseh"));
  EXPECT_THAT(follows.output, HasSubstr("    follows: f\n"));
  // This one is false, for the piece is larger; where it is not (y has extent 0) it is true, and follows.
  const Outcome types =
      run(report +
          file("b.rules",
               "rule f:\n  split(concat(concat(x, y; axis=a), z; axis=a); axis=a, sizes=[dim(x, a) + dim(y, a), dim(z, "
               "a)]).0 => x\n") +
          statements);
  EXPECT_EQ(types.exit_code, 0) << types.output;
  EXPECT_THAT(types.output,
              HasSubstr("nothing false does: neither x = y among the terms of 3 axioms nor one of 1 falseh"));
}

TEST_F(ProgramTest, ShapesOfAxiomsAreRecorded) {
  const std::string axioms =
      file("a.axioms",
           "axiom pieces:\n  slice(add(x, y); starts=b, steps=c, sizes=d) = add(slice(x; starts=b, steps=c, sizes=d), "
           "slice(y; starts=b, steps=c, sizes=d))\n");
  const std::string report = "--report --obligations 20 --axioms " + axioms + " " + axioms;
  const Outcome without = run(report);
  EXPECT_EQ(without.exit_code, 0) << without.output;
  EXPECT_THAT(without.output, HasSubstr("shapes not recorded"));

  const Outcome result = run("--record-facts " + axioms);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("1 axioms recorded, 1 of them new or changed"));
  const std::string facts = (folder_ / "a.facts").string();
  const auto text = read_file(facts);
  ASSERT_TRUE(text) << text.error().to_string();
  const std::string flag = " ill-typed=right:0";
  const std::size_t place = text->find(flag);
  ASSERT_NE(place, std::string::npos) << *text;
  EXPECT_THAT(run("--record-facts " + axioms).output, HasSubstr("1 axioms recorded, 0 of them new or changed"));
  const Outcome recorded = run(report);
  EXPECT_EQ(recorded.exit_code, 0) << recorded.output;
  EXPECT_THAT(recorded.output, Not(HasSubstr("shapes not recorded")));

  // A record that hides something is found out.
  ASSERT_TRUE(write_file_atomically(facts, text->substr(0, place) + text->substr(place + flag.size())));
  const Outcome lied = run(report);
  EXPECT_EQ(lied.exit_code, 5) << lied.output;
  EXPECT_THAT(lied.output, HasSubstr("from right to left at output 0 it makes a term that is not well-typed at "));

  ASSERT_TRUE(write_file_atomically(facts, "pieces nothing\n"));
  const Outcome wrong = run(report);
  EXPECT_EQ(wrong.exit_code, 3) << wrong.output;
  EXPECT_THAT(wrong.output, HasSubstr("a.facts:1: no key of 32 hexadecimal digits"));
  EXPECT_EQ(std::count(wrong.output.begin(), wrong.output.end(), '\n'), 1) << wrong.output;

  const Outcome rules = run("--record-facts " + file("a.rules", "rule r: relu(relu(x)) => relu(x)\n"));
  EXPECT_EQ(rules.exit_code, 2) << rules.output;
  EXPECT_THAT(rules.output, HasSubstr("--record-facts takes axiom files, or folders of them"));
}

TEST_F(ProgramTest, MissingPropertiesAreProposed) {
  const std::string axioms = "--axioms " + file("a.axioms", "axiom twice: neg(neg(x)) = x\n") + " ";
  const std::string rules = file("a.rules", "rule turn: neg(sub(x, y)) => sub(y, x)\nrule gone: neg(neg(x)) => x\n");
  const Outcome result = run("--missing-axioms " + axioms + rules);
  EXPECT_EQ(result.exit_code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("2 statements: 2 proved, 0 refuted, 0 unknown"));
  EXPECT_THAT(result.output, HasSubstr("# 1 statement true and not entailed by the axioms; 1 identity would add 1"));
  EXPECT_THAT(result.output, HasSubstr("axiom neg_sub:\n  neg(sub(x, y)) = sub(y, x)"));
  const Outcome json = run("--missing-axioms -q --json - " + axioms + rules);
  EXPECT_EQ(json.exit_code, 5) << json.output;
  EXPECT_THAT(json.output, HasSubstr("\"used_for\": [\n"));
  EXPECT_THAT(json.output, HasSubstr("\"origin\": \"within rule turn\""));
  // With it nothing is missing.
  const std::string complete =
      "--axioms " + file("b.axioms", "axiom twice: neg(neg(x)) = x\naxiom s: neg(sub(x, y)) = sub(y, x)\n") + " ";
  EXPECT_EQ(run("--missing-axioms " + complete + rules).exit_code, 0);
}

TEST_F(ProgramTest, RulesAreGeneralised) {
  const std::string rules = file("a.rules",
                                 "rule pools: relu(max_pool2d(x; kernel=[3, 3], strides=[2, 2])) => "
                                 "max_pool2d(relu(x); kernel=[3, 3], strides=[2, 2])\n");
  const std::string out = (folder_ / "general.rules").string();
  const Outcome result = run("--generalise " + out + " " + rules);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("1 statement: 1 more general, 0 not proved"));
  const auto text = read_file(out);
  ASSERT_TRUE(text) << text.error().to_string();
  EXPECT_THAT(*text, HasSubstr("# kernel=[3, 3] is k\n"));
  EXPECT_THAT(*text, HasSubstr("relu(max_pool2d(x; kernel=k, strides=s, pads=p, dilations=d))"));
  EXPECT_EQ(run(out).exit_code, 0);
  const Outcome wrong = run("--generalise - --rule 'sub(x, y) => sub(y, x)'");
  EXPECT_EQ(wrong.exit_code, 5) << wrong.output;
  EXPECT_THAT(wrong.output, HasSubstr("# not proved for all sizes"));
}

TEST_F(ProgramTest, RulesOnTheCommandLine) {
  const Outcome result = run("--rule 'add(x, y) => add(y, x)' --rule 'rule wrong: sub(x, y) => sub(y, x)'");
  EXPECT_EQ(result.exit_code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("proved   rule_1"));
  EXPECT_THAT(result.output, HasSubstr("refuted  wrong"));
  EXPECT_THAT(run("--rule 'add(x, y) => sub(x, y, z)'").output, HasSubstr("--rule:1:14: sub reads 2 tensors"));
  EXPECT_THAT(run("--rule 'rule a:\n  add(x) => x'").output, HasSubstr("--rule:2:3: add reads 2 tensors"));
  EXPECT_EQ(run("--rule ''").exit_code, 3);
}

TEST_F(ProgramTest, FoldersAreWalked) {
  fs::create_directories(folder_ / "specs" / "rules");
  fs::create_directories(folder_ / "specs" / "operators");
  fs::create_directories(folder_ / "specs" / "axioms");
  file("specs/operators/less.op",
       "operator more(x[D..], y[D..]) -> [D..]\n  \"A sum.\"\n  law commutative\n  out[I..] = x[I..] + y[I..]\n");
  file("specs/axioms/more.axioms", "axiom more_is_add: more(x, y) = add(x, y)\n");
  file("specs/rules/more.rules", "rule turn: more(neg(x), y) => add(y, neg(x))\n");
  const Outcome result = run((folder_ / "specs").string());
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const std::size_t axiom = result.output.find("more_is_add"), law = result.output.find("more.commutative"),
                    rule = result.output.find("turn");
  ASSERT_NE(rule, std::string::npos) << result.output;
  EXPECT_LT(axiom, law);
  EXPECT_LT(law, rule);
  // The same folder as a part of the specifications.
  const std::string added = "--add-specs " + (folder_ / "specs").string();
  EXPECT_THAT(run(added + " --rule 'more(x, y) => add(x, y)'").output,
              HasSubstr("proved   rule_1 (unbounded, bounded"));
  EXPECT_EQ(run("--add-specs /no/such/folder --rule 'add(x, y) => add(y, x)'").exit_code, 3);
}

// What an added folder declares is proved when it is loaded.
TEST_F(ProgramTest, DeclarationsOfAddedFoldersAreProved) {
  std::filesystem::create_directories(folder_ / "specs/operators");
  std::filesystem::create_directories(folder_ / "specs/axioms");
  const std::string added = "--add-specs " + (folder_ / "specs").string();
  const auto operators = [&](const std::string& law) {
    (void)file("specs/operators/far.op", "operator far(x[n], y[n]) -> [n]\n" + law +
                                             "  let beyond = (n * n * n * n) // 10000000\n"
                                             "  out[i] = x[i] + y[i] + beyond * x[i]\n");
  };
  operators("  law commutative\n");
  const Outcome refused = run(added + " --rule 'far(x, y) => far(y, x)'");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.output, HasSubstr("operators/far.op:1:10: the declared law far.commutative is not proved: "));
  EXPECT_EQ(std::count(refused.output.begin(), refused.output.end(), '\n'), 1) << refused.output;
  operators("");
  const std::string axioms = file("specs/axioms/far.axioms", "axiom near: far(x, y) = add(x, y)\n");
  for (const std::string& input : {std::string(), " " + axioms}) {
    const Outcome result = run(added + " --rule 'relu(far(x, y)) => relu(add(x, y))'" + input);
    EXPECT_EQ(result.exit_code, 5);
    EXPECT_THAT(result.output, HasSubstr("far.axioms:1:1: axiom near is not proved: "));
    EXPECT_THAT(result.output, HasSubstr("; it is not used\n"));
    EXPECT_THAT(result.output, ::testing::Not(HasSubstr("proved   rule_1")));
  }
}

TEST_F(ProgramTest, WhatHasToBeTrustedOfAddedFunctionsIsSaid) {
  std::filesystem::create_directories(folder_ / "specs/operators");
  (void)file("specs/operators/f.op",
             "function exp2(x): positive\nfunction shifted(x) = x + 1: monotone\nfunction cbrt(x)\n");
  const Outcome result = run("--add-specs " + (folder_ / "specs").string() + " --rule 'add(x, y) => add(y, x)'");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output,
              HasSubstr("operators/f.op:1:10: what is declared of 'exp2' is tried on numbers, not proved; "
                        "proofs that use it rest on it\n"));
  EXPECT_THAT(result.output, ::testing::Not(HasSubstr("shifted")));
  EXPECT_THAT(result.output, ::testing::Not(HasSubstr("cbrt")));
}

TEST_F(ProgramTest, TheOriginalsFilesAreVerifiedAndTranslated) {
  using namespace test;  // NOLINT(google-build-using-namespace)
  const std::string pb = file("three.pb", rule_field({relu(-1), relu(-2), concat(1, 2, {0, 1})},
                                                     {concat(1, 2, {-1, -2}), relu(0)}, {{2, 0, 1, 0}}) +
                                              rule_field({ewadd(-1, -2)}, {ewmul(-1, -2)}, {{0, 0, 0, 0}}) +
                                              rule_field({relu(-1)}, {operator_message(4, {{-1, 0}})}, {{0, 0, 0, 0}}));
  const Outcome result = run(pb);
  EXPECT_EQ(result.exit_code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("proved   taso_000 (unbounded, bounded 3, exact"));
  EXPECT_THAT(result.output, HasSubstr("refuted  taso_001"));
  EXPECT_THAT(result.output, HasSubstr("unknown  taso_002\n    target operator 0 (dropout): this operator has no"));
  const std::string rules = (folder_ / "three.rules").string();
  const Outcome translation = run("--translate " + rules + " " + pb);
  EXPECT_EQ(translation.exit_code, 5) << translation.output;
  EXPECT_THAT(translation.output, HasSubstr("warning: taso_002: target operator 0 (dropout)"));
  const Outcome again = run(rules);
  EXPECT_THAT(again.output, HasSubstr("proved   taso_000"));
  EXPECT_THAT(again.output, HasSubstr("2 statements: 1 proved, 1 refuted, 0 unknown"));
  EXPECT_EQ(run("--translate - " + rules).exit_code, 3);
  EXPECT_EQ(run("--translate - " + pb + " " + pb).exit_code, 2);
}

const char* const some_of_each =
    "# statements with special characters in what is said of them\n"
    "rule right: add(x, y) => add(y, x)\n"
    "rule wrong: sub(x, y) => sub(y, x)\n"
    "  if rank(x) < 3\n"
    "rule surprise: neg(neg(x)) => x\n"
    "  expect refuted\n"
    "rule awaited: sub(x, y) => sub(y, x)\n"
    "  expect refuted\n";

TEST_F(ProgramTest, JUnitHoldsEveryStatement) {
  const std::string rules = file("a&b.rules", some_of_each), junit = (folder_ / "report.xml").string();
  EXPECT_EQ(run("-q --junit " + junit + " '" + rules + "'").exit_code, 5);
  const auto text = read_file(junit);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"taso-verify\" "
                                "tests=\"4\" failures=\"2\" errors=\"0\""));
  EXPECT_THAT(*text, HasSubstr("a&amp;b.rules\" tests=\"4\" failures=\"2\""));
  EXPECT_THAT(*text, HasSubstr("<testcase name=\"right\""));
  EXPECT_THAT(*text, HasSubstr("line=\"3\">\n      <failure message=\"wrong is false"));
  EXPECT_THAT(*text, HasSubstr("surprise is proved, expected refuted\" type=\"unexpected-verdict\""));
  EXPECT_THAT(*text, HasSubstr("&#10;target = "));
}

TEST_F(ProgramTest, SarifNamesFileAndLine) {
  const std::string rules = file("a b.rules", some_of_each), sarif = (folder_ / "report.sarif").string();
  EXPECT_EQ(run("-q --sarif " + sarif + " '" + rules + "'").exit_code, 5);
  const auto text = read_file(sarif);
  ASSERT_TRUE(text);
  for (const char* part :
       {"\"version\": \"2.1.0\"", "\"name\": \"taso-verify\"", "\"ruleId\": \"refuted\"",
        "\"ruleId\": \"unexpected-verdict\"", "\"level\": \"error\"", "a%20b.rules\"", "\"startLine\": 3",
        "\"startLine\": 5", "\"text\": \"wrong is false", "\"partialFingerprints\""})
    EXPECT_THAT(*text, HasSubstr(part));
  // What is as it should be is no result.
  EXPECT_THAT(*text, Not(HasSubstr("\"name\": \"right\"")));
  EXPECT_THAT(*text, Not(HasSubstr("\"name\": \"awaited\"")));
}

TEST_F(ProgramTest, GitHubIsToldWhereAndWhat) {
  const std::string rules = file("a.rules", some_of_each);
  const Outcome result = run("--github " + rules);
  EXPECT_THAT(result.output,
              HasSubstr("::error file=" + rules + ",line=3,col=1,title=refuted::wrong is false: the two"));
  EXPECT_THAT(result.output, HasSubstr("%0Asource = "));
  EXPECT_THAT(result.output, HasSubstr("title=unexpected-verdict::surprise is proved, expected refuted"));
  ::setenv("GITHUB_ACTIONS", "true", 1);
  const Outcome action = run("-q " + rules), broken = run(file("b.rules", "rule a: nonsense(x) => x\n"));
  ::unsetenv("GITHUB_ACTIONS");
  EXPECT_THAT(action.output, HasSubstr("::error file="));
  EXPECT_THAT(broken.output, HasSubstr("b.rules,line=1,col=9,title=taso-verify::unknown operator 'nonsense'"));
  EXPECT_THAT(run("-q " + rules).output, Not(HasSubstr("::error")));
}

TEST_F(ProgramTest, ReportsAreEqualForAnyNumberOfThreadsAndWholeOrNotAtAll) {
  std::string many;
  for (const char* op : {"relu", "tanh", "neg", "exp", "sqrt"})
    many += std::string("rule ") + op + ": " + op + "(" + op + "(x)) => " + op + "(x)\n";
  const std::string rules = file("a.rules", many + "rule sum: add(add(x, y), z) => add(x, add(y, z))\n");
  std::vector<std::string> outputs;
  for (const char* jobs : {"1", "2", "5"}) {
    const std::string base = (folder_ / jobs).string();
    const Outcome result = run("-q --github --junit " + base + ".xml --sarif " + base + ".sarif --json " + base +
                               ".json -j " + jobs + " " + rules);
    std::string all = result.output;
    for (const char* extension : {".xml", ".sarif", ".json"}) {
      const auto text = read_file(base + extension);
      ASSERT_TRUE(text);
      all += *text;
    }
    outputs.push_back(all);
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_EQ(outputs[0], outputs[2]);
  // A report that cannot be written is an error and leaves nothing behind; so does wrong input.
  EXPECT_EQ(run("--junit /no/such/folder/a.xml " + rules).exit_code, 3);
  EXPECT_EQ(run("--junit " + (folder_ / "none.xml").string() + " " + rules + " /no/such.rules").exit_code, 3);
  EXPECT_FALSE(fs::exists(folder_ / "none.xml"));
}

// A report that cannot be written is known before anything is read: the input need not exist.
TEST_F(ProgramTest, ReportsThatCannotBeWrittenAreRefusedAtOnce) {
  for (const char* option : {"--json", "--junit", "--sarif", "--translate"}) {
    const Outcome nowhere = run(std::string(option) + " /no/such/folder/report /no/such.rules");
    EXPECT_EQ(nowhere.exit_code, 3) << option;
    EXPECT_THAT(nowhere.output,
                HasSubstr("/no/such/folder/report: cannot write: the folder '/no/such/folder' does not"));
    const Outcome folder = run(std::string(option) + " " + folder_.string() + " /no/such.rules");
    EXPECT_EQ(folder.exit_code, 3) << option;
    EXPECT_THAT(folder.output, HasSubstr("it is a folder; expected a file name"));
    EXPECT_EQ(std::count(folder.output.begin(), folder.output.end(), '\n'), 1) << folder.output;
  }
}

// A file of the original that ends anywhere is refused in one line, or is whole up to there: records that end where the
// file does cannot be missed.
TEST_F(ProgramTest, TheOriginalsFilesCutShortAreRefused) {
  using namespace test;  // NOLINT(google-build-using-namespace)
  const std::string whole =
      rule_field({relu(-1), relu(-2), concat(1, 2, {0, 1})}, {concat(1, 2, {-1, -2}), relu(0)}, {{2, 0, 1, 0}});
  for (const std::size_t size : {std::size_t{1}, whole.size() / 3, whole.size() / 2, whole.size() - 1}) {
    const Outcome result = run(file("cut.pb", whole.substr(0, size)));
    EXPECT_EQ(result.exit_code, 3) << size << ": " << result.output;
    EXPECT_THAT(result.output, HasSubstr("not a rule file of TASO"));
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
  }
  const Outcome unknown =
      run(file("unknown.pb", rule_field({relu(-1)}, {operator_message(9999, {{-1, 0}})}, {{0, 0, 0, 0}})));
  EXPECT_EQ(unknown.exit_code, 5) << unknown.output;
  EXPECT_THAT(unknown.output, HasSubstr("unknown  taso_000\n    target operator 0"));
}

/// An input of tests/data/verify/malformed.cases with its placeholders filled in: ${0x7f} for a byte, ${N*text} for N
/// repetitions.
std::string expanded(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = text.find('}', i);
    if (text.compare(i, 2, "${") != 0 || end == std::string::npos) {
      result += text[i++];
      continue;
    }
    const std::string inside = text.substr(i + 2, end - i - 2);
    i = end + 1;
    if (inside.starts_with("0x")) {
      result += static_cast<char>(std::stoi(inside, nullptr, 16));
      continue;
    }
    const std::size_t star = inside.find('*');
    for (int n = std::stoi(inside.substr(0, star)); n > 0; --n) result += inside.substr(star + 1);
  }
  return result;
}

// A case has the name of a file, which ends in the kind of input; the exit code; what is said; and the input.
TEST_F(ProgramTest, MalformedFilesAreOneLine) {
  using test::CaseCount;
  using test::CaseValue;
  const std::vector<test::TextCase> cases =
      test::load_cases("tests/data/verify/malformed.cases", {{"code", CaseValue::integer, CaseCount::once},
                                                             {"says", CaseValue::words, CaseCount::once},
                                                             {"no_line_end", CaseValue::none, CaseCount::optional},
                                                             {"input", CaseValue::section, CaseCount::once}});
  EXPECT_GE(cases.size(), 51U);
  for (const test::TextCase& one : cases) {
    SCOPED_TRACE(one.place() + " " + one.name);
    std::string input = one.text("input");
    if (one.has("no_line_end")) input.pop_back();
    const Outcome result = run(file(one.name, expanded(input)));
    EXPECT_EQ(result.exit_code, one.integer("code")) << result.output.substr(0, 400);
    EXPECT_THAT(result.output.substr(0, 1000), HasSubstr(one.text("says")));
    if (result.exit_code == 3) {
      EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1);
      EXPECT_LT(result.output.size(), 600U);
    }
  }
}

}  // namespace
}  // namespace taso
