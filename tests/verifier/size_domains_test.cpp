// The domains of the language of sizes at instances: definitions are drawn, and every size, condition, shape and
// coordinate of theirs is read over polynomials (proofs), over machine integers (types) and over affine functions of
// loop variables (lowering). Where polynomials or affine functions have a value, integers have the same one; where
// polynomials say that a definition does not apply, it does not.

#include "operators/size_domains.h"

#include <algorithm>
#include <functional>

#include "operators/unparse.h"
#include "support/random.h"
#include "tests/verifier/fixture.h"
#include "verifier/unbounded/infer.h"

namespace taso {
namespace {

using unbounded::Alternatives;
using unbounded::Atom;
using unbounded::Facts;
using unbounded::Obstacle;
using unbounded::Polynomial;
using unbounded::SizeEvaluator;
using unbounded::Symbol;
using unbounded::SymbolId;

// Draws definitions as text.
class Writer {
 public:
  explicit Writer(Random& random) : random_(random) {}

  std::string definition() {
    std::string text =
        "size half(n, d) = (n + d - 1) // d\n"
        "size gap(n) = n * n - n\n"
        "operator drawn(x[a, b], y[(b*c), E..]; k: int = 0, p: int[3] = [0, 0, 0], l: int[] = []) -> [V..]\n";
    const std::size_t statements = 1 + random_.below(4);
    for (std::size_t i = 0; i < statements; ++i) {
      const std::string name = "t" + std::to_string(i);
      switch (random_.below(3)) {
        case 0:
          text += "  let " + name + " = " + number(3) + "\n";
          numbers_.push_back(name);
          break;
        case 1:
          text += "  let " + name + " = " + list(3) + "\n";
          lists_.push_back(name);
          break;
        default:
          text += "  require " + condition(3) + " \"it holds\"\n";
          break;
      }
    }
    text += "  let V = " + list(2) + "\n";
    indices_ = {"i", "j"};
    text += "  out[I..] = sum(i < 4, j < 3) (x[" + number(3) + ", " + number(3) + "] or 0)\n";
    return text;
  }

 private:
  std::string one_of(const std::vector<std::string>& names) { return names[random_.below(names.size())]; }

  std::string number(int depth) {
    if (!indices_.empty() && random_.below(3) == 0) return one_of(indices_);
    if (depth == 0) {
      if (random_.below(3) == 0) return std::to_string(random_.below(4));
      return one_of(numbers_);
    }
    switch (random_.below(indices_.empty() ? 13 : 6)) {
      case 0:
      case 1:
        return "(" + number(depth - 1) + one_of({" + ", " - "}) + number(depth - 1) + ")";
      case 2:
        return "(" + number(depth - 1) + one_of({" * ", " // ", " % "}) + plain(depth - 1) + ")";
      case 3:
        return "(-" + number(depth - 1) + ")";
      case 4:
        return number(0);
      case 5:
        return indices_.empty() ? number(0) : "position(join(" + number(depth - 1) + ", i), " + pair(depth - 1) + ")";
      case 6:
        return one_of({"max", "min"}) + "(" + number(depth - 1) + ", " + number(depth - 1) + ")";
      case 7:
        return one_of({"sum", "prod", "length"}) + "(" + list(depth - 1) + ")";
      case 8:
        return "before(" + list(depth - 1) + ", " + number(depth - 1) + ")";
      case 9:
        return "half(" + number(depth - 1) + ", " + number(depth - 1) + ")";
      case 10:
        return "gap(" + number(depth - 1) + ")";
      default:
        return one_of(lists_) + "[" + number(depth - 1) + "]";
    }
  }
  // A number that does not depend on an index.
  std::string plain(int depth) {
    const std::vector<std::string> indices = std::exchange(indices_, {});
    std::string result = number(depth);
    indices_ = indices;
    return result;
  }
  std::string pair(int depth) { return "[" + plain(depth) + ", " + plain(depth) + "]"; }

