// What workers say: protocol.cases. Which parts of graphs are measured: parts.cases; and that each part can be written
// as a file, and read.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "graph/graph_text.h"
#include "onnx_io/model.h"
#include "operators/registry.h"
#include "targets/part_file.h"
#include "targets/runtime_parts.h"
#include "targets/worker.h"
#include "targets/worker_process.h"
#include "targets/worker_protocol.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::CaseCount;
using test::CaseValue;
using test::registry;
using test::TextCase;

std::string said(const TextCase& test) {
  constexpr int id = 7;
  constexpr std::size_t models = 2, samples = 3;
  constexpr double wall = 1;
  if (test.has("hello")) {
    const auto hello = parse_hello(test.text("hello"));
    if (!hello) return "fails " + hello.error().message;
    return fmt::format("is {} {}:{}{}", hello->runtime, hello->version, hello->providers.empty() ? "" : " ",
                       fmt::join(hello->providers, " "));
  }
  if (test.has("setting")) {
    const auto setting = parse_setting(test.text("setting"), id);
    if (!setting) return "fails " + setting.error().message;
    return fmt::format("is {} on {}", setting->provider, setting->device);
  }
  const auto times = parse_times(test.text("times"), id, models, samples, wall);
  if (!times) return "fails " + times.error().message;
  std::vector<std::string> texts;
  for (const ModelTimes& one : *times)
    texts.push_back(one.refusal.empty() ? fmt::format("{}", fmt::join(one.seconds, " ")) : one.refusal);
  return fmt::format("is {}", fmt::join(texts, ", "));
}

TEST(Protocol, WhatWorkersSayIsBelievedAsFarAsItCanBe) {
  const std::vector<TextCase> cases =
      test::load_cases("tests/targets/protocol.cases", {{"hello", CaseValue::text, CaseCount::optional},
                                                        {"setting", CaseValue::text, CaseCount::optional},
                                                        {"times", CaseValue::text, CaseCount::optional},
                                                        {"is", CaseValue::text, CaseCount::optional},
                                                        {"fails", CaseValue::text, CaseCount::optional}});
  EXPECT_GE(cases.size(), 20U);
  for (const TextCase& test : cases)
    EXPECT_EQ(said(test), test.has("is") ? "is " + test.text("is") : "fails " + test.text("fails")) << test.place();
}

/// Without the hashes of what is kept.
std::string without_hashes(const std::string& text) {
  static const std::regex hash("c[0-9a-f]{16}");
  return std::regex_replace(text, hash, "c");
}

/// A file that is gone at the end.
struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() /
                      fmt::format("taso-part-{}.onnx", ::testing::UnitTest::GetInstance()->random_seed()))
                         .string() +
                     std::to_string(::getpid());
  ~TemporaryFile() { std::filesystem::remove(path); }
};

/// Operators of a graph, without weights.
std::size_t operators_of(const Graph& graph) {
  std::size_t count = 0;
  for (const NodeId id : graph.topological_order())
    count += graph.node(id).kind == NodeKind::op && !graph.node(id).weight_only ? 1U : 0U;
  return count;
}

