#include "operators/instantiate.h"

#include <algorithm>
#include <map>

#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

bool is_real(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f64 || type == ElementType::f16 || type == ElementType::bf16;
}
bool is_index(ElementType type) { return type == ElementType::i32 || type == ElementType::i64; }

Shape shape_of(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

/// One input tensor with the specification it must fit.
struct Argument {
  const InputSpec* spec = nullptr;
  std::size_t number = 0;  ///< Of a tensor of a variadic input.
  int constraint = 0;
  const Shape* shape = nullptr;
  std::vector<std::size_t> first;  ///< Once aligned: the first axis of each entry of the specification, and the end.
  std::vector<bool> done;          ///< Per entry.

  /// As messages call it: "x", "x.1".
  [[nodiscard]] std::string name() const {
    return spec->variadic() ? spec->name + "." + std::to_string(number) : spec->name;
  }
};

class Solver {
 public:
  Solver(const OperatorRegistry& registry, const OperatorDefinition& definition, const Attributes& attributes,
         std::span<const TensorType> inputs, Reasons reasons)
      : definition_(definition),
        inputs_(inputs),
        reasons_(reasons),
        evaluator_(registry.size_functions(), result_.environment, attributes) {
    for (const AttributeSpec& attribute : definition.attributes) {
      if (attribute.kind == AttributeKind::integer)
        result_.environment.bind(attribute.name, IndexValue::of(attributes.integer(attribute.name)));
      else if (attribute.kind == AttributeKind::integers)
        result_.environment.bind(attribute.name, IndexValue::of(attributes.integers(attribute.name)));
    }
  }

  /// Everything that does not depend on the attribute `name`; false if that fails. Nothing else may be called then.
  bool prepare(const std::string& name) {
    if (!match_inputs()) return false;
    varying_ = {name};
    auto varies = [&](const Expression& e) { return this->varies(e); };
    for (const Argument& argument : arguments_)
      for (const AxisSpec& axis : argument.spec->axes)
        sizes_vary_ = sizes_vary_ || std::any_of(axis.factors.begin(), axis.factors.end(), varies) ||
                      (axis.length && varies(*axis.length));
    if (sizes_vary_) return true;
    if (!solve_sizes()) return false;
    for (const AttributeSpec& attribute : definition_.attributes)
      if (attribute.constraint != 0 && !length_varies(attribute) && !check_length(attribute)) return false;
    for (const SizeStatement& statement : definition_.statements) {
      if (varies(statement.value)) {
        if (!statement.name.empty()) varying_.push_back(statement.name);
        continue;
      }
      if (!statement.name.empty())
        result_.environment.bind(statement.name, evaluator_.value(statement.value));
      else if (!evaluator_.condition(statement.value))
        return false;
      if (!evaluator_.status()) return false;
    }
    return true;
  }

  /// After prepare(), and only where no size of an input varies: whether all holds with this value of the attribute.
  bool holds_with(const AttributeSpec& attribute, const AttributeValue& value) {
    const std::size_t mark = result_.environment.size();
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      result_.environment.bind(attribute.name, IndexValue::of(*integer));
    else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
      result_.environment.bind(attribute.name, IndexValue::of(*list));
    const bool holds = varying_part_holds();
    result_.environment.shrink(mark);
    result_.outputs.clear();
    evaluator_.clear_status();
    return holds;
  }
  [[nodiscard]] bool sizes_vary() const { return sizes_vary_; }

  Expected<Instantiation> solve() {
    TASO_RETURN_IF_ERROR(match_inputs());
    TASO_RETURN_IF_ERROR(solve_sizes());
    TASO_RETURN_IF_ERROR(check_statements());
    TASO_RETURN_IF_ERROR(output_shapes());
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool varies(const Expression& e) const {
    return std::find(varying_.begin(), varying_.end(), e.name) != varying_.end() ||
           std::any_of(e.operands.begin(), e.operands.end(), [&](const Expression& o) { return varies(o); }) ||
           std::any_of(e.ranges.begin(), e.ranges.end(),
                       [&](const Expression::Range& range) { return varies(*range.extent); });
  }

  /// Of an attribute whose length is checked.
  [[nodiscard]] bool length_varies(const AttributeSpec& attribute) const {
    return attribute.name == varying_[0] || varies(*attribute.length);
  }

  bool varying_part_holds() {
    for (const AttributeSpec& attribute : definition_.attributes)
      if (attribute.constraint != 0 && length_varies(attribute) && !check_length(attribute)) return false;
    for (const SizeStatement& statement : definition_.statements) {
      if (!varies(statement.value)) continue;
      if (!statement.name.empty())
        result_.environment.bind(statement.name, evaluator_.value(statement.value));
      else if (!evaluator_.condition(statement.value))
        return false;
      if (!evaluator_.status()) return false;
    }
    return output_shapes().ok();
  }

  /// `message` makes the text.
  template <class Message>
  [[nodiscard]] Error fail(int constraint, const Message& message) const {
    if (reasons_ == Reasons::none) return bad_input({});
    std::string shapes;
    for (const TensorType& input : inputs_) shapes += (shapes.empty() ? "" : ", ") + to_string(input.shape);
    return bad_input(definition_.name + " C" + std::to_string(constraint) + ": " + message() +
                     (inputs_.empty() ? "" : "; inputs " + shapes));
  }
  /// The failure of an expression that the constraint needs.
  [[nodiscard]] Error fail(int constraint, const Status& status) const {
    return fail(constraint, [&] { return status.error().message; });
  }

  Status match_inputs() {
    const std::size_t expected = definition_.inputs.size();
    if (definition_.variadic() ? inputs_.empty() : inputs_.size() != expected)
      return bad_input(definition_.name + " C0: takes " +
                       (definition_.variadic() ? "one or more inputs"
                                               : std::to_string(expected) + (expected == 1 ? " input" : " inputs")) +
                       ", not " + std::to_string(inputs_.size()));
    const TensorType* first_real = nullptr;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::size_t position = definition_.variadic() ? 0 : i;
      const InputSpec& spec = definition_.inputs[position];
      Argument argument;
      argument.spec = &spec;
      argument.number = i;
      argument.constraint = static_cast<int>(position) + 1;
      argument.shape = &inputs_[i].shape;
      argument.done.assign(spec.axes.size(), false);
      const TensorType& type = inputs_[i];
      if (!type.known) return bad_input(definition_.name + ": the shape of " + argument.name() + " is not known");
      if (spec.integers ? !is_index(type.element) : !is_real(type.element))
        return fail(argument.constraint, [&] {
          return argument.name() + " holds " + to_string(type.element) + ", expected " +
                 (spec.integers ? "i32 or i64" : "floating-point numbers");
        });
      if (!spec.integers) {
        if (first_real == nullptr) first_real = &type;
        if (type.element != first_real->element)
          return fail(argument.constraint, [&] {
            return argument.name() + " holds " + to_string(type.element) + ", expected " +
                   to_string(first_real->element) + ", as the input before";
          });
      }
      if (!is_reasonable(type.shape))
        return fail(argument.constraint,
                    [&] { return argument.name() + " has a negative extent or more than 2^40 elements"; });
      arguments_.push_back(std::move(argument));
    }
    return {};
  }

  [[nodiscard]] bool known(std::string_view name) const { return result_.environment.find(name) != nullptr; }
  [[nodiscard]] bool computable(const Expression& e) const {
    if (e.kind == Kind::name || e.kind == Kind::piece) return known(e.name);
    for (const Expression& operand : e.operands)
      if (!computable(operand)) return false;
    return true;
  }

  void bind(const std::string& name, IndexValue value, const Argument& argument) {
    result_.environment.bind(name, std::move(value));
    origin_.emplace_back(name, &argument);
  }
  /// ", as in a" for a name that an input gave.
  [[nodiscard]] std::string origin(const Expression& e) const {
    for (const auto& [name, argument] : origin_)
      if (e.kind == Kind::name && name == e.name) return ", as in " + argument->name();
    return "";
  }

  static std::string signature(const Argument& argument) {
    return argument.spec->name + (argument.spec->variadic() ? "." + argument.spec->piece : "") +
           to_text(argument.spec->axes);
  }

  /// Finds which axes of the tensor each entry covers, once all rests but one have a known length.
  Status align(Argument& argument) {
    const std::vector<AxisSpec>& axes = argument.spec->axes;
    std::int64_t covered = 0;
    int unknown = 0;
    std::vector<std::int64_t> lengths;
    for (const AxisSpec& axis : axes) {
      std::int64_t length = 1;
      if (axis.kind == AxisSpec::Kind::rest) {
        const IndexValue* value = std::as_const(result_.environment).find(axis.factors[0].name);
        if (value != nullptr) {
          length = static_cast<std::int64_t>(value->components.size());
        } else if (axis.length && computable(*axis.length)) {
          length = evaluator_.integer(*axis.length);
          if (!evaluator_.status()) return fail(argument.constraint, evaluator_.status());
          if (length < 0 || length > 1024)
            return fail(argument.constraint, [&] {
              return "the number " + to_text(*axis.length) + " of axes " + to_text(axis.factors[0]) + ".. of " +
                     argument.name() + " is " + std::to_string(length);
            });
        } else {
          ++unknown;
          length = -1;
        }
      }
      lengths.push_back(length);
      if (length > 0) covered += length;
    }
    if (unknown > 1) return {};
    const auto rank = static_cast<std::int64_t>(argument.shape->size());
    if (unknown == 0 ? rank != covered : rank < covered)
      return fail(argument.constraint, [&] {
        return argument.name() + " has rank " + std::to_string(rank) + ", expected " +
               (unknown == 0 ? "" : "at least ") + std::to_string(covered) + " for " + signature(argument);
      });
    std::size_t at = 0;
    for (std::int64_t length : lengths) {
      argument.first.push_back(at);
      at += static_cast<std::size_t>(length < 0 ? rank - covered : length);
    }
    argument.first.push_back(at);
    return {};
  }

  /// Binds or checks one entry if all but one of its factors are known.
  Status solve_axis(Argument& argument, std::size_t entry, bool& progress) {
    const AxisSpec& axis = argument.spec->axes[entry];
    const Shape& shape = *argument.shape;
    const std::size_t first = argument.first[entry], last = argument.first[entry + 1];
    auto place = [&] {
      return "axis " + std::to_string(static_cast<std::int64_t>(first) - static_cast<std::int64_t>(shape.size())) +
             " of " + argument.name();
    };
    if (axis.kind == AxisSpec::Kind::rest) {
      const Shape extents(shape.begin() + static_cast<std::ptrdiff_t>(first),
                          shape.begin() + static_cast<std::ptrdiff_t>(last));
      const Expression& name = axis.factors[0];
      if (!known(name.name)) {
        bind(name.name, IndexValue::of(extents), argument);
      } else if (!std::ranges::equal(evaluator_.integers(name), extents)) {
        return fail(argument.constraint, [&] {
          return "the axes " + to_text(name) + ".. of " + argument.name() + " are " + to_string(extents) +
                 ", expected " + to_string(shape_of(evaluator_.integers(name))) + origin(name);
        });
      }
    } else if (axis.factors[0].kind == Kind::piece && axis.kind == AxisSpec::Kind::size) {
      const std::string& name = axis.factors[0].name;
      if (!known(name)) bind(name, IndexValue::of(std::vector<std::int64_t>{}), argument);
      result_.environment.find(name)->components.push_back({shape[first], {}});
    } else {
      const Expression* unknown = nullptr;
      std::int64_t product = 1;
      for (const Expression& factor : axis.factors) {
        if (computable(factor)) {
          if (__builtin_mul_overflow(product, evaluator_.integer(factor), &product)) product = 0;
        } else if (unknown != nullptr || factor.kind != Kind::name) {
          return {};
        } else {
          unknown = &factor;
        }
      }
      if (!evaluator_.status()) return fail(argument.constraint, evaluator_.status());
      if (unknown == nullptr) {
        if (product != shape[first])
          return fail(argument.constraint, [&] {
            return place() + " is " + std::to_string(shape[first]) + ", expected " + to_text(axis) + " = " +
                   std::to_string(product) + origin(axis.factors[0]);
          });
      } else if (product == 0) {
        return fail(argument.constraint, [&] {
          return place() + " is " + to_text(axis) + ", and " + unknown->name +
                 " cannot be known where another factor is 0";
        });
      } else if (shape[first] % product != 0) {
        return fail(argument.constraint, [&] {
          return place() + " is " + std::to_string(shape[first]) + ", expected a multiple of " +
                 std::to_string(product) + " for " + to_text(axis);
        });
      } else {
        bind(unknown->name, IndexValue::of(shape[first] / product), argument);
      }
    }
    argument.done[entry] = true;
    progress = true;
    return {};
  }

  /// The order of Checker::solve_sizes, with numbers.
  Status solve_sizes() {
    for (bool progress = true; progress;) {
      progress = false;
      for (Argument& argument : arguments_) {
        if (argument.first.empty()) {
          TASO_RETURN_IF_ERROR(align(argument));
          if (argument.first.empty()) continue;
          progress = true;
        }
        for (std::size_t entry = 0; entry < argument.done.size(); ++entry)
          if (!argument.done[entry]) TASO_RETURN_IF_ERROR(solve_axis(argument, entry, progress));
      }
    }
    for (const Argument& argument : arguments_)
      for (bool done : argument.done) TASO_CHECK(done, "sizes of " + definition_.name + " are not solved");
    return {};
  }

  Status check_length(const AttributeSpec& attribute) {
    const std::int64_t expected = evaluator_.integer(*attribute.length);
    if (!evaluator_.status()) return fail(attribute.constraint, evaluator_.status());
    const IndexValue* list = std::as_const(result_.environment).find(attribute.name);
    const auto length = static_cast<std::int64_t>(list->components.size());
    if (length != expected)
      return fail(attribute.constraint, [&] {
        return attribute.name + " has " + std::to_string(length) + " elements, expected " + to_text(*attribute.length) +
               " = " + std::to_string(expected);
      });
    return {};
  }

  Status check_statements() {
    for (const AttributeSpec& attribute : definition_.attributes)
      if (attribute.constraint != 0) TASO_RETURN_IF_ERROR(check_length(attribute));
    int next = definition_.statements.empty() ? 0 : 1;
    for (const SizeStatement& statement : definition_.statements) {
      if (statement.name.empty()) {
        const bool holds = evaluator_.condition(statement.value);
        if (!evaluator_.status()) return fail(statement.constraint, evaluator_.status());
        if (!holds)
          return fail(statement.constraint, [&] {
            return statement.message + " (" + to_text(statement.value) + ")" + values_of(statement.value);
          });
        next = statement.constraint + 1;
        continue;
      }
      IndexValue value = evaluator_.value(statement.value);
      if (!evaluator_.status()) return fail(next, evaluator_.status());
      result_.environment.bind(statement.name, std::move(value));
    }
    return {};
  }

  /// " where oh = 0, ow = 3": the numbers behind a failed requirement.
  std::string values_of(const Expression& e) {
    std::map<std::string, std::string> values;
    collect(e, values);
    std::string text;
    for (const auto& [name, value] : values) text += (text.empty() ? " where " : ", ") + name + " = " + value;
    return text;
  }
  void collect(const Expression& e, std::map<std::string, std::string>& values) {
    if (e.kind == Kind::name && known(e.name)) {
      const IndexValue* value = std::as_const(result_.environment).find(e.name);
      std::vector<std::int64_t> numbers;
      for (const Affine& component : value->components) numbers.push_back(component.base);
      values[e.name] = value->vector ? to_string(numbers) : std::to_string(numbers[0]);
    }
    for (const Expression& operand : e.operands) collect(operand, values);
    for (const Expression::Range& range : e.ranges) collect(*range.extent, values);
  }

  Status output_shapes() {
    const OutputSpec& output = definition_.output;
    const std::int64_t count = output.count ? evaluator_.integer(*output.count) : 1;
    for (std::int64_t k = 0; k < count && evaluator_.status(); ++k) {
      const std::size_t mark = result_.environment.size();
      if (output.count) result_.environment.bind(output.piece, IndexValue::of(k));
      Shape shape;
      for (const AxisSpec& axis : output.axes) {
        if (axis.kind == AxisSpec::Kind::rest) {
          for (std::int64_t extent : evaluator_.integers(axis.factors[0])) shape.push_back(extent);
        } else {
          std::int64_t extent = 1;
          for (const Expression& factor : axis.factors)
            if (__builtin_mul_overflow(extent, evaluator_.integer(factor), &extent)) extent = -1;
          shape.push_back(extent);
        }
      }
      result_.environment.shrink(mark);
      if (!evaluator_.status()) break;
      if (!is_reasonable(shape))
        return bad_input(definition_.name + ": the output would be " + to_string(shape) +
                         ", which has a negative extent or more than 2^40 elements");
      result_.outputs.push_back(std::move(shape));
    }
    if (!evaluator_.status()) return bad_input(definition_.name + ": " + evaluator_.status().error().message);
    return {};
  }

  const OperatorDefinition& definition_;
  std::span<const TensorType> inputs_;
  Reasons reasons_;
  Instantiation result_;
  IndexEvaluator evaluator_;
  std::vector<Argument> arguments_;
  std::vector<std::string_view> varying_;  ///< After prepare(): the attribute, and lets that depend on it.
  bool sizes_vary_ = false;                ///< Sizes of inputs depend on it.
  std::vector<std::pair<std::string_view, const Argument*>> origin_;  ///< Which input gave a name its value.
};

}  // namespace

