#include "verifier/unbounded/infer.h"

#include <algorithm>

#include "operators/unparse.h"

namespace taso::unbounded {
namespace {

using Kind = Expression::Kind;

const std::vector<Atom> no_atoms;

bool speaks_of_reals(const Expression& e) {
  return e.sort == Sort::real || std::any_of(e.operands.begin(), e.operands.end(), speaks_of_reals);
}

/// Solves the sizes of one application, in the order of operators/instantiate.cpp.
class Inference {
 public:
  /// With `lenient`, requirements are not looked at.
  Inference(const OperatorRegistry& registry, const OperatorDefinition& definition, Facts& facts, bool lenient = false)
      : definition_(definition),
        facts_(facts),
        lenient_(lenient),
        evaluator_(registry.size_functions(), environment_, facts, no_atoms) {}

  Expected<std::vector<std::vector<Polynomial>>> run(const SizeAttributes& attributes,
                                                     std::span<const std::vector<Polynomial>> inputs) {
    for (const AttributeSpec& attribute : definition_.attributes) {
      if (attribute.kind != AttributeKind::integer && attribute.kind != AttributeKind::integers) continue;
      const auto found = attributes.find(attribute.name);
      if (found == attributes.end()) return wrong("it has no " + attribute.name);
      environment_.bind(attribute.name, found->second);
    }
    if (definition_.variadic() ? inputs.empty() : inputs.size() != definition_.inputs.size())
      return wrong("it takes another number of inputs");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const InputSpec& spec = definition_.inputs[definition_.variadic() ? 0 : i];
      arguments_.push_back({&spec, &inputs[i], {}, std::vector<bool>(spec.axes.size(), false)});
    }
    TASO_RETURN_IF_ERROR(solve());
    TASO_RETURN_IF_ERROR(statements(attributes));
    TASO_RETURN_IF_ERROR(output_shapes());
    return std::move(outputs_);
  }

 private:
  struct Argument {
    const InputSpec* spec = nullptr;
    const std::vector<Polynomial>* shape = nullptr;
    std::vector<std::size_t> first;  ///< Once aligned: the first axis of each entry, and the end.
    std::vector<bool> done;
  };

  [[nodiscard]] Error wrong(const std::string& what) const { return bad_input(definition_.name + ": " + what); }
  [[nodiscard]] std::string text(const Polynomial& p) const { return facts_.symbols().to_string(p); }

  /// What the evaluator could not do.
  [[nodiscard]] Status evaluated() {
    const Obstacle& obstacle = evaluator_.obstacle();
    switch (obstacle.kind) {
      case Obstacle::Kind::none:
        return {};
      case Obstacle::Kind::unsupported:
        return wrong(obstacle.reason);
      case Obstacle::Kind::ill_typed:
        return wrong("it does not accept these sizes");
      case Obstacle::Kind::alternatives:
      case Obstacle::Kind::rank:
      case Obstacle::Kind::length:
        return wrong("an axis or a length is not one number at all sizes");
    }
    return {};
  }

  [[nodiscard]] Status require_equal(const Polynomial& a, const Polynomial& b, const std::string& what) {
    if (lenient_ || facts_.entails_quickly(equal_to(a, b))) return {};
    return wrong(what + " is " + text(a) + ", and that this is " + text(b) + " does not follow");
  }
  [[nodiscard]] Status require_at_least(const Polynomial& a, std::int64_t least, const std::string& what) {
    if (lenient_ || facts_.entails_quickly(at_least(a, Polynomial(least)))) return {};
    return wrong(what + " is " + text(a) + ", and that this is at least " + std::to_string(least) + " does not follow");
  }

  [[nodiscard]] bool follows(const Alternatives& alternatives) {
    const auto all_follow = [&](const std::vector<Atom>& atoms) {
      return std::all_of(atoms.begin(), atoms.end(), [&](const Atom& atom) { return facts_.entails_quickly(atom); });
    };
    if (lenient_ || std::any_of(alternatives.yes.begin(), alternatives.yes.end(), all_follow)) return true;
    return std::all_of(alternatives.no.begin(), alternatives.no.end(),
                       [&](const std::vector<Atom>& atoms) { return facts_.contradictory_quickly(atoms); });
  }