TEST(Parts, AreChainsThatARuntimeFuses) {
  const std::vector<TextCase> cases = test::load_cases(
      "tests/targets/parts.cases",
      {{"graph", CaseValue::section, CaseCount::once}, {"parts", CaseValue::section, CaseCount::once}});
  EXPECT_GE(cases.size(), 8U);
  for (const TextCase& test : cases) {
    SCOPED_TRACE(test.place());
    const Expected<Graph> graph = parse_graph(test.placed("graph"), test.file, registry());
    ASSERT_TRUE(graph) << graph.error().to_string();
    std::string texts;
    std::set<Hash128> signatures;
    std::set<std::string> different;
    for (const RuntimePart& part : parts_of(*graph, registry())) {
      const Expected<StandalonePart> alone = standalone(*graph, part, registry());
      ASSERT_TRUE(alone) << alone.error().to_string();
      ASSERT_TRUE(alone->graph.validate());
      EXPECT_GT(alone->bytes, 0);
      texts += without_hashes(alone->text) + "\n";
      different.insert(alone->text);
      signatures.insert(signature_of(*graph, part));
      // As a file, with two copies.
      const TemporaryFile file;
      const Expected<ModelRun> run = write_part(*alone, 2, 17, registry(), file.path);
      ASSERT_TRUE(run) << run.error().to_string();
      const Expected<Model> read = Model::load(file.path, registry());
      ASSERT_TRUE(read) << read.error().to_string();
      EXPECT_EQ(read->inputs().size(), run->inputs.size());
      EXPECT_EQ(read->outputs().size(), 2 * alone->graph.outputs().size());
      EXPECT_EQ(operators_of(read->graph()) % 2, 0U);
      EXPECT_GE(operators_of(read->graph()), 2U);
      EXPECT_TRUE(read->carried_nodes().empty());
    }
    EXPECT_EQ(texts, test.text("parts"));
    EXPECT_EQ(signatures.size(), different.size());
  }
}

TEST(Pieces, ArePartsWithTheirNeighbours) {
  const std::vector<TextCase> cases = test::load_cases(
      "tests/targets/pieces.cases",
      {{"graph", CaseValue::section, CaseCount::once}, {"pieces", CaseValue::section, CaseCount::once}});
  EXPECT_GE(cases.size(), 5U);
  for (const TextCase& test : cases) {
    SCOPED_TRACE(test.place());
    const Expected<Graph> graph = parse_graph(test.placed("graph"), test.file, registry());
    ASSERT_TRUE(graph) << graph.error().to_string();
    std::string texts;
    for (const RuntimePiece& piece : pieces_of(*graph, parts_of(*graph, registry()))) {
      const Expected<StandalonePart> alone = standalone(*graph, piece, registry());
      ASSERT_TRUE(alone) << alone.error().to_string();
      ASSERT_TRUE(alone->graph.validate());
      texts += fmt::format("{}: {} -> {}\n", fmt::join(piece.parts, " "), without_hashes(alone->text),
                           alone->graph.outputs().size());
      const TemporaryFile file;
      const Expected<ModelRun> run = write_part(*alone, 1, 17, registry(), file.path);
      ASSERT_TRUE(run) << run.error().to_string();
      const Expected<Model> read = Model::load(file.path, registry());
      ASSERT_TRUE(read) << read.error().to_string();
      EXPECT_EQ(read->outputs().size(), alone->graph.outputs().size());
      EXPECT_TRUE(read->carried_nodes().empty());
    }
    EXPECT_EQ(texts, test.text("pieces"));
  }
}

TEST(Parts, OfTypesWithoutRandomInputsAreRefused) {
  const Expected<Graph> graph = parse_graph("input x bf16[4]\noutput relu(x)\n", "test", registry());
  ASSERT_TRUE(graph) << graph.error().to_string();
  const std::vector<RuntimePart> parts = parts_of(*graph, registry());
  ASSERT_EQ(parts.size(), 1U);
  const Expected<StandalonePart> alone = standalone(*graph, parts[0], registry());
  ASSERT_TRUE(alone) << alone.error().to_string();
  const TemporaryFile file;
  const Expected<ModelRun> run = write_part(*alone, 1, 17, registry(), file.path);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message, "it reads bf16, of which no random input is made");
}

/// Whether a process is there and is no zombie.
bool is_alive(const std::string& process) {
  std::ifstream status("/proc/" + process + "/stat");
  std::string line;
  return std::getline(status, line) && line.find(") Z ") == std::string::npos;
}

