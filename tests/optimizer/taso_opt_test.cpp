// taso-opt as users run it: exit codes, messages, files.
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "onnx_io/builder.h"
#include "onnx_io/model.h"
#include "support/file.h"
#include "tests/optimizer/fixtures.h"
#include "tests/rule_io/rule_file.h"

namespace taso::testing {
namespace {

struct Outcome {
  int code = 0;
  std::string out, err;
};

/// Three products with biases and a convolution pair: there is something to fuse and something to merge.
void build_model(const std::string& path) {
  ModelBuilder model(17, "small");
  model.add_input("x", {1, 8});
  const auto values = [](std::size_t count, float scale) {
    std::vector<float> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = scale * (static_cast<float>(i * 7919 % 101) / 50 - 1);
    return result;
  };
  for (const std::string name : {"q", "k", "v"}) {
    model.add_initializer("w" + name, {8, 6}, values(48, name == "q" ? 0.3F : name == "k" ? -0.2F : 0.4F));
    model.add_initializer("b" + name, {6}, values(6, 0.1F));
    model.add_node("MatMul", {"x", "w" + name}, {"m" + name});
    model.add_node("Add", {"m" + name, "b" + name}, {name});
    model.add_output(name, {1, 6});
  }
  const Status saved = model.save(path);
  ASSERT_TRUE(saved) << saved.error().to_string();
}

class TasoOpt : public ::testing::Test {
 protected:
  void SetUp() override { build_model(folder / "m.onnx"); }

  /// Runs taso-opt; $D in the arguments is the test's folder, $R the test rules.
  Outcome run(std::string arguments) {
    const auto replace = [&](const std::string& name, const std::string& value) {
      for (std::size_t at; (at = arguments.find(name)) != std::string::npos;) arguments.replace(at, name.size(), value);
    };
    replace("$D", folder / ".");
    replace("$R", source_path("tests/data/rules/optimizer.rules"));
    const std::string command = "cd " + (folder / ".") + " && TASO_BACKENDS='" + TASO_TEST_BACKENDS +
                                "' XDG_CACHE_HOME=" + (folder / "cache") + " " + TASO_OPT + " " + arguments +
                                " >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    Outcome result;
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.out = value_of(read_file(folder / "out.txt"));
    result.err = value_of(read_file(folder / "err.txt"));
    return result;
  }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(folder / name); }