  std::string list(int depth) {
    if (depth == 0) return one_of(lists_);
    switch (random_.below(12)) {
      case 0:
        return "[" + number(depth - 1) + "]";
      case 1:
        return "[" + number(depth - 1) + ", " + number(depth - 1) + "]";
      case 2:
        return "(" + list(depth - 1) + one_of({" + ", " - ", " * ", " // ", " % "}) +
               (random_.below(2) == 0 ? list(depth - 1) : number(depth - 1)) + ")";
      case 3:
        return one_of({"max", "min"}) + "(" + list(depth - 1) + ", " +
               (random_.below(2) == 0 ? list(depth - 1) : number(depth - 1)) + ")";
      case 4:
        return "join(" + list(depth - 1) + ", " + (random_.below(2) == 0 ? list(depth - 1) : number(depth - 1)) + ")";
      case 5:
        return one_of({"first", "last"}) + "(" + list(depth - 1) + ", " + number(depth - 1) + ")";
      case 6:
        return "repeat(" + number(depth - 1) + ", " + number(depth - 1) + ")";
      case 7:
        return "inverse(" + list(depth - 1) + ")";
      case 8:
        return "on(" + list(depth - 1) + ", " + (random_.below(2) == 0 ? list(depth - 1) : number(depth - 1)) + ", " +
               list(depth - 1) + ")";
      case 9:
        return one_of(lists_) + "[" + list(depth - 1) + "]";
      case 10:
        return "nonzero(" + list(depth - 1) + ")";
      default:
        return one_of(lists_);
    }
  }

  std::string condition(int depth) {
    const std::string relation = one_of({" == ", " != ", " < ", " <= ", " > ", " >= "});
    switch (depth == 0 ? random_.below(2) : random_.below(8)) {
      case 0:
        return number(depth) + relation + number(1);
      case 1:
        return list(1) + relation + (random_.below(2) == 0 ? list(1) : number(1));
      case 2:
        return "is_permutation(" + list(depth - 1) + ")";
      case 3:
        return "!(" + condition(depth - 1) + ")";
      case 4: {
        const std::string variable = "q" + std::to_string(depth);
        numbers_.push_back(variable);
        const std::string inner = condition(depth - 1);
        numbers_.pop_back();
        return "all(" + variable + " < " + number(1) + ") (" + inner + ")";
      }
      default:
        return "(" + condition(depth - 1) + one_of({" && ", " || "}) + condition(depth - 1) + ")";
    }
  }

  Random& random_;
  std::vector<std::string> numbers_ = {"a", "b", "c", "k"};
  std::vector<std::string> lists_ = {"E", "p", "l"};
  std::vector<std::string> indices_;
};

// What names stand for at one instance.
struct Instance {
  std::int64_t a = 1, b = 1, c = 1, k = 0;
  std::vector<std::int64_t> rest, p, l;

  [[nodiscard]] Attributes attributes() const {
    Attributes result;
    result.set("k", AttributeValue(k));
    result.set("p", AttributeValue(p));
    result.set("l", AttributeValue(l));
    return result;
  }
  [[nodiscard]] std::vector<Shape> shapes() const {
    Shape y = {b * c};
    y.insert(y.end(), rest.begin(), rest.end());
    return {{a, b}, y};
  }
};

std::vector<std::int64_t> draw_list(Random& random, std::size_t length) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < length; ++i) result.push_back(static_cast<std::int64_t>(random.below(5)) - 1);
  if (random.below(2) == 0) return result;
  for (std::size_t i = 0; i < length; ++i) result[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = length; i-- > 1;) std::swap(result[i], result[random.below(i + 1)]);
  return result;
}

Instance draw_instance(Random& random) {
  auto extent = [&] { return 1 + static_cast<std::int64_t>(random.below(4)); };
  Instance result;
  result.a = extent();
  result.b = extent();
  result.c = extent();
  result.k = static_cast<std::int64_t>(random.below(6)) - 2;
  result.rest.resize(random.below(4));
  for (std::int64_t& e : result.rest) e = extent();
  result.p = draw_list(random, 3);
  result.l = draw_list(random, random.below(4));
  return result;
}

