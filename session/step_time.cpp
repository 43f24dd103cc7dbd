#include "session/step_time.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "optimizer/baseline.h"
#include "partition/expand.h"
#include "runtime/rank_graph.h"

namespace taso {
namespace {

/// Something that a rank does: it may have to wait for a message first, and send one then.
struct Action {
  double seconds = 0;
  std::optional<std::int64_t> awaits, sends;  ///< Numbers of messages.
};
using RankProgram = std::vector<Action>;

double volume(const std::vector<std::int64_t>& extents, std::size_t begin, std::size_t count) {
  double product = 1;
  for (std::size_t i = begin; i < begin + count; ++i) product *= static_cast<double>(extents[i]);
  return product;
}

class ProgramReader {
 public:
  ProgramReader(const Mesh& mesh, std::int64_t rank, PieceTimes& times) : mesh_(mesh), rank_(rank), times_(times) {}

  Expected<RankProgram> run(const Graph& graph) {
    TASO_ASSIGN(const KernelPlan plan, times_.plan(graph));
    for (const Launch& launch : plan.launches) {
      const Node& node = graph.node(launch.node);
      if (launch.kernel->op == send_op) {
        send(graph, node);
      } else if (launch.kernel->op == receive_op) {
        receive(node.attributes.integer("number"), node.attributes.integer("peer"),
                static_cast<double>(node.outputs[0].bytes()));
      } else if (launch.kernel->op == gather_op) {
        gather(node);
      } else {
        TASO_ASSIGN(const double seconds, times_.seconds(*launch.kernel));
        program_.push_back({seconds, {}, {}});
      }
    }
    return std::move(program_);
  }

 private:
  /// The axis along which a message goes: the slowest in which the ranks differ.
  [[nodiscard]] const MeshAxis& axis_to(std::int64_t peer) const {
    const std::vector<std::int64_t> here = mesh_.coordinates(rank_), there = mesh_.coordinates(peer);
    std::size_t axis = 0;
    while (axis + 1 < here.size() && here[axis] == there[axis]) ++axis;
    return mesh_.axes[axis];
  }

  void send(const Graph& graph, const Node& node) {
    double bytes = static_cast<double>(graph.type(node.inputs[0]).bytes());
    if (node.attributes.find("sizes") != nullptr) {
      const std::vector<std::int64_t>& sizes = node.attributes.integers("sizes");
      bytes = volume(sizes, 0, sizes.size()) * static_cast<double>(size_of(graph.type(node.inputs[0]).element));
    }
    const std::vector<std::int64_t>&numbers = node.attributes.integers("numbers"),
          &peers = node.attributes.integers("peers");
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const MeshAxis& axis = axis_to(peers[i]);
      program_.push_back({axis.times.measured() ? axis.times.send.seconds(bytes) : 0, {}, numbers[i]});
    }
  }

  void receive(std::int64_t number, std::int64_t peer, double bytes) {
    const MeshAxis& axis = axis_to(peer);
    const double all = axis.fetch_seconds(bytes, 1, false);
    program_.push_back({axis.times.measured() ? std::max(0.0, all - axis.times.send.seconds(bytes)) : all, number, {}});
  }

  /// What the rank has is put in its place first; then messages come in the order of parts.
  void gather(const Node& node) {
    const std::vector<std::int64_t>&operands = node.attributes.integers("operands"),
          &sizes = node.attributes.integers("sizes"), &numbers = node.attributes.integers("numbers"),
          &peers = node.attributes.integers("peers");
    const Shape& shape = node.outputs[0].shape;
    const auto element = static_cast<double>(size_of(node.outputs[0].element));
    const auto bytes_of = [&](std::size_t part) { return volume(sizes, part * shape.size(), shape.size()) * element; };
    double own = 0;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i] >= 0) own += bytes_of(i);
    if (own > 0) copy(own);
    std::size_t message = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] >= 0) continue;
      receive(numbers[message], peers[message], bytes_of(i));
      if (!is_range(sizes, i, shape)) copy(bytes_of(i));
      ++message;
    }
  }

  void copy(double bytes) {
    if (!mesh_.copy.empty()) program_.push_back({mesh_.copy.seconds(bytes), {}, {}});
  }

  /// Whether a part of a tensor is a range of its bytes: after the first axis of several indices all are whole.
  static bool is_range(const std::vector<std::int64_t>& sizes, std::size_t part, const Shape& shape) {
    const auto size = [&](std::size_t axis) { return sizes[part * shape.size() + axis]; };
    std::size_t axis = 0;
    while (axis < shape.size() && size(axis) == 1) ++axis;
    for (++axis; axis < shape.size(); ++axis)
      if (size(axis) != shape[axis]) return false;
    return true;
  }

  const Mesh& mesh_;
  std::int64_t rank_;
  PieceTimes& times_;
  RankProgram program_;
};

/// When the last rank has done its program. Programs wait for each other as those of runtime/rank_graph.h do, which
/// end.
double play(const std::vector<RankProgram>& programs) {
  std::vector<double> now(programs.size(), 0);
  std::vector<std::size_t> next(programs.size(), 0);
  std::map<std::int64_t, double> sent;  // When, by number.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < programs.size(); ++rank)
      for (; next[rank] < programs[rank].size(); ++next[rank]) {
        const Action& action = programs[rank][next[rank]];
        if (action.awaits) {
          const auto message = sent.find(*action.awaits);
          if (message == sent.end()) break;
          now[rank] = std::max(now[rank], message->second);
        }
        now[rank] += action.seconds;
        if (action.sends) sent[*action.sends] = now[rank];
        moved = true;
      }
  }
  return *std::max_element(now.begin(), now.end());
}

}  // namespace

Expected<double> step_seconds(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies,
                              const RuleIndex& fusing, PieceTimes& times) {
  TASO_ASSIGN(const Expansion expansion, expand(graph, plan, strategies));
  std::vector<RankProgram> programs;
  for (std::int64_t rank = 0; rank < plan.mesh.devices(); ++rank) {
    TASO_ASSIGN(RankGraph part,
                rank_graph(expansion.graph, static_cast<std::int32_t>(rank), [](NodeId) { return 0U; }));
    TASO_ASSIGN(Baseline fused, make_baseline(part.graph, fusing, strategies.registry()));
    part.graph = std::move(fused.graph);
    TASO_ASSIGN(RankProgram program, ProgramReader(plan.mesh, rank, times).run(with_messages(part)));
    programs.push_back(std::move(program));
  }
  return play(programs);
}

}  // namespace taso
