#include "operators/lower.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>

#include "operators/index_place.h"
#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;
using Node = LoweredNode::Kind;

Sizes row_major_strides(const Shape& shape) {
  Sizes strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Sizes as functions of indices that do not depend on them.
AffineScope at_any_index(const IntegerScope& sizes) {
  AffineScope result;
  for (const auto& [name, value] : sizes) {
    AffineValue affine;
    affine.vector = value.vector;
    for (const std::int64_t component : value.components) affine.components.push_back(AffineDomain::number(component));
    result.bind(name, std::move(affine));
  }
  return result;
}

/// A tensor that equations read or write: one buffer, or one per piece.
struct LoweredTensor {
  const std::vector<AxisSpec>* axes = nullptr;
  absl::InlinedVector<std::uint32_t, 2> buffers;
};

/// Numbers of loops, nodes or accesses.
using Numbers = std::vector<std::uint32_t>;

/// The part of an output that one equation writes: per axis the first and last index.
using Box = std::vector<std::pair<std::int64_t, std::int64_t>>;

class Lowerer {
 public:
  Lowerer(const OperatorRegistry& registry, const OperatorDefinition& definition, const Attributes& attributes,
          std::span<const TensorType> inputs, Instantiation instantiation, std::span<const StridedPlacement> placements)
      : placements_(placements),
        registry_(registry),
        definition_(definition),
        attributes_(attributes),
        scope_(at_any_index(instantiation.scope)),
        evaluator_(registry.size_functions(), scope_, attributes, extents_) {
    body_.op = definition.name;
    body_.over_reals = definition.over_reals;
    body_.moves = definition.moves;
    body_.inputs = inputs.size();
    body_.outputs = std::move(instantiation.outputs);
    for (const TensorType& input : inputs) shapes_.push_back(input.shape);
    for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
      LoweredTensor tensor;
      tensor.axes = &definition.inputs[i].axes;
      if (definition.variadic())
        for (std::size_t k = 0; k < inputs.size(); ++k) tensor.buffers.push_back(static_cast<std::uint32_t>(k));
      else
        tensor.buffers.push_back(static_cast<std::uint32_t>(i));
      tensors_.emplace(definition.inputs[i].name, std::move(tensor));
    }
  }

  Expected<LoweredBody> lower() {
    first_output_ = static_cast<std::uint32_t>(body_.inputs + definition_.intermediates.size());
    boxes_.resize(definition_.intermediates.size() + body_.outputs.size());
    const std::vector<Equation>& equations = definition_.equations;
    for (std::size_t i = 0; i < equations.size(); ++i) {
      const Equation& equation = equations[i];
      const IntermediateSpec* const spec =
          equation.target == "out" ? nullptr : definition_.find_intermediate(equation.target);
      if (spec != nullptr && spec->recurrence) {
        const std::size_t count = spec->recurrence->count;
        TASO_RETURN_IF_ERROR(recurrence(std::span(equations).subspan(i, count)));
        i += count - 1;
      } else if (spec != nullptr) {
        TASO_RETURN_IF_ERROR(intermediate(equation));
        if (i + 1 == equations.size() || equations[i + 1].target != equation.target)
          TASO_RETURN_IF_ERROR(check_cover(body_.intermediates.size() - 1));
      } else if (definition_.variadic()) {
        for (std::size_t k = 0; k < body_.inputs; ++k)
          TASO_RETURN_IF_ERROR(output(equation, 0, definition_.inputs[0].piece, k));
      } else if (definition_.several_outputs()) {
        for (std::size_t k = 0; k < body_.outputs.size(); ++k)
          TASO_RETURN_IF_ERROR(output(equation, k, definition_.output.piece, k));
      } else {
        TASO_RETURN_IF_ERROR(output(equation, 0, "", 0));
      }
    }
    for (std::size_t i = 0; i < body_.outputs.size(); ++i)
      TASO_RETURN_IF_ERROR(check_cover(body_.intermediates.size() + i));
    return std::move(body_);
  }

 private:
  [[nodiscard]] Error fail(const SourceLocation& where, const std::string& what) const {
    std::string shapes;
    for (std::size_t i = 0; i < body_.inputs; ++i) shapes += (i == 0 ? "" : ", ") + to_string(shapes_[i]);
    const std::string attributes = to_string(attributes_);
    return bad_input("the definition of " + definition_.name + " does not work for inputs (" + shapes +
                         (attributes.empty() ? "" : "; " + attributes) + "): " + what,
                     where);
  }
  [[nodiscard]] Status evaluation() const {
    if (evaluator_.status()) return {};
    return fail(evaluator_.status().error().where, evaluator_.status().error().message);
  }

  Affine sum(const Affine& a, const Affine& b, const Expression& where) { return evaluator_.domain().add(a, b, where); }
  Affine scaled(const Affine& a, std::int64_t factor, const Expression& where) {
    return evaluator_.domain().scale(a, factor, where);
  }

  // ---- loops and forms ----

  /// A new loop variable, or the constant 0 if there is but one value.
  Affine new_loop(std::int64_t extent, Numbers& loops) {
    if (extent == 1) return {};
    const auto variable = static_cast<std::uint32_t>(extents_.size());
    extents_.push_back(extent);
    loops.push_back(variable);
    return {0, {{variable, 1}}};
  }

  /// Binds the index variables of ranges; their loops are appended to `loops`.
  void open_ranges(std::span<const Expression::Range> ranges, Numbers& loops, double& volume) {
    for (const Expression::Range& range : ranges) {
      AffineValue value;
      value.vector = range.rest;
      const Sizes extents = range.rest ? evaluator_.integers(*range.extent) : Sizes{evaluator_.integer(*range.extent)};
      for (std::int64_t extent : extents) {
        extent = std::max<std::int64_t>(extent, 0);
        volume *= static_cast<double>(extent);
        value.components.push_back(new_loop(extent, loops));
      }
      scope_.bind(range.name, std::move(value));
    }
  }

  std::uint32_t new_form(Affine affine) {
    stage_.forms.push_back(std::move(affine));
    return static_cast<std::uint32_t>(stage_.forms.size() - 1);
  }
  std::uint32_t new_node(LoweredNode node) {
    stage_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(stage_.nodes.size() - 1);
  }
  std::uint32_t number(double value) {
    LoweredNode node;
    node.number = value;
    return new_node(std::move(node));
  }
  std::uint32_t operation(Node kind, Numbers operands) {
    LoweredNode node;
    node.kind = kind;
    node.operands = std::move(operands);
    return new_node(std::move(node));
  }

  void begin_stage(std::uint32_t buffer) {
    stage_ = {};
    stage_.buffer = buffer;
    extents_.clear();
  }

  struct Place {
    Sizes strides;
    std::int64_t first = 0;
  };
  /// Of an input or output, if one is given.
  [[nodiscard]] const StridedPlacement* placement(std::uint32_t buffer) const {
    if (placements_.empty() || (buffer >= body_.inputs && buffer < first_output_)) return nullptr;
    return &placements_[buffer < body_.inputs ? buffer : body_.inputs + buffer - first_output_];
  }
  /// Where the elements of a buffer of that shape lie.
  [[nodiscard]] Place place_of(std::uint32_t buffer, const Shape& shape) const {
    if (const StridedPlacement* const given = placement(buffer))
      return {Sizes(given->strides.begin(), given->strides.end()), given->offset};
    return {row_major_strides(shape), 0};
  }
  /// Whether they lie as one row.
  [[nodiscard]] bool is_one_row(std::uint32_t buffer, const Shape& shape) const {
    const Place place = place_of(buffer, shape);
    return place.first == 0 && place.strides == row_major_strides(shape);
  }

  /// Own loops in the order of what they write.
  void order_loops(const Affine& write) {
    const auto step = [&](std::uint32_t variable) -> std::int64_t {
      for (const auto& [v, coefficient] : write.terms)
        if (v == variable) return coefficient;
      return 0;
    };
    std::stable_sort(stage_.outer.begin(), stage_.outer.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return std::abs(step(a)) > std::abs(step(b)); });
  }

  /// Lowers the value and finishes the stage; `write` is the element written, `volume` the number of elements.
  Status end_stage(const Expression& value, Affine write, double volume) {
    stage_.empty = volume == 0;
    if (stage_.empty && steps_) return evaluation();  // nothing may stand between the stages of a recurrence
    if (stage_.empty) {
      stage_.outer.clear();
      extents_.clear();
      write = {};
      stage_.root = number(0);
    } else {
      TASO_ASSIGN(stage_.root, real(value));
    }
    TASO_RETURN_IF_ERROR(evaluation());
    if (!placements_.empty()) order_loops(write);
    stage_.write = new_form(std::move(write));
    stage_.extents = extents_;
    find_rows();
    merge_loops(stage_.outer);
    for (LoweredNode& node : stage_.nodes) merge_loops(node.loops);
    stage_.steps.resize(stage_.extents.size());
    for (std::uint32_t form = 0; form < stage_.forms.size(); ++form)
      for (const auto& [variable, coefficient] : stage_.forms[form].terms)
        stage_.steps[variable].emplace_back(form, coefficient);
    body_.stages.push_back(std::move(stage_));
    return {};
  }

  /// Makes one loop of neighbours (a, b) where every form depends on them as on a * extent(b) + b.
  void merge_loops(Numbers& loops) {
    for (std::size_t i = 0; i + 1 < loops.size();) {
      const std::uint32_t a = loops[i], b = loops[i + 1];
      auto coefficient = [](const Affine& form, std::uint32_t variable) -> std::int64_t {
        for (const auto& [v, c] : form.terms)
          if (v == variable) return c;
        return 0;
      };
      const std::int64_t extent = stage_.extents[b];
      if (std::any_of(stage_.forms.begin(), stage_.forms.end(),
                      [&](const Affine& form) { return coefficient(form, a) != coefficient(form, b) * extent; })) {
        ++i;
        continue;
      }
      for (Affine& form : stage_.forms)
        form.terms.erase(
            std::remove_if(form.terms.begin(), form.terms.end(), [&](const auto& term) { return term.first == a; }),
            form.terms.end());
      stage_.extents[b] *= stage_.extents[a];
      stage_.extents[a] = 1;
      loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
      if (i > 0) --i;
    }
  }

  /// Marks the sums of products of plain reads that stand in no other reduction.
  void find_rows() {
    for (LoweredNode& node : stage_.nodes) {
      if (node.kind != Node::reduce || node.reduction != LoweredNode::Reduction::sum) continue;
      Numbers factors;
      if (collect_factors(node.operands[0], factors)) node.factors = std::move(factors);
    }
    Numbers open = {stage_.root};
    while (!open.empty()) {
      const std::uint32_t id = open.back();
      open.pop_back();
      const LoweredNode& node = stage_.nodes[id];
      if (node.kind == Node::reduce) {
        if (!node.factors.empty()) stage_.rows.push_back(id);
        continue;
      }
      open.insert(open.end(), node.operands.begin(), node.operands.end());
    }
    std::sort(stage_.rows.begin(), stage_.rows.end());
    stage_.rows.erase(std::unique(stage_.rows.begin(), stage_.rows.end()), stage_.rows.end());
  }

  bool collect_factors(std::uint32_t id, Numbers& factors) const {
    const LoweredNode& node = stage_.nodes[id];
    if (node.kind == Node::multiply)
      return collect_factors(node.operands[0], factors) && collect_factors(node.operands[1], factors);
    if (node.kind != Node::read || !stage_.accesses[node.access].indirect.empty()) return false;
    if (stage_.accesses[node.access].may_leave()) {
      const LoweredNode& fallback = stage_.nodes[node.operands.at(0)];
      if (fallback.kind != Node::number || fallback.number != 0) return false;
    }
    factors.push_back(node.access);
    return true;
  }

  // ---- equations ----

  /// One of the equations of an intermediate; before the first of them, the tensor gets its shape and buffer.
  Status intermediate(const Equation& equation) {
    const IntermediateSpec& spec = *definition_.find_intermediate(equation.target);
    if (!tensors_.contains(spec.name)) TASO_RETURN_IF_ERROR(new_buffer(spec, equation));
    return write(equation, spec.axes, tensors_.find(spec.name)->second.buffers[0]);
  }

  /// The equations of a recurrence, one for each of its tensors: the first step, then the others.
  Status recurrence(std::span<const Equation> equations) {
    for (const Equation& equation : equations)
      TASO_RETURN_IF_ERROR(new_buffer(*definition_.find_intermediate(equation.target), equation));
    ++recurrences_;
    for (const bool first : {true, false})
      for (const Equation& equation : equations) {
        const IntermediateSpec& spec = *definition_.find_intermediate(equation.target);
        steps_ = Steps{spec.recurrence->axis, first};
        const Status status = write(equation, spec.axes, tensors_.find(spec.name)->second.buffers[0]);
        steps_.reset();
        TASO_RETURN_IF_ERROR(status);
      }
    for (std::size_t i = 0; i < equations.size(); ++i)
      TASO_RETURN_IF_ERROR(check_cover(body_.intermediates.size() - equations.size() + i));
    return {};
  }

  Status new_buffer(const IntermediateSpec& spec, const Equation& equation) {
    Shape shape;
    for (const AxisSpec& axis : spec.axes)
      for (const std::int64_t extent : extents_of(axis)) shape.push_back(std::max<std::int64_t>(extent, 0));
    TASO_RETURN_IF_ERROR(evaluation());
    if (!is_reasonable(shape)) return fail(equation.where, "'" + spec.name + "' would be " + to_string(shape));
    const auto buffer = static_cast<std::uint32_t>(shapes_.size());
    shapes_.push_back(shape);
    body_.intermediates.push_back(std::move(shape));
    LoweredTensor tensor;
    tensor.axes = &spec.axes;
    tensor.buffers.push_back(buffer);
    tensors_.emplace(spec.name, std::move(tensor));
    return {};
  }

  /// Of a rest those of all its axes.
  Sizes extents_of(const AxisSpec& axis) {
    if (axis.kind == AxisSpec::Kind::rest) return evaluator_.integers(axis.factors[0]);
    std::int64_t extent = 1;
    for (const Expression& factor : axis.factors) extent *= std::max<std::int64_t>(evaluator_.integer(factor), 0);
    return {extent};
  }

  Status output(const Equation& equation, std::size_t which, const std::string& piece, std::size_t k) {
    const std::size_t mark = scope_.size();
    if (!piece.empty()) scope_.bind(piece, AffineValue::of(AffineDomain::number(static_cast<std::int64_t>(k))));
    TASO_RETURN_IF_ERROR(write(equation, definition_.output.axes, first_output_ + static_cast<std::uint32_t>(which)));
    scope_.shrink(mark);
    return {};
  }

  /// The shape of an intermediate or output, by its buffer.
  [[nodiscard]] const Shape& written_shape(std::uint32_t buffer) const {
    return buffer < first_output_ ? body_.intermediates[buffer - body_.inputs] : body_.outputs[buffer - first_output_];
  }

  Status write(const Equation& equation, const std::vector<AxisSpec>& axes, std::uint32_t buffer) {
    const std::size_t mark = scope_.size();
    begin_stage(buffer);
    const Shape& shape = written_shape(buffer);
    double volume = 1;
    auto ranged = [&](const std::string& name) {
      return std::any_of(equation.ranges.begin(), equation.ranges.end(),
                         [&](const Expression::Range& range) { return range.name == name; });
    };
    // The steps of a recurrence are no loop of the stage: step 0, or those from 1 on in turn.
    auto steps = [&](std::int64_t extent) -> Affine {
      const std::int64_t count =
          std::max<std::int64_t>(steps_->first ? std::min<std::int64_t>(extent, 1) : extent - 1, 0);
      volume *= static_cast<double>(count);
      const std::int64_t begin = steps_->first ? 0 : 1;
      if (count <= 1) return AffineDomain::number(begin);
      const auto variable = static_cast<std::uint32_t>(extents_.size());
      extents_.push_back(count);
      stage_.steps_of = LoweredStage::Steps{recurrences_, variable};
      return {begin, {{variable, 1}}};
    };
    auto extent_loop = [&](std::int64_t extent) {
      extent = std::max<std::int64_t>(extent, 0);
      volume *= static_cast<double>(extent);
      return new_loop(extent, stage_.outer);
    };
    // Index variables in the order of the axes, then those of 'where', so that loops go through memory in order.
    absl::InlinedVector<Affine, 6> coordinates;
    std::vector<std::pair<std::size_t, const Expression*>> later;  // coordinates that need a 'where' variable
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const Expression& coordinate = equation.coordinates[i];
      if (axes[i].kind == AxisSpec::Kind::rest) {
        AffineValue value;
        value.vector = true;
        for (std::int64_t extent : evaluator_.integers(axes[i].factors[0])) {
          value.components.push_back(extent_loop(extent));
          coordinates.push_back(value.components.back());
        }
        scope_.bind(coordinate.name, std::move(value));
      } else if (coordinate.kind == Kind::tuple) {
        Affine total;
        for (std::size_t f = 0; f < coordinate.operands.size(); ++f) {
          const std::int64_t extent = evaluator_.integer(axes[i].factors[f]);
          const Affine variable = extent_loop(extent);
          scope_.bind(coordinate.operands[f].name, {false, {variable}});
          total = sum(scaled(total, extent, coordinate), variable, coordinate);
        }
        coordinates.push_back(std::move(total));
      } else if (coordinate.kind == Kind::name && coordinate.sort == Sort::index && !ranged(coordinate.name)) {
        const std::int64_t extent = extents_of(axes[i])[0];
        const Affine variable = steps_ && steps_->axis == i ? steps(extent) : extent_loop(extent);
        scope_.bind(coordinate.name, {false, {variable}});
        coordinates.push_back(variable);
      } else {
        // One of the 'where' variables ranges here: open it now if this is where it first occurs.
        for (const Expression::Range& range : equation.ranges)
          if (std::as_const(scope_).find(range.name) == nullptr && mentions(coordinate, range.name))
            open_ranges(std::span(&range, 1), stage_.outer, volume);
        later.emplace_back(coordinates.size(), &coordinate);
        coordinates.emplace_back();
      }
    }
    for (const Expression::Range& range : equation.ranges)
      if (std::as_const(scope_).find(range.name) == nullptr) open_ranges(std::span(&range, 1), stage_.outer, volume);
    for (const auto& [axis, coordinate] : later) coordinates[axis] = evaluator_.value(*coordinate).components.at(0);
    TASO_RETURN_IF_ERROR(evaluation());
    const auto [strides, first] = place_of(buffer, shape);
    Affine write = AffineDomain::number(first);
    Box box;
    double box_volume = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      write = sum(write, scaled(coordinates[i], strides[i], equation.value), equation.value);
      if (volume == 0) continue;
      box.push_back(interval(coordinates[i], extents_));
      box_volume *= static_cast<double>(box.back().second - box.back().first + 1);
      if (box.back().first < 0 || box.back().second >= shape[i])
        return fail(equation.where, "coordinate " +
                                        to_text(equation.coordinates.at(std::min(i, equation.coordinates.size() - 1))) +
                                        " of the left side leaves " + called(buffer) + " " + to_string(shape));
    }
    if (volume != 0) {
      if (box_volume != volume)
        return fail(equation.where, "the left side does not write every element of a box exactly once");
      boxes_[buffer - body_.inputs].push_back(std::move(box));
    }
    TASO_RETURN_IF_ERROR(end_stage(equation.value, std::move(write), volume));
    scope_.shrink(mark);
    return {};
  }

  static bool mentions(const Expression& e, const std::string& name) {
    if (e.kind == Kind::name && e.name == name) return true;
    return std::any_of(e.operands.begin(), e.operands.end(),
                       [&](const Expression& operand) { return mentions(operand, name); });
  }

  /// What messages call an intermediate or output.
  [[nodiscard]] std::string called(std::uint32_t buffer) const {
    if (buffer >= first_output_) return "the output";
    return "'" + definition_.intermediates[buffer - body_.inputs].name + "'";
  }

  /// Every element of a tensor is written exactly once: the boxes are disjoint and their volumes add up.
  Status check_cover(std::size_t which) {
    const std::vector<Box>& boxes = boxes_[which];
    const auto buffer = static_cast<std::uint32_t>(body_.inputs + which);
    const Shape& shape = written_shape(buffer);
    double volume = 1;
    for (std::int64_t extent : shape) volume *= static_cast<double>(extent);
    double written = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      double box_volume = 1;
      for (const auto& [low, high] : boxes[i]) box_volume *= static_cast<double>(high - low + 1);
      written += box_volume;
      for (std::size_t j = 0; j < i; ++j) {
        bool apart = false;
        for (std::size_t axis = 0; axis < boxes[i].size(); ++axis)
          apart = apart || boxes[i][axis].second < boxes[j][axis].first || boxes[j][axis].second < boxes[i][axis].first;
        if (!apart) return fail(definition_.where, "an element of " + called(buffer) + " is written twice");
      }
    }
    if (written != volume)
      return fail(definition_.where,
                  "some elements of " + called(buffer) + " " + to_string(shape) + " are not written");
    return {};
  }

  // ---- scalars ----

  Expected<std::uint32_t> real(const Expression& e) {
    if (e.sort == Sort::integer) {
      const std::int64_t value = evaluator_.integer(e);
      TASO_RETURN_IF_ERROR(evaluation());
      return number(static_cast<double>(value));
    }
    switch (e.kind) {
      case Kind::real:
        return number(e.real);
      case Kind::name: {
        if (frame_ != nullptr) return frame_->at(e.name);
        return number(attributes_.real(e.name));
      }
      case Kind::call:
        return call(e);
      case Kind::negate: {
        TASO_ASSIGN(const std::uint32_t operand, real(e.operands[0]));
        if (stage_.nodes[operand].kind == Node::number) return number(-stage_.nodes[operand].number);
        return operation(Node::negate, {operand});
      }
      case Kind::add:
        return binary(Node::add, e);
      case Kind::subtract:
        return binary(Node::subtract, e);
      case Kind::multiply:
        return binary(Node::multiply, e);
      case Kind::divide:
        return binary(Node::divide, e);
      case Kind::conditional: {
        TASO_ASSIGN(const Condition test, condition(e.operands[0]));
        if (test.known) return real(e.operands[*test.known ? 1 : 2]);
        TASO_ASSIGN(const std::uint32_t yes, real(e.operands[1]));
        TASO_ASSIGN(const std::uint32_t no, real(e.operands[2]));
        return operation(Node::conditional, {test.node, yes, no});
      }
      case Kind::read:
        return read(e);
      case Kind::valid: {
        TASO_ASSIGN(const LoweredAccess access, this->access(e.operands[0], true));
        if (!access.may_leave()) return number(1);
        LoweredNode node;
        node.kind = Node::valid;
        node.access = static_cast<std::uint32_t>(stage_.accesses.size());
        stage_.accesses.push_back(access);
        return new_node(std::move(node));
      }
      case Kind::reduce:
        return reduce(e);
      case Kind::integer:
      case Kind::infinity:
      case Kind::piece:
      case Kind::list:
      case Kind::element:
      case Kind::floor_divide:
      case Kind::modulo:
      case Kind::equal:
      case Kind::not_equal:
      case Kind::less:
      case Kind::less_equal:
      case Kind::greater:
      case Kind::greater_equal:
      case Kind::conjunction:
      case Kind::disjunction:
      case Kind::negation:
      case Kind::all:
      case Kind::tuple:
        break;
    }
    return internal_error("a checked definition uses " + to_text(e) + " as a scalar");
  }

  Expected<std::uint32_t> binary(Node kind, const Expression& e) {
    TASO_ASSIGN(const std::uint32_t left, real(e.operands[0]));
    TASO_ASSIGN(const std::uint32_t right, real(e.operands[1]));
    return operation(kind, {left, right});
  }

  Expected<std::uint32_t> call(const Expression& e) {
    Numbers arguments;
    for (const Expression& operand : e.operands) {
      TASO_ASSIGN(const std::uint32_t argument, real(operand));
      arguments.push_back(argument);
    }
    if (e.name == "max" || e.name == "min") {
      if (arguments.size() == 1) return arguments[0];
      return operation(e.name == "max" ? Node::maximum : Node::minimum, std::move(arguments));
    }
    const AttributeSpec* attribute = frame_ == nullptr ? definition_.find_attribute(e.name) : nullptr;
    const FunctionDefinition* function =
        registry_.find_function(attribute != nullptr ? attributes_.symbol(e.name) : e.name);
    TASO_CHECK(function != nullptr, "a checked definition calls the unknown function " + e.name);
    if (!function->definition) {
      LoweredNode node;
      node.kind = Node::call;
      node.function = function;
      node.operands = std::move(arguments);
      return new_node(std::move(node));
    }
    // Expanded: arguments that cost something are bound to slots, so that each is evaluated once.
    std::map<std::string, std::uint32_t, std::less<>> frame;
    Numbers binds;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      std::uint32_t value = arguments[i];
      const Node kind = stage_.nodes[value].kind;
      if (kind != Node::number && kind != Node::slot) {
        LoweredNode bind;
        bind.kind = Node::bind;
        bind.slot = stage_.slots;
        bind.operands = {value, 0};
        binds.push_back(new_node(std::move(bind)));
        LoweredNode slot;
        slot.kind = Node::slot;
        slot.slot = stage_.slots++;
        value = new_node(std::move(slot));
      }
      frame.emplace(function->parameters[i], value);
    }
    const auto* outer = std::exchange(frame_, &frame);
    Expected<std::uint32_t> body = real(*function->definition);
    frame_ = outer;
    if (!body) return body;
    std::uint32_t result = *body;
    for (std::size_t i = binds.size(); i-- > 0;) {
      stage_.nodes[binds[i]].operands[1] = result;
      result = binds[i];
    }
    return result;
  }

  Expected<std::uint32_t> reduce(const Expression& e) {
    const std::size_t mark = scope_.size();
    LoweredNode node;
    node.kind = Node::reduce;
    node.reduction = e.name == "sum"    ? LoweredNode::Reduction::sum
                     : e.name == "prod" ? LoweredNode::Reduction::product
                     : e.name == "max"  ? LoweredNode::Reduction::maximum
                                        : LoweredNode::Reduction::minimum;
    const bool extremum = e.name == "max" || e.name == "min";
    double volume = 1;
    open_ranges(e.ranges, node.loops, volume);
    TASO_RETURN_IF_ERROR(evaluation());
    if (volume == 0) {
      scope_.shrink(mark);
      // The loops just opened are empty and would make intervals meaningless: nothing refers to them.
      for (std::uint32_t loop : node.loops) extents_[loop] = 1;
      if (!extremum) return number(e.name == "sum" ? 0 : 1);
      LoweredNode infinity;
      infinity.kind = Node::infinity;
      infinity.number = e.name == "max" ? -1 : 1;
      return new_node(std::move(infinity));
    }
    const Expression& body = e.operands[0];
    if (extremum && body.kind == Kind::read && body.fallback != nullptr &&
        (body.fallback->kind == Kind::infinity || body.fallback->kind == Kind::negate) &&
        (body.fallback->kind == Kind::infinity || body.fallback->operands[0].kind == Kind::infinity)) {
      node.leave_out = true;
      LoweredNode element;
      element.kind = Node::read;
      TASO_ASSIGN(LoweredAccess place, access(body, true));
      element.access = static_cast<std::uint32_t>(stage_.accesses.size());
      node.leave_out = place.may_leave();
      stage_.accesses.push_back(std::move(place));
      node.operands = {new_node(std::move(element))};
    } else {
      TASO_ASSIGN(const std::uint32_t value, real(body));
      node.operands = {value};
    }
    scope_.shrink(mark);
    return new_node(std::move(node));
  }

  Expected<std::uint32_t> read(const Expression& e) {
    TASO_ASSIGN(LoweredAccess place, access(e, e.fallback != nullptr));
    LoweredNode node;
    node.kind = Node::read;
    if (place.may_leave()) {
      TASO_ASSIGN(const std::uint32_t fallback, real(*e.fallback));
      if (always_outside(place)) return fallback;
      node.operands.push_back(fallback);
    }
    node.access = static_cast<std::uint32_t>(stage_.accesses.size());
    stage_.accesses.push_back(std::move(place));
    return new_node(std::move(node));
  }

  /// The place that a read names. Coordinates that can leave the tensor become guards, or an error unless `may_leave`.
  Expected<LoweredAccess> access(const Expression& e, bool may_leave) {
    const auto found = tensors_.find(e.name);
    TASO_CHECK(found != tensors_.end(), "a checked definition reads the unknown tensor " + e.name);
    const LoweredTensor& tensor = found->second;
    std::size_t piece = 0;
    if (e.piece != nullptr) {
      const std::int64_t which = evaluator_.integer(*e.piece);
      TASO_RETURN_IF_ERROR(evaluation());
      if (which < 0 || which >= static_cast<std::int64_t>(tensor.buffers.size()))
        return fail(e.where, "there is no " + e.name + "." + std::to_string(which));
      piece = static_cast<std::size_t>(which);
    }
    LoweredAccess result;
    result.buffer = tensor.buffers[piece];
    const Shape& shape = shapes_[result.buffer];
    if (e.flat) {
      const Affine position = evaluator_.value(e.operands[0]).components.at(0);
      TASO_RETURN_IF_ERROR(evaluation());
      if (!is_one_row(result.buffer, shape))
        return fail(e.where, "'" + e.name + "' is read as one row, and does not lie so");
      TASO_RETURN_IF_ERROR(guard(e, e.operands[0], position, volume(shape), may_leave, result));
      result.offset = new_form(position);
      return result;
    }
    std::vector<Affine> extents;
    for (const std::int64_t extent : shape) extents.push_back(AffineDomain::number(extent));
    const auto place = index_place(evaluator_, e, *tensor.axes, std::span<const Affine>(extents));
    TASO_RETURN_IF_ERROR(evaluation());
    const auto [strides, first] = place_of(result.buffer, shape);
    Affine offset = AffineDomain::number(first);
    for (std::size_t axis = 0; axis < place->axes.size(); ++axis) {
      if (const Expression* integers = place->axes[axis].read) {
        TASO_RETURN_IF_ERROR(
            indirect(e, *integers, place->axes[axis], shape.at(axis), strides.at(axis), may_leave, result));
        continue;
      }
      Affine total;
      for (const auto& [index, extent, coordinate] : place->axes[axis].digits) {
        const std::int64_t size = evaluator_.domain().constant(extent, *coordinate);
        TASO_RETURN_IF_ERROR(guard(e, *coordinate, index, size, may_leave, result));
        total = sum(scaled(total, size, *coordinate), index, *coordinate);
      }
      offset = sum(offset, scaled(total, strides.at(axis), e), e);
    }
    TASO_RETURN_IF_ERROR(evaluation());
    result.offset = new_form(std::move(offset));
    return result;
  }

  /// A coordinate that the input of integers `read` says.
  template <class Axis>
  Status indirect(const Expression& e, const Expression& read, const Axis& axis, std::int64_t size, std::int64_t stride,
                  bool may_leave, LoweredAccess& access) {
    TASO_ASSIGN(const LoweredAccess index, this->access(read, false));
    LoweredAccess::Indirect result{index.buffer, index.offset, stride, 0, 0, size};
    result.extent = evaluator_.domain().constant(axis.places, read);
    result.offset = evaluator_.domain().constant(axis.offset, read);
    TASO_RETURN_IF_ERROR(evaluation());
    if (!may_leave && result.may_leave())
      return fail(read.where, "'" + e.name + "' is read outside at " + to_text(read) + " % " +
                                  std::to_string(result.extent) + " - " + std::to_string(result.offset) +
                                  ", where the extent is " + std::to_string(size) + "; 'or' would give a value there");
    access.indirect.push_back(result);
    return {};
  }

  Status guard(const Expression& e, const Expression& coordinate, const Affine& index, std::int64_t extent,
               bool may_leave, LoweredAccess& access) {
    const auto [low, high] = interval(index, extents_);
    if (low >= 0 && high < extent) return {};
    if (!may_leave)
      return fail(coordinate.where, "'" + e.name + "' is read outside at " + to_text(coordinate) + " = " +
                                        std::to_string(low < 0 ? low : high) + ", where the extent is " +
                                        std::to_string(extent) + "; 'or' would give a value there");
    access.guards.push_back({new_form(index), extent});
    return {};
  }

  [[nodiscard]] bool always_outside(const LoweredAccess& access) const {
    return std::any_of(access.guards.begin(), access.guards.end(), [&](const LoweredAccess::Guard& guard) {
      const auto [low, high] = interval(stage_.forms[guard.form], extents_);
      return high < 0 || low >= guard.extent;
    });
  }

  /// A condition: known at this instance, or a node.
  struct Condition {
    std::optional<bool> known;
    std::uint32_t node = 0;
  };

  Expected<Condition> condition(const Expression& e) {
    if (e.kind == Kind::conjunction || e.kind == Kind::disjunction) {
      const bool conjunction = e.kind == Kind::conjunction;
      TASO_ASSIGN(const Condition left, condition(e.operands[0]));
      if (left.known && *left.known != conjunction) return left;
      TASO_ASSIGN(const Condition right, condition(e.operands[1]));
      if (left.known || (right.known && *right.known != conjunction)) return right;
      if (right.known) return left;
      return Condition{{}, operation(conjunction ? Node::all_of : Node::any_of, {left.node, right.node})};
    }
    if (e.kind == Kind::negation) {
      TASO_ASSIGN(const Condition operand, condition(e.operands[0]));
      if (operand.known) return Condition{!*operand.known, 0};
      return Condition{{}, operation(Node::none_of, {operand.node})};
    }
    const bool on_sizes = e.kind == Kind::all || e.kind == Kind::call || e.operands[0].sort == Sort::real ||
                          e.operands[1].sort == Sort::real;
    if (on_sizes) {
      const bool holds = evaluator_.condition(e);
      TASO_RETURN_IF_ERROR(evaluation());
      return Condition{holds, 0};
    }
    const AffineValue left = evaluator_.value(e.operands[0]), right = evaluator_.value(e.operands[1]);
    TASO_RETURN_IF_ERROR(evaluation());
    if (left.vector && right.vector && left.components.size() != right.components.size())
      return Condition{e.kind == Kind::not_equal, 0};
    // left R right as form R' 0, for every component.
    const bool swapped = e.kind == Kind::greater || e.kind == Kind::greater_equal;
    const std::size_t length = left.vector ? left.components.size() : right.components.size();
    Numbers tests;
    for (std::size_t i = 0; i < length; ++i) {
      const Affine& a = left.components[left.vector ? i : 0];
      const Affine& b = right.components[right.vector ? i : 0];
      const Affine difference = swapped ? sum(b, scaled(a, -1, e), e) : sum(a, scaled(b, -1, e), e);
      const auto [low, high] = interval(difference, extents_);
      LoweredNode test;
      test.kind = Node::test;
      std::optional<bool> known;
      switch (e.kind) {
        case Kind::equal:
          test.comparison = LoweredNode::Comparison::equal;
          if (low > 0 || high < 0) known = false;
          if (low == 0 && high == 0) known = true;
          break;
        case Kind::not_equal:
          test.comparison = LoweredNode::Comparison::not_equal;
          if (low > 0 || high < 0) known = true;
          if (low == 0 && high == 0) known = false;
          break;
        case Kind::less:
        case Kind::greater:
          test.comparison = LoweredNode::Comparison::less;
          if (high < 0) known = true;
          if (low >= 0) known = false;
          break;
        default:
          test.comparison = LoweredNode::Comparison::less_equal;
          if (high <= 0) known = true;
          if (low > 0) known = false;
          break;
      }
      if (known && !*known) return Condition{false, 0};
      if (known) continue;
      test.access = new_form(difference);
      tests.push_back(new_node(std::move(test)));
    }
    if (tests.empty()) return Condition{true, 0};
    if (tests.size() == 1) return Condition{{}, tests[0]};
    return Condition{{}, operation(Node::all_of, std::move(tests))};
  }

  std::span<const StridedPlacement> placements_;
  const OperatorRegistry& registry_;
  const OperatorDefinition& definition_;
  const Attributes& attributes_;
  AffineScope scope_;
  std::vector<std::int64_t> extents_;  ///< Of the current stage's loop variables.
  AffineEvaluator evaluator_;
  LoweredBody body_;
  LoweredStage stage_;
  std::map<std::string, LoweredTensor, std::less<>> tensors_;
  std::vector<Shape> shapes_;  ///< Per buffer that can be read: inputs, intermediates so far.
  std::uint32_t first_output_ = 0;
  /// While the equations of a recurrence are lowered: the entry of the axis list along which it goes, and whether its
  /// first step is written or the others are.
  struct Steps {
    std::size_t axis = 0;
    bool first = true;
  };
  std::optional<Steps> steps_;
  std::uint32_t recurrences_ = 0;        ///< So far.
  std::vector<std::vector<Box>> boxes_;  ///< Per intermediate, then per output.
  /// Parameters of the function that is being expanded.
  const std::map<std::string, std::uint32_t, std::less<>>* frame_ = nullptr;
};

