#include "operators/unfold.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/constant.h"
#include "graph/reals.h"
#include "graph/rewrite.h"
#include "operators/compose.h"
#include "operators/instance.h"
#include "operators/instantiate.h"
#include "operators/lowered_body.h"
#include "operators/size_domains.h"

namespace taso {
namespace {

using Lowered = LoweredNode::Kind;
using Keep = std::function<bool(std::string_view)>;

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::int64_t volume(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Shape without_leading_ones(const Shape& shape) {
  return {std::find_if(shape.begin(), shape.end(), [](std::int64_t extent) { return extent != 1; }), shape.end()};
}

/// The graph under construction; moves that change nothing are left out.
class Builder {
 public:
  Builder(const OperatorRegistry& registry, ElementType real) : registry_(registry), real_(real) {}

  [[nodiscard]] const OperatorRegistry& registry() const { return registry_; }
  [[nodiscard]] Graph& graph() { return graph_; }
  [[nodiscard]] const Shape& shape(Value value) const { return graph_.type(value).shape; }

  Expected<Value> op(std::string_view name, std::vector<Value> inputs, const Attributes& attributes = {}) {
    TASO_ASSIGN(const NodeId id, add_op(graph_, registry_, name, attributes, std::move(inputs)));
    return Value{id, 0};
  }
  Value number(double value) {
    return {graph_.add_constant(ConstantData::of_reals({real_, {}, true}, std::span(&value, 1))), 0};
  }
  /// One reshape, transpose or none does what several in a row do.
  Expected<Value> reshape(Value value, const Shape& to) {
    while (graph_.node(value.node).is_op("reshape")) value = graph_.node(value.node).inputs[0];
    if (shape(value) == to) return value;
    return op("reshape", {value}, {{"shape", to}});
  }
  Expected<Value> broadcast(Value value, const Shape& to) {
    if (shape(value) == to) return value;
    return op("broadcast", {value}, {{"shape", to}});
  }
  Expected<Value> transpose(Value value, Shape perm) {
    if (const Node& producer = graph_.node(value.node); producer.is_op("transpose")) {
      const Shape& first = producer.attributes.integers("perm");
      for (std::int64_t& axis : perm) axis = first[static_cast<std::size_t>(axis)];
      value = producer.inputs[0];
    }
    if (std::is_sorted(perm.begin(), perm.end())) return value;
    return op("transpose", {value}, {{"perm", std::move(perm)}});
  }
  Expected<Value> slice(Value value, const Shape& starts, const Shape& sizes, const Shape& steps) {
    const bool first = std::all_of(starts.begin(), starts.end(), [](std::int64_t start) { return start == 0; });
    if (first && sizes == shape(value)) return value;
    return op("slice", {value}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
  }

 private:
  const OperatorRegistry& registry_;
  ElementType real_;  // Of numbers.
  Graph graph_;
};

/// An axis of the tensors that a stage computes: a loop variable, or `unit` steps of one at a time; or no variable.
struct Axis {
  std::int64_t extent = 1;
  std::optional<std::uint32_t> variable;
  std::int64_t unit = 1;
};
using Frame = std::vector<Axis>;

/// A number, or a tensor with the axes of a frame: `shape` has 1 where it does not depend on an axis. The value has
/// this shape, or the same without leading extents of 1.
struct Term {
  std::optional<double> number;
  Value value;
  Shape shape;
};

/// One stage of a lowered definition, the only one of its tensor, as operators of a graph.
class StageUnfolding {
 public:
  /// `buffers` holds the tensors that the stage reads.
  StageUnfolding(Builder& builder, const LoweredStage& stage, const std::vector<std::optional<Value>>& buffers)
      : builder_(builder), stage_(stage), buffers_(buffers), slots_(stage.slots) {}

  /// The tensor, of this shape.
  Expected<Value> run(const Shape& shape) {
    if (stage_.steps_of) return bad_input("it is computed step by step");
    if (stage_.empty) return bad_input("a tensor of it has no elements");
    TASO_ASSIGN(const Frame frame, frame_of(shape));
    TASO_ASSIGN(Term term, evaluate(stage_.root, frame));
    if (term.number) term = {std::nullopt, builder_.number(*term.number), Shape(frame.size(), 1)};
    TASO_ASSIGN(const Value whole, builder_.broadcast(term.value, shape_of(frame)));
    return builder_.reshape(whole, shape);
  }

 private:
  static Shape shape_of(const Frame& frame) {
    Shape shape;
    for (const Axis& axis : frame) shape.push_back(axis.extent);
    return shape;
  }

  /// The stage's own loops, cut and ordered along the axes of the tensor that it writes.
  Expected<Frame> frame_of(const Shape& shape) const {
    const Affine& write = stage_.forms[stage_.write];
    std::int64_t covered = 1;
    for (const std::uint32_t variable : stage_.outer) covered *= stage_.extents[variable];
    if (write.base != 0 || covered != volume(shape)) return bad_input("several equations make one tensor");
    const Shape strides = row_major_strides(shape);
    Frame frame;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) {
        frame.push_back({});
        continue;
      }
      // Where a loop or the axis begins, from the innermost place on.
      std::set<std::int64_t> cuts = {strides[i], strides[i] * shape[i]};
      for (const auto& [variable, coefficient] : write.terms)
        for (const std::int64_t cut : {coefficient, coefficient * stage_.extents[variable]})
          if (cut > strides[i] && cut < strides[i] * shape[i]) cuts.insert(cut);
      Frame parts;
      for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
        const std::int64_t end = *std::next(cut);
        const auto loop = std::find_if(write.terms.begin(), write.terms.end(), [&](const auto& term) {
          return term.second > 0 && term.second <= *cut && end <= term.second * stage_.extents[term.first];
        });
        if (loop == write.terms.end() || end % *cut != 0 || *cut % loop->second != 0)
          return bad_input("its elements are written in no order of axes");
        parts.push_back({end / *cut, loop->first, *cut / loop->second});
      }
      frame.insert(frame.end(), parts.rbegin(), parts.rend());
    }
    return frame;
  }