  [[nodiscard]] bool known(std::string_view name) const { return std::as_const(environment_).find(name) != nullptr; }
  [[nodiscard]] bool computable(const Expression& e) const {
    if (e.kind == Kind::name || e.kind == Kind::piece) return known(e.name);
    return std::all_of(e.operands.begin(), e.operands.end(), [&](const Expression& o) { return computable(o); });
  }

  Status align(Argument& argument) {
    std::vector<std::int64_t> lengths;
    std::int64_t covered = 0;
    int unknown = 0;
    const auto rank = static_cast<std::int64_t>(argument.shape->size());
    for (const AxisSpec& axis : argument.spec->axes) {
      std::int64_t length = 1;
      if (axis.kind == AxisSpec::Kind::rest) {
        const Sizes* value = std::as_const(environment_).find(axis.factors[0].name);
        if (value != nullptr) {
          length = static_cast<std::int64_t>(value->components.size());
        } else if (axis.length && computable(*axis.length)) {
          length = evaluator_.number(evaluator_.scalar(*axis.length), 0, rank, *axis.length);
          TASO_RETURN_IF_ERROR(evaluated());
        } else {
          ++unknown;
          length = -1;
        }
      }
      lengths.push_back(length);
      if (length > 0) covered += length;
    }
    if (unknown > 1) return {};
    if (unknown == 0 ? rank != covered : rank < covered)
      return wrong(argument.spec->name + " has rank " + std::to_string(rank));
    std::size_t at = 0;
    for (const std::int64_t length : lengths) {
      argument.first.push_back(at);
      at += static_cast<std::size_t>(length < 0 ? rank - covered : length);
    }
    argument.first.push_back(at);
    return {};
  }

  Status solve_axis(Argument& argument, std::size_t entry, bool& progress) {
    const AxisSpec& axis = argument.spec->axes[entry];
    const std::vector<Polynomial>& shape = *argument.shape;
    const std::size_t first = argument.first[entry], last = argument.first[entry + 1];
    const std::string place = "an extent of " + argument.spec->name;
    if (axis.kind == AxisSpec::Kind::rest) {
      const std::vector<Polynomial> extents(shape.begin() + static_cast<std::ptrdiff_t>(first),
                                            shape.begin() + static_cast<std::ptrdiff_t>(last));
      const std::string& name = axis.factors[0].name;
      if (!known(name)) {
        environment_.bind(name, Sizes::of(extents));
      } else {
        const Sizes value = *std::as_const(environment_).find(name);
        if (value.components.size() != extents.size()) return wrong("the ranks of its inputs do not fit");
        for (std::size_t i = 0; i < extents.size(); ++i)
          TASO_RETURN_IF_ERROR(require_equal(extents[i], value.components[i], place));
      }
    } else if (axis.factors[0].kind == Kind::piece && axis.kind == AxisSpec::Kind::size) {
      const std::string& name = axis.factors[0].name;
      if (!known(name)) environment_.bind(name, Sizes::of(std::vector<Polynomial>{}));
      environment_.find(name)->components.push_back(shape[first]);
    } else {
      const Expression* unknown = nullptr;
      Polynomial product(1);
      for (const Expression& factor : axis.factors) {
        if (computable(factor)) {
          product = product * evaluator_.scalar(factor);
          TASO_RETURN_IF_ERROR(evaluated());
        } else if (unknown != nullptr || factor.kind != Kind::name) {
          return {};
        } else {
          unknown = &factor;
        }
      }
      if (unknown == nullptr) {
        TASO_RETURN_IF_ERROR(require_equal(shape[first], product, place));
      } else {
        TASO_RETURN_IF_ERROR(require_at_least(product, 1, "a factor of " + place));
        const std::optional<Polynomial> factor = facts_.divide(shape[first], product, no_atoms);
        if (!factor) return wrong(place + " is not known to be a multiple of " + text(product));
        TASO_RETURN_IF_ERROR(require_equal(shape[first], *factor * product, place));
        environment_.bind(unknown->name, Sizes::of(*factor));
      }
    }
    argument.done[entry] = true;
    progress = true;
    return {};
  }

  Status solve() {
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
      if (std::find(argument.done.begin(), argument.done.end(), false) != argument.done.end())
        return wrong("its sizes are not understood");
    return {};
  }