// One definition at one instance, read by every domain.
class Reading {
 public:
  struct Counts {
    std::size_t expressions = 0, decided = 0, refused = 0, inferred = 0, affine = 0;
  };

  Reading(const OperatorRegistry& registry, const Instance& instance, Counts& counts)
      : registry_(registry), definition_(*registry.find("drawn")), instance_(instance), counts_(counts) {
    bind("a", instance.a, 1);
    bind("b", instance.b, 1);
    bind("c", instance.c, 1);
    bind("k", instance.k, std::nullopt);
    bind("E", instance.rest, 1);
    bind("p", instance.p, std::nullopt);
    bind("l", instance.l, std::nullopt);
  }

  void compare() {
    statements();
    types();
  }

 private:
  void bind(const char* name, std::int64_t value, std::optional<std::int64_t> least) {
    integers_.bind(name, IntegerValue::of(value));
    polynomials_.bind(name, unbounded::Sizes::of(symbol(name, value, least)));
  }
  void bind(const char* name, const std::vector<std::int64_t>& values, std::optional<std::int64_t> least) {
    integers_.bind(name, IntegerValue::of(Sizes(values.begin(), values.end())));
    std::vector<Polynomial> symbols;
    for (std::size_t i = 0; i < values.size(); ++i)
      symbols.push_back(symbol(name + std::to_string(i), values[i], least));
    polynomials_.bind(name, unbounded::Sizes::of(std::move(symbols)));
  }
  Polynomial symbol(const std::string& name, std::int64_t value, std::optional<std::int64_t> least) {
    const SymbolId id = symbols_.named(least ? Symbol::Kind::extent : Symbol::Kind::attribute, name, name);
    at_instance_.emplace_back(id, Polynomial(value));
    const Polynomial result = Polynomial::symbol(id);
    if (least) {
      EXPECT_TRUE(facts_.add(at_least(result, *least)));
    }
    return result;
  }

  // What a polynomial is at the instance.
  std::optional<std::int64_t> at_instance(const Polynomial& p) { return fresh_.substitute(p, at_instance_).constant(); }
  bool holds(const Atom& atom) {
    const std::optional<std::int64_t> value = at_instance(atom.p);
    EXPECT_TRUE(value) << "no number: " << symbols_.to_string(atom.p);
    return value && (atom.relation == Atom::Relation::zero ? *value == 0 : *value >= 0);
  }
  bool holds(const std::vector<Atom>& atoms) {
    return std::all_of(atoms.begin(), atoms.end(), [&](const Atom& atom) { return holds(atom); });
  }
  std::size_t holding(const std::vector<std::vector<Atom>>& alternatives) {
    return static_cast<std::size_t>(
        std::count_if(alternatives.begin(), alternatives.end(), [&](const auto& atoms) { return holds(atoms); }));
  }
  // Assumes the alternative that holds; false if none does.
  bool assume(const std::vector<std::vector<Atom>>& alternatives) {
    for (const std::vector<Atom>& atoms : alternatives) {
      if (!holds(atoms)) continue;
      for (const Atom& atom : atoms) EXPECT_TRUE(facts_.add(atom)) << "what holds is contradictory";
      return true;
    }
    return false;
  }

  enum class Outcome : std::uint8_t { value, not_applicable, not_understood };
  // Reads over polynomials, where cases are distinguished in the one that holds.
  Outcome read(const std::function<void(SizeEvaluator&)>& evaluate) {
    for (int rounds = 0; rounds < 20; ++rounds) {
      SizeEvaluator evaluator(registry_.size_functions(), polynomials_, facts_, context_);
      evaluate(evaluator);
      switch (evaluator.obstacle().kind) {
        case Obstacle::Kind::none:
          return Outcome::value;
        case Obstacle::Kind::ill_typed:
          return Outcome::not_applicable;
        case Obstacle::Kind::alternatives:
          if (!assume(evaluator.obstacle().alternatives)) return Outcome::not_applicable;
          break;
        default:
          return Outcome::not_understood;
      }
    }
    return Outcome::not_understood;
  }
  void count(Outcome outcome) {
    ++counts_.expressions;
    if (outcome != Outcome::not_understood) ++counts_.decided;
    if (outcome == Outcome::not_applicable) ++counts_.refused;
  }