  Expected<Term> evaluate(std::uint32_t id, const Frame& frame) {
    const LoweredNode& node = stage_.nodes[id];
    switch (node.kind) {
      case Lowered::number:
        return Term{node.number, {}, {}};
      case Lowered::read:
        return read(stage_.accesses[node.access], frame);
      case Lowered::slot:
        return extended(slots_.at(node.slot), frame);
      case Lowered::bind: {
        TASO_ASSIGN(slots_.at(node.slot), evaluate(node.operands[0], frame));
        return evaluate(node.operands[1], frame);
      }
      case Lowered::add:
        return chain("add", node, frame);
      case Lowered::subtract:
        return chain("sub", node, frame);
      case Lowered::multiply:
        return chain("mul", node, frame);
      case Lowered::divide:
        return chain("div", node, frame);
      case Lowered::negate: {
        TASO_ASSIGN(Term term, evaluate(node.operands[0], frame));
        return negated(term);
      }
      case Lowered::call:
        return chain(node.function->name, node, frame);
      case Lowered::maximum:
      case Lowered::minimum:
        return clipped(node, frame);
      case Lowered::reduce:
        return reduced(node, frame);
      case Lowered::valid:
      case Lowered::infinity:
      case Lowered::conditional:
      case Lowered::test:
      case Lowered::all_of:
      case Lowered::any_of:
      case Lowered::none_of:
        break;
    }
    return bad_input("it chooses between values by where they stand");
  }

  /// A term of a frame that this one begins with.
  Expected<Term> extended(Term term, const Frame& frame) {
    if (term.number || term.shape.size() == frame.size()) return term;
    term.shape.resize(frame.size(), 1);
    TASO_ASSIGN(term.value, builder_.reshape(term.value, without_leading_ones(term.shape)));
    return term;
  }

  // ---- element-wise operators ----

