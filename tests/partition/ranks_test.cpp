// Programs of ranks, as threads: together they compute what the graph computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "partition/expand.h"
#include "runtime/backend.h"
#include "runtime/rank_executor.h"
#include "runtime/thread_transport.h"
#include "runtime/weight_slices.h"
#include "tests/partition/drawn_graphs.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/host_tensors.h"
#include "tests/partition/strategy_tables.h"
#include "tests/partition/ways_to_plan.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

/// What ranks make of inputs, twice.
struct RankResults {
  std::vector<HostTensor> outputs;
  std::vector<MovedPayload> planned, moved;  ///< Per rank.
  std::vector<RankMemory> memory;
};

/// The kernels of a rank: of the host, or of a test device of its own, with messages between these.
using LibraryOfRank = std::function<KernelLibrary()>;
KernelLibrary on_host() { return KernelLibrary(registry()); }
KernelLibrary on_device(const std::string& name) {
  return {registry(), value_of(load_backend(name, {MathMode::strict, 0, "", TASO_TEST_BACKENDS}))};
}

Status run_rank(const Graph& expanded, Transport& transport, const KernelLibrary& library,
                std::span<const HostTensor> inputs, RankResults& results) {
  const auto rank = static_cast<std::size_t>(transport.rank());
  TASO_ASSIGN(const ConnectedDevices devices, connect_devices(transport, library));
  EXPECT_EQ(devices.messages != nullptr, library.backend() != nullptr) << devices.reason;
  TASO_ASSIGN(RankGraph graph, rank_graph(expanded, transport.rank(), [](NodeId reader) { return reader % 3; }));
  slice_weights_first(graph.graph, registry());
  TASO_ASSIGN(RankExecutor executor, RankExecutor::create(graph, transport, library, {}, devices.messages.get()));
  std::vector<HostTensor> own;
  for (const HostTensor& input : inputs) own.push_back(input.copy());
  TASO_RETURN_IF_ERROR(executor.set_inputs(std::move(own)));
  for (int repeat = 0; repeat < 2; ++repeat) {
    TASO_ASSIGN(const std::span<const HostTensor> outputs, executor.run());
    if (repeat == 0) continue;
    for (const HostTensor& output : outputs) results.outputs.push_back(output.copy());
  }
  results.planned[rank] = executor.planned();
  results.moved[rank] = executor.moved();
  results.memory[rank] = executor.memory();
  return {};
}

RankResults run_ranks(const Graph& expanded, std::size_t size, std::span<const HostTensor> inputs,
                      const LibraryOfRank& library = on_host) {
  std::vector<std::unique_ptr<Transport>> transports = make_thread_transports(static_cast<int>(size));
  RankResults results{
      {}, decltype(RankResults::planned)(size), decltype(RankResults::moved)(size), std::vector<RankMemory>(size)};
  std::vector<Status> statuses(size);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const KernelLibrary own = library();
      statuses[rank] = run_rank(expanded, *transports[rank], own, inputs, results);
      if (!statuses[rank]) transports[rank]->fail(statuses[rank].error());
      transports[rank].reset();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) EXPECT_TRUE(status) << (status ? "" : status.error().to_string());
  return results;
}

void expect_close(std::span<const HostTensor> expected, std::span<const HostTensor> actual, const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].type(), actual[i].type()) << what;
    const Difference difference = compare(actual[i], expected[i], 1e-4, 1e-4);
    EXPECT_EQ(difference.violations, 0U) << what << " output " << i << " " << difference.max_absolute;
  }
}

std::int64_t total(const std::vector<MovedPayload>& ranks, std::int64_t MovedBytes::*which) {
  std::int64_t sum = 0;
  for (const auto& transfers : ranks)
    for (const MovedBytes& bytes : transfers) sum += bytes.*which;
  return sum;
}

std::vector<HostTensor> inputs_of(const DrawnGraph& drawn) {
  std::vector<HostTensor> inputs;
  for (std::size_t i = 0; i < drawn.inputs.size(); ++i)
    inputs.push_back(host_tensor(drawn.graph.node(drawn.graph.inputs()[i]).outputs[0], drawn.inputs[i]));
  return inputs;
}