  Status statements(const SizeAttributes& attributes) {
    for (const AttributeSpec& attribute : definition_.attributes) {
      if (!attribute.length) continue;
      const auto length = static_cast<std::int64_t>(attributes.find(attribute.name)->second.components.size());
      const Polynomial expected = evaluator_.scalar(*attribute.length);
      TASO_RETURN_IF_ERROR(evaluated());
      TASO_RETURN_IF_ERROR(require_equal(Polynomial(length), expected, "the length of " + attribute.name));
    }
    for (const SizeStatement& statement : definition_.statements) {
      if (!statement.name.empty()) {
        Sizes value = evaluator_.value(statement.value);
        TASO_RETURN_IF_ERROR(evaluated());
        environment_.bind(statement.name, std::move(value));
        continue;
      }
      if (speaks_of_reals(statement.value)) continue;
      const std::vector<Alternatives> parts = evaluator_.requirements(statement.value);
      TASO_RETURN_IF_ERROR(evaluated());
      for (const Alternatives& part : parts)
        if (!follows(part)) return wrong("that " + statement.message + " does not follow");
    }
    return {};
  }

  Status output_shapes() {
    const OutputSpec& output = definition_.output;
    std::int64_t count = 1;
    if (output.count) {
      count = evaluator_.number(evaluator_.scalar(*output.count), 0, 1024, *output.count);
      TASO_RETURN_IF_ERROR(evaluated());
    }
    for (std::int64_t k = 0; k < count; ++k) {
      const std::size_t mark = environment_.size();
      if (output.count) environment_.bind(output.piece, Sizes::of(Polynomial(k)));
      std::vector<Polynomial> shape;
      for (const AxisSpec& axis : output.axes) {
        if (axis.kind == AxisSpec::Kind::rest) {
          const Sizes extents = evaluator_.value(axis.factors[0]);
          shape.insert(shape.end(), extents.components.begin(), extents.components.end());
        } else {
          Polynomial extent(1);
          for (const Expression& factor : axis.factors) extent = extent * evaluator_.scalar(factor);
          shape.push_back(extent);
        }
      }
      environment_.shrink(mark);
      TASO_RETURN_IF_ERROR(evaluated());
      for (Polynomial& extent : shape) {
        extent = facts_.reduce(extent);
        if (!extent.valid()) return wrong("an extent of its output is too large a polynomial");
        TASO_RETURN_IF_ERROR(require_at_least(extent, 0, "an extent of its output"));
      }
      outputs_.push_back(std::move(shape));
    }
    return {};
  }

  const OperatorDefinition& definition_;
  Facts& facts_;
  bool lenient_;
  SizeEnvironment environment_;
  SizeEvaluator evaluator_;
  std::vector<Argument> arguments_;
  std::vector<std::vector<Polynomial>> outputs_;
};

}  // namespace

Expected<std::vector<std::vector<Polynomial>>> infer_shapes(const OperatorRegistry& registry,
                                                            const OperatorDefinition& definition,
                                                            const SizeAttributes& attributes,
                                                            std::span<const std::vector<Polynomial>> inputs,
                                                            Facts& facts) {
  return Inference(registry, definition, facts).run(attributes, inputs);
}

Expected<std::vector<std::vector<Polynomial>>> infer_shapes_with_elements(
    const OperatorRegistry& registry, const OperatorDefinition& definition, const SizeAttributes& attributes,
    std::span<const std::vector<Polynomial>> inputs, Facts& facts,
    const std::function<bool(const Polynomial&)>& may_assume) {
  Facts with_elements = facts;
  TASO_ASSIGN(const auto outputs, Inference(registry, definition, with_elements, true).run(attributes, inputs));
  for (const std::vector<Polynomial>& shape : outputs)
    for (const Polynomial& extent : shape) {
      if (facts.entails_quickly(at_least(extent, 1))) continue;
      if (!may_assume(extent) || !with_elements.add(at_least(extent, 1)))
        return bad_input(definition.name + ": it may have no elements");
    }
  TASO_ASSIGN(auto result, Inference(registry, definition, with_elements).run(attributes, inputs));
  facts = with_elements;
  return result;
}

}  // namespace taso::unbounded
