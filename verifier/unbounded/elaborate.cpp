#include "verifier/unbounded/elaborate.h"

#include <algorithm>
#include <utility>

#include "operators/index_place.h"
#include "operators/plain_reads.h"
#include "operators/unparse.h"

namespace taso::unbounded {
namespace {

using Kind = Expression::Kind;

bool is_infinity(const Expression& e) {
  return e.kind == Kind::infinity || (e.kind == Kind::negate && e.operands[0].kind == Kind::infinity);
}

bool mentions(const Expression& e, const std::string& name) {
  return (e.kind == Kind::name && e.name == name) ||
         std::any_of(e.operands.begin(), e.operands.end(), [&](const Expression& o) { return mentions(o, name); });
}

// Restores a list to its length when a scope ends.
template <class Item>
class Mark {
 public:
  explicit Mark(std::vector<Item>& list) : list_(list), size_(list.size()) {}
  ~Mark() { list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(size_), list_.end()); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  std::vector<Item>& list_;
  std::size_t size_;
};

}  // namespace

void Elaborator::note(const Obstacle& obstacle) {
  if (obstacle_.any() || !obstacle.any()) return;
  // What has no value where it is not evaluated does not make the operator ill-typed.
  if (obstacle.kind != Obstacle::Kind::unsupported && !is_evaluated())
    unsupported("an expression that has no value at some sizes, under an 'if' or in a range that may be empty");
  else
    obstacle_ = obstacle;
}

bool Elaborator::is_evaluated() {
  if (in_ranges_ > 0) return false;
  Facts::Replacement first;
  for (const SymbolId symbol : scope_) first.emplace_back(symbol, Polynomial(0));
  for (const SymbolId symbol : places_) first.emplace_back(symbol, Polynomial(0));
  return std::all_of(context_.begin(), context_.end(), [&](const Atom& atom) {
    return facts_.entails_quickly({atom.relation, facts_.substitute(atom.p, first)});
  });
}

void Elaborator::unsupported(const std::string& reason) {
  if (obstacle_.any()) return;
  obstacle_.kind = Obstacle::Kind::unsupported;
  obstacle_.reason = reason;
}

const Obstacle& Elaborator::obstacle() {
  if (!obstacle_.any() && !builder_.problem().empty()) unsupported(builder_.problem());
  return obstacle_;
}

Sizes Elaborator::sizes(const Expression& e, Frame& frame) {
  SizeEvaluator evaluator(registry_.size_functions(), frame.environment, facts_, context_);
  Sizes result = evaluator.value(e);
  note(evaluator.obstacle());
  return result;
}

Polynomial Elaborator::index(const Expression& e, Frame& frame) {
  const Sizes result = sizes(e, frame);
  return result.components.empty() ? Polynomial::invalid() : result.components[0];
}

Alternatives Elaborator::condition(const Expression& e, Frame& frame) {
  SizeEvaluator evaluator(registry_.size_functions(), frame.environment, facts_, context_);
  Alternatives result = evaluator.condition(e);
  note(evaluator.obstacle());
  return result;
}

std::vector<Polynomial> Elaborator::digits(const Polynomial& index, const std::vector<Polynomial>& factors) {
  std::vector<Polynomial> result(factors.size());
  Polynomial rest = index;
  for (std::size_t i = factors.size(); i-- > 1;) {
    const std::optional<Polynomial> quotient = facts_.divide(rest, factors[i], context_);
    if (!quotient) {
      unsupported("a factor of an axis that may be zero");
      return result;
    }
    result[i] = facts_.reduce(rest - *quotient * factors[i]);
    rest = *quotient;
  }
  if (!factors.empty()) result[0] = rest;
  return result;
}

bool Elaborator::divides(const TypedNode& node) {
  operands_read_ = true;
  for (std::uint32_t port = 0; port < node.outputs.size() && !obstacle().any(); ++port) {
    std::vector<Polynomial> indices;
    for (std::size_t axis = 0; axis < node.outputs[port].size(); ++axis)
      indices.push_back(Polynomial::symbol(facts_.symbols().bound()));
    (void)node_element(node, port, indices);
  }
  operands_read_ = false;
  return divided() || obstacle().any();
}

void Elaborator::oblige_applications(bool strictly) {
  operands_read_ = only_places_ = true;
  // Any element of a tensor.
  auto anywhere = [&](const std::vector<Polynomial>& shape, auto&& write) {
    const Mark context(context_), guards(guards_);
    const Mark places(places_);
    std::vector<Polynomial> indices;
    for (const Polynomial& extent : shape) {
      // The same of all tensors and of both sides, so that equal places are the same.
      const std::string name = "place" + std::to_string(indices.size());
      const SymbolId symbol = facts_.symbols().named(Symbol::Kind::index, name, name);
      indices.push_back(Polynomial::symbol(symbol));
      places_.push_back(symbol);
      for (const Atom& atom : {at_least(indices.back(), 0), less_than(indices.back(), extent)}) {
        context_.push_back(atom);
        guards_.push_back(atom);
      }
    }
    equations_.clear();
    equations_depth_ = depth_;
    write(indices);
    const std::vector<std::vector<Atom>> equations = std::move(equations_);
    if (strictly && !obstacle().any() && equations.size() > 1 && !partition(equations))
      unsupported("an operator of which some elements may be written twice, or not at all");
  };
  for (const TypedNode& node : side_.nodes) {
    if (reads_plainly(*node.definition)) continue;
    for (std::uint32_t port = 0; port < node.outputs.size() && !obstacle().any(); ++port)
      anywhere(node.outputs[port], [&](const auto& indices) { (void)node_element(node, port, indices); });
    for (const IntermediateSpec& intermediate : node.definition->intermediates) {
      if (intermediate.recurrence || obstacle().any()) continue;
      Frame frame;
      frame.node = &node;
      frame.environment = node.environment;
      anywhere(shape_of(intermediate, frame), [&](const auto& indices) {
        (void)written({intermediate.name, intermediate.axes, "", 0, 1}, node, indices);
      });
    }
  }
  operands_read_ = only_places_ = false;
}

bool Elaborator::partition(const std::vector<std::vector<Atom>>& equations) {
  auto contradictory = [&](std::vector<Atom> known) {
    known.insert(known.end(), context_.begin(), context_.end());
    return facts_.contradictory_quickly(known);
  };
  for (std::size_t a = 0; a < equations.size(); ++a)
    for (std::size_t b = a + 1; b < equations.size(); ++b) {
      std::vector<Atom> both = equations[a];
      both.insert(both.end(), equations[b].begin(), equations[b].end());
      if (!contradictory(std::move(both))) return false;
    }
  // An element that none writes: some guard of each does not hold.
  std::size_t left = 4'000;
  const auto nowhere = [&](const auto& self, std::size_t at, const std::vector<Atom>& known) -> bool {
    if (contradictory(known)) return true;
    if (at == equations.size() || left-- == 0) return false;
    return std::all_of(equations[at].begin(), equations[at].end(), [&](const Atom& guard) {
      std::vector<Atom> outside = {{Atom::Relation::nonnegative, -guard.p - 1}};
      if (guard.relation == Atom::Relation::zero) outside.push_back({Atom::Relation::nonnegative, guard.p - 1});
      return std::all_of(outside.begin(), outside.end(), [&](const Atom& atom) {
        std::vector<Atom> more = known;
        more.push_back(atom);
        return self(self, at + 1, more);
      });
    });
  };
  return nowhere(nowhere, 0, {});
}

std::vector<Polynomial> Elaborator::shape_of(const IntermediateSpec& intermediate, const Frame& frame) {
  Frame sizes_only;
  sizes_only.node = frame.node;
  sizes_only.environment = frame.node->environment;
  // The shape is that of all reads: what holds around one has no part in it.
  std::vector<Atom> context = std::exchange(context_, {});
  std::vector<Polynomial> shape;
  for (const AxisSpec& axis : intermediate.axes) {
    if (axis.kind == AxisSpec::Kind::rest) {
      const Sizes extents = sizes(axis.factors[0], sizes_only);
      shape.insert(shape.end(), extents.components.begin(), extents.components.end());
      continue;
    }
    Polynomial extent(1);
    for (const Expression& factor : axis.factors) extent = extent * index(factor, sizes_only);
    shape.push_back(std::move(extent));
  }
  context_ = std::move(context);
  return shape;
}

NormalForm Elaborator::element(const PatternValue& value, const std::vector<Polynomial>& indices) {
  if (obstacle_.any()) return {};
  if (operands_read_) return element_read(value.index, indices);
  if (!value.is_variable) {
    const std::optional<std::uint32_t> tensor =
        shared_ != nullptr ? shared_->tensor(side_, value) : std::optional<std::uint32_t>();
    if (tensor) {
      NormalForm result = element_read(*tensor, indices);
      // Nothing is known of where a shared value is defined but that it is the same on both sides.
      if (*tensor >= typing_.rule().tensor_variables.size()) oblige_defined(result, "a value that both sides compute");
      return result;
    }
    if (++depth_ > max_depth) unsupported("more than " + std::to_string(max_depth) + " nested definitions");
    NormalForm result = obstacle_.any() ? NormalForm{} : node_element(side_.nodes[value.index], value.port, indices);
    --depth_;
    return result;
  }
  if (typing_.integers(value.index)) {
    unsupported("the value of a tensor of integers");
    return {};
  }
  return element_read(value.index, indices);
}

NormalForm Elaborator::element_read(std::uint32_t tensor, const std::vector<Polynomial>& indices) {
  Factor factor;
  factor.kind = Factor::Kind::read;
  factor.tensor = tensor;
  for (const Polynomial& position : indices) {
    factor.indices.push_back(facts_.reduce(position));
    if (!position.valid())
      unsupported("an index beyond 64 bits, or with products of more than " + std::to_string(Monomial::max_degree) +
                  " sizes");
  }
  return builder_.factor(std::move(factor));
}

NormalForm Elaborator::node_element(const TypedNode& node, std::size_t port, const std::vector<Polynomial>& indices) {
  const OperatorDefinition& definition = *node.definition;
  const std::string_view piece = definition.variadic() ? definition.inputs[0].piece : definition.output.piece;
  const std::size_t first = definition.variadic() ? 0 : port;
  return written({"out", definition.output.axes, piece, first, definition.variadic() ? node.input_shapes.size() : 1},
                 node, indices);
}

NormalForm Elaborator::written(const Written& tensor, const TypedNode& node, const std::vector<Polynomial>& indices) {
  std::size_t equations = 0;
  for (const Equation& equation : node.definition->equations) equations += equation.target == tensor.name ? 1 : 0;
  const bool only = equations * tensor.pieces == 1;
  NormalForm result;
  for (const Equation& equation : node.definition->equations) {
    if (equation.target != tensor.name) continue;
    for (std::size_t k = tensor.first; k < tensor.first + tensor.pieces; ++k) {
      result = builder_.add(std::move(result), equation_at(node, equation, tensor, k, indices, only));
      if (obstacle_.any()) return {};
    }
  }
  return result;
}

NormalForm Elaborator::equation_at(const TypedNode& node, const Equation& equation, const Written& tensor,
                                   std::size_t k, const std::vector<Polynomial>& indices, bool only) {
  Frame frame;
  frame.node = &node;
  frame.environment = node.environment;
  if (!tensor.piece.empty()) frame.environment.bind(tensor.piece, Sizes::of(Polynomial(static_cast<std::int64_t>(k))));
  // An equation with ranges may write nothing.
  in_ranges_ += equation.ranges.empty() ? 0 : 1;
  NormalForm result = equation_at(node, equation, tensor, indices, only, frame);
  in_ranges_ -= equation.ranges.empty() ? 0 : 1;
  return result;
}

bool Elaborator::bind_left_side(const TypedNode& node, const Equation& equation, const std::vector<AxisSpec>& axes,
                                const std::vector<Polynomial>& indices, Frame& frame,
                                std::vector<std::pair<const Expression*, Polynomial>>& later) {
  auto ranged = [&](const std::string& name) {
    return std::any_of(equation.ranges.begin(), equation.ranges.end(),
                       [&](const Expression::Range& range) { return range.name == name; });
  };
  std::size_t axis = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Expression& coordinate = equation.coordinates[i];
    if (axes[i].kind == AxisSpec::Kind::rest) {
      const std::size_t length = sizes(axes[i].factors[0], frame).components.size();
      std::vector<Polynomial> part;
      for (std::size_t j = 0; j < length && axis < indices.size(); ++j) part.push_back(indices[axis++]);
      frame.environment.bind(coordinate.name, Sizes::of(std::move(part)));
      continue;
    }
    if (axis >= indices.size()) {
      unsupported("the axes of an output of " + node.definition->name);
      return false;
    }
    const Polynomial& position = indices[axis++];
    if (coordinate.kind == Kind::tuple) {
      std::vector<Polynomial> factors;
      for (const Expression& factor : axes[i].factors) factors.push_back(index(factor, frame));
      const std::vector<Polynomial> parts = digits(position, factors);
      for (std::size_t f = 0; f < coordinate.operands.size(); ++f)
        frame.environment.bind(coordinate.operands[f].name, Sizes::of(parts[f]));
    } else if (coordinate.kind == Kind::name && coordinate.sort == taso::Sort::index && !ranged(coordinate.name)) {
      frame.environment.bind(coordinate.name, Sizes::of(position));
    } else {
      later.emplace_back(&coordinate, position);
    }
    if (obstacle_.any()) return false;
  }
  return true;
}