  /// An operator of the graph applied to all operands, which are one or two.
  Expected<Term> chain(const std::string& op, const LoweredNode& node, const Frame& frame) {
    std::vector<Term> terms;
    for (const std::uint32_t operand : node.operands) {
      TASO_ASSIGN(Term term, evaluate(operand, frame));
      terms.push_back(std::move(term));
    }
    if (terms.size() == 2) return binary(op, terms[0], terms[1]);
    if (terms.size() != 1) return bad_input("the function " + op + " has more than two arguments");
    return unary(op, terms[0]);
  }

  Expected<Term> unary(const std::string& op, const Term& term) {
    if (term.number) return bad_input("a function of a number occurs");
    if (!computes(op)) return bad_input("no operator is the function " + op);
    TASO_ASSIGN(const Value value, builder_.op(op, {term.value}));
    return Term{std::nullopt, value, term.shape};
  }

  Expected<Term> negated(const Term& term) {
    if (term.number) return Term{-*term.number, {}, {}};
    return unary("neg", term);
  }

  Expected<Term> binary(const std::string& op, Term a, Term b) {
    if (a.number && b.number) {
      const double x = *a.number, y = *b.number;
      if (op == "add") return Term{x + y, {}, {}};
      if (op == "sub") return Term{x - y, {}, {}};
      if (op == "mul") return Term{x * y, {}, {}};
      if (op == "div") return Term{x / y, {}, {}};
      return bad_input("a function of numbers occurs");
    }
    if (!computes(op)) return bad_input("no operator is the function " + op);
    for (Term* term : {&a, &b})
      if (term->number)
        *term = {std::nullopt, builder_.number(*term->number), Shape((term == &a ? b : a).shape.size(), 1)};
    Shape common = a.shape;
    for (std::size_t i = 0; i < common.size(); ++i) common[i] = std::max(common[i], b.shape[i]);
    TASO_ASSIGN(const Value left, builder_.broadcast(a.value, common));
    TASO_ASSIGN(const Value right, builder_.broadcast(b.value, common));
    TASO_ASSIGN(const Value value, builder_.op(op, {left, right}));
    return Term{std::nullopt, value, common};
  }

  /// Whether an operator is the element-wise function, or operation, of its name.
  [[nodiscard]] bool computes(const std::string& op) const {
    const OperatorDefinition* const definition = builder_.registry().find(op);
    return definition != nullptr && definition->elementwise && definition->attributes.empty();
  }

  /// The largest or smallest of values and numbers.
  Expected<Term> clipped(const LoweredNode& node, const Frame& frame) {
    const bool largest = node.kind == Lowered::maximum;
    std::optional<Term> tensor;
    std::optional<double> bound;
    for (const std::uint32_t operand : node.operands) {
      TASO_ASSIGN(Term term, evaluate(operand, frame));
      if (!term.number && tensor) {
        if (!largest) return bad_input("the smaller of two tensors is taken");
        TASO_ASSIGN(Term both, binary("maximum", *tensor, term));
        tensor = std::move(both);
      } else if (!term.number)
        tensor = std::move(term);
      else if (!bound || (*term.number > *bound) == largest)
        bound = term.number;
    }
    if (!tensor) return Term{bound, {}, {}};
    if (!bound) return *tensor;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    TASO_ASSIGN(const Value value,
                builder_.op("clip", {tensor->value},
                            {{"min", largest ? *bound : -infinity}, {"max", largest ? infinity : *bound}}));
    return Term{std::nullopt, value, tensor->shape};
  }

  // ---- reductions ----

  Expected<Term> reduced(const LoweredNode& node, const Frame& frame) {
    using Reduction = LoweredNode::Reduction;
    if (node.reduction == Reduction::product) return bad_input("a product is taken over an index");
    Frame inner = frame;
    for (const std::uint32_t loop : node.loops) inner.push_back({stage_.extents[loop], loop, 1});
    const LoweredNode& body = stage_.nodes[node.operands[0]];
    if (node.reduction == Reduction::sum && body.kind == Lowered::multiply && node.loops.size() == 1) {
      TASO_ASSIGN(const Term a, evaluate(body.operands[0], inner));
      TASO_ASSIGN(const Term b, evaluate(body.operands[1], inner));
      if (!a.number && !b.number && blows_up(a, b)) return matrix_product(a, b, inner);
      TASO_ASSIGN(Term product, binary("mul", a, b));
      return reduced(std::move(product), node.reduction, frame, inner);
    }
    TASO_ASSIGN(Term term, evaluate(node.operands[0], inner));
    return reduced(std::move(term), node.reduction, frame, inner);
  }