TEST(Ranks, RandomGraphsPlannedInEveryWay) {
  const std::vector<std::vector<std::int64_t>> meshes = {{2}, {3}, {4}, {8}, {2, 2}, {3, 2}};
  StrategyTable strategies = every_strategy();
  std::size_t compared = 0, with_messages = 0;
  for (std::uint64_t number = 0; number < drawn_graphs; ++number) {
    const DrawnGraph drawn = draw_graph(number);
    const std::vector<HostTensor> inputs = inputs_of(drawn);
    const KernelLibrary library(registry());
    const std::vector<HostTensor> expected = value_of(value_of(Executor::create(drawn.graph, library)).run(inputs));
    const Mesh mesh = mesh_of_sizes(meshes[number / 3 % meshes.size()]);
    const std::vector<std::string>& ways = ways_to_plan();
    for (const std::string& way : {ways[0], ways[1 + number % (ways.size() - 1)]}) {
      const std::optional<PartitionPlan> plan = plan_in_way(way, drawn.graph, mesh, strategies, number);
      if (!plan) continue;
      const RankResults results = run_ranks(value_of(expand(drawn.graph, *plan, strategies)).graph,
                                            static_cast<std::size_t>(mesh.devices()), inputs);
      const std::string what = "graph " + std::to_string(number) + " on " + mesh.to_string() + ", planned " + way +
                               "\n" + to_text(drawn.graph);
      expect_close(expected, results.outputs, what);
      EXPECT_EQ(results.planned, results.moved) << what;
      EXPECT_EQ(total(results.moved, &MovedBytes::sent), total(results.moved, &MovedBytes::received)) << what;
      ++compared;
      with_messages += total(results.moved, &MovedBytes::sent) > 0;
    }
  }
  EXPECT_GT(compared, drawn_graphs);
  EXPECT_GT(with_messages, compared / 2);
}

// The same on devices, between which both ends of a message wait.
TEST(Ranks, RandomGraphsOnDevices) {
  const std::vector<std::vector<std::int64_t>> meshes = {{2}, {3}, {4}, {2, 2}, {8}, {3, 2}};
  StrategyTable strategies = every_strategy();
  const std::vector<std::string>& ways = ways_to_plan();
  std::size_t compared = 0, with_messages = 0;
  for (std::uint64_t number = 0; number < drawn_graphs; ++number) {
    const DrawnGraph drawn = draw_graph(number);
    const std::vector<HostTensor> inputs = inputs_of(drawn);
    const std::vector<HostTensor> expected = value_of(value_of(Executor::create(drawn.graph, on_host())).run(inputs));
    const Mesh mesh = mesh_of_sizes(meshes[number / 2 % meshes.size()]);
    const std::string& way = ways[number % ways.size()];
    const std::optional<PartitionPlan> plan = plan_in_way(way, drawn.graph, mesh, strategies, number);
    if (!plan) continue;
    const std::string device = number % 2 == 0 ? "host" : "fusing";
    const RankResults results =
        run_ranks(value_of(expand(drawn.graph, *plan, strategies)).graph, static_cast<std::size_t>(mesh.devices()),
                  inputs, [&] { return on_device(device); });
    const std::string what = "graph " + std::to_string(number) + " on " + mesh.to_string() + " of device " + device +
                             ", planned " + way + "\n" + to_text(drawn.graph);
    expect_close(expected, results.outputs, what);
    EXPECT_EQ(results.planned, results.moved) << what;
    EXPECT_EQ(total(results.moved, &MovedBytes::sent), total(results.moved, &MovedBytes::received)) << what;
    ++compared;
    with_messages += total(results.moved, &MovedBytes::sent) > 0;
  }
  EXPECT_GT(compared, drawn_graphs / 2);
  EXPECT_GT(with_messages, compared / 2);
}

/// The graph written out with its products cut in columns, and what is between them in rows.
Graph cut_in_columns(StrategyTable& strategies, const Mesh& mesh, Graph graph) {
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return configuration.to_string() == (graph.node(id).is_op("relu") ? "i@-1" : "j@-1");
  }));
  return value_of(expand(graph, plan, strategies)).graph;
}

// What a rank sends and receives in one transfer goes together; what needs what has arrived goes after it.
TEST(Ranks, MessagesOfATransferAreOneExchange) {
  StrategyTable strategies = every_strategy();
  const Graph expanded = cut_in_columns(
      strategies, mesh_of_sizes({4}),
      graph_of("input x f32[8, 16]\nweight w f32[16, 8]\nweight v f32[8, 8]\noutput matmul(relu(matmul(x, w)), v)\n"));
  const RankGraph rank = value_of(rank_graph(expanded, 1, [](NodeId) { return 0U; }));
  std::vector<std::pair<std::size_t, std::size_t>> exchanges;  // How many are sent, and received.
  const Graph program = with_exchanges(rank);
  for (const NodeId id : program.topological_order())
    if (program.node(id).is_op(exchange_op)) {
      const Attributes& attributes = program.node(id).attributes;
      exchanges.emplace_back(attributes.integers("to").size(), attributes.integers("from").size());
    }
  // Its part of the hidden layer goes to three ranks, and theirs come; then its part of the output goes to the first.
  using Exchanges = decltype(exchanges);
  EXPECT_EQ(exchanges, (Exchanges{{3, 3}, {1, 0}}));
}