  // False if there is no value to go on with.
  bool compare_values(const Expression& e, IntegerValue& integers, unbounded::Sizes& polynomials) {
    SCOPED_TRACE(to_text(e));
    IntegerEvaluator concrete(registry_.size_functions(), integers_, attributes_);
    integers = concrete.value(e);
    const Outcome outcome = read([&](SizeEvaluator& evaluator) { polynomials = evaluator.value(e); });
    count(outcome);
    if (outcome == Outcome::not_applicable) {
      EXPECT_FALSE(concrete.status()) << "polynomials have no value, integers do";
    }
    if (outcome != Outcome::value) return false;
    EXPECT_TRUE(concrete.status()) << concrete.status().error().to_string();
    if (!concrete.status()) return false;
    EXPECT_EQ(polynomials.vector, integers.vector);
    EXPECT_EQ(polynomials.components.size(), integers.components.size());
    if (polynomials.components.size() != integers.components.size()) return false;
    for (std::size_t i = 0; i < integers.components.size(); ++i) {
      if (!polynomials.components[i].valid()) return false;
      EXPECT_EQ(at_instance(polynomials.components[i]), std::optional(integers.components[i]))
          << symbols_.to_string(polynomials.components[i]);
    }
    return true;
  }

  // Whether the requirement holds and is understood.
  bool compare_conditions(const Expression& e) {
    SCOPED_TRACE(to_text(e));
    IntegerEvaluator once(registry_.size_functions(), integers_, attributes_);
    const bool holds_once = once.condition(e);
    Alternatives truth;
    const Outcome known = read([&](SizeEvaluator& evaluator) { truth = evaluator.condition(e); });
    count(known);
    if (known == Outcome::not_applicable) {
      EXPECT_FALSE(once.status()) << "polynomials have no value, integers do";
    }
    if (known == Outcome::value) {
      EXPECT_TRUE(once.status()) << once.status().error().to_string();
      EXPECT_EQ(holding(truth.yes), holds_once ? 1U : 0U);
      EXPECT_EQ(holding(truth.no), holds_once ? 0U : 1U);
    }

    IntegerEvaluator concrete(registry_.size_functions(), integers_, attributes_);
    const bool applies = concrete.condition(e, true) && concrete.status();
    std::vector<Alternatives> parts;
    const Outcome outcome = read([&](SizeEvaluator& evaluator) { parts = evaluator.requirements(e); });
    if (outcome == Outcome::not_applicable) {
      EXPECT_FALSE(applies) << "polynomials do not apply, integers do";
    }
    if (outcome != Outcome::value) return false;
    EXPECT_EQ(std::all_of(parts.begin(), parts.end(), [&](const Alternatives& part) { return holding(part.yes) == 1; }),
              applies);
    return applies &&
           std::all_of(parts.begin(), parts.end(), [&](const Alternatives& part) { return assume(part.yes); });
  }

  void statements() {
    for (const SizeStatement& statement : definition_.statements) {
      if (statement.name.empty()) {
        if (!compare_conditions(statement.value)) return;
        continue;
      }
      IntegerValue integers;
      unbounded::Sizes polynomials;
      if (!compare_values(statement.value, integers, polynomials)) return;
      integers_.bind(statement.name, integers);
      polynomials_.bind(statement.name, polynomials);
    }
    for (const Expression& coordinate : definition_.equations[0].value.operands[0].operands) coordinates(coordinate);
  }