  /// Along the axes that the inner frame has more.
  Expected<Term> reduced(Term term, LoweredNode::Reduction reduction, const Frame& frame, const Frame& inner) {
    if (inner.size() == frame.size()) return term;
    if (term.number) term = {std::nullopt, builder_.number(*term.number), Shape(inner.size(), 1)};
    Shape whole = term.shape;
    Shape axes;
    for (std::size_t i = frame.size(); i < inner.size(); ++i) {
      whole[i] = inner[i].extent;
      axes.push_back(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(inner.size()));
    }
    TASO_ASSIGN(Value value, builder_.broadcast(term.value, whole));
    const bool smallest = reduction == LoweredNode::Reduction::minimum;
    if (smallest) {
      TASO_ASSIGN(value, builder_.op("neg", {value}));
    }
    const char* const op = reduction == LoweredNode::Reduction::sum ? "reduce_sum" : "reduce_max";
    TASO_ASSIGN(value, builder_.op(op, {value}, {{"axes", axes}}));
    if (smallest) {
      TASO_ASSIGN(value, builder_.op("neg", {value}));
    }
    whole.resize(frame.size());
    TASO_ASSIGN(value, builder_.reshape(value, whole));
    return Term{std::nullopt, value, whole};
  }

  /// Whether each has an axis that the other does not depend on.
  static bool blows_up(const Term& a, const Term& b) {
    bool rows = false, columns = false;
    for (std::size_t i = 0; i < a.shape.size(); ++i) {
      rows = rows || a.shape[i] > b.shape[i];
      columns = columns || b.shape[i] > a.shape[i];
    }
    const std::size_t last = a.shape.size() - 1;
    return rows && columns && a.shape[last] == b.shape[last];
  }

  /// The sum of a * b along the last axis of the inner frame, on which both depend.
  Expected<Term> matrix_product(const Term& a, const Term& b, const Frame& inner) {
    std::vector<std::size_t> batch, rows, columns;
    const std::size_t last = inner.size() - 1;
    for (std::size_t i = 0; i < last; ++i) {
      if (a.shape[i] > 1 && b.shape[i] > 1)
        batch.push_back(i);
      else if (a.shape[i] > 1)
        rows.push_back(i);
      else if (b.shape[i] > 1)
        columns.push_back(i);
    }
    // The axes of a term in this order, each group but the batch as one.
    const auto arranged = [&](const Term& term,
                              const std::vector<std::vector<std::size_t>>& groups) -> Expected<Value> {
      std::vector<std::size_t> present;
      Shape compact, perm, grouped;
      for (std::size_t i = 0; i < term.shape.size(); ++i)
        if (term.shape[i] > 1) {
          present.push_back(i);
          compact.push_back(term.shape[i]);
        }
      std::vector<std::vector<std::size_t>> all;
      for (const std::size_t axis : batch) all.push_back({axis});
      all.insert(all.end(), groups.begin(), groups.end());
      for (const std::vector<std::size_t>& group : all) {
        grouped.push_back(1);
        for (const std::size_t axis : group) {
          const auto place = std::find(present.begin(), present.end(), axis);
          perm.push_back(place - present.begin());
          grouped.back() *= term.shape[axis];
        }
      }
      TASO_ASSIGN(Value value, builder_.reshape(term.value, compact));
      TASO_ASSIGN(value, builder_.transpose(value, perm));
      return builder_.reshape(value, grouped);
    };
    TASO_ASSIGN(const Value left, arranged(a, {rows, {last}}));
    TASO_ASSIGN(const Value right, arranged(b, {{last}, columns}));
    TASO_ASSIGN(Value value, builder_.op("matmul", {left, right}));
    // Back to the order of the frame.
    std::vector<std::size_t> axes = batch;
    axes.insert(axes.end(), rows.begin(), rows.end());
    axes.insert(axes.end(), columns.begin(), columns.end());
    Shape apart, perm(axes.size()), full(last, 1);
    for (const std::size_t axis : axes) {
      full[axis] = std::max(a.shape[axis], b.shape[axis]);
      apart.push_back(full[axis]);
    }
    std::iota(perm.begin(), perm.end(), 0);
    std::sort(perm.begin(), perm.end(), [&](std::int64_t x, std::int64_t y) {
      return axes[static_cast<std::size_t>(x)] < axes[static_cast<std::size_t>(y)];
    });
    TASO_ASSIGN(value, builder_.reshape(value, apart));
    TASO_ASSIGN(value, builder_.transpose(value, perm));
    return placed(value, full);
  }

