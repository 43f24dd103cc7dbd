#include "runtime/weights.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "operators/registry.h"
#include "runtime/backend.h"
#include "runtime/configuration.h"
#include "runtime/lowering.h"
#include "runtime/strides.h"

namespace taso {
namespace {

using Constant = std::shared_ptr<const ConstantData>;

/// The same bytes under another type of equal size, kept alive by the source.
Constant retyped(const Constant& source, const TensorType& type) {
  if (!source->is_dense()) {
    const auto element = source->splat_element();
    return ConstantData::splat(type, {element.begin(), element.end()});
  }
  return ConstantData::borrow(type, source->dense_bytes(), source);
}

/// Evaluates one weight-only value after the other; intermediate results live until their last consumer has run.
class Evaluator {
 public:
  Evaluator(const Graph& graph, const KernelLibrary& library, int threads)
      : graph_(&graph), library_(&library), threads_(threads) {}

  Expected<Constant> evaluate(Value wanted) {
    const Node& node = graph_->node(wanted.node);
    TASO_CHECK(node.weight_only, "a value is not weight-only");
    if (node.kind == NodeKind::constant) {
      TASO_RETURN_IF_ERROR(node.constant->require_data());
      return node.constant;
    }
    const std::vector<NodeId> order = plan(wanted.node);
    for (const NodeId id : order) {
      TASO_RETURN_IF_ERROR(compute(id));
      for (const NodeId input : operands_of(id))
        if (--uses_[input] == 0) results_.erase(input);
    }
    Constant result = results_.at(wanted.node)[wanted.port];
    results_.clear();
    uses_.clear();
    return result;
  }

 private:
  /// A broadcast is read through: element-wise kernels repeat their operands themselves.
  [[nodiscard]] bool reads_through(NodeId id, Value input) const {
    return graph_->node(input.node).is_op("broadcast") &&
           behaviour_of(graph_->node(id).op, library_->registry()).folds_broadcast;
  }
  [[nodiscard]] Value operand(NodeId id, std::size_t position) const {
    Value value = graph_->node(id).inputs[position];
    while (reads_through(id, value)) value = graph_->node(value.node).inputs[0];
    return value;
  }
  [[nodiscard]] std::vector<NodeId> operands_of(NodeId id) const {
    std::vector<NodeId> nodes;
    for (std::size_t i = 0; i < graph_->node(id).inputs.size(); ++i) nodes.push_back(operand(id, i).node);
    return nodes;
  }

  /// The nodes to compute, operands first; counts their uses.
  std::vector<NodeId> plan(NodeId root) {
    std::vector<NodeId> order;
    std::vector<std::pair<NodeId, std::size_t>> stack{{root, 0}};
    std::map<NodeId, bool> seen{{root, true}};
    uses_[root] = 1;
    while (!stack.empty()) {
      auto& [id, position] = stack.back();
      if (position == graph_->node(id).inputs.size()) {
        order.push_back(id);
        stack.pop_back();
        continue;
      }
      const NodeId input = operand(id, position++).node;
      ++uses_[input];
      if (!seen.emplace(input, true).second) continue;
      stack.emplace_back(input, 0);
    }
    return order;
  }

  Status compute(NodeId id) {
    const Node& node = graph_->node(id);
    if (node.kind == NodeKind::constant) {
      TASO_RETURN_IF_ERROR(node.constant->require_data());
      results_[id] = {node.constant};
      return {};
    }
    std::vector<Constant> operands;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value value = operand(id, i);
      operands.push_back(results_.at(value.node)[value.port]);
    }
    if (node.op == "reshape") {
      results_[id] = {retyped(operands[0], node.outputs[0])};
      return {};
    }
    KernelRequest request;
    request.op = node.op;
    request.attributes = node.attributes;
    request.threads = threads_;
    for (const Constant& constant : operands) request.inputs.push_back({constant->type(), Layout::row_major, false});
    for (const TensorType& type : node.outputs) {
      if (!type.known) return bad_input("a constant expression of " + node.op + " has no known shape");
      request.outputs.push_back({type, Layout::row_major, false});
    }
    TASO_ASSIGN(const std::unique_ptr<Kernel> kernel, library_->create(request));
    std::vector<std::vector<std::byte>> expanded(operands.size());
    std::vector<const std::byte*> inputs;
    inputs.reserve(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) inputs.push_back(bytes_of(*operands[i], expanded[i]));
    std::vector<std::vector<std::byte>> results;
    std::vector<std::byte*> outputs;
    outputs.reserve(node.outputs.size());
    for (const TensorType& type : node.outputs) results.emplace_back(static_cast<std::size_t>(type.bytes()));
    for (auto& bytes : results) outputs.push_back(bytes.data());
    AlignedBuffer workspace(kernel->workspace_bytes());
    TASO_RETURN_IF_ERROR(kernel->execute({inputs, outputs, workspace.data()}));
    std::vector<Constant>& constants = results_[id];
    for (std::size_t port = 0; port < results.size(); ++port)
      constants.push_back(ConstantData::own(node.outputs[port], std::move(results[port])));
    return {};
  }

  /// Dense, aligned bytes of a constant.
  static const std::byte* bytes_of(const ConstantData& constant, std::vector<std::byte>& storage) {
    if (constant.is_dense() && is_aligned(constant)) return constant.dense_bytes().data();
    storage = constant.to_bytes();
    return storage.data();
  }
  static bool is_aligned(const ConstantData& constant) {
    const std::size_t width = std::max<std::size_t>(1, size_of(constant.type().element));
    return reinterpret_cast<std::uintptr_t>(constant.dense_bytes().data()) % width == 0;
  }

  const Graph* graph_;
  const KernelLibrary* library_;
  int threads_;
  std::map<NodeId, std::vector<Constant>> results_;
  std::map<NodeId, int> uses_;
};

}  // namespace

Expected<std::vector<std::shared_ptr<const ConstantData>>> evaluate_weights(const Graph& graph,
                                                                            std::span<const Value> values,
                                                                            const KernelLibrary& library, int threads) {
  Evaluator evaluator(graph, library, threads);
  std::vector<Constant> results;
  results.reserve(values.size());
  for (const Value value : values) {
    TASO_ASSIGN(Constant result, evaluator.evaluate(value));
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<Hash128> weight_hashes(const Graph& graph) {
  std::vector<Hash128> hashes(graph.id_bound());
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (!node.weight_only) continue;
    if (node.inputs.empty()) {
      hashes[id] = node.label;
      continue;
    }
    Hasher hasher;
    hasher.add(node.label);
    for (const Value& input : node.inputs) hasher.add(hashes[input.node]).add(input.port);
    hashes[id] = hasher.finish();
  }
  return hashes;
}

const std::byte* PackedWeight::data() const {
  if (device) return device->data();
  return constant ? constant->dense_bytes().data() : buffer.data();
}

std::size_t PackedWeight::bytes() const {
  if (device) return device->size();
  return constant ? constant->dense_bytes().size() : buffer.size();
}

Expected<std::shared_ptr<const PackedWeight>> WeightStore::get(
    const Hash128& key, const std::function<Expected<std::shared_ptr<const PackedWeight>>()>& make) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto place = weights_.find(key); place != weights_.end())
      if (auto weight = place->second.lock()) return weight;
  }
  TASO_ASSIGN(auto weight, make());
  const std::scoped_lock lock(mutex_);
  weights_[key] = weight;
  return weight;
}

}  // namespace taso