NormalForm Elaborator::equation_at(const TypedNode& node, const Equation& equation, const Written& tensor,
                                   const std::vector<Polynomial>& indices, bool only, Frame& frame) {
  const std::vector<AxisSpec>& axes = tensor.axes;
  std::vector<std::pair<const Expression*, Polynomial>> later;  // coordinates with a 'where' variable
  if (!bind_left_side(node, equation, axes, indices, frame, later)) return {};
  // Each 'where' variable is what the coordinate that has it makes it.
  std::vector<Atom> guards;
  for (const Expression::Range& range : equation.ranges) {
    const auto with =
        std::find_if(later.begin(), later.end(), [&](const auto& entry) { return mentions(*entry.first, range.name); });
    if (with == later.end() || range.rest) {
      unsupported("the left side of an equation of " + node.definition->name);
      return {};
    }
    const SymbolId unknown = facts_.symbols().bound();
    const std::size_t mark = frame.environment.size();
    frame.environment.bind(range.name, Sizes::of(Polynomial::symbol(unknown)));
    const Polynomial form = index(*with->first, frame);
    frame.environment.shrink(mark);
    const Polynomial extent = index(*range.extent, frame);
    if (only_places_ && !obstacle_.any()) {
      // All values of the variable are of elements that there are.
      const Mark context(context_), guards_mark(guards_);
      const Mark scope(scope_);
      scope_.push_back(unknown);
      for (const Atom& atom :
           {at_least(Polynomial::symbol(unknown), 0), less_than(Polynomial::symbol(unknown), extent)}) {
        context_.push_back(atom);
        guards_.push_back(atom);
      }
      Polynomial size(1);
      for (const Expression& factor : axes[static_cast<std::size_t>(with->first - equation.coordinates.data())].factors)
        size = size * index(factor, frame);
      oblige_inside(at_least(form, 0), *with->first);
      oblige_inside(less_than(form, size), *with->first);
    }
    const auto coefficient = form.linear_coefficient(unknown);
    if (obstacle_.any() || !coefficient || (*coefficient != 1 && *coefficient != -1)) {
      unsupported("the left side of an equation of " + node.definition->name);
      return {};
    }
    const Polynomial rest = form - Polynomial::symbol(unknown) * Polynomial(*coefficient);
    const Polynomial value = facts_.reduce(*coefficient == 1 ? with->second - rest : rest - with->second);
    frame.environment.bind(range.name, Sizes::of(value));
    guards.push_back(at_least(value, 0));
    guards.push_back(less_than(value, extent));
    later.erase(with);
  }
  for (const auto& [coordinate, position] : later) guards.push_back(equal_to(position, index(*coordinate, frame)));
  if (obstacle_.any()) return {};
  if (only_places_ && depth_ == equations_depth_) equations_.push_back(guards);
  // Every element is written exactly once: a single equation writes all of them, or the operator cannot be applied.
  if (only) {
    for (const Atom& guard : guards) {
      oblige_inside(guard, equation.value);
      if (guard.relation == Atom::Relation::zero && !facts_.entails_quickly(guard, context_))
        unsupported("an operator of which some elements may not be written");
    }
    guards.clear();
  }
  std::erase_if(guards, [&](const Atom& guard) { return facts_.entails_quickly(guard, context_); });
  const Mark mark(context_), guards_mark(guards_);
  context_.insert(context_.end(), guards.begin(), guards.end());
  guards_.insert(guards_.end(), guards.begin(), guards.end());
  if (!guards.empty() && facts_.contradictory_quickly(context_)) return {};
  return builder_.guarded(scalar(equation.value, frame), guards);
}