  // A coordinate at every value of the loop variables.
  void coordinates(const Expression& e) {
    SCOPED_TRACE(to_text(e));
    const std::vector<std::int64_t> extents = {4, 3};
    AffineScope scope;
    for (const auto& [name, value] : integers_) {
      AffineValue affine;
      affine.vector = value.vector;
      for (const std::int64_t component : value.components) affine.components.push_back({component, {}});
      scope.bind(name, std::move(affine));
    }
    scope.bind("i", AffineValue::of(Affine{0, {{0, 1}}}));
    scope.bind("j", AffineValue::of(Affine{0, {{1, 1}}}));
    AffineEvaluator evaluator(registry_.size_functions(), scope, attributes_, extents);
    const Affine form = evaluator.scalar(e);
    if (evaluator.status()) ++counts_.affine;

    const SymbolId variables[] = {symbols_.bound(), symbols_.bound()};
    for (std::size_t v = 0; v < 2; ++v) {
      const Polynomial variable = Polynomial::symbol(variables[v]);
      context_.push_back(at_least(variable, 0));
      context_.push_back(less_than(variable, Polynomial(extents[v])));
      polynomials_.bind(v == 0 ? "i" : "j", unbounded::Sizes::of(variable));
    }
    SizeEvaluator symbolic(registry_.size_functions(), polynomials_, facts_, context_);
    const Polynomial p = symbolic.scalar(e);
    context_.clear();
    polynomials_.shrink(polynomials_.size() - 2);
    const Obstacle::Kind kind = symbolic.obstacle().kind;
    ++counts_.expressions;
    if (kind == Obstacle::Kind::none) ++counts_.decided;

    for (std::int64_t i = 0; i < extents[0]; ++i)
      for (std::int64_t j = 0; j < extents[1]; ++j) {
        const std::size_t mark = integers_.size();
        integers_.bind("i", IntegerValue::of(i));
        integers_.bind("j", IntegerValue::of(j));
        IntegerEvaluator concrete(registry_.size_functions(), integers_, attributes_);
        const std::int64_t value = concrete.integer(e);
        integers_.shrink(mark);
        if (evaluator.status()) {
          EXPECT_TRUE(concrete.status()) << concrete.status().error().to_string();
          std::int64_t affine = form.base;
          for (const auto& [variable, coefficient] : form.terms) affine += coefficient * (variable == 0 ? i : j);
          EXPECT_EQ(affine, value) << i << ", " << j;
        }
        if (kind == Obstacle::Kind::none && p.valid()) {
          Facts::Replacement here = at_instance_;
          here.emplace_back(variables[0], Polynomial(i));
          here.emplace_back(variables[1], Polynomial(j));
          EXPECT_TRUE(concrete.status()) << concrete.status().error().to_string();
          EXPECT_EQ(fresh_.substitute(p, here).constant(), std::optional(value)) << i << ", " << j;
        }
        if (::testing::Test::HasFailure()) return;
      }
  }

