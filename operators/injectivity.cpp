#include "operators/injectivity.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "operators/instance.h"
#include "operators/lowered_body.h"
#include "operators/registry.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

bool is_variable(const Expression& e, const std::string& name) { return e.kind == Kind::name && e.name == name; }

/// Whether a law is f(arguments...) = ... for all arguments, which are variables.
bool is_defining(const FunctionLaw& law, const std::string& function) {
  return law.conditions.empty() && law.left.kind == Kind::call && law.left.name == function &&
         std::all_of(law.left.operands.begin(), law.left.operands.end(),
                     [](const Expression& argument) { return argument.kind == Kind::name; });
}

/// Adds the unary functions whose calls are all that an expression reads `variable` by; false if it reads it otherwise.
bool collect_readers(const Expression& e, const std::string& variable, std::set<std::string>& readers) {
  if (is_variable(e, variable)) return false;
  if (e.kind == Kind::call && e.operands.size() == 1 && is_variable(e.operands[0], variable)) {
    readers.insert(e.name);
    return true;
  }
  return std::all_of(e.operands.begin(), e.operands.end(),
                     [&](const Expression& operand) { return collect_readers(operand, variable, readers); });
}

/// Whether an expression is an injective function of its one variable.
bool is_injective(const Expression& e, const std::string& variable, const std::set<std::string>& injective) {
  auto number = [](const Expression& operand, bool factor) {
    const std::optional<double> value = operand.number();
    return value && (!factor || *value != 0);
  };
  auto either_way = [&](bool factor) {
    return (is_injective(e.operands[0], variable, injective) && number(e.operands[1], factor)) ||
           (number(e.operands[0], factor) && is_injective(e.operands[1], variable, injective));
  };
  switch (e.kind) {
    case Kind::name:
      return e.name == variable;
    case Kind::negate:
      return is_injective(e.operands[0], variable, injective);
    case Kind::add:
    case Kind::subtract:
      return either_way(false);
    case Kind::multiply:
    case Kind::divide:
      return either_way(true);
    case Kind::call:
      return e.operands.size() == 1 && injective.contains(e.name) && is_injective(e.operands[0], variable, injective);
    default:
      return false;
  }
}

/// f with f(x + y) = f(x) * f(y) for all x and y.
bool turns_sums_into_products(const FunctionDefinition& function) {
  return std::any_of(function.laws.begin(), function.laws.end(), [&](const FunctionLaw& law) {
    if (!law.conditions.empty() || law.left.kind != Kind::call || law.left.name != function.name) return false;
    const Expression& argument = law.left.operands[0];
    if (argument.kind != Kind::add || law.right.kind != Kind::multiply) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      const Expression& factor = law.right.operands[i];
      if (factor.kind != Kind::call || factor.name != function.name || factor.operands.size() != 1 ||
          argument.operands[i].kind != Kind::name || !is_variable(factor.operands[0], argument.operands[i].name))
        return false;
    }
    return argument.operands[0].name != argument.operands[1].name;
  });
}

/// What a node of a stage is as a function of the input, which is called x. Loops are those of the stage's own
/// elements.
struct FunctionOfInput {
  enum class Form : std::uint8_t {
    fixed,    ///< Without x.
    shared,   ///< Of any elements of x, but the same along the loops `along`, of which there is one.
    sum,      ///< x + r, x one element.
    power,    ///< f(x) * r, f an injective function that turns sums into products.
    image,    ///< An injective function of either.
    unknown,  ///< Anything.
  };
  Form form = Form::unknown;
  bool shifted = false;                   ///< r depends on x; it is the same along `along`. Otherwise it is fixed.
  std::vector<std::uint32_t> along = {};  ///< Sorted.
  std::optional<double> number = {};      ///< Fixed: it is this number.
  /// Fixed or shared: it is not 0 wherever the definition has a value and no element of another input
  /// that is a factor is 0.
  bool nonzero = false;
  /// The read of the element: of an access of a stage that has the same loops.
  std::size_t stage = 0;
  std::uint32_t access = 0;