void Elaborator::open(std::span<const Expression::Range> ranges, Frame& frame, std::vector<SymbolId>& bound,
                      std::vector<Atom>& guards) {
  for (const Expression::Range& range : ranges) {
    const Sizes extents = sizes(*range.extent, frame);
    if (obstacle_.any()) return;
    Sizes value;
    value.vector = range.rest;
    for (const Polynomial& extent : extents.components) {
      if (extent.constant() == 1) {
        value.components.emplace_back(0);
        continue;
      }
      const SymbolId symbol = facts_.symbols().bound();
      bound.push_back(symbol);
      const Polynomial variable = Polynomial::symbol(symbol);
      guards.push_back(at_least(variable, 0));
      guards.push_back(less_than(variable, extent));
      value.components.push_back(variable);
    }
    frame.environment.bind(range.name, std::move(value));
  }
}

NormalForm Elaborator::scalar(const Expression& e, Frame& frame) {
  if (obstacle().any()) return {};
  if (e.sort == taso::Sort::integer) return builder_.size(index(e, frame));
  switch (e.kind) {
    case Kind::real:
      return builder_.number(e.real);
    case Kind::name: {
      if (frame.parameters != nullptr) return frame.parameters->at(e.name);
      const auto attribute = frame.node->attributes.find(e.name);
      TASO_CHECK(attribute != frame.node->attributes.end(), "a checked definition reads the unknown scalar " + e.name);
      return attribute->second.real;
    }
    case Kind::call:
      return call(e, frame);
    case Kind::negate:
      return builder_.negate(scalar(e.operands[0], frame));
    case Kind::add:
      return builder_.add(scalar(e.operands[0], frame), scalar(e.operands[1], frame));
    case Kind::subtract:
      return builder_.add(scalar(e.operands[0], frame), builder_.negate(scalar(e.operands[1], frame)));
    case Kind::multiply: {
      const NormalForm left = scalar(e.operands[0], frame);
      return builder_.multiply(left, scalar(e.operands[1], frame));
    }
    case Kind::divide: {
      const NormalForm left = scalar(e.operands[0], frame);
      const NormalForm right = scalar(e.operands[1], frame);
      if (obstacle_.any()) return {};
      const Expression& divisor = e.operands[1];
      std::optional<Polynomial> size;
      if (divisor.sort == taso::Sort::integer) size = facts_.reduce(index(divisor, frame));
      oblige(ArgumentDomain::nonzero, right, sign(divisor, frame), divisor, std::move(size));
      return builder_.divide(left, right);
    }
    case Kind::conditional:
      return conditional(e, frame);
    case Kind::read:
      return read(e, frame);
    case Kind::valid: {
      const Place where = place(e.operands[0], frame, true);
      return builder_.guarded(builder_.number(1), where.inside);
    }
    case Kind::reduce:
      return reduce(e, frame);
    default:
      unsupported(to_text(e) + " as a scalar");
      return {};
  }
}

