/// Definitions of the templates of operators/evaluate.h.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "operators/evaluate.h"
#include "operators/lowered_body.h"

namespace taso::detail {

template <class Ring>
concept FoldsExtrema = requires {
  requires Ring::folds_extrema;
};

/// Runs one stage. `values_[f]` is the value of form f at the current loop variables, kept up to date by
/// additions only.
template <class Ring>
class StageRunner {
 public:
  using Element = typename Ring::Element;
  using Node = LoweredNode::Kind;

  StageRunner(const LoweredStage& stage, Ring& ring, std::span<const Element* const> buffers,
              std::span<const std::int64_t* const> integers, Element* output)
      : stage_(stage), ring_(ring), buffers_(buffers), integers_(integers), output_(output) {
    values_.reserve(stage.forms.size());
    for (const Affine& form : stage.forms) values_.push_back(form.base);
    slots_.assign(stage.slots, ring.number(0));
    if (!stage_.rows.empty()) {
      run_length_ = stage_.outer.empty() ? 1 : stage_.extents[stage_.outer.back()];
      rows_.resize(stage_.rows.size() * static_cast<std::size_t>(run_length_));
      row_of_node_.assign(stage_.nodes.size(), -1);
      for (std::size_t i = 0; i < stage_.rows.size(); ++i) row_of_node_[stage_.rows[i]] = static_cast<int>(i);
      run_step_.assign(stage_.forms.size(), 0);
      if (!stage_.outer.empty())
        for (const auto& [form, coefficient] : stage_.steps[stage_.outer.back()]) run_step_[form] = coefficient;
    }
  }

  /// Of a recurrence: its next step.
  Status run() {
    if (stage_.empty) return {};
    outer(0);
    if (stage_.steps_of) step(stage_.steps_of->variable, 1);
    return status_;
  }

 private:
  void outer(std::size_t level) {
    if (level + 1 >= stage_.outer.size()) return innermost();
    const std::uint32_t variable = stage_.outer[level];
    for (std::int64_t i = 0; i < stage_.extents[variable]; ++i) {
      outer(level + 1);
      step(variable, 1);
    }
    step(variable, -stage_.extents[variable]);
  }

  void step(std::uint32_t variable, std::int64_t count) {
    for (const auto& [form, coefficient] : stage_.steps[variable]) values_[form] += coefficient * count;
  }

  /// A run of the innermost own loop.
  void innermost() {
    for (std::size_t i = 0; i < stage_.rows.size(); ++i) {
      Element* row = rows_.data() + static_cast<std::int64_t>(i) * run_length_;
      std::fill(row, row + run_length_, ring_.number(0));
      const LoweredNode& node = stage_.nodes[stage_.rows[i]];
      sum_products(node, 0, row);
    }
    if (stage_.outer.empty()) {
      position_ = 0;
      output_[values_[stage_.write]] = value(stage_.root);
      return;
    }
    const std::uint32_t variable = stage_.outer.back();
    const std::int64_t extent = stage_.extents[variable];
    for (position_ = 0; position_ < extent; ++position_) {
      output_[values_[stage_.write]] = value(stage_.root);
      step(variable, 1);
    }
    step(variable, -extent);
  }

  /// Adds the sum of products to every element of the run: loops of the reduction outside, the run inside.
  void sum_products(const LoweredNode& node, std::size_t level, Element* row) {
    if (level == node.loops.size()) return add_products(node, row);
    const std::uint32_t variable = node.loops[level];
    const std::int64_t extent = stage_.extents[variable];
    for (std::int64_t i = 0; i < extent; ++i) {
      sum_products(node, level + 1, row);
      step(variable, 1);
    }
    step(variable, -extent);
  }