TEST(WorkerProcess, IsKilledWithAllThatItStarted) {
  std::string child;
  {
    Expected<WorkerProcess> process = WorkerProcess::start({"sh", "-c", "sleep 1000 & echo $!; wait"});
    ASSERT_TRUE(process) << process.error().to_string();
    const Expected<std::string> line = process->receive(60, {});
    ASSERT_TRUE(line) << line.error().to_string();
    child = *line;
    EXPECT_TRUE(is_alive(child));
  }
  for (int i = 0; i < 1000 && is_alive(child); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(is_alive(child));
}

TEST(WorkerProcess, SaysWhatAProgramDid) {
  const auto failure = [](const std::vector<std::string>& command, double seconds) {
    Expected<WorkerProcess> process = WorkerProcess::start(command);
    if (!process) return process.error().message;
    const Expected<std::string> line = process->receive(seconds, {});
    return line ? "it said " + *line : line.error().message;
  };
  EXPECT_EQ(failure({"echo", "hello"}, 60), "it said hello");
  EXPECT_EQ(failure({"sh", "-c", "echo first >&2; echo 'the last words' >&2"}, 60), "it has ended (the last words)");
  EXPECT_EQ(failure({"sleep", "1000"}, 0.2), "it did not answer within 0.2 s");
  const std::string absent = failure({"/nonexistent/worker"}, 60);
  EXPECT_TRUE(absent.starts_with("it has ended (") && absent.find("/nonexistent/worker") != std::string::npos)
      << absent;
}

TEST(WorkerProcess, EndsWaitingWhereTheUserWantsIt) {
  Expected<WorkerProcess> process = WorkerProcess::start({"sleep", "1000"});
  ASSERT_TRUE(process);
  const Expected<std::string> line = process->receive(1000, [] { return true; });
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, ErrorCode::interrupted);
}

TEST(WorkerProcess, AnEndedProgramTakesNothing) {
  Expected<WorkerProcess> process = WorkerProcess::start({"true"});
  ASSERT_TRUE(process);
  ASSERT_FALSE(process->receive(60, {}));
  Status sent;
  for (int i = 0; i < 1000 && sent; ++i) {
    sent = process->send("line", 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().message, "it has ended");
}

/// A worker of the shell: says hello and is configured, then does as `rest` says.
WorkerOptions shell_worker(const std::string& rest, std::vector<std::string>& reported) {
  WorkerOptions options;
  options.device = "shell";
  options.command = {"sh", "-c",
                     R"(echo '{"taso_worker": 1, "runtime": "Shell", "version": "1"}'
read -r line; id=${line#*'"id":'}; id=${id%%,*}
echo "{\"id\": $id, \"provider\": \"p\"}"
)" + rest};
  options.timeout_s = 60;
  options.report = [&reported](const std::string& line) { reported.push_back(line); };
  return options;
}

TEST(Worker, IsGivenUpWhenItHasFailedTooOften) {
  std::vector<std::string> reported;
  Expected<Worker> worker = Worker::open(shell_worker("read -r line; echo 'at once' >&2", reported));
  ASSERT_TRUE(worker) << worker.error().to_string();
  EXPECT_EQ(worker->hello().runtime, "Shell");
  EXPECT_EQ(worker->setting().provider, "p");
  const std::vector<ModelRun> models(2, ModelRun{"m.onnx", {}, 0});
  // Together, then each alone.
  const Expected<std::vector<ModelTimes>> first = worker->measure(models, {});
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(first->at(1).refusal, "the worker failed twice: it has ended (at once)");
  EXPECT_EQ(reported.size(), 3U);
  EXPECT_EQ(reported[0], "--device shell: the worker is started anew (1 of 6): it has ended (at once)");
  EXPECT_TRUE(worker->measure(models, {}));
  const Expected<std::vector<ModelTimes>> last = worker->interleave(models, {});
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, ErrorCode::device_unavailable);
  EXPECT_EQ(last.error().message, "--device shell: the worker was given up after 6 restarts: it has ended (at once)");
  EXPECT_EQ(reported.size(), 6U);
  EXPECT_EQ(worker->measure(models, {}).error().message, last.error().message);
}

TEST(Worker, RunsTheProviderThatIsAskedFor) {
  std::vector<std::string> reported;
  WorkerOptions options = shell_worker("sleep 1000", reported);
  options.provider = "q";
  const Expected<Worker> worker = Worker::open(std::move(options));
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().message, "--device shell: Shell runs p instead of the provider q; it has: ");
}

}  // namespace
}  // namespace taso