NormalForm Elaborator::conditional(const Expression& e, Frame& frame) {
  const Alternatives test = condition(e.operands[0], frame);
  NormalForm result;
  for (const auto& [cases, branch] : {std::pair(&test.yes, 1), std::pair(&test.no, 2)})
    for (const std::vector<Atom>& guards : *cases) {
      const Mark mark(context_), guards_mark(guards_);
      context_.insert(context_.end(), guards.begin(), guards.end());
      guards_.insert(guards_.end(), guards.begin(), guards.end());
      if (!guards.empty() && facts_.contradictory_quickly(context_)) continue;
      result = builder_.add(std::move(result),
                            builder_.guarded(scalar(e.operands[static_cast<std::size_t>(branch)], frame), guards));
    }
  return result;
}

NormalForm Elaborator::call(const Expression& e, Frame& frame) {
  std::vector<NormalForm> arguments;
  arguments.reserve(e.operands.size());
  for (const Expression& operand : e.operands) arguments.push_back(scalar(operand, frame));
  if (obstacle_.any()) return {};
  if (e.name == "max" || e.name == "min") {
    std::vector<Element> elements;
    elements.reserve(arguments.size());
    for (NormalForm& argument : arguments) elements.push_back({{}, {}, std::move(argument)});
    return builder_.extremum(e.name == "max", std::move(elements));
  }
  std::string name = e.name;
  if (frame.parameters == nullptr && frame.node->definition->find_attribute(e.name) != nullptr)
    name = frame.node->attributes.at(e.name).function;
  // Any function that has a value for every number.
  if (name.starts_with("?")) return builder_.call(nullptr, name, std::move(arguments));
  const FunctionDefinition* function = registry_.find_function(name);
  if (function == nullptr || static_cast<std::size_t>(function->arity) != arguments.size()) {
    unsupported("the function " + name);
    return {};
  }
  // What is declared of an abbreviation is not used: its definition says all.
  const FunctionLaw* const special = function->is_primitive() ? special_case(*function, arguments) : nullptr;
  if (special == nullptr && function->is_primitive() && function->domain != ArgumentDomain::all) {
    std::optional<NormalForm> call;
    if (function->arity > 1) call = builder_.call(function, name, arguments);
    oblige(function->domain, arguments[0], sign(e.operands[0], frame), e.operands[0], std::nullopt, call);
  }
  if (special == nullptr && function->is_primitive()) return builder_.call(function, name, std::move(arguments));
  std::map<std::string, NormalForm, std::less<>> parameters;
  std::map<std::string, SignSet, std::less<>> signs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& parameter = special != nullptr ? special->left.operands[i].name : function->parameters[i];
    parameters.emplace(parameter, std::move(arguments[i]));
    signs.emplace(parameter, sign(e.operands[i], frame));
  }
  Frame inner;
  inner.node = frame.node;
  inner.parameters = &parameters;
  inner.parameter_signs = &signs;
  if (++depth_ > max_depth) unsupported("more than " + std::to_string(max_depth) + " nested definitions");
  NormalForm result =
      obstacle_.any() ? NormalForm{} : scalar(special != nullptr ? special->right : *function->definition, inner);
  --depth_;
  return result;
}