  void add_products(const LoweredNode& node, Element* row) {
    // Positions of the run at which all factors lie inside their tensors.
    std::int64_t begin = 0, end = run_length_;
    for (std::uint32_t factor : node.factors)
      for (const LoweredAccess::Guard& guard : stage_.accesses[factor].guards) {
        const std::int64_t at = values_[guard.form], coefficient = run_step_[guard.form];
        if (coefficient == 0) {
          if (at < 0 || at >= guard.extent) return;
        } else if (coefficient > 0) {
          // 0 <= at + coefficient * i < extent
          if (at < 0) begin = std::max(begin, (-at + coefficient - 1) / coefficient);
          if (guard.extent <= at) return;
          end = std::min(end, (guard.extent - at + coefficient - 1) / coefficient);
        } else {
          if (at >= guard.extent) begin = std::max(begin, (at - guard.extent) / -coefficient + 1);
          if (at < 0) return;
          end = std::min(end, at / -coefficient + 1);
        }
      }
    if (begin >= end) return;
    auto first = [&](std::uint32_t factor) {
      const LoweredAccess& access = stage_.accesses[factor];
      return buffers_[access.buffer] + values_[access.offset] + begin * run_step_[access.offset];
    };
    auto stride = [&](std::uint32_t factor) { return run_step_[stage_.accesses[factor].offset]; };
    const std::int64_t count = end - begin;
    Element* out = row + begin;
    if (node.factors.size() == 1) {
      const Element* a = first(node.factors[0]);
      const std::int64_t step_a = stride(node.factors[0]);
      for (std::int64_t i = 0; i < count; ++i) out[i] = ring_.add(out[i], a[i * step_a]);
    } else if (node.factors.size() == 2) {
      const Element *a = first(node.factors[0]), *b = first(node.factors[1]);
      const std::int64_t step_a = stride(node.factors[0]), step_b = stride(node.factors[1]);
      if (step_a == 0 && step_b == 1) {
        const Element fixed = *a;
        for (std::int64_t i = 0; i < count; ++i) out[i] = ring_.add(out[i], ring_.multiply(fixed, b[i]));
      } else if (step_a == 1 && step_b == 0) {
        const Element fixed = *b;
        for (std::int64_t i = 0; i < count; ++i) out[i] = ring_.add(out[i], ring_.multiply(a[i], fixed));
      } else {
        for (std::int64_t i = 0; i < count; ++i)
          out[i] = ring_.add(out[i], ring_.multiply(a[i * step_a], b[i * step_b]));
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        Element product = first(node.factors[0])[i * stride(node.factors[0])];
        for (std::size_t f = 1; f < node.factors.size(); ++f)
          product = ring_.multiply(product, first(node.factors[f])[i * stride(node.factors[f])]);
        out[i] = ring_.add(out[i], product);
      }
    }
  }

  [[nodiscard]] bool inside(const LoweredAccess& access) const {
    for (const LoweredAccess::Guard& guard : access.guards)
      if (values_[guard.form] < 0 || values_[guard.form] >= guard.extent) return false;
    return true;
  }

  Element load(const LoweredAccess& access) {
    std::int64_t offset = values_[access.offset];
    for (const LoweredAccess::Indirect& indirect : access.indirect) {
      std::int64_t index = integers_[indirect.buffer][values_[indirect.form]];
      if (index < -indirect.extent || index >= indirect.extent) {
        if (status_)
          status_ = bad_input("index " + std::to_string(index) + " is outside [" + std::to_string(-indirect.extent) +
                              ", " + std::to_string(indirect.extent) + ")");
        return ring_.number(0);
      }
      if (index < 0) index += indirect.extent;
      offset += index * indirect.stride;
    }
    return buffers_[access.buffer][offset];
  }

  [[nodiscard]] bool test(std::uint32_t id) const {
    const LoweredNode& node = stage_.nodes[id];
    if (node.kind == Node::test) {
      const std::int64_t form = values_[node.access];
      switch (node.comparison) {
        case LoweredNode::Comparison::equal:
          return form == 0;
        case LoweredNode::Comparison::not_equal:
          return form != 0;
        case LoweredNode::Comparison::less:
          return form < 0;
        case LoweredNode::Comparison::less_equal:
          return form <= 0;
      }
    }
    bool all = true, any = false;
    for (std::uint32_t operand : node.operands) {
      const bool holds = test(operand);
      all = all && holds;
      any = any || holds;
    }
    return node.kind == Node::all_of ? all : node.kind == Node::any_of ? any : !any;
  }