  // ---- reads ----

  /// A tensor whose elements are those of a term of this shape, in order.
  Expected<Term> placed(Value value, const Shape& shape) {
    const Shape stripped = without_leading_ones(shape);
    if (builder_.shape(value) != shape) {
      TASO_ASSIGN(value, builder_.reshape(value, stripped));
    }
    return Term{std::nullopt, value, shape};
  }

  /// How a read goes through a tensor along one axis of the frame.
  struct Step {
    std::size_t axis = 0;
    std::int64_t coefficient = 0;  ///< In elements.
  };

  Expected<Term> read(const LoweredAccess& access, const Frame& frame) {
    if (!access.guards.empty()) return bad_input("a read may lie outside of its tensor");
    if (!access.indirect.empty()) return bad_input("an index is read from a tensor");
    const std::optional<Value>& buffer = buffers_[access.buffer];
    if (!buffer) return bad_input("a tensor is read that has no value");
    const Affine& offset = stage_.forms[access.offset];
    std::vector<Step> steps;
    for (std::size_t i = 0; i < frame.size(); ++i)
      for (const auto& [variable, coefficient] : offset.terms)
        if (frame[i].variable == variable && frame[i].extent > 1) steps.push_back({i, coefficient * frame[i].unit});
    TASO_ASSIGN(std::optional<Value> view, view_of_axes(*buffer, offset.base, steps, frame));
    if (!view) {
      TASO_ASSIGN(view, view_of_elements(*buffer, offset.base, steps, frame));
    }
    if (!view) return bad_input("an index of a read is a sum of variables");
    // The view has one axis for each step, in their order.
    std::vector<std::size_t> order(steps.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return steps[x].axis < steps[y].axis; });
    Shape shape(frame.size(), 1);
    for (const Step& step : steps) shape[step.axis] = frame[step.axis].extent;
    if (std::is_sorted(order.begin(), order.end())) return placed(*view, shape);
    Shape extents;
    for (const Step& step : steps) extents.push_back(frame[step.axis].extent);
    TASO_ASSIGN(Value value, builder_.reshape(*view, extents));
    TASO_ASSIGN(value, builder_.transpose(value, Shape(order.begin(), order.end())));
    return placed(value, shape);
  }