// The law that says what a call is where some arguments are numbers: x^2 = x * x. The two sides are defined alike.
const FunctionLaw* Elaborator::special_case(const FunctionDefinition& function,
                                            const std::vector<NormalForm>& arguments) {
  if (arguments.size() < 2) return nullptr;
  for (const FunctionLaw& law : function.laws) {
    if (!law.is_special_case()) continue;
    bool fits = true;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (const std::optional<double> number = law.left.operands[i].number())
        fits = fits && arguments[i] == builder_.number(*number);
    if (fits) return &law;
  }
  return nullptr;
}

NormalForm Elaborator::reduce(const Expression& e, Frame& frame) {
  const std::size_t mark = frame.environment.size();
  const bool extremum = e.name == "max" || e.name == "min";
  std::vector<SymbolId> bound;
  std::vector<Atom> guards;  // of an element that takes part
  std::size_t box = 0;       // so many of them bound the variables
  NormalForm result;
  {
    const Mark context(context_), guards_mark(guards_);
    const Mark scope(scope_);
    open(e.ranges, frame, bound, guards);
    if (obstacle_.any()) return {};
    box = guards.size();
    context_.insert(context_.end(), guards.begin(), guards.end());
    guards_.insert(guards_.end(), guards.begin(), guards.end());
    scope_.insert(scope_.end(), bound.begin(), bound.end());
    const Expression& body = e.operands[0];
    if (extremum && body.kind == Kind::read && body.fallback != nullptr && is_infinity(*body.fallback)) {
      // Elements outside are left out.
      const Place where = place(body, frame, true);
      guards.insert(guards.end(), where.inside.begin(), where.inside.end());
      context_.insert(context_.end(), where.inside.begin(), where.inside.end());
      guards_.insert(guards_.end(), where.inside.begin(), where.inside.end());
      NormalForm value = value_at(where, frame);
      result = builder_.extremum(e.name == "max", {{bound, guards, std::move(value)}});
    } else {
      NormalForm value = scalar(body, frame);
      if (obstacle_.any()) return {};
      if (e.name == "sum") {
        result = builder_.summed(std::move(value), bound, guards);
      } else if (extremum) {
        result = builder_.extremum(e.name == "max", {{bound, guards, std::move(value)}});
      } else if (bound.empty()) {
        result = std::move(value);
      } else {
        Factor factor;
        factor.kind = Factor::Kind::product;
        factor.elements.push_back({bound, guards, std::move(value)});
        result = builder_.factor(std::move(factor));
      }
    }
  }
  if (extremum && !obstacle_.any()) oblige_elements(bound, guards, box, e, result);
  frame.environment.shrink(mark);
  return result;
}