  Element value(std::uint32_t id) {
    const LoweredNode& node = stage_.nodes[id];
    switch (node.kind) {
      case Node::number:
        return ring_.number(node.number);
      case Node::read: {
        const LoweredAccess& access = stage_.accesses[node.access];
        if (!access.guards.empty() && !inside(access)) return value(node.operands[0]);
        return load(access);
      }
      case Node::valid:
        return ring_.number(inside(stage_.accesses[node.access]) ? 1 : 0);
      case Node::slot:
        return slots_[node.slot];
      case Node::bind: {
        Element bound = value(node.operands[0]);
        slots_[node.slot] = std::move(bound);
        return value(node.operands[1]);
      }
      case Node::add: {
        const Element left = value(node.operands[0]);
        return ring_.add(left, value(node.operands[1]));
      }
      case Node::subtract: {
        const Element left = value(node.operands[0]);
        return ring_.subtract(left, value(node.operands[1]));
      }
      case Node::multiply: {
        const Element left = value(node.operands[0]);
        return ring_.multiply(left, value(node.operands[1]));
      }
      case Node::divide: {
        const Element left = value(node.operands[0]);
        return ring_.divide(left, value(node.operands[1]));
      }
      case Node::negate:
        return ring_.subtract(ring_.number(0), value(node.operands[0]));
      case Node::call: {
        const Element left = value(node.operands[0]);
        if (node.operands.size() == 1) return ring_.call(*node.function, left);
        return ring_.call(*node.function, left, value(node.operands[1]));
      }
      case Node::maximum:
      case Node::minimum: {
        const std::size_t begin = sets_.size();
        for (std::uint32_t operand : node.operands) {
          Element element = value(operand);
          sets_.push_back(std::move(element));
        }
        return extremum_from(begin, node.kind == Node::maximum);
      }
      case Node::infinity:
        return ring_.infinity(node.number < 0);
      case Node::conditional:
        return value(node.operands[test(node.operands[0]) ? 1 : 2]);
      case Node::reduce: {
        if (!row_of_node_.empty() && row_of_node_[id] >= 0)
          return rows_[static_cast<std::size_t>(row_of_node_[id] * run_length_ + position_)];
        return reduce(node);
      }
      case Node::test:
      case Node::all_of:
      case Node::any_of:
      case Node::none_of:
        break;
    }
    TASO_CHECK(false, "a condition where a value is needed");
    return ring_.number(0);
  }

  Element reduce(const LoweredNode& node) {
    using Reduction = LoweredNode::Reduction;
    if (node.reduction == Reduction::sum || node.reduction == Reduction::product) {
      Element total = ring_.number(node.reduction == Reduction::sum ? 0 : 1);
      for_each(node, 0, [&] {
        const Element element = value(node.operands[0]);
        total = node.reduction == Reduction::sum ? ring_.add(total, element) : ring_.multiply(total, element);
      });
      return total;
    }
    const bool maximum = node.reduction == Reduction::maximum;
    const std::size_t begin = sets_.size();
    for_each(node, 0, [&] {
      if (node.leave_out && !inside(stage_.accesses[stage_.nodes[node.operands[0]].access])) return;
      Element element =
          node.leave_out ? load(stage_.accesses[stage_.nodes[node.operands[0]].access]) : value(node.operands[0]);
      sets_.push_back(std::move(element));
      if constexpr (FoldsExtrema<Ring>) {
        if (sets_.size() == begin + 2) {
          Element best = extremum_from(begin, maximum);
          sets_.push_back(std::move(best));
        }
      }
    });
    if (sets_.size() == begin) return ring_.infinity(maximum);
    return extremum_from(begin, maximum);
  }

