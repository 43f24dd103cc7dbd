// The symbolic and the concrete reading of the language of rules: at every instance they agree on types and on the
// values of attributes. Rules and expressions are random.

#include <algorithm>

#include "support/random.h"
#include "tests/verifier/fixture.h"
#include "verifier/instances.h"
#include "verifier/unbounded/symbolic_types.h"

namespace taso {
namespace {

using testing::registry;
using unbounded::Obstacle;

// A rule with holes: $I an integer, $R a real, $L a list, $C a condition; and what may stand in them.
struct Template {
  const char* text;
  std::vector<const char*> integers, lists, reals;
};

const std::vector<Template>& templates() {
  static const std::vector<Template> all = {
      {"softmax(x; axis=m) => softmax(x; axis=$I) if $C", {"m", "dim(x, -1)", "dim(x, m)", "rank(x)"}, {}, {}},
      {"softmax(x; axis=m) => softmax(x; axis=m + $I * 0)", {"m", "dim(x, -1)", "dim(x, -3)", "rank(x)"}, {}, {}},
      {"pad(x; before=p, after=q, value=a) => pad(x; before=p, after=q, value=$R)",
       {"dim(x, -1)", "rank(x)", "p[0]", "length(q)"},
       {"p", "q"},
       {"a"}},
      {"pad(x; before=p, after=q) => pad(x; before=$L, after=q) if $C",
       {"dim(x, -1)", "rank(x)", "p[0]", "q[1]", "length(p)"},
       {"p", "q"},
       {}},
      {"clip(x; min=a, max=b) => clip(x; min=$R, max=$R) if $C", {"dim(x, -2)", "rank(x)"}, {}, {"a", "b"}},
      {"lrn(x; size=n, alpha=a) => lrn(x; size=$I, alpha=$R)", {"n", "dim(x, -1)", "rank(x)"}, {}, {"a"}},
      {"conv2d(x, k; strides=s, pads=p) => conv2d(x, k; strides=s, pads=$L) if $C",
       {"dim(x, -1)", "dim(k, -4)", "s[1]", "p[2]"},
       {"p", "[s[0], s[1], s[0], s[1]]"},
       {}},
      {"split(x; axis=-1, sizes=[m, n]).0 => split(x; axis=-1, sizes=[$I, $I]).0",
       {"m", "n", "dim(x, -1)", "rank(x)"},
       {},
       {}},
      {"reshape(x; shape=s) => reshape(x; shape=$L) if $C", {"s[0]", "dim(x, -1)", "length(s)"}, {"s"}, {}},
  };
  return all;
}

class Writer {
 public:
  Writer(const Template& from, Random& random) : from_(from), random_(random) {}

  std::string rule() {
    std::string text = "rule r: ";
    const std::string whole = from_.text;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      if (whole[at] != '$') {
        text += whole[at];
        continue;
      }
      const char kind = whole[++at];
      text += kind == 'I' ? integer(2) : kind == 'R' ? real(2) : kind == 'L' ? list(2) : condition();
    }
    return text + "\n";
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.below(n)); }
  const char* one_of(const std::vector<const char*>& all) { return all[below(all.size())]; }
  const char* operation() { return one_of({" + ", " - ", " * ", " // "}); }

  std::string integer(int depth) {
    if (depth == 0 || below(3) == 0)
      return below(2) == 0 ? one_of(from_.integers) : std::to_string(below(5) == 0 ? 50 : below(6));
    return "(" + integer(depth - 1) + operation() + integer(depth - 1) + ")";
  }
  std::string real(int depth) {
    if (depth == 0 || below(3) == 0) {
      const std::size_t kind = below(3);
      if (kind == 0 && !from_.reals.empty()) return one_of(from_.reals);
      return kind == 1 ? "0.5" : integer(1);
    }
    return "(" + real(depth - 1) + operation() + real(depth - 1) + ")";
  }
  std::string list(int depth) {
    if (depth == 0 || below(3) == 0) return one_of(from_.lists);
    const std::string other = below(2) == 0 ? list(depth - 1) : integer(1);
    return "(" + list(depth - 1) + operation() + other + ")";
  }
  std::string condition() {
    const char* relation = one_of({" == ", " != ", " < ", " <= "});
    if (!from_.lists.empty() && below(3) == 0) return list(1) + relation + (below(2) == 0 ? list(1) : integer(1));
    return integer(2) + relation + integer(1);
  }

  const Template& from_;
  Random& random_;
};