  TemporaryFolder folder;
};

TEST_F(TasoOpt, OptimizesAndReports) {
  const Outcome result = run("m.onnx -o o.onnx --rules $R --cost launches --json r.json --explain --threads 1");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("cost 1 instead of 3 of the baseline (launches)"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("merge_matmul_bias"), std::string::npos);
  EXPECT_NE(result.out.find("baseline fuse_matmul_bias at "), std::string::npos) << result.out;
  const auto report = nlohmann::json::parse(value_of(read_file(folder / "r.json")));
  EXPECT_EQ(report["result"]["kernels"], 1);
  EXPECT_EQ(report["choice"], "optimized");
  EXPECT_TRUE(report["check"]["passed"]);
  const Model optimized = value_of(Model::load(folder / "o.onnx", registry()));
  ASSERT_EQ(optimized.outputs().size(), 3U);
  EXPECT_EQ(optimized.outputs()[1].name, "k");
}

TEST_F(TasoOpt, DrawsAPage) {
  const Outcome result = run("m.onnx -o o.onnx --rules $R --cost launches --html r.html -q");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string page = value_of(read_file(folder / "r.html"));
  EXPECT_NE(page.find("<code>merge_matmul_bias</code>"), std::string::npos);
  EXPECT_NE(page.find("\"MatMul #"), std::string::npos) << "nodes of the user's model are named";
  EXPECT_EQ(page.rfind("</body></html>\n"), page.size() - 15);
  ASSERT_EQ(run("m.onnx -o o.onnx --rules $R --cost launches --html again.html -q").code, 0);
  EXPECT_EQ(page, value_of(read_file(folder / "again.html")));
  EXPECT_EQ(run("m.onnx -o o.onnx --html /no/such/folder/r.html").code, 3);
}

/// Of graphs in layouts by the rule, layouts alone, one after the other, and both together, the last is the cheapest.
TEST_F(TasoOpt, StrategiesOnOneDatabase) {
  ModelBuilder model(17, "images");
  model.add_input("x", {1, 3, 12, 12});
  std::vector<float> k(std::size_t{16} * 3 * 9), l(std::size_t{16} * 16);
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(i % 13) / 40 - 0.15F;
  for (std::size_t i = 0; i < l.size(); ++i) l[i] = static_cast<float>(i % 11) / 30 - 0.15F;
  model.add_initializer("k", {16, 3, 3, 3}, k);
  model.add_initializer("l", {16, 16, 1, 1}, l);
  model.add_node("Conv", {"x", "k"}, {"a"});
  model.add_node("Relu", {"a"}, {"b"});
  model.add_node("Conv", {"b", "l"}, {"c"});
  model.add_node("Relu", {"c"}, {"y"});
  model.add_output("y", {1, 16, 10, 10});
  const Status saved = model.save(folder / "c.onnx");
  ASSERT_TRUE(saved) << saved.error().to_string();
  std::map<std::string, double> found;
  for (const std::string strategy : {"joint", "graph", "layout", "sequential"}) {
    // No graph is timed whole: that may correct costs between two runs.
    const Outcome result = run("c.onnx -o " + strategy + ".onnx --costs c.sqlite -q --rerank 0 --strategy " + strategy +
                               " --json " + strategy + ".json");
    ASSERT_EQ(result.code, 0) << strategy << ": " << result.err;
    const auto report = nlohmann::json::parse(value_of(read_file(folder / (strategy + ".json"))));
    EXPECT_EQ(report["strategy"], strategy);
    EXPECT_EQ(report["layouts"]["problems"] == 0, strategy == "graph");
    EXPECT_EQ(report["layouts"]["inexact"], 0);
    EXPECT_EQ(report["layouts"]["moves_ended"], 0);
    EXPECT_LE(report["layouts"]["moves_kept"], report["layouts"]["moves_tried"]);
    EXPECT_LE(report["result"]["cost"], report["result"]["rule_cost"]);
    EXPECT_EQ(report["result"]["least_cost"].is_null(), strategy == "graph");
    if (strategy != "graph") {
      EXPECT_LE(report["result"]["least_cost"], report["result"]["cost"]);
      EXPECT_GT(report["result"]["least_cost"], 0);
    }
    for (const auto& contender : report["contenders"]) {
      const double cost = contender["cost"];
      found[strategy] = found.contains(strategy) ? std::min(found[strategy], cost) : cost;
    }
  }
  for (const auto& [strategy, cost] : found) EXPECT_LE(found["joint"], cost * (1 + 1e-9)) << strategy;
  EXPECT_EQ(run("c.onnx -o d.onnx --strategy both").code, 2);
}

TEST_F(TasoOpt, TakesRulesOfTheOriginalTaso) {
  // Sibling products are merged; SAME padding with a stride has no counterpart.
  const std::string merge = test::rule_field({test::matmul(-1, -2), test::matmul(-1, -3)},
                                             {test::concat(1, 2, {-2, -3}), test::matmul(-1, 0), test::split(1, 1)},
                                             {{0, 0, 2, 0}, {1, 0, 2, 1}});
  const std::string unknown = test::rule_field({test::conv2d(-1, -2, 0, 0, 2)},
                                               {test::enlarge(-2, 3), test::conv2d(-1, 0, 0, 0, 2)}, {{0, 0, 1, 0}});
  write_file(folder / "p.pb", merge + unknown);
  const auto operators = [&](const std::string& options) {
    const Outcome result = run("m.onnx -o o.onnx --rules p.pb --cost launches --json r.json " + options);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.err.find("1 of 2 rules have no counterpart and are left out"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("rules carry no proof"), std::string::npos) << result.err;
    return nlohmann::json::parse(value_of(read_file(folder / "r.json")))["result"]["operators"];
  };
  EXPECT_EQ(operators("")["matmul"], 1);
  // In the baseline of other rules, products are fused with biases, so that there are none to merge.
  EXPECT_EQ(operators("--baseline-rules $R")["matmul_bias_act"], 3);
  EXPECT_NE(value_of(read_file(folder / "o.taso.json")).find("fuse_matmul_bias"), std::string::npos);
  EXPECT_EQ(run("m.onnx -o o.onnx --rules p.pb --cost launches --require-proofs").code, 3);
  write_file(folder / "q.pb", "this is no collection of rules");
  const Outcome wrong = run("m.onnx -o o.onnx --rules q.pb --cost launches");
  EXPECT_EQ(wrong.code, 3);
  EXPECT_NE(wrong.err.find("q.pb"), std::string::npos) << wrong.err;
}

TEST_F(TasoOpt, SearchesInBeams) {
  const Outcome result = run("m.onnx -o o.onnx --rules $R --cost launches --search beam --beam-width 2 --json r.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(value_of(read_file(folder / "r.json")))["result"]["kernels"], 1);
  EXPECT_EQ(run("m.onnx -o o.onnx --search beam --beam-width 0").code, 2);
  EXPECT_EQ(run("m.onnx -o o.onnx --search deep").code, 2);
}

TEST_F(TasoOpt, SearchesInParts) {
  ModelBuilder model(17, "chain");
  model.add_input("x0", {1, 4});
  model.add_initializer("w", {4, 4}, std::vector<float>(16, 0.2F));
  model.add_initializer("v", {4, 4}, std::vector<float>(16, -0.1F));
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    model.add_node("MatMul", {"x" + n, "w"}, {"p" + n});
    model.add_node("MatMul", {"x" + n, "v"}, {"q" + n});
    model.add_node("Add", {"p" + n, "q" + n}, {"s" + n});
    model.add_node("Tanh", {"s" + n}, {"x" + std::to_string(i + 1)});
  }
  model.add_output("x8", {1, 4});
  const Status saved = model.save(folder / "chain.onnx");
  ASSERT_TRUE(saved) << saved.error().to_string();
  std::set<double> costs;
  for (const std::string size : {"4", "1", "0"}) {
    const Outcome result = run("chain.onnx -o o.onnx --rules $R --cost launches --json r.json --part-size " + size);
    ASSERT_EQ(result.code, 0) << result.err;
    const auto report = nlohmann::json::parse(value_of(read_file(folder / "r.json")));
    EXPECT_EQ(report["search"]["parts"] > 0, size != "0") << size;
    EXPECT_EQ(result.out.find(" parts, ") != std::string::npos, size != "0") << result.out;
    if (size != "1") costs.insert(report["result"]["cost"].get<double>());
  }
  EXPECT_EQ(costs.size(), 1U);
  EXPECT_EQ(run("chain.onnx -o o.onnx --part-size -1").code, 2);
}

TEST_F(TasoOpt, MeasuresRecordsAndReplays) {
  const std::string common = "m.onnx --rules $R -q ";
  Outcome result = run(common + "-o a.onnx --costs c.sqlite --record c.txt --json a.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(result.err.empty()) << result.err;
  EXPECT_TRUE(result.out.empty()) << result.out;
  const auto first = nlohmann::json::parse(value_of(read_file(folder / "a.json")));
  EXPECT_GT(first["measured_kernels"], 0);
  result = run(common + "-o b.onnx --costs c.sqlite --json b.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(value_of(read_file(folder / "b.json")))["measured_kernels"], 0);
  EXPECT_EQ(value_of(read_file(folder / "a.onnx")), value_of(read_file(folder / "b.onnx")));
  result = run(common + "-o c.onnx --costs c.txt --no-measure -j 1");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(value_of(read_file(folder / "a.onnx")), value_of(read_file(folder / "c.onnx")));
}

TEST_F(TasoOpt, UsesTheCacheFolderByDefault) {
  ASSERT_EQ(run("m.onnx -o o.onnx --rules $R").code, 0);
  EXPECT_TRUE(exists("cache/taso/costs.sqlite"));
}

TEST_F(TasoOpt, AMissingCostIsExitCode7) {
  const Outcome result = run("m.onnx -o o.onnx --rules $R --no-measure");
  EXPECT_EQ(result.code, 7);
  EXPECT_NE(result.err.find("no recorded cost of the kernel 'matmul"), std::string::npos) << result.err;
  EXPECT_FALSE(exists("o.onnx"));
}

TEST_F(TasoOpt, AFailedCheckIsExitCode4AndWritesNothing) {
  write_file(folder / "wrong.rules", "rule wrong:\n  add(matmul(x, w), y) => matmul(x, w)\n");
  const Outcome failed = run("m.onnx -o p.onnx --rules wrong.rules --cost launches");
  EXPECT_EQ(failed.code, 4) << failed.err;
  EXPECT_NE(failed.err.find("numeric check failed: the output of add '"), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("applied before it: wrong at matmul, add of "), std::string::npos) << failed.err;
  EXPECT_FALSE(exists("p.onnx"));
  EXPECT_EQ(run("m.onnx -o p.onnx --rules wrong.rules --cost launches --no-check").code, 0);
}

TEST_F(TasoOpt, ChecksWhatWasRewrittenByItself) {
  Outcome result = run("m.onnx -o p.onnx --rules $R --cost launches --json r.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("rewritten regions right by themselves"), std::string::npos) << result.out;
  const auto regions = nlohmann::json::parse(value_of(read_file(folder / "r.json")))["check"]["regions"];
  EXPECT_GT(regions["count"], 0);
  EXPECT_EQ(regions["checked"], regions["count"]);
  result = run("m.onnx -o p.onnx --rules $R --cost launches --json r.json --check full");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_GE(nlohmann::json::parse(value_of(read_file(folder / "r.json")))["check"]["regions"]["elements"],
            regions["elements"]);
  result = run("m.onnx -o p.onnx --rules $R --check some");
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("--check: some not in {sampled,full}"), std::string::npos) << result.err;
}

TEST_F(TasoOpt, NoGainIsExitCode5OnRequest) {
  const std::string arguments =
      "m.onnx -o o.onnx --rules $R --disable-rule merge_matmul_bias --disable-rule merge_matmul"
      " --cost launches";
  const Outcome plain = run(arguments);
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_NE(plain.out.find("no improvement over the baseline; the baseline graph is written"), std::string::npos);
  const Outcome strict = run(arguments + " --fail-if-no-gain");
  EXPECT_EQ(strict.code, 5);
  EXPECT_NE(strict.err.find("no improvement over the baseline"), std::string::npos);
}

TEST_F(TasoOpt, RulesCanBeBoundedBySize) {
  for (const auto& [size, choice] :
       std::vector<std::pair<std::string, std::string>>{{"1", "baseline"}, {"2", "optimized"}, {"9", "optimized"}}) {
    const Outcome result = run("m.onnx -o o.onnx --rules $R --cost launches --json r.json --max-rule-size " + size);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(nlohmann::json::parse(value_of(read_file(folder / "r.json")))["choice"], choice) << size;
  }
}

TEST_F(TasoOpt, CostsDecideWithoutReranking) {
  const Outcome result = run("m.onnx -o o.onnx --rules $R --costs c.sqlite --rerank 0 --json r.json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto report = nlohmann::json::parse(value_of(read_file(folder / "r.json")));
  double least = report["baseline"]["cost"];
  for (const auto& contender : report["contenders"]) {
    EXPECT_TRUE(contender["seconds"].is_null()) << contender.dump();
    least = std::min<double>(least, contender["cost"]);
  }
  EXPECT_EQ(report["result"]["cost"], least);
}

TEST_F(TasoOpt, TheRoundingClassesAreObeyed) {
  write_file(folder / "d.rules",
             "rule drop:\n  add(matmul(x, w), broadcast(b; shape=s)) => matmul_bias_act(x, w, b)\n"
             "  if rank(b) == 1\n  proof bounded 3\n  class distribution\n");
  for (const auto& [fp, choice] : std::vector<std::pair<std::string, std::string>>{
           {"exact", "original"}, {"reassoc", "baseline"}, {"fast", "baseline"}}) {
    const Outcome result = run("m.onnx -o o.onnx --rules d.rules --cost launches --json r.json --fp " + fp);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(nlohmann::json::parse(value_of(read_file(folder / "r.json")))["choice"], choice) << fp;
  }
}

TEST_F(TasoOpt, EveryErrorIsOneLineWithItsCode) {
  write_file(folder / "broken.rules", "rule r:\n  add(x, => x\n");
  write_file(folder / "unproved.rules", "rule r:\n  add(x, y) => add(y, x)\n");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  write_file(folder / "noise.sqlite", "this is no database");
  write_file(folder / "broken.onnx", "this is no model");
  write_file(folder / "gpu.json", R"({"name": "some GPU"})");
  struct Case {
    std::string arguments;
    int code;
    std::string message;
  };
  const std::vector<Case> cases{
      {"", 2, "MODEL is required"},
      {"m.onnx", 2, "--output is required"},
      {"m.onnx -o o.onnx --bogus", 2, "--bogus"},
      {"m.onnx -o o.onnx --alpha 0.5", 2, "--alpha"},
      {"m.onnx -o o.onnx --fp wild", 2, "--fp"},
      {"m.onnx -o o.onnx --cost speed", 2, "--cost speed: 'speed' is not a cost; expected time, flops, bytes"},
      {"m.onnx -o o.onnx --time-limit -3", 2, "--time-limit"},
      {"m.onnx -o o.onnx --check-rtol -1", 2, "--check-rtol: '-1' is not a finite number of at least 0"},
      {"m.onnx -o o.onnx --check-rtol nan", 2, "--check-rtol: 'nan' is not a finite number"},
      {"m.onnx -o o.onnx --check-atol inf", 2, "--check-atol: 'inf' is not a finite number"},
      {"m.onnx -o o.onnx --alpha nan", 2, "--alpha: 'nan' is not a finite number of at least 1"},
      {"m.onnx -o o.onnx --time-limit 0", 2, "--time-limit: '0' is not a finite number above 0"},
      {"m.onnx -o o.onnx --memory-limit nan", 2, "--memory-limit: 'nan'"},
      {"m.onnx -o o.onnx --seed -1", 2, "--seed: '-1' is not a whole number"},
      {"m.onnx -o o.onnx --steps -1", 2, "--steps: '-1' is not a whole number"},
      {"m.onnx -o o.onnx --max-rule-size 0", 2, "--max-rule-size: '0'"},
      {"m.onnx -o o.onnx --rerank -1", 2, "--rerank: '-1'"},
      {"m.onnx -o o.onnx --seed 99999999999999999999", 2, "is too large; the most is 18446744073709551615"},
      {"m.onnx -o ''", 2, "--output: the file name is empty"},
      {"m.onnx -o o.onnx --json nowhere/r.json", 3,
       "nowhere/r.json: cannot write: the folder 'nowhere' does not exist"},
      {"m.onnx -o o.onnx --record nowhere/c.txt", 3, "nowhere/c.txt: cannot write"},
      {"pipe -o o.onnx --rules $R", 3, "pipe: cannot read: not a regular file"},
      {"m.onnx -o o.onnx --rules unproved.rules --require-proofs", 3, "rule 'r' carries no proof"},
      {"m.onnx -o o.onnx --rules $R --input-shape x:2,8", 3, "declares extent 1 for axis 0"},
      {"m.onnx -o o.onnx --rules $R --disable-rule nope", 2, "--disable-rule nope: there is no rule of this name"},
      {"m.onnx -o o.onnx --input-shape x", 2, "--input-shape: \"x\" is not NAME:D,D,.."},
      {"absent.onnx -o o.onnx --rules $R", 3, "absent.onnx"},
      {"broken.onnx -o o.onnx --rules $R", 3, "broken.onnx"},
      {"m.onnx -o nowhere/o.onnx --rules $R", 3, "nowhere/o.onnx: cannot write: the folder 'nowhere' does not exist"},
      {"m.onnx -o $D --rules $R", 3, "it is a folder; expected a file name"},
      {"m.onnx -o o.onnx --rules absent.rules", 3, "absent.rules"},
      {"m.onnx -o o.onnx --rules broken.rules", 3, "broken.rules:2:"},
      {"m.onnx -o o.onnx --rules $R --specs absent", 3, "absent/operators"},
      {"m.onnx -o o.onnx --rules $R --costs noise.sqlite", 3, "noise.sqlite: not a cost database"},
      {"m.onnx -o o.onnx --rules $R --costs gone.sqlite --no-measure", 3,
       "gone.sqlite: there is no cost database of this name"},
      {"m.onnx -o o.onnx --device nosuch", 6, "device 'nosuch' is not available: there is no taso_nosuch.so in "},
      {"m.onnx -o o.onnx --device No/Such", 2, "--device No/Such: expected cpu or the name of a backend"},
      {"m.onnx -o o.onnx --device reference", 6, "device 'reference' is not available"},
      {"m.onnx -o o.onnx --math fp16", 2, "--math fp16: kernels of --device cpu compute in fp32"},
      {"m.onnx -o o.onnx --math fp8", 2, "--math"},
      {"m.onnx -o o.onnx --device-properties gpu.json", 2, "--device-properties: --device cpu has none"},
      {"m.onnx -o o.onnx --streams 2", 2, "taso-opt: --streams 2: --device cpu runs one kernel at a time"},
      {"m.onnx -o o.onnx --device ort --streams 2", 2,
       "--streams: a runtime places its kernels itself: not with --device ort; leave it out"},
      {"m.onnx -o o.onnx --device host --device-properties gone.json", 3, "gone.json"},
      {"m.onnx -o o.onnx --device host --device-properties noise.sqlite", 6,
       "device 'host' is not available: the device's properties are not a JSON object with a name"},
      {"m.onnx -o o.onnx --device host --device-properties gpu.json", 2,
       "--device-properties: a device that is not there cannot be measured; give --no-measure"},
  };
  for (const Case& test : cases) {
    const Outcome result = run(test.arguments);
    EXPECT_EQ(result.code, test.code) << test.arguments << ": " << result.err;
    EXPECT_NE(result.err.find(test.message), std::string::npos) << test.arguments << ": " << result.err;
    EXPECT_EQ(result.err.rfind("taso-opt: ", 0), 0U) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(exists("o.onnx")) << test.arguments;
  }
}

TEST_F(TasoOpt, PlansForADevice) {
  write_file(folder / "gpu.json", R"({"name": "host test device"})");
  write_file(folder / "other.json", R"({"name": "another device"})");
  for (const std::string math : {"fp32", "fp16"}) {
    const std::string device = "--rules $R --device host --math " + math;
    const Outcome here = run("m.onnx -o here.onnx --record c.costs --costs c.sqlite --json r.json " + device);
    ASSERT_EQ(here.code, 0) << here.err;
    const auto report = nlohmann::json::parse(value_of(read_file(folder / "r.json")));
    EXPECT_EQ(report["target"].get<std::string>().rfind("host test device; driver 1.0; fp32; ", 0), 0U);
    EXPECT_EQ(report["target"].get<std::string>().ends_with("; floats=f16"), math == "fp16");
    // Elsewhere, without the device: from the record, or from shipped costs.
    const std::string there = device + " --device-properties gpu.json --no-measure";
    EXPECT_EQ(run("m.onnx -o bare.onnx " + there).code, 7);
    const Outcome planned = run("m.onnx -o there.onnx --costs c.costs " + there);
    EXPECT_EQ(planned.code, 0) << planned.err;
    EXPECT_NE(planned.err.find("c.costs: costs are those of 'host test device; driver 1.0; fp32; "), std::string::npos)
        << planned.err;
    EXPECT_EQ(run("m.onnx -o there.onnx --costs c.sqlite " + there).code, 0);
    // Of another device, or another mode, they are not.
    EXPECT_EQ(run("m.onnx -o bare.onnx --no-measure --costs c.costs --rules $R --device host --math " + math +
                  " --device-properties other.json")
                  .code,
              7);
    EXPECT_EQ(run("m.onnx -o bare.onnx --no-measure --costs c.costs --rules $R --device host --math bf16"
                  " --device-properties gpu.json")
                  .code,
              7);
    EXPECT_EQ(value_of(read_file(folder / "there.onnx")), value_of(read_file(folder / "here.onnx")));
    std::filesystem::create_directories(folder / "more/costs");
    std::filesystem::copy_file(folder / "c.costs", folder / ("more/costs/" + math + ".costs"));
    const Outcome shipped = run("m.onnx -o shipped.onnx --add-specs more --json s.json " + there);
    EXPECT_EQ(shipped.code, 0) << shipped.err;
    EXPECT_EQ(value_of(read_file(folder / "shipped.onnx")), value_of(read_file(folder / "here.onnx")));
  }
}

TEST_F(TasoOpt, SaysWhatADeviceLeavesToTheHost) {
  ModelBuilder model(17, "tail");
  model.add_input("x", {4, 8});
  model.add_initializer("w", {8, 6}, std::vector<float>(48, 0.5F));
  model.add_output("y", {4, 6});
  model.add_node("MatMul", {"x", "w"}, {"l"});
  model.add_node("Softmax", {"l"}, {"y"});
  ASSERT_TRUE(model.save(folder / "tail.onnx").ok());
  const Outcome result = run("tail.onnx -o o.onnx --rules $R --device host --json r.json");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string notes = nlohmann::json::parse(value_of(read_file(folder / "r.json")))["notes"].dump();
  EXPECT_NE(notes.find("1 kernels of the result run on the host, as the device has none: softmax x 1"),
            std::string::npos)
      << notes;
}

TEST_F(TasoOpt, AFailedCheckLeavesItsReasonAsJson) {
  write_file(folder / "wrong.rules", "rule wrong:\n  add(matmul(x, w), y) => matmul(x, w)\n");
  const Outcome result = run("m.onnx -o p.onnx --rules wrong.rules --cost launches -q --json r.json");
  EXPECT_EQ(result.code, 4) << result.err;
  const auto report = nlohmann::json::parse(value_of(read_file(folder / "r.json")));
  EXPECT_EQ(report["exit_code"], 4);
  EXPECT_NE(report["error"].get<std::string>().find("numeric check failed"), std::string::npos);
}

TEST_F(TasoOpt, LinksAreFollowed) {
  std::filesystem::create_symlink("real.onnx", folder / "link.onnx");
  ASSERT_EQ(run("m.onnx -o link.onnx --rules $R --cost launches").code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.onnx"));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "real.onnx"));
}

TEST_F(TasoOpt, ModelsWithLogarithmsPassTheCheck) {
  ModelBuilder model(17, "log");
  model.add_input("x", {4, 8});
  model.add_initializer("w", {8, 6}, std::vector<float>(48, 0.5F));
  model.add_initializer("b", {6}, std::vector<float>(6, 0.1F));
  model.add_node("Log", {"x"}, {"l"});
  model.add_node("MatMul", {"l", "w"}, {"m"});
  model.add_node("Add", {"m", "b"}, {"a"});
  model.add_node("Relu", {"a"}, {"y"});
  model.add_output("y", {4, 6});
  ASSERT_TRUE(model.save(folder / "log.onnx"));
  const Outcome result = run("log.onnx -o o.onnx --rules $R --cost launches --json r.json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto report = nlohmann::json::parse(value_of(read_file(folder / "r.json")));
  EXPECT_EQ(report["choice"], "baseline") << "the activation is fused";
  EXPECT_GT(report["check"]["tensors"][0]["not_finite"], 0);
  EXPECT_GE(report["check"]["tensors"][0]["compared"], 24);
}

/// A rule whose result has no form at the model's opset is not used; at a later opset it is.
TEST_F(TasoOpt, RewritesThatTheOpsetCannotHoldAreLeftOut) {
  write_file(folder / "gelu.rules", "rule fewer:\n  sigmoid(sigmoid(x)) => gelu(x)\n");
  for (const int opset : {8, 9}) {
    ModelBuilder model(opset, "old");
    model.add_input("x", {4, 6});
    model.add_node("Sigmoid", {"x"}, {"s"});
    model.add_node("Sigmoid", {"s"}, {"y"});
    model.add_output("y", {4, 6});
    ASSERT_TRUE(model.save(folder / "old.onnx"));
    const Outcome result = run("old.onnx -o o.onnx --rules gelu.rules --cost launches --no-check -v --json r.json");
    ASSERT_EQ(result.code, 0) << result.err;
    const auto report = nlohmann::json::parse(value_of(read_file(folder / "r.json")));
    EXPECT_EQ(report["result"]["kernels"], opset == 8 ? 2 : 1) << opset;
    EXPECT_EQ(result.err.find("ONNX opset 8 has no form for their result") != std::string::npos, opset == 8)
        << result.err;
  }
}

TEST_F(TasoOpt, HelpAndVersion) {
  const Outcome help = run("--help");
  EXPECT_EQ(help.code, 0);
  for (const std::string option :
       {"--rules", "--cost", "--no-measure", "--record", "--check-rtol", "--fail-if-no-gain"})
    EXPECT_NE(help.out.find(option), std::string::npos) << option;
  const Outcome version = run("-V");
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("taso-opt ", 0), 0U) << version.out;
}

}  // namespace
}  // namespace taso::testing