  /// Where every step goes along an axis of the tensor of its own: a slice of it. Orders the steps by these axes.
  Expected<std::optional<Value>> view_of_axes(Value tensor, std::int64_t base, std::vector<Step>& steps,
                                              const Frame& frame) {
    const Shape shape = builder_.shape(tensor);
    const Shape strides = row_major_strides(shape);
    Shape starts, sizes(shape.size(), 1), strides_of_slice(shape.size(), 1);
    std::vector<Step> ordered;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      starts.push_back(base / strides[i]);
      base %= strides[i];
      for (const Step& step : steps) {
        const std::int64_t distance = std::abs(step.coefficient);
        if (distance < strides[i] || distance >= strides[i] * shape[i]) continue;
        const std::int64_t pace = step.coefficient / strides[i], extent = frame[step.axis].extent;
        const std::int64_t end = starts[i] + pace * (extent - 1);
        if (sizes[i] != 1 || distance % strides[i] != 0 || end < 0 || end >= shape[i]) return std::optional<Value>();
        sizes[i] = extent;
        strides_of_slice[i] = pace;
        ordered.push_back(step);
      }
      if (starts[i] < 0 || starts[i] >= shape[i]) return std::optional<Value>();
    }
    if (ordered.size() != steps.size()) return std::optional<Value>();
    steps = std::move(ordered);
    TASO_ASSIGN(const Value view, builder_.slice(tensor, starts, sizes, strides_of_slice));
    return std::optional(view);
  }

  /// Where the steps lie within one another: a slice of the tensor under another shape. Orders the steps, the widest
  /// first.
  Expected<std::optional<Value>> view_of_elements(Value tensor, std::int64_t base, std::vector<Step>& steps,
                                                  const Frame& frame) {
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.coefficient > b.coefficient; });
    Shape dims, starts, sizes;
    std::int64_t rest = volume(builder_.shape(tensor));
    for (const Step& step : steps) {
      if (step.coefficient <= 0 || rest % step.coefficient != 0) return std::optional<Value>();
      dims.push_back(rest / step.coefficient);
      rest = step.coefficient;
      starts.push_back(base / rest);
      base %= rest;
      sizes.push_back(frame[step.axis].extent);
      if (starts.back() + sizes.back() > dims.back()) return std::optional<Value>();
    }
    if (rest > 1) {
      dims.push_back(rest);
      starts.push_back(base);
      sizes.push_back(1);
    }
    TASO_ASSIGN(Value view, builder_.reshape(tensor, dims));
    TASO_ASSIGN(view, builder_.slice(view, starts, sizes, Shape(dims.size(), 1)));
    return std::optional(view);
  }

  Builder& builder_;
  const LoweredStage& stage_;
  const std::vector<std::optional<Value>>& buffers_;
  std::vector<Term> slots_;
};

/// The definition of one operator at the types of its operands.
class DefinitionUnfolding {
 public:
  DefinitionUnfolding(Builder& builder, const OperatorDefinition& definition, const Attributes& attributes,
                      const Keep& keep)
      : builder_(builder),
        definition_(definition),
        written_(definition.written != nullptr ? *definition.written : definition),
        attributes_(attributes),
        keep_(keep) {}

  Expected<std::vector<Value>> run(const std::vector<Value>& operands);

 private:
  Expected<Value> apply(const Application& application, const IntegerScope& sizes);
  Expected<AttributeValue> attribute(const Expression& given, const AttributeSpec& spec, const std::string& prefix,
                                     const IntegerScope& sizes);
  Status equations_until(std::size_t end);
  Status make(const std::string& target);
  [[nodiscard]] Error in_place(const Error& error) const {
    return bad_input(definition_.name + " cannot be written by other operators: " + error.message);
  }

  Builder& builder_;
  const OperatorDefinition& definition_;
  const OperatorDefinition& written_;
  const Attributes& attributes_;
  const Keep& keep_;
  std::optional<OperatorInstance> instance_;
  std::map<std::string, std::uint32_t> numbers_;  ///< Buffers of inputs and intermediates, by name.
  std::vector<std::optional<Value>> buffers_;     ///< Of inputs, intermediates and outputs.
  ApplicationPrefixes prefixes_;
  std::size_t next_equation_ = 0;
  std::vector<Value> outputs_;
};

/// The outputs of an operator applied to values.
Expected<std::vector<Value>> unfold_application(Builder& builder, std::string_view op, const Attributes& attributes,
                                                const std::vector<Value>& operands, const Keep& keep) {
  if (keep(op)) {
    TASO_ASSIGN(const Value first, builder.op(op, operands, attributes));
    std::vector<Value> outputs;
    for (std::uint32_t port = 0; port < builder.graph().node(first.node).outputs.size(); ++port)
      outputs.push_back({first.node, port});
    return outputs;
  }
  const OperatorDefinition* const definition = builder.registry().find(op);
  if (definition == nullptr) return bad_input("unknown operator '" + std::string(op) + "'");
  TASO_ASSIGN(const Attributes complete, builder.registry().complete(op, attributes));
  return DefinitionUnfolding(builder, *definition, complete, keep).run(operands);
}