  /// The extremum of the elements of sets_ from `begin` on, which are taken away.
  Element extremum_from(std::size_t begin, bool maximum) {
    Element result = ring_.extremum(maximum, std::span<const Element>(sets_).subspan(begin));
    sets_.erase(sets_.begin() + static_cast<std::ptrdiff_t>(begin), sets_.end());
    return result;
  }

  template <class Body>
  void for_each(const LoweredNode& node, std::size_t level, const Body& body) {
    if (level == node.loops.size()) return body();
    const std::uint32_t variable = node.loops[level];
    const std::int64_t extent = stage_.extents[variable];
    for (std::int64_t i = 0; i < extent; ++i) {
      for_each(node, level + 1, body);
      step(variable, 1);
    }
    step(variable, -extent);
  }

  const LoweredStage& stage_;
  Ring& ring_;
  std::span<const Element* const> buffers_;
  std::span<const std::int64_t* const> integers_;
  Element* output_;
  absl::InlinedVector<std::int64_t, 16> values_;
  absl::InlinedVector<Element, 4> slots_;
  std::vector<Element> sets_;  ///< Arguments of extrema that are being evaluated; those of inner ones are at the end.
  Status status_;
  std::int64_t run_length_ = 1;
  std::int64_t position_ = 0;              ///< In the run.
  absl::InlinedVector<Element, 16> rows_;  ///< Of each entry of stage_.rows, run_length_ elements.
  absl::InlinedVector<int, 16> row_of_node_;
  absl::InlinedVector<std::int64_t, 16> run_step_;  ///< Per form: its coefficient of the innermost own loop.
};

}  // namespace taso::detail

namespace taso {

template <class Ring>
Expected<std::vector<RingTensor<typename Ring::Element>>> evaluate(
    const OperatorInstance& instance, Ring& ring, std::span<const RingTensor<typename Ring::Element>* const> inputs) {
  using Element = typename Ring::Element;
  const LoweredBody& body = instance.body();
  if (inputs.size() != body.inputs)
    return bad_input(body.op + ": evaluated with " + std::to_string(inputs.size()) + " inputs, expected " +
                     std::to_string(body.inputs));
  absl::InlinedVector<const Element*, 8> buffers;
  absl::InlinedVector<const std::int64_t*, 8> integers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = instance.input_types()[i].shape;
    const auto elements = static_cast<std::size_t>(volume(shape));
    const bool reals =
        instance.input_types()[i].element != ElementType::i32 && instance.input_types()[i].element != ElementType::i64;
    if (inputs[i]->shape != shape || (reals ? inputs[i]->elements.size() : inputs[i]->integers.size()) != elements)
      return bad_input(body.op + ": input " + std::to_string(i) + " is " + to_string(inputs[i]->shape) + ", expected " +
                       to_string(shape) + " with all elements");
    buffers.push_back(inputs[i]->elements.data());
    integers.push_back(inputs[i]->integers.data());
  }
  std::vector<std::vector<Element>> intermediates;
  for (const Shape& shape : body.intermediates) {
    intermediates.emplace_back(static_cast<std::size_t>(volume(shape)), ring.number(0));
    buffers.push_back(intermediates.back().data());
  }
  std::vector<RingTensor<Element>> outputs;
  for (const Shape& shape : body.outputs)
    outputs.push_back({shape, std::vector<Element>(static_cast<std::size_t>(volume(shape)), ring.number(0)), {}});
  const std::size_t first_output = body.inputs + body.intermediates.size();
  for (std::size_t first = 0, end = 0; first < body.stages.size(); first = end) {
    // One stage, or those of a recurrence, which take its steps in turn.
    std::vector<detail::StageRunner<Ring>> together;
    const auto& steps = body.stages[first].steps_of;
    do {
      const LoweredStage& stage = body.stages[end];
      Element* target = stage.buffer >= first_output ? outputs[stage.buffer - first_output].elements.data()
                                                     : intermediates[stage.buffer - body.inputs].data();
      together.emplace_back(stage, ring, buffers, integers, target);
      ++end;
    } while (steps && end < body.stages.size() && body.stages[end].steps_of &&
             body.stages[end].steps_of->recurrence == steps->recurrence);
    const std::int64_t count = steps ? body.stages[first].extents[steps->variable] : 1;
    for (std::int64_t step = 0; step < count; ++step)
      for (detail::StageRunner<Ring>& runner : together)
        if (Status status = runner.run(); !status) return bad_input(body.op + ": " + status.error().message);
  }
  if (Status status = ring.status(); !status) return status.error();
  return outputs;
}

