#include "verifier/unbounded/infer.h"

#include <algorithm>

#include "operators/size_solver.h"

namespace taso::unbounded {
namespace {

const std::vector<Atom> no_atoms;

struct Names {
  SizeEnvironment names;
};

/// Finds the types of one application; what must hold must follow.
class Inference : private Names, public SizeSolver<Inference, SizeEvaluator, std::vector<Polynomial>> {
 public:
  /// With `lenient`, requirements are not looked at.
  Inference(const OperatorRegistry& registry, const OperatorDefinition& definition, Facts& facts, bool lenient = false)
      : SizeSolver(definition, registry.size_functions(), names, facts, no_atoms), facts_(facts), lenient_(lenient) {}

  Expected<std::vector<std::vector<Polynomial>>> run(const SizeAttributes& attributes,
                                                     std::span<const std::vector<Polynomial>> inputs) {
    for (const AttributeSpec& attribute : definition_.attributes) {
      if (attribute.kind != AttributeKind::integer && attribute.kind != AttributeKind::integers) continue;
      const auto found = attributes.find(attribute.name);
      if (found == attributes.end()) return wrong("it has no " + attribute.name);
      scope_.bind(attribute.name, found->second);
    }
    std::vector<const Shape*> shapes;
    for (const Shape& shape : inputs) shapes.push_back(&shape);
    if (!set_arguments(shapes)) return wrong("it takes another number of inputs");
    if (!solve_sizes() || !check_lengths() || !statements() || !output_shapes()) return status_.error();
    return std::move(outputs_);
  }

 private:
  friend SizeSolver;

  [[nodiscard]] Error wrong(const std::string& what) const { return bad_input(definition_.name + ": " + what); }
  bool fail(const std::string& what) {
    status_ = wrong(what);
    return false;
  }
  [[nodiscard]] std::string text(const Polynomial& p) const { return facts_.symbols().to_string(p); }

  [[nodiscard]] bool require_equal(const Polynomial& a, const Polynomial& b, const std::string& what) {
    return lenient_ || facts_.entails_quickly(equal_to(a, b)) ||
           fail(what + " is " + text(a) + ", and that this is " + text(b) + " does not follow");
  }
  [[nodiscard]] bool require_at_least(const Polynomial& a, std::int64_t least, const std::string& what) {
    return lenient_ || facts_.entails_quickly(at_least(a, Polynomial(least))) ||
           fail(what + " is " + text(a) + ", and that this is at least " + std::to_string(least) + " does not follow");
  }

  [[nodiscard]] bool follows(const Alternatives& alternatives) {
    const auto all_follow = [&](const std::vector<Atom>& atoms) {
      return std::all_of(atoms.begin(), atoms.end(), [&](const Atom& atom) { return facts_.entails_quickly(atom); });
    };
    if (lenient_ || std::any_of(alternatives.yes.begin(), alternatives.yes.end(), all_follow)) return true;
    return std::all_of(alternatives.no.begin(), alternatives.no.end(),
                       [&](const std::vector<Atom>& atoms) { return facts_.contradictory_quickly(atoms); });
  }

  // ---- the hooks of SizeSolver ----

  bool evaluated(int /*constraint*/) {
    const Obstacle& obstacle = evaluator_.obstacle();
    switch (obstacle.kind) {
      case Obstacle::Kind::none:
        return true;
      case Obstacle::Kind::unsupported:
        return fail(obstacle.reason);
      case Obstacle::Kind::ill_typed:
        return fail("it does not accept these sizes");
      case Obstacle::Kind::alternatives:
      case Obstacle::Kind::rank:
      case Obstacle::Kind::length:
        return fail("an axis or a length is not one number at all sizes");
    }
    return true;
  }

  bool rank_differs(const Argument& argument, std::int64_t /*covered*/, bool /*at_least*/) {
    return fail(argument.spec->name + " has rank " + std::to_string(argument.shape->size()));
  }

  bool equal_rests(const Argument& argument, std::size_t entry, const Sizes& value) {
    const std::span<const Polynomial> extents = argument.extents(entry);
    if (value.components.size() != extents.size()) return fail("the ranks of its inputs do not fit");
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (!require_equal(extents[i], value.components[i], place(argument))) return false;
    return true;
  }

  bool equal_extents(const Argument& argument, std::size_t entry, const Polynomial& expected) {
    return require_equal(argument.extents(entry)[0], expected, place(argument));
  }

  std::optional<Polynomial> quotient(const Argument& argument, std::size_t entry, const Polynomial& product,
                                     const Expression& /*unknown*/) {
    const Polynomial& extent = argument.extents(entry)[0];
    if (!require_at_least(product, 1, "a factor of " + place(argument))) return std::nullopt;
    std::optional<Polynomial> factor = facts_.divide(extent, product, no_atoms);
    if (!factor) {
      fail(place(argument) + " is not known to be a multiple of " + text(product));
      return std::nullopt;
    }
    if (!require_equal(extent, *factor * product, place(argument))) return std::nullopt;
    return factor;
  }

  bool equal_lengths(const AttributeSpec& attribute, std::int64_t length, const Polynomial& expected) {
    return require_equal(Polynomial(length), expected, "the length of " + attribute.name);
  }

  bool require(const SizeStatement& statement) {
    if (statement.value.speaks_of_reals()) return true;
    const std::vector<Alternatives> parts = evaluator_.requirements(statement.value);
    if (!evaluated(statement.constraint)) return false;
    return std::all_of(parts.begin(), parts.end(), [&](const Alternatives& part) { return follows(part); }) ||
           fail("that " + statement.message + " does not follow");
  }

  bool output(Shape shape) {
    for (Polynomial& extent : shape) {
      extent = facts_.reduce(extent);
      if (!extent.valid()) return fail("an extent of its output is too large a polynomial");
      if (!require_at_least(extent, 0, "an extent of its output")) return false;
    }
    outputs_.push_back(std::move(shape));
    return true;
  }

  static std::string place(const Argument& argument) { return "an extent of " + argument.spec->name; }

  Facts& facts_;
  bool lenient_;
  Status status_;  ///< The first failure.
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
    std::span<const std::vector<Polynomial>> inputs, Facts& facts) {
  Facts with_elements = facts;
  TASO_ASSIGN(const auto outputs, Inference(registry, definition, with_elements, true).run(attributes, inputs));
  const auto is_passed_on = [&](const Polynomial& extent) {
    return facts.entails_quickly(at_least(extent, 0)) && std::ranges::any_of(inputs, [&](const auto& shape) {
             return std::ranges::find(shape, extent) != shape.end();
           });
  };
  for (const std::vector<Polynomial>& shape : outputs)
    for (const Polynomial& extent : shape) {
      if (facts.entails_quickly(at_least(extent, 1)) || is_passed_on(extent)) continue;
      if (!with_elements.add(at_least(extent, 1))) return bad_input(definition.name + ": it may have no elements");
    }
  TASO_ASSIGN(auto result, Inference(registry, definition, with_elements).run(attributes, inputs));
  facts = with_elements;
  return result;
}

}  // namespace taso::unbounded