Expected<std::vector<Value>> DefinitionUnfolding::run(const std::vector<Value>& operands) {
  std::vector<TensorType> types;
  for (const Value& operand : operands) types.push_back(builder_.graph().type(operand));
  TASO_ASSIGN(instance_, OperatorInstance::create(builder_.registry(), definition_.name, attributes_, types));
  TASO_ASSIGN(const Instantiation sizes, instantiate(builder_.registry(), definition_, attributes_, types));
  const LoweredBody& body = instance_->body();
  buffers_.resize(body.inputs + body.intermediates.size() + body.outputs.size());
  std::copy(operands.begin(), operands.end(), buffers_.begin());
  if (!definition_.variadic())
    for (std::uint32_t i = 0; i < definition_.inputs.size(); ++i) numbers_.emplace(definition_.inputs[i].name, i);
  for (const Equation& equation : definition_.equations)
    if (equation.target != "out" && !numbers_.contains(equation.target)) {
      const std::size_t inputs = definition_.variadic() ? 0 : body.inputs;
      numbers_.emplace(equation.target, static_cast<std::uint32_t>(body.inputs + numbers_.size() - inputs));
    }
  for (const Application& application : written_.applications) {
    TASO_RETURN_IF_ERROR(equations_until(application.equations));
    TASO_ASSIGN(const Value result, apply(application, sizes.scope));
    if (application.target == "out") {
      outputs_ = {result};
    } else if (const auto number = numbers_.find(application.target); number != numbers_.end()) {
      buffers_[number->second] = result;
    }
  }
  TASO_RETURN_IF_ERROR(equations_until(written_.equations.size()));
  if (outputs_.size() != body.outputs.size()) return in_place(bad_input("an output has no equation"));
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (builder_.shape(outputs_[i]) != body.outputs[i]) return in_place(bad_input("an output has another shape"));
  return outputs_;
}

Status DefinitionUnfolding::equations_until(std::size_t end) {
  for (; next_equation_ < end; ++next_equation_) {
    const std::string& target = written_.equations[next_equation_].target;
    if (next_equation_ > 0 && written_.equations[next_equation_ - 1].target == target) continue;
    const Status made = make(target);
    if (!made) return in_place(made.error());
  }
  return {};
}

/// The tensor of an equation, or all outputs.
Status DefinitionUnfolding::make(const std::string& target) {
  const LoweredBody& body = instance_->body();
  const std::size_t before_outputs = body.inputs + body.intermediates.size();
  std::vector<std::size_t> wanted;
  if (target == "out")
    for (std::size_t i = 0; i < body.outputs.size(); ++i) wanted.push_back(before_outputs + i);
  else
    wanted.push_back(numbers_.at(target));
  for (const std::size_t buffer : wanted) {
    const LoweredStage* only = nullptr;
    for (const LoweredStage& stage : body.stages) {
      if (stage.buffer != buffer) continue;
      if (only != nullptr) return bad_input("several equations make one tensor");
      only = &stage;
    }
    if (only == nullptr) return bad_input("a tensor of it has no elements");
    const Shape& shape =
        buffer < before_outputs ? body.intermediates[buffer - body.inputs] : body.outputs[buffer - before_outputs];
    TASO_ASSIGN(buffers_[buffer], StageUnfolding(builder_, *only, buffers_).run(shape));
    if (target == "out") outputs_.push_back(*buffers_[buffer]);
  }
  return {};
}