  [[nodiscard]] bool is_fixed() const { return form == Form::fixed; }
  [[nodiscard]] bool has_element() const { return form == Form::sum || form == Form::power || form == Form::image; }
};

class InjectivityAnalysis {
 public:
  InjectivityAnalysis(const OperatorInstance& instance, std::size_t input, const OperatorRegistry& registry)
      : body_(instance.body()), input_(input), injective_(injective_functions(registry)) {
    covered_.resize(static_cast<std::size_t>(instance.input_types()[input].elements()));
    dependent_.resize(body_.inputs + body_.intermediates.size() + body_.outputs.size());
    dependent_[input] = true;
    // The stages of a recurrence read what later ones write.
    for (bool progress = true; progress;) {
      progress = false;
      for (const LoweredStage& stage : body_.stages)
        for (const LoweredAccess& access : stage.accesses) {
          bool reads = dependent_[access.buffer];
          for (const LoweredAccess::Indirect& indirect : access.indirect) reads = reads || dependent_[indirect.buffer];
          if (!reads || dependent_[stage.buffer]) continue;
          dependent_[stage.buffer] = progress = true;
        }
    }
  }

  Injectivity run() {
    bool shifted = false;
    for (std::size_t stage = 0; stage < body_.stages.size(); ++stage) {
      if (body_.stages[stage].empty || body_.stages[stage].buffer < body_.inputs + body_.intermediates.size()) continue;
      const FunctionOfInput value = of_stage(stage);
      if (!value.has_element()) continue;
      shifted = shifted || value.shifted;
      cover(value);
    }
    if (!std::all_of(covered_.begin(), covered_.end(), [](bool covered) { return covered; })) return Injectivity::none;
    return shifted ? Injectivity::up_to_shift : Injectivity::injective;
  }

 private:
  using Form = FunctionOfInput::Form;
  using Node = LoweredNode::Kind;

  FunctionOfInput of_stage(std::size_t number) {
    const LoweredStage& stage = body_.stages[number];
    std::vector<std::optional<FunctionOfInput>> slots(stage.slots);
    return of(number, stage.root, slots);
  }

