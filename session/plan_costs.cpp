#include "session/plan_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "graph/constant.h"
#include "graph/graph.h"
#include "runtime/backend.h"
#include "session/device_plan.h"
#include "session/transfer_costs.h"

namespace taso {
namespace {

/// A graph of one application of an operator, as the piece is.
Expected<Graph> graph_of_piece(const OperatorPiece& piece, const std::vector<bool>& weights,
                               const OperatorCatalog& catalog) {
  Graph graph;
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
    const std::string name = fmt::format("operand{}", i);
    inputs.push_back({weights[i] ? graph.add_constant(ConstantData::shape_only(piece.inputs[i], name))
                                 : graph.add_input(name, piece.inputs[i]),
                      0});
  }
  TASO_ASSIGN(const NodeId node, add_op(graph, catalog, piece.op, piece.attributes, std::move(inputs),
                                        {.element = piece.outputs[0].element}));
  for (std::uint32_t port = 0; port < graph.node(node).outputs.size(); ++port) graph.add_output({node, port});
  return graph;
}

/// Other ranks run kernels at the same time, as far as there are cores; a device with a backend has a rank of its own.
RuntimeTargetOptions among_ranks(const KernelLibrary& library, RuntimeTargetOptions options) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int others = library.backend() ? 0 : std::max(0, cores / std::max(options.threads, 1) - 1);
  options.companions = std::min(options.companions, others);
  return options;
}

}  // namespace

Expected<PlanCost> parse_plan_cost(std::string_view text) {
  if (const std::optional<PlanCost> cost = plan_cost_named(text)) return *cost;
  return Error{ErrorCode::usage, fmt::format("--plan-cost {}: expected roofline, time, flops or bytes", text), {}};
}

PieceTimes::PieceTimes(const KernelLibrary& library, const RuntimeTargetOptions& options)
    : target_(library, among_ranks(library, options)),
      registry_(library.registry()),
      rank_(fmt::format("{}; threads={}", library.device(), options.threads)) {}

Expected<std::unique_ptr<PieceTimes>> PieceTimes::open(const KernelLibrary& library,
                                                       const RuntimeTargetOptions& options, const CostFiles& files,
                                                       const MessageSink& message) {
  std::unique_ptr<PieceTimes> times(new PieceTimes(library, options));
  const bool described = library.backend() != nullptr && !library.backend()->can_run();
  TASO_ASSIGN(times->database_, open_costs(files, times->target_.identity(), true, described, message));
  times->measured_.emplace(times->target_, *times->database_, !files.recorded_only);
  return times;
}

Status PieceTimes::expect_model(const Graph& graph) {
  TASO_ASSIGN(const int tenths, measured_->cached_tenths(working_set_bytes(graph, target_)));
  target_.set_cached_tenths(tenths);
  return {};
}

PieceCost PieceTimes::cost() {
  return [this](const OperatorPiece& piece, const std::vector<bool>& weights) { return seconds(piece, weights); };
}

Expected<Mesh> PieceTimes::mesh(const PlanRequest& request, const CostFiles& files) {
  TASO_ASSIGN(MeasuredTransfers measured, measured_transfers(request.mesh, files, rank_, request.transport));
  transfers_ = std::move(measured.used);
  return std::move(measured.mesh);
}

std::vector<CostDatabase::Entry> PieceTimes::used() const {
  std::vector<CostDatabase::Entry> used = measured_->used();
  used.insert(used.end(), transfers_.begin(), transfers_.end());
  std::sort(used.begin(), used.end());
  return used;
}

Expected<double> PieceTimes::seconds(const OperatorPiece& piece, const std::vector<bool>& weights) {
  TASO_ASSIGN(const Graph graph, graph_of_piece(piece, weights, registry_));
  TASO_ASSIGN(const KernelPlan plan, target_.plan(graph));
  double sum = 0;
  for (const Launch& launch : plan.launches) {
    if (launch.kernel->op == reorder_op) continue;
    TASO_ASSIGN(const double one, measured_->seconds(*launch.kernel));
    sum += one;
  }
  return sum;
}

PieceCost piece_cost(PlanCost cost, const Mesh& mesh, const OperatorRegistry& registry, PieceTimes* times) {
  switch (cost) {
    case PlanCost::roofline:
      break;
    case PlanCost::time:
      TASO_CHECK(times != nullptr, "times of no device");
      return times->cost();
    case PlanCost::flops:
      return flops_of_pieces(registry);
    case PlanCost::bytes:
      return bytes_of_pieces(registry);
  }
  return roofline(registry, mesh.device);
}

}  // namespace taso