Expected<Value> DefinitionUnfolding::apply(const Application& application, const IntegerScope& sizes) {
  const std::string prefix = prefixes_.next(application);
  std::vector<Value> operands;
  for (const Application::Operand& operand : application.operands) {
    if (operand.application != nullptr) {
      TASO_ASSIGN(const Value value, apply(*operand.application, sizes));
      operands.push_back(value);
      continue;
    }
    const auto number = numbers_.find(operand.tensor);
    if (number == numbers_.end() || !buffers_[number->second])
      return in_place(bad_input("the tensor " + operand.tensor + " has no value of its own"));
    operands.push_back(*buffers_[number->second]);
  }
  const OperatorDefinition* const applied = builder_.registry().find(application.op);
  if (applied == nullptr) return in_place(bad_input("it applies the unknown operator " + application.op));
  Attributes attributes;
  for (const auto& [name, given] : application.attributes) {
    TASO_ASSIGN(AttributeValue value, attribute(given, *applied->find_attribute(name), prefix, sizes));
    attributes.set(name, std::move(value));
  }
  TASO_ASSIGN(const std::vector<Value> outputs,
              unfold_application(builder_, application.op, attributes, operands, keep_));
  const std::size_t port = static_cast<std::size_t>(application.output.value_or(0));
  if (port >= outputs.size()) return in_place(bad_input(application.op + " has no such output"));
  return outputs[port];
}

Expected<AttributeValue> DefinitionUnfolding::attribute(const Expression& given, const AttributeSpec& spec,
                                                        const std::string& prefix, const IntegerScope& sizes) {
  const AttributeValue* const own = given.kind == Expression::Kind::name ? attributes_.find(given.name) : nullptr;
  if (spec.kind == AttributeKind::symbol) return own != nullptr ? *own : AttributeValue(SymbolValue{given.name});
  if (spec.kind == AttributeKind::real) {
    if (own != nullptr && std::holds_alternative<double>(*own)) return *own;
    if (const std::optional<double> number = given.number()) return AttributeValue(*number);
  }
  // What is computed has a name since the definition was composed; what is written out is a literal.
  const bool list = spec.kind == AttributeKind::integers;
  const IntegerValue* const known = sizes.find(given.kind == Expression::Kind::name ? given.name : prefix + spec.name);
  std::vector<std::int64_t> integers;
  if (known != nullptr) {
    integers.assign(known->components.begin(), known->components.end());
  } else {
    for (const Expression& element : list ? given.operands : std::vector{given}) {
      const std::optional<double> number = element.number();
      if (!number) return in_place(bad_input("attribute " + spec.name + " is computed"));
      integers.push_back(static_cast<std::int64_t>(*number));
    }
  }
  if (list) return AttributeValue(std::move(integers));
  if (integers.size() != 1) return in_place(bad_input("attribute " + spec.name + " is a list"));
  if (spec.kind == AttributeKind::real) return AttributeValue(static_cast<double>(integers[0]));
  return AttributeValue(integers[0]);
}

}  // namespace

Expected<Graph> unfold(const OperatorRegistry& registry, std::string_view op, const Attributes& attributes,
                       std::span<const TensorType> inputs, const Keep& keep) {
  const OperatorDefinition* const definition = registry.find(op);
  if (definition == nullptr) return bad_input("unknown operator '" + std::string(op) + "'");
  if (!definition->over_reals) return bad_input("it computes with integers or truth values");
  const auto real =
      std::find_if(inputs.begin(), inputs.end(), [](const TensorType& type) { return is_real(type.element); });
  Builder builder(registry, real == inputs.end() ? ElementType::f32 : real->element);
  std::vector<Value> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool variadic = definition->variadic();
    if (!variadic && i >= definition->inputs.size()) break;
    const std::string name =
        variadic ? definition->inputs[0].name + "." + std::to_string(i) : definition->inputs[i].name;
    operands.push_back({builder.graph().add_input(name, inputs[i]), 0});
  }
  const Keep others = [&](std::string_view other) { return other != op && keep(other); };
  TASO_ASSIGN(const std::vector<Value> outputs, unfold_application(builder, op, attributes, operands, others));
  builder.graph().set_outputs(outputs);
  normalize(builder.graph(), registry);
  return std::move(builder.graph());
}

}  // namespace taso