Polynomial Elaborator::lookup(const Expression& e, Frame& frame, const Polynomial& extent) {
  const Place where = place(e, frame, false);
  if (obstacle_.any()) return Polynomial::invalid();
  if (where.input == nullptr || e.flat) {
    unsupported("a coordinate read from " + e.name);
    return Polynomial::invalid();
  }
  return lookup(frame.node->inputs[where.position], where.indices, extent, e);
}

Polynomial Elaborator::lookup(const PatternValue& value, const std::vector<Polynomial>& indices,
                              const Polynomial& extent, const Expression& e) {
  if (value.is_variable) {
    std::vector<Polynomial> arguments = {facts_.reduce(extent)};
    for (const Polynomial& position : indices) arguments.push_back(facts_.reduce(position));
    oblige_index(value.index, arguments, e);
    return Polynomial::symbol(facts_.symbols().lookup(value.index, std::move(arguments)));
  }
  // An operator that copies: the element that its equation reads.
  const TypedNode& node = side_.nodes[value.index];
  const OperatorDefinition& definition = *node.definition;
  Frame frame;
  frame.node = &node;
  frame.environment = node.environment;
  if (definition.several_outputs())
    frame.environment.bind(definition.output.piece, Sizes::of(Polynomial(static_cast<std::int64_t>(value.port))));
  std::vector<std::pair<const Expression*, Polynomial>> later;
  if (definition.equations.size() != 1 || !definition.equations[0].ranges.empty()) {
    unsupported("a coordinate that is computed");
    return Polynomial::invalid();
  }
  const Equation& equation = definition.equations[0];
  if (!bind_left_side(node, equation, definition.output.axes, indices, frame, later)) return Polynomial::invalid();
  if (!later.empty()) unsupported("a coordinate that is computed");
  const Place from = place(equation.value, frame, false);
  if (obstacle_.any()) return Polynomial::invalid();
  return lookup(node.inputs[from.position], from.indices, extent, e);
}