  // Types found with numbers, with polynomials that are numbers, and with polynomials where all must follow.
  void types() {
    std::vector<TensorType> inputs;
    std::vector<std::vector<Polynomial>> numbers, shapes;
    for (const Shape& shape : instance_.shapes()) {
      inputs.push_back(TensorType{ElementType::f32, shape, true});
      numbers.emplace_back(shape.begin(), shape.end());
    }
    const Expected<std::vector<TensorType>> concrete = registry_.infer("drawn", attributes_, inputs);
    // A bound of tensors, not of the language.
    if (!concrete && concrete.error().message.find("more than 2^40 elements") != std::string::npos) return;
    unbounded::SizeAttributes at_numbers, at_symbols;
    for (const char* name : {"k", "p", "l"}) {
      at_symbols[name] = *std::as_const(polynomials_).find(name);
      const IntegerValue& value = *std::as_const(integers_).find(name);
      unbounded::Sizes polynomial;
      polynomial.vector = value.vector;
      polynomial.components.assign(value.components.begin(), value.components.end());
      at_numbers[name] = polynomial;
    }
    Facts none(symbols_, solver_);
    const auto by_numbers = unbounded::infer_shapes(registry_, definition_, at_numbers, numbers, none);
    if (by_numbers) {
      ++counts_.inferred;
      EXPECT_TRUE(concrete) << concrete.error().to_string();
      if (!concrete) return;
      const Shape& shape = (*concrete)[0].shape;
      EXPECT_EQ((*by_numbers)[0], std::vector<Polynomial>(shape.begin(), shape.end()));
    } else if (concrete) {
      // What is not known even of numbers, or is beyond a bound on vectors.
      EXPECT_THAT(by_numbers.error().message,
                  ::testing::AnyOf(::testing::HasSubstr("is needed"), ::testing::HasSubstr("known to be positive"),
                                   ::testing::HasSubstr("too large"), ::testing::HasSubstr("too many cases")));
    }
    Facts extents(symbols_, solver_);
    const Polynomial a = *std::as_const(polynomials_).find("a")->components.begin();
    const Polynomial b = *std::as_const(polynomials_).find("b")->components.begin();
    const Polynomial c = *std::as_const(polynomials_).find("c")->components.begin();
    shapes = {{a, b}, {b * c}};
    for (const Polynomial& e : std::as_const(polynomials_).find("E")->components) shapes[1].push_back(e);
    for (const std::vector<Polynomial>& shape : shapes)
      for (const Polynomial& extent : shape)
        if (extent.as_symbol()) {
          EXPECT_TRUE(extents.add(at_least(extent, 1)));
        }
    EXPECT_TRUE(extents.add(at_least(c, 1)));
    const auto by_symbols = unbounded::infer_shapes(registry_, definition_, at_symbols, shapes, extents);
    if (!by_symbols) return;
    ++counts_.inferred;
    EXPECT_TRUE(concrete) << concrete.error().to_string();
    if (!concrete) return;
    const Shape& shape = (*concrete)[0].shape;
    EXPECT_EQ((*by_symbols)[0].size(), shape.size());
    for (std::size_t i = 0; i < shape.size() && i < (*by_symbols)[0].size(); ++i)
      EXPECT_EQ(at_instance((*by_symbols)[0][i]), std::optional(shape[i]));
  }

  const OperatorRegistry& registry_;
  const OperatorDefinition& definition_;
  const Instance& instance_;
  Counts& counts_;
  const Attributes attributes_ = instance_.attributes();
  IntegerScope integers_;
  unbounded::Symbols symbols_;
  unbounded::IntegerSolver solver_{symbols_, 50'000, 0};
  Facts facts_{symbols_, solver_};
  Facts fresh_{symbols_, solver_};  // knows nothing, and computes with numbers
  Facts::Replacement at_instance_;
  std::vector<Atom> context_;
  unbounded::SizeEnvironment polynomials_;
};

TEST(SizeDomains, AgreeAtInstances) {
  Random random(20);
  Reading::Counts counts;
  std::size_t definitions = 0, refused = 0;
  while (counts.expressions < 100'000 && !::testing::Test::HasFailure()) {
    const std::string text = Writer(random).definition();
    const Expected<OperatorRegistry> registry = OperatorRegistry::parse(text, "drawn.op", nullptr, Trials::omitted);
    ++definitions;
    if (!registry) {
      ++refused;
      ASSERT_LT(refused, 100 + definitions / 5) << registry.error().to_string() << "\n" << text;
      continue;
    }
    for (int i = 0; i < 2 && !::testing::Test::HasFailure(); ++i) {
      const Instance instance = draw_instance(random);
      SCOPED_TRACE(text + "a = " + std::to_string(instance.a) + ", b = " + std::to_string(instance.b) +
                   ", c = " + std::to_string(instance.c) + ", E = " + to_string(instance.rest) + "; " +
                   to_string(instance.attributes()));
      Reading(*registry, instance, counts).compare();
    }
  }
  // What nothing is said of tests nothing.
  EXPECT_GT(counts.decided, counts.expressions / 2);
  EXPECT_GT(counts.refused, counts.expressions / 50);
  EXPECT_GT(counts.affine, counts.expressions / 50);
  EXPECT_GT(counts.inferred, counts.expressions / 50);
  RecordProperty("definitions", static_cast<int>(definitions));
}

}  // namespace
}  // namespace taso