double node_flops(const LoweredStage& stage, std::uint32_t id) {
  const LoweredNode& node = stage.nodes[id];
  double operands = 0;
  for (std::uint32_t operand : node.operands) operands += node_flops(stage, operand);
  switch (node.kind) {
    case Node::number:
    case Node::read:
    case Node::valid:
    case Node::slot:
    case Node::infinity:
    case Node::test:
    case Node::all_of:
    case Node::any_of:
    case Node::none_of:
      return 0;
    case Node::bind:
    case Node::conditional:
      return operands;
    case Node::add:
    case Node::subtract:
    case Node::multiply:
    case Node::divide:
    case Node::negate:
    case Node::call:
      return operands + 1;
    case Node::maximum:
    case Node::minimum:
      return operands + static_cast<double>(node.operands.size() - 1);
    case Node::reduce: {
      double volume = 1;
      for (std::uint32_t loop : node.loops) volume *= static_cast<double>(stage.extents[loop]);
      return volume * (operands + 1);
    }
  }
  return 0;
}

}  // namespace

double count_flops(const LoweredBody& body) {
  double total = 0;
  for (const LoweredStage& stage : body.stages) {
    if (stage.empty) continue;
    double volume = 1;
    for (std::uint32_t loop : stage.outer) volume *= static_cast<double>(stage.extents[loop]);
    if (stage.steps_of) volume *= static_cast<double>(stage.extents[stage.steps_of->variable]);
    total += volume * node_flops(stage, stage.root);
  }
  return total;
}

Expected<LoweredBody> lower(const OperatorRegistry& registry, const OperatorDefinition& definition,
                            const Attributes& attributes, std::span<const TensorType> inputs,
                            Instantiation instantiation, std::span<const StridedPlacement> placements) {
  return Lowerer(registry, definition, attributes, inputs, std::move(instantiation), placements).lower();
}

}  // namespace taso