Expected<Instantiation> instantiate(const OperatorRegistry& registry, const OperatorDefinition& definition,
                                    const Attributes& attributes, std::span<const TensorType> inputs, Reasons reasons) {
  for (const AttributeSpec& attribute : definition.attributes)
    if (attributes.find(attribute.name) == nullptr ||
        attributes.find(attribute.name)->index() != static_cast<std::size_t>(attribute.kind)) {
      // Incomplete attributes: report as complete() would.
      TASO_ASSIGN(const Attributes completed, registry.complete(definition.name, attributes));
      return Solver(registry, definition, completed, inputs, reasons).solve();
    }
  return Solver(registry, definition, attributes, inputs, reasons).solve();
}

std::vector<bool> instantiable(const OperatorRegistry& registry, const OperatorDefinition& definition,
                               Attributes attributes, std::span<const TensorType> inputs, const std::string& name,
                               std::span<const AttributeValue> values) {
  std::vector<bool> result(values.size(), false);
  const AttributeSpec* attribute = definition.find_attribute(name);
  if (attribute == nullptr) return result;
  auto fits = [&](const AttributeValue& value) { return value.index() == static_cast<std::size_t>(attribute->kind); };
  const auto first = std::find_if(values.begin(), values.end(), fits);
  if (first == values.end()) return result;
  attributes.set(name, *first);
  Solver solver(registry, definition, attributes, inputs, Reasons::none);
  if (!solver.prepare(name)) return result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!fits(values[i])) continue;
    if (solver.sizes_vary()) {
      attributes.set(name, values[i]);
      result[i] = Solver(registry, definition, attributes, inputs, Reasons::none).solve().ok();
    } else {
      result[i] = solver.holds_with(*attribute, values[i]);
    }
  }
  return result;
}

}  // namespace taso
