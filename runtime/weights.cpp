#include "runtime/weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "graph/reals.h"
#include "operators/registry.h"
#include "runtime/backend.h"
#include "runtime/configuration.h"
#include "runtime/cpu/strided_copy.h"
#include "runtime/lowering.h"
#include "runtime/strides.h"

namespace taso {
namespace {

using Constant = std::shared_ptr<const ConstantData>;

/// `type` with the bytes of a dense source from `offset` on, which stay where they are, or its one element.
Constant within(const Constant& source, const TensorType& type, std::size_t offset = 0) {
  if (!source->is_dense()) {
    const auto element = source->splat_element();
    return ConstantData::splat(type, {element.begin(), element.end()});
  }
  const auto bytes = source->dense_bytes().subspan(offset, static_cast<std::size_t>(type.bytes()));
  return ConstantData::borrow(type, bytes, source, source->identity().to_string() + "+" + std::to_string(offset),
                              source->is_mapped());
}

/// A box of a tensor as runs of bytes that lie side by side in it.
class Runs {
 public:
  Runs(const TensorType& whole, const Shape& starts, const Shape& sizes) {
    const Shape strides = strides_of(whole.shape, Layout::row_major);
    const auto width = static_cast<std::int64_t>(size_of(whole.element));
    std::size_t axis = sizes.size();
    std::int64_t run = width, first = 0;
    // Axes after the one that is cut are whole.
    while (axis > 0) {
      --axis;
      run *= sizes[axis];
      if (sizes[axis] != whole.shape[axis]) break;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) first += starts[i] * strides[i] * width;
    for (std::size_t i = 0; i < axis; ++i) axes_.push_back({sizes[i], strides[i] * width});
    first_ = static_cast<std::size_t>(first);
    run_ = static_cast<std::size_t>(run);
  }
  [[nodiscard]] std::size_t first() const { return first_; }
  [[nodiscard]] bool is_one() const {
    return std::all_of(axes_.begin(), axes_.end(), [](const auto& axis) { return axis.first == 1; });
  }
  /// Calls `visit` with (where it begins, its bytes) of each run, in order.
  template <class Visit>
  void each(const Visit& visit) const {
    std::vector<std::int64_t> index(axes_.size(), 0);
    auto at = static_cast<std::int64_t>(first_);
    for (;;) {
      visit(static_cast<std::size_t>(at), run_);
      std::size_t axis = axes_.size();
      for (; axis > 0; --axis) {
        const auto& [size, stride] = axes_[axis - 1];
        at += stride;
        if (++index[axis - 1] < size) break;
        at -= size * stride;
        index[axis - 1] = 0;
      }
      if (axis == 0) return;
    }
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> axes_;  ///< Size, and stride in bytes, of those outside a run.
  std::size_t first_ = 0, run_ = 0;
};

/// Of a mapped file, which may be larger than memory, little is in memory at a time.
void copy_runs(const ConstantData& source, const Runs& runs, std::byte* to) {
  constexpr std::size_t read_at_a_time = std::size_t{4} << 20;
  const std::span<const std::byte> from = source.dense_bytes();
  std::size_t read = runs.first(), end = read;
  runs.each([&](std::size_t at, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const std::size_t part = std::min(size - done, read_at_a_time);
      std::memcpy(to, from.data() + at + done, part);
      to += part;
      done += part;
      end = at + done;
      if (end - read < read_at_a_time) continue;
      source.release_pages(from.subspan(read, end - read));
      read = end;
    }
  });
  source.release_pages(from.subspan(read, end - read));
}

/// A box of a constant.
Constant cut_out(const Constant& source, const TensorType& type, const Shape& starts) {
  if (!source->is_dense() || type.elements() == 0) return within(source, type);
  const Runs runs(source->type(), starts, type.shape);
  if (runs.is_one()) return within(source, type, runs.first());
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
  copy_runs(*source, runs, bytes.data());
  return ConstantData::own(type, std::move(bytes));
}

bool has_unit_steps(const Node& slice) {
  const std::vector<std::int64_t>& steps = slice.attributes.integers("steps");
  return std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 1; });
}