Elaborator::Place Elaborator::place(const Expression& e, Frame& frame, bool may_leave) {
  Place result;
  const TypedNode& node = *frame.node;
  const OperatorDefinition& definition = *node.definition;
  const std::vector<AxisSpec>* axes = nullptr;
  std::vector<Polynomial> shape;
  for (std::size_t i = 0; i < definition.inputs.size(); ++i)
    if (definition.inputs[i].name == e.name) {
      result.input = &definition.inputs[i];
      result.position = i;
      axes = &definition.inputs[i].axes;
    }
  if (result.input == nullptr) {
    result.intermediate = definition.find_intermediate(e.name);
    TASO_CHECK(result.intermediate != nullptr, "a checked definition reads the unknown tensor " + e.name);
    axes = &result.intermediate->axes;
    shape = shape_of(*result.intermediate, frame);
  } else {
    if (e.piece != nullptr) {
      const auto which = index(*e.piece, frame).constant();
      if (!which || *which < 0 || *which >= static_cast<std::int64_t>(node.input_shapes.size())) {
        unsupported("the piece of " + e.name);
        return result;
      }
      result.position = static_cast<std::size_t>(*which);
    }
    shape = node.input_shapes[result.position];
  }
  for (Polynomial& extent : shape) extent = facts_.reduce(extent);
  result.shape = shape;
  auto bounded = [&](const Polynomial& position, const Polynomial& extent) {
    for (const Atom& atom : {at_least(position, 0), less_than(position, extent)}) {
      // Without a fallback the place exists wherever the definition applies.
      if (!may_leave) {
        oblige_inside(atom, e);
        if (!atom.p.constant()) result.known.push_back(atom);
      } else if (!facts_.entails_quickly(atom, context_)) {
        result.inside.push_back(atom);
      }
    }
  };
  if (e.flat) {
    const Polynomial position = index(e.operands[0], frame);
    Polynomial volume(1);
    for (const Polynomial& extent : shape) volume = volume * extent;
    bounded(position, volume);
    if (may_leave && !result.inside.empty()) {
      unsupported("a flat read that may leave " + e.name);
      return result;
    }
    result.indices = digits(position, shape);
    return result;
  }
  SizeEvaluator evaluator(registry_.size_functions(), frame.environment, facts_, context_);
  const auto indices = index_place(evaluator, e, *axes, std::span<const Polynomial>(shape));
  note(evaluator.obstacle());
  if (!indices) return result;
  for (std::size_t axis = 0; axis < indices->axes.size() && !obstacle_.any(); ++axis) {
    if (const Expression* integers = indices->axes[axis].read) {
      const auto& from = indices->axes[axis];
      const Polynomial position = lookup(*integers, frame, from.places) - from.offset;
      if (!from.whole) bounded(position, shape[axis]);
      result.indices.push_back(facts_.reduce(position));
      continue;
    }
    Polynomial total;
    for (const auto& [index, extent, coordinate] : indices->axes[axis].digits) {
      bounded(index, extent);
      total = total * extent + index;
    }
    result.indices.push_back(facts_.reduce(total));
  }
  return result;
}

NormalForm Elaborator::value_at(const Place& where, Frame& frame) {
  if (obstacle_.any()) return {};
  if (where.input != nullptr) return element(frame.node->inputs[where.position], where.indices);
  if (const auto& steps = where.intermediate->recurrence; steps && steps->carried) {
    const bool now = stepping_ == frame.node && stepping_first_ == steps->first &&
                     facts_.reduce(where.indices[place_of_steps(*where.intermediate, frame)]) == stepping_at_;
    if (!now) return state_read(where, frame);
  }
  if (++depth_ > max_depth) unsupported("more than " + std::to_string(max_depth) + " nested definitions");
  NormalForm result;
  if (!obstacle_.any())
    result = written({where.intermediate->name, where.intermediate->axes, "", 0, 1}, *frame.node, where.indices);
  --depth_;
  return result;
}