// One rank fails in the middle of a run: the others, which wait for what it would send, end with its error.
TEST(Ranks, ADeviceFailsBetweenMessages) {
  StrategyTable strategies = every_strategy();
  const Graph expanded = cut_in_columns(
      strategies, mesh_of_sizes({3}),
      graph_of("input x f32[6, 12]\nweight w f32[12, 6]\nweight v f32[6, 6]\noutput matmul(relu(matmul(x, w)), v)\n"));
  std::vector<std::unique_ptr<Transport>> transports = make_thread_transports(3);
  std::vector<Status> statuses(3);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      const auto run = [&]() -> Status {
        const KernelLibrary library = on_device("host");
        TASO_ASSIGN(const ConnectedDevices devices, connect_devices(*transports[rank], library));
        TASO_ASSIGN(const RankGraph graph, rank_graph(expanded, static_cast<int>(rank), [](NodeId) { return 0U; }));
        TASO_ASSIGN(RankExecutor executor,
                    RankExecutor::create(graph, *transports[rank], library, {}, devices.messages.get()));
        if (rank == 1) return bad_input("it does not run");
        TASO_RETURN_IF_ERROR(
            executor.set_inputs(value_of(random_inputs(graph_of("input x f32[6, 12]\n"), registry(), 1))));
        TASO_ASSIGN([[maybe_unused]] const auto outputs, executor.run());
        return {};
      };
      statuses[rank] = run();
      if (!statuses[rank]) transports[rank]->fail(statuses[rank].error());
    });
  for (std::thread& thread : threads) thread.join();
  // By the transport or, where they have come so far, by what they wait for.
  for (const Status& status : statuses) EXPECT_FALSE(status);
  EXPECT_EQ(statuses[1].error().message, "it does not run");
}

// Devices are connected by all ranks or by none.
TEST(Ranks, DevicesThatCannotBeConnected) {
  const auto reason_of = [](const std::vector<std::shared_ptr<Backend>>& backends) {
    std::vector<std::unique_ptr<Transport>> transports = make_thread_transports(static_cast<int>(backends.size()));
    std::vector<std::string> reasons(backends.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < backends.size(); ++rank)
      threads.emplace_back([&, rank] {
        const KernelLibrary library = backends[rank] ? KernelLibrary(registry(), backends[rank]) : on_host();
        const ConnectedDevices devices = value_of(connect_devices(*transports[rank], library));
        EXPECT_EQ(devices.messages, nullptr);
        reasons[rank] = devices.reason;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(reasons.front(), reasons.back());
    return reasons.front();
  };
  const std::shared_ptr<Backend> one = on_device("host").backend(), other = on_device("host").backend();
  EXPECT_EQ(reason_of({one, nullptr}), "rank 1: its kernels are those of the host");
  EXPECT_EQ(reason_of({one, other, one}), "ranks 0 and 2 have the same device");
}

// A rank has its part of the weights, and messages arrive in their place.
TEST(Ranks, PartsOfWeightsAndGathersInPlace) {
  Graph graph = graph_of(
      "input x f32[4, 64]\nweight w f32[64, 256]\nweight v f32[256, 256]\n"
      "output matmul(relu(matmul(x, w)), v)\n");
  const Mesh mesh = mesh_of_sizes({2});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return configuration.to_string() == (graph.node(id).is_op("relu") ? "i@-1" : "j@-1");
  }));
  const Graph expanded = value_of(expand(graph, plan, strategies)).graph;
  const std::vector<HostTensor> inputs = value_of(random_inputs(graph, registry(), 1));
  const RankResults results = run_ranks(expanded, 2, inputs);
  const std::size_t whole = value_of(Executor::create(graph, KernelLibrary(registry()))).weight_bytes();
  for (const RankMemory& memory : results.memory) EXPECT_LE(memory.weights, whole / 2 + whole / 10);
  const Graph program = with_messages(value_of(rank_graph(expanded, 0, [](NodeId) { return 0U; })));
  std::size_t gathers = 0, receives = 0, joins = 0;
  for (const NodeId id : program.topological_order()) {
    gathers += program.node(id).is_op(gather_op);
    receives += program.node(id).is_op(receive_op);
    joins += program.node(id).is_op("concat");
  }
  EXPECT_EQ(gathers, 2U);  // The hidden layer, and the output.
  EXPECT_EQ(receives, 0U);
  EXPECT_EQ(joins, 0U);
}