/// Evaluates one weight-only value after the other, in the working type (graph/reals.h): 16 bits are rounded to at the
/// end, as when a model is saved. Intermediate results live until their last consumer has run.
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
    const Constant result = results_.at(wanted.node)[wanted.port];
    results_.clear();
    uses_.clear();
    const ElementType type = graph_->type(wanted).element;
    return is_real(type) ? converted(result, type) : result;
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
      results_[id] = {within(operands[0], in_type_of(*operands[0], node.outputs[0]))};
      return {};
    }
    if (node.op == "slice" && has_unit_steps(node)) {
      results_[id] = {
          cut_out(operands[0], in_type_of(*operands[0], node.outputs[0]), node.attributes.integers("starts"))};
      return {};
    }
    std::vector<TensorType> types = node.outputs;
    for (TensorType& type : types) type.element = working_type(type.element);
    for (Constant& constant : operands)
      if (const ElementType type = constant->type().element; is_real(type))
        constant = converted(constant, working_type(type));
    KernelRequest request;
    request.op = node.op;
    request.attributes = node.attributes;
    request.threads = threads_;
    for (const Constant& constant : operands) request.inputs.push_back({constant->type(), Layout::row_major, false});
    for (const TensorType& type : types) {
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
    outputs.reserve(types.size());
    for (const TensorType& type : types) results.emplace_back(static_cast<std::size_t>(type.bytes()));
    for (auto& bytes : results) outputs.push_back(bytes.data());
    AlignedBuffer workspace(kernel->workspace_bytes());
    TASO_RETURN_IF_ERROR(kernel->execute({inputs, outputs, workspace.data()}));
    for (const Constant& constant : operands) constant->release_pages();
    std::vector<Constant>& constants = results_[id];
    for (std::size_t port = 0; port < results.size(); ++port)
      constants.push_back(ConstantData::own(types[port], std::move(results[port])));
    return {};
  }

  /// The type with the elements of a constant, which may still be more precise.
  static TensorType in_type_of(const ConstantData& constant, TensorType type) {
    type.element = constant.type().element;
    return type;
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

std::optional<ConstantPart> ConstantPart::of(const Graph& graph, Value value) {
  const std::size_t rank = graph.type(value).shape.size();
  if (rank == 0 || graph.type(value).elements() == 0) return std::nullopt;
  ConstantPart part;
  part.order_.resize(rank);
  std::iota(part.order_.begin(), part.order_.end(), std::size_t{0});
  const Node* node = &graph.node(value.node);
  if (node->is_op("transpose")) {
    const std::vector<std::int64_t>& permutation = node->attributes.integers("perm");
    for (std::size_t axis = 0; axis < rank; ++axis) part.order_[axis] = axis_of(permutation[axis], rank);
    value = node->inputs[0];
    node = &graph.node(value.node);
  }
  part.sizes_ = graph.type(value).shape;
  part.starts_.assign(rank, 0);
  if (node->is_op("slice") && has_unit_steps(*node)) {
    part.starts_ = node->attributes.integers("starts");
    node = &graph.node(node->inputs[0].node);
  }
  if (node->kind != NodeKind::constant || !node->constant->is_dense()) return std::nullopt;
  part.constant_ = node->constant;
  return part;
}

void ConstantPart::copy_rows(std::int64_t first, std::int64_t count, std::byte* to) const {
  Shape starts = starts_, sizes = sizes_;
  starts[order_[0]] += first;
  sizes[order_[0]] = count;
  const Runs runs(constant_->type(), starts, sizes);
  if (std::is_sorted(order_.begin(), order_.end())) return copy_runs(*constant_, runs, to);
  const std::size_t width = size_of(constant_->type().element);
  AlignedBuffer box(static_cast<std::size_t>(volume(sizes)) * width);
  copy_runs(*constant_, runs, box.data());
  const Shape box_strides = strides_of(sizes, Layout::row_major);
  Shape made, from_strides;
  for (const std::size_t axis : order_) {
    made.push_back(sizes[axis]);
    from_strides.push_back(box_strides[axis]);
  }
  cpu::StridedCopy(made, from_strides, strides_of(made, Layout::row_major), width).run(box.data(), to, 1);
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