// The axis of a tensor of a recurrence along which the steps go, among all of its axes.
std::size_t Elaborator::place_of_steps(const IntermediateSpec& spec, Frame& frame) {
  Frame sizes_only;
  sizes_only.node = frame.node;
  sizes_only.environment = frame.node->environment;
  std::size_t result = 0;
  for (std::size_t i = 0; i < spec.recurrence->axis; ++i)
    result +=
        spec.axes[i].kind == AxisSpec::Kind::rest ? sizes(spec.axes[i].factors[0], sizes_only).components.size() : 1;
  return result;
}

NormalForm Elaborator::state_read(const Place& where, Frame& frame) {
  const auto [number, is_new] =
      states_.number({&side_, frame.node, where.intermediate, place_of_steps(*where.intermediate, frame), where.shape});
  if (is_new) check_steps(number);
  const State& state = states_[number];
  if (state.shape != where.shape) unsupported("a recurrence whose shape is not the same wherever it is read");
  divided_in_steps_ = divided_in_steps_ || state.divides;
  if (!state.problem.empty()) unsupported(state.problem);
  if (obstacle_.any()) return {};
  return element_read(number, where.indices);
}

void Elaborator::check_steps(std::uint32_t number) {
  const State state = states_[number];
  Facts here = facts_;
  std::vector<Polynomial> indices;
  for (std::size_t axis = 0; axis < state.shape.size(); ++axis) {
    const Polynomial index = Polynomial::symbol(here.symbols().bound());
    // Without elements there is nothing that could ask for something.
    if (!here.add(at_least(index, 0)) || !here.add(less_than(index, here.reduce(state.shape[axis])))) return;
    indices.push_back(index);
  }
  Elaborator steps(registry_, typing_, side_, here, states_, shared_);
  steps.operands_read_ = operands_read_;
  steps.only_places_ = only_places_;
  (void)steps.step(state, indices, {});
  std::string problem;
  if (steps.obstacle().any())
    problem = steps.obstacle().reason;
  else if (!steps.obligations().empty())
    problem =
        "a recurrence whose steps have a value only where " + steps.obligations()[0].what + " is " +
        (steps.obligations()[0].domain == ArgumentDomain::all ? "defined" : to_string(steps.obligations()[0].domain));
  if (steps.obstacle().any() && steps.obstacle().kind != Obstacle::Kind::unsupported) note(steps.obstacle());
  states_.checked(number, problem, steps.divided());
}

NormalForm Elaborator::step(const State& state, const std::vector<Polynomial>& indices,
                            const std::vector<Atom>& context) {
  const Mark mark(context_);
  context_.insert(context_.end(), context.begin(), context.end());
  stepping_ = state.node;
  stepping_first_ = state.tensor->recurrence->first;
  stepping_at_ = facts_.reduce(indices[state.steps]);
  NormalForm result = written({state.tensor->name, state.tensor->axes, "", 0, 1}, *state.node, indices);
  stepping_ = nullptr;
  return result;
}

NormalForm Elaborator::read(const Expression& e, Frame& frame) {
  const Place where = place(e, frame, e.fallback != nullptr);
  if (obstacle_.any()) return {};
  NormalForm result;
  {
    const Mark mark(context_), guards_mark(guards_);
    context_.insert(context_.end(), where.inside.begin(), where.inside.end());
    guards_.insert(guards_.end(), where.inside.begin(), where.inside.end());
    context_.insert(context_.end(), where.known.begin(), where.known.end());
    if (where.inside.empty() || !facts_.contradictory_quickly(context_))
      result = builder_.guarded(value_at(where, frame), where.inside);
  }
  if (where.inside.empty()) return result;
  // Outside of some coordinate, inside of those before: cases that exclude one another.
  std::vector<Atom> before;
  for (const Atom& inside : where.inside) {
    std::vector<Atom> guards = before;
    guards.push_back({Atom::Relation::nonnegative, -inside.p - 1});
    before.push_back(inside);
    const Mark mark(context_), guards_mark(guards_);
    context_.insert(context_.end(), guards.begin(), guards.end());
    guards_.insert(guards_.end(), guards.begin(), guards.end());
    if (facts_.contradictory_quickly(context_)) continue;
    result = builder_.add(std::move(result), builder_.guarded(scalar(*e.fallback, frame), guards));
  }
  return result;
}

}  // namespace taso::unbounded