// What all other ranks need is copied and sent once.
TEST(Ranks, OneMessageForSeveralRanks) {
  Graph graph =
      graph_of("input x f32[8, 16]\nweight w f32[16, 8]\nweight v f32[8, 8]\noutput matmul(relu(matmul(x, w)), v)\n");
  StrategyTable strategies = every_strategy();
  const Mesh mesh = mesh_of_sizes({4});
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return configuration.to_string() == (graph.node(id).is_op("relu") ? "i@-1" : "j@-1");
  }));
  const Graph expanded = value_of(expand(graph, plan, strategies)).graph;
  const RankGraph rank = value_of(rank_graph(expanded, 1, [](NodeId) { return 0U; }));
  const Graph program = with_messages(rank);
  std::size_t sends = 0, messages = 0;
  for (const NodeId id : program.topological_order())
    if (program.node(id).is_op(send_op)) {
      ++sends;
      messages += program.node(id).attributes.integers("numbers").size();
    }
  EXPECT_EQ(messages, rank.sent.size());
  EXPECT_EQ(rank.sent.size(), 4U);  // Its part of the hidden layer to three ranks, of the output to the first.
  EXPECT_EQ(sends, 2U);
  const std::vector<HostTensor> inputs = value_of(random_inputs(graph, registry(), 1));
  const KernelLibrary library(registry());
  const std::vector<HostTensor> expected = value_of(value_of(Executor::create(graph, library)).run(inputs));
  const RankResults results = run_ranks(expanded, 4, inputs);
  expect_close(expected, results.outputs, "one message for several ranks");
  EXPECT_EQ(results.planned, results.moved);
}

TEST(Ranks, WhatIsMovedMustBeWhatIsPredicted) {
  const std::vector<std::int64_t> predicted = {8, 0, 24};
  const MovedPayload first = {{8, 0}, {0, 0}, {0, 24}}, second = {{0, 8}, {0, 0}, {24, 0}};
  EXPECT_TRUE(check_moved(predicted, std::vector<MovedPayload>{first, second}));
  EXPECT_TRUE(check_moved(predicted, std::vector<MovedPayload>{second, {}, first}));
  const auto error_of = [&](const MovedPayload& rank) {
    const Status status = check_moved(predicted, std::vector<MovedPayload>{rank, second});
    return status ? std::string() : std::to_string(status.error().exit_code()) + " " + status.error().message;
  };
  EXPECT_EQ(error_of({{7, 0}, {0, 0}, {0, 24}}), "1 transfer 0 of the plan sends 7 bytes and not 8 as predicted");
  EXPECT_EQ(error_of({{8, 0}, {0, 0}, {0, 20}}), "1 transfer 2 of the plan receives 20 bytes and not 24 as predicted");
  EXPECT_EQ(error_of({{8, 0}, {0, 4}, {0, 24}}), "1 transfer 1 of the plan receives 4 bytes and not 0 as predicted");
  EXPECT_EQ(error_of({{8, 0}}), "1 transfer 2 of the plan receives 0 bytes and not 24 as predicted");
  EXPECT_EQ(error_of({{8, 0}, {0, 0}, {0, 24}, {0, 0}}), "1 a message belongs to no transfer of the plan");
}

// Programs that count their messages for other transfers than the plan does are found out.
TEST(Ranks, MessagesCountedForAnotherTransfer) {
  Graph graph = graph_of("input x f32[4, 8]\nweight w f32[8, 6]\noutput relu(matmul(x, w))\n");
  StrategyTable strategies = every_strategy();
  const Mesh mesh = mesh_of_sizes({2});
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return configuration.to_string() == (graph.node(id).is_op("relu") ? "i@-1" : "j@-1");
  }));
  const Graph expanded = value_of(expand(graph, plan, strategies)).graph;
  const RankResults results = run_ranks(expanded, 2, value_of(random_inputs(graph, registry(), 1)));
  const auto predicted_by = [&](const TransferOf& transfer_of) {
    std::vector<std::int64_t> bytes(3, 0);
    for (const auto& [transfer, sent] : message_bytes(expanded, transfer_of)) bytes.at(transfer) = sent;
    return bytes;
  };
  EXPECT_TRUE(check_moved(predicted_by([](NodeId reader) { return reader % 3; }), results.moved));
  const Status found = check_moved(predicted_by([](NodeId reader) { return (reader + 1) % 3; }), results.moved);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::internal);
}

TEST(Ranks, OperatorsThatAreNotUnderstood) {
  Graph graph;
  Node node;
  node.kind = NodeKind::opaque;
  node.op = "com.example::Mystery";
  node.name = "mystery";
  node.inputs = {{graph.add_input("x", {ElementType::f32, {2}}), 0}};
  node.outputs = {{ElementType::f32, {2}}};
  graph.add_output({graph.add(std::move(node)), 0});
  const Expected<RankGraph> made = rank_graph(graph, 0, [](NodeId) { return 0U; });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message,
            "an operator that is not understood (com.example::Mystery) cannot run on several ranks");
}

}  // namespace
}  // namespace taso::test