  FunctionOfInput of(std::size_t number, std::uint32_t place, std::vector<std::optional<FunctionOfInput>>& slots) {
    const LoweredStage& stage = body_.stages[number];
    const LoweredNode& node = stage.nodes[place];
    auto operand = [&](std::size_t i) { return of(number, node.operands[i], slots); };
    switch (node.kind) {
      case Node::number:
        return of_number(node.number);
      case Node::infinity:
        return {.form = Form::fixed};
      case Node::valid:
        // Where a read lies inside says nothing of x, unless x names the place.
        return {.form = is_indirect(stage.accesses[node.access]) ? Form::unknown : Form::fixed};
      case Node::read:
        return read(number, node);
      case Node::slot:
        return *slots[node.slot];
      case Node::bind:
        slots[node.slot] = operand(0);
        return operand(1);
      case Node::add:
        return sum(operand(0), operand(1));
      case Node::subtract:
        return sum(operand(0), negative(operand(1)));
      case Node::multiply:
        return product(operand(0), operand(1));
      case Node::divide:
        return product(operand(0), inverse(operand(1)));
      case Node::negate:
        return negative(operand(0));
      case Node::call:
        if (node.operands.size() == 1) return image(operand(0), *node.function);
        break;
      default:
        break;
    }
    // Of other operations only what they share is known, and a test depends on the loops.
    std::vector<FunctionOfInput> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i) operands.push_back(operand(i));
    if (node.kind == Node::conditional || node.kind == Node::test || node.kind == Node::all_of ||
        node.kind == Node::any_of || node.kind == Node::none_of) {
      const bool fixed =
          std::all_of(operands.begin(), operands.end(), [](const FunctionOfInput& value) { return value.is_fixed(); });
      return {.form = fixed ? Form::fixed : Form::unknown};
    }
    FunctionOfInput result = operands.front();
    if (result.has_element()) return {};
    for (std::size_t i = 1; i < operands.size(); ++i) result = shared(result, operands[i]);
    result.number.reset();
    return result;
  }

  [[nodiscard]] bool is_indirect(const LoweredAccess& access) const {
    return std::any_of(access.indirect.begin(), access.indirect.end(),
                       [&](const LoweredAccess::Indirect& indirect) { return dependent_[indirect.buffer]; });
  }

  FunctionOfInput read(std::size_t number, const LoweredNode& node) {
    const LoweredStage& stage = body_.stages[number];
    const LoweredAccess& access = stage.accesses[node.access];
    if (is_indirect(access)) return {};
    // What stands for elements outside may be 0.
    if (!dependent_[access.buffer]) return {.form = Form::fixed, .nonzero = !access.may_leave()};
    if (!access.guards.empty() || !access.indirect.empty()) return {};
    const Affine& offset = stage.forms[access.offset];
    std::vector<std::uint32_t> along;
    for (const std::uint32_t loop : stage.outer)
      if (std::none_of(offset.terms.begin(), offset.terms.end(), [&](const auto& term) { return term.first == loop; }))
        along.push_back(loop);
    std::sort(along.begin(), along.end());
    if (!along.empty()) return {.form = Form::shared, .along = std::move(along)};
    if (offset.terms.size() != stage.outer.size()) return {};  // It moves with a reduction, too.
    if (access.buffer == input_) return {.form = Form::sum, .stage = number, .access = node.access};
    return read_intermediate(stage, access.buffer, offset);
  }

  /// An element of an intermediate, each of whose elements is read at one place: at that of the stage's own element.
  FunctionOfInput read_intermediate(const LoweredStage& stage, std::uint32_t buffer, const Affine& offset) {
    std::optional<std::size_t> writer;
    for (std::size_t i = 0; i < body_.stages.size(); ++i) {
      if (body_.stages[i].buffer != buffer) continue;
      if (writer) return {};
      writer = i;
    }
    if (!writer || buffer < body_.inputs) return {};
    const LoweredStage& source = body_.stages[*writer];
    std::int64_t places = 1, elements = 1;
    for (const std::uint32_t loop : stage.outer) places *= stage.extents[loop];
    for (const std::int64_t extent : body_.intermediates[buffer - body_.inputs]) elements *= extent;
    // Own elements are at different places, and so are what is read there.
    if (!(stage.forms[stage.write] == offset) || places != elements) return {};
    FunctionOfInput result = of_stage(*writer);
    if (!result.shifted) return result;
    // `along` speaks of the writer's loops.
    if (source.outer != stage.outer || !(source.forms[source.write] == offset)) return {};
    for (const std::uint32_t loop : stage.outer)
      if (stage.extents[loop] != source.extents[loop]) return {};
    return result;
  }

  /// A function of two values without a single element of x: the same along the loops along which both are.
  static FunctionOfInput shared(const FunctionOfInput& a, const FunctionOfInput& b) {
    if (a.has_element() || b.has_element() || a.form == Form::unknown || b.form == Form::unknown) return {};
    if (a.is_fixed() && b.is_fixed()) return {.form = Form::fixed};
    // Numbers are the same everywhere; other fixed values may not be.
    FunctionOfInput result = a.is_fixed() ? b : a;
    result.nonzero = false;
    if (a.number || b.number) return result;
    if (a.is_fixed() || b.is_fixed()) return {};
    result.along.clear();
    std::set_intersection(a.along.begin(), a.along.end(), b.along.begin(), b.along.end(),
                          std::back_inserter(result.along));
    return result.along.empty() ? FunctionOfInput{} : result;
  }

  /// `value`, in whose r another value enters that is the same along loops.
  static FunctionOfInput shifted_by(FunctionOfInput value, const FunctionOfInput& other) {
    if (value.shifted) {
      std::vector<std::uint32_t> common;
      std::set_intersection(value.along.begin(), value.along.end(), other.along.begin(), other.along.end(),
                            std::back_inserter(common));
      value.along = std::move(common);
    } else {
      value.along = other.along;
    }
    value.shifted = true;
    return value.along.empty() ? FunctionOfInput{} : value;
  }

  static FunctionOfInput of_number(double number) {
    return {.form = Form::fixed, .number = number, .nonzero = number != 0};
  }

  static FunctionOfInput sum(const FunctionOfInput& a, const FunctionOfInput& b) {
    if (a.number && b.number) return of_number(*a.number + *b.number);
    if (!a.has_element()) return b.has_element() ? sum(b, a) : shared(a, b);
    if (b.is_fixed()) {
      FunctionOfInput result = a;
      if (a.form == Form::power) result.form = Form::image;
      return result;
    }
    return b.form == Form::shared && a.form == Form::sum ? shifted_by(a, b) : FunctionOfInput{};
  }

  static FunctionOfInput negative(FunctionOfInput value) {
    if (value.has_element()) value.form = Form::image;
    if (value.number) value.number = -*value.number;
    return value;
  }

  /// Where a definition divides, the divisor is not 0; an element may be.
  static FunctionOfInput inverse(FunctionOfInput value) {
    if (value.has_element() && value.form != Form::power) return {};
    if (value.has_element()) value.form = Form::image;
    if (value.number) value.number = 1 / *value.number;
    value.nonzero = true;
    return value;
  }

  static FunctionOfInput product(const FunctionOfInput& a, const FunctionOfInput& b) {
    if (a.number && b.number) return of_number(*a.number * *b.number);
    if (!a.has_element()) {
      if (b.has_element()) return product(b, a);
      FunctionOfInput result = shared(a, b);
      result.nonzero = a.nonzero && b.nonzero;
      return result;
    }
    if (!b.nonzero) return {};
    if (b.is_fixed()) {
      FunctionOfInput result = a;
      if (a.form == Form::sum) result.form = Form::image;
      return result;
    }
    return b.form == Form::shared && a.form == Form::power ? shifted_by(a, b) : FunctionOfInput{};
  }

  FunctionOfInput image(FunctionOfInput value, const FunctionDefinition& function) const {
    if (!value.has_element()) {
      value.nonzero = function.positive;
      value.number.reset();
      return value;
    }
    if (!injective_.contains(function.name) || function.domain != ArgumentDomain::all) return {};
    value.form = value.form == Form::sum && turns_sums_into_products(function) ? Form::power : Form::image;
    return value;
  }

  /// Marks the elements that a value reads, one for each of its stage's own elements.
  void cover(const FunctionOfInput& value) {
    const LoweredStage& stage = body_.stages[value.stage];
    const Affine& offset = stage.forms[stage.accesses[value.access].offset];
    std::vector<std::int64_t> index(offset.terms.size(), 0);
    for (std::int64_t place = offset.base;;) {
      covered_[static_cast<std::size_t>(place)] = true;
      std::size_t k = 0;
      for (; k < index.size(); ++k) {
        const auto& [loop, step] = offset.terms[k];
        place += step;
        if (++index[k] < stage.extents[loop]) break;
        place -= step * index[k];
        index[k] = 0;
      }
      if (k == index.size()) return;
    }
  }

  const LoweredBody& body_;
  std::size_t input_;
  std::set<std::string> injective_;
  std::vector<bool> dependent_;  // Per buffer: it is x, or made of it.
  std::vector<bool> covered_;    // Per element of x.
};

}  // namespace

std::set<std::string> injective_functions(const OperatorRegistry& registry) {
  std::set<std::string> result;
  for (const auto& [name, function] : registry.functions())
    for (const FunctionLaw& law : function.laws) {
      std::set<std::string> readers;
      if (law.conditions.empty() && law.right.kind == Kind::name &&
          collect_readers(law.left, law.right.name, readers) && readers.size() == 1)
        result.insert(*readers.begin());
    }
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [name, function] : registry.functions())
      for (const FunctionLaw& law : function.laws)
        if (function.arity == 1 && is_defining(law, name) && is_injective(law.right, law.variables[0], result))
          grew = result.insert(name).second || grew;
  }
  return result;
}

Injectivity injectivity(const OperatorInstance& instance, std::size_t input, const OperatorRegistry& registry) {
  if (instance.body().inputs <= input || !instance.body().over_reals) return Injectivity::none;
  return InjectivityAnalysis(instance, input, registry).run();
}

}  // namespace taso