template <class Ring>
Expected<std::vector<RingTensor<typename Ring::Element>>> evaluate(
    const Graph& graph, const OperatorRegistry& registry, Ring& ring,
    const std::vector<RingTensor<typename Ring::Element>>& inputs) {
  using Tensor = RingTensor<typename Ring::Element>;
  if (inputs.size() != graph.inputs().size())
    return bad_input("the graph has " + std::to_string(graph.inputs().size()) + " inputs, not " +
                     std::to_string(inputs.size()));
  const std::vector<NodeId> order = graph.topological_order();
  // A node's tensors are dropped after their last use.
  std::vector<std::size_t> uses(graph.id_bound(), 0);
  for (NodeId id : order)
    for (const Value& input : graph.node(id).inputs) ++uses[input.node];
  for (const Value& output : graph.outputs()) ++uses[output.node];
  std::vector<std::vector<Tensor>> tensors(graph.id_bound());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = graph.node(graph.inputs()[i]);
    if (inputs[i].shape != node.outputs[0].shape)
      return bad_input("input '" + node.name + "' is " + to_string(inputs[i].shape) + ", expected " +
                       to_string(node.outputs[0].shape));
    tensors[graph.inputs()[i]] = {inputs[i]};
  }
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    switch (node.kind) {
      case NodeKind::input:
        break;
      case NodeKind::constant: {
        Tensor tensor;
        tensor.shape = node.outputs[0].shape;
        switch (node.outputs[0].element) {
          case ElementType::f32:
          case ElementType::f64:
            for (float value : node.constant->to_floats())
              tensor.elements.push_back(ring.number(static_cast<double>(value)));
            break;
          case ElementType::i8:
          case ElementType::i16:
          case ElementType::i32:
          case ElementType::i64:
          case ElementType::u8:
          case ElementType::u16:
          case ElementType::u32:
          case ElementType::u64:
          case ElementType::boolean:
            tensor.integers = node.constant->to_integers();
            break;
          case ElementType::f16:
          case ElementType::bf16:
          case ElementType::other:
            return bad_input("a constant of type " + std::string(to_string(node.outputs[0].element)) +
                             " cannot be evaluated");
        }
        tensors[id] = {std::move(tensor)};
        break;
      }
      case NodeKind::op: {
        std::vector<TensorType> types;
        std::vector<const Tensor*> arguments;
        for (const Value& input : node.inputs) {
          types.push_back(graph.type(input));
          arguments.push_back(&tensors[input.node].at(input.port));
        }
        TASO_ASSIGN(const OperatorInstance instance,
                    OperatorInstance::create(registry, node.op, node.attributes, types));
        TASO_ASSIGN(tensors[id], evaluate(instance, ring, std::span<const Tensor* const>(arguments)));
        break;
      }
      case NodeKind::opaque:
        return bad_input("opaque node '" + node.op + "' cannot be evaluated");
    }
    for (const Value& input : node.inputs)
      if (--uses[input.node] == 0) tensors[input.node].clear();
  }
  std::vector<Tensor> outputs;
  for (const Value& output : graph.outputs()) outputs.push_back(tensors[output.node].at(output.port));
  return outputs;
}

}  // namespace taso