Instance random_instance(const Substitution& rule, const unbounded::VariableKinds& kinds, Random& random) {
  Instance instance;
  for (std::size_t v = 0; v < rule.tensor_variables.size(); ++v) {
    TensorType type;
    type.shape.resize(kinds.only_rank[v] ? *kinds.only_rank[v] : random.below(4));
    for (std::int64_t& extent : type.shape) extent = 1 + static_cast<std::int64_t>(random.below(3));
    instance.variables.push_back(type);
  }
  for (std::size_t a = 0; a < rule.attribute_variables.size(); ++a) {
    if (kinds.attributes[a] == AttributeKind::integer) {
      instance.attributes.emplace_back(static_cast<std::int64_t>(random.below(6)) - 3);
    } else if (kinds.attributes[a] == AttributeKind::real) {
      instance.attributes.emplace_back(0.5 * static_cast<double>(random.below(5)));
    } else {
      std::vector<std::int64_t> list(kinds.lengths[a] ? *kinds.lengths[a] : instance.variables[0].shape.size());
      for (std::int64_t& element : list) element = static_cast<std::int64_t>(random.below(3));
      instance.attributes.emplace_back(list);
    }
  }
  return instance;
}

// What symbolic typing finds where all symbols have the values of an instance.
Obstacle symbolic_typing(const Substitution& rule, const unbounded::VariableKinds& kinds, const Instance& instance) {
  using unbounded::equal_to, unbounded::Polynomial, unbounded::Symbol;
  unbounded::Symbols symbols;
  unbounded::IntegerSolver solver(symbols, 1000, 0);
  unbounded::Facts facts(symbols, solver);
  unbounded::Assumptions assumptions;
  auto pin = [&](Symbol::Kind kind, const std::string& name, std::uint32_t variable, std::int64_t position,
                 std::int64_t value) {
    const unbounded::SymbolId id = symbols.named(kind, name, name);
    symbols.place(id, variable, position);
    assumptions.atoms.push_back(equal_to(Polynomial::symbol(id), Polynomial(value)));
  };
  for (std::uint32_t v = 0; v < instance.variables.size(); ++v) {
    const Shape& shape = instance.variables[v].shape;
    assumptions.ranks.emplace_back(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t axis = static_cast<std::int64_t>(i) - static_cast<std::int64_t>(shape.size());
      pin(Symbol::Kind::extent, "dim(" + rule.tensor_variables[v] + ", " + std::to_string(axis) + ")", v, axis,
          shape[i]);
    }
  }
  for (std::uint32_t a = 0; a < instance.attributes.size(); ++a) {
    assumptions.lengths.emplace_back();
    const std::string& name = rule.attribute_variables[a];
    if (const auto* integer = std::get_if<std::int64_t>(&*instance.attributes[a]))
      pin(Symbol::Kind::attribute, name, a, -1, *integer);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&*instance.attributes[a])) {
      assumptions.lengths.back() = list->size();
      for (std::size_t i = 0; i < list->size(); ++i)
        pin(Symbol::Kind::attribute, name + "[" + std::to_string(i) + "]", a, static_cast<std::int64_t>(i), (*list)[i]);
    }
  }
  unbounded::Typing typing(registry(), rule, kinds, facts, assumptions);
  return typing.run();
}

TEST(Readings, SymbolicAndConcreteTypingAgree) {
  Random random(7, "readings");
  std::size_t rules = 0, typed = 0, not_typed = 0, open = 0;
  for (std::size_t attempt = 0; attempt < 600; ++attempt) {
    const Template& from = templates()[attempt % templates().size()];
    const std::string text = Writer(from, random).rule();
    const auto parsed = parse_rules(text, "test.rules", registry());
    if (!parsed) continue;  // arithmetic that has no meaning
    ++rules;
    const Substitution& rule = parsed->at(0);
    const unbounded::VariableKinds kinds = unbounded::kinds_of_variables(registry(), rule);
    std::vector<Instance> instances;
    for (int i = 0; i < 4; ++i) instances.push_back(random_instance(rule, kinds, random));
    if (attempt % 5 == 0)
      for (const TypedInstance& found :
           find_instances(registry(), rule, {.max_instances = 4, .search = false, .rare = false, .max_candidates = 100})
               .instances)
        instances.push_back(found.instance);
    for (const Instance& instance : instances) {
      // Tensors have elements, and not more than a tensor may have.
      if (std::any_of(instance.variables.begin(), instance.variables.end(),
                      [](const TensorType& type) { return type.elements() == 0 || type.shape.size() > 8; }))
        continue;
      const Obstacle obstacle = symbolic_typing(rule, kinds, instance);
      const bool concrete = check_types(registry(), rule, instance).equal_types;
      if (obstacle.kind == Obstacle::Kind::none) {
        EXPECT_TRUE(concrete) << text << to_string(rule, instance);
        ++typed;
      } else if (obstacle.kind == Obstacle::Kind::ill_typed) {
        EXPECT_FALSE(concrete) << text << to_string(rule, instance);
        ++not_typed;
      } else {
        ++open;  // a quotient by what is not positive, more than one case: nothing is claimed
      }
    }
  }
  EXPECT_GT(rules, 300U);
  EXPECT_GT(typed, 100U);
  EXPECT_GT(not_typed, 100U);
  EXPECT_LT(open, typed + not_typed);
}

}  // namespace
}  // namespace taso
