// The instances at which rules are examined: what they depend on, which there are, and the field they are decided in.

#include "verifier/instances.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/verifier/fixture.h"
#include "verifier/candidates.h"
#include "verifier/enumerate.h"
#include "verifier/fact_field.h"

namespace taso {
namespace {

using testing::axioms;
using testing::parse;
using testing::registry;

// All instances, thinned or not, as (types of the tensor variables, values of the others).
std::vector<Instance> enumerated(const Substitution& rule, const EnumerationOptions& options) {
  LoweredCache cache(registry());
  Enumeration enumeration(registry(), rule, cache, options);
  std::vector<Instance> found;
  enumeration.run([&] {
    found.push_back(enumeration.instance());
    return true;
  });
  EXPECT_EQ(enumeration.complete(), options.thin_above == 0);
  return found;
}

TEST(Enumeration, AxesInListsAreNegative) {
  for (const char* text :
       {"axiom a: concat(reduce_sum(x; axes=[b]), reduce_sum(y; axes=[b]); axis=a) = reduce_sum(concat(x, y; axis=a); "
        "axes=[b]) if a != b, dim(x, b) == dim(y, b)",
        "axiom a: reduce_mean(neg(x); axes=[b, a]) = neg(reduce_mean(x; axes=[b, a]))"}) {
    const Substitution rule = parse(text)[0];
    const auto b =
        static_cast<std::size_t>(std::find(rule.attribute_variables.begin(), rule.attribute_variables.end(), "b") -
                                 rule.attribute_variables.begin());
    std::set<std::int64_t> axes;
    for (const Instance& instance : enumerated(rule, {.domain = {.bound = 2, .composite = 2}}))
      axes.insert(std::get<std::int64_t>(*instance.attributes.at(b)));
    EXPECT_THAT(axes, ::testing::IsSupersetOf({-4, -3, -2})) << text;
  }
}

TEST(Enumeration, EveryAxiomHasInstances) {
  LoweredCache cache(registry());
  ASSERT_GT(axioms().size(), 300U);
  for (const Substitution& axiom : axioms()) {
    Enumeration enumeration(registry(), axiom, cache,
                            {.domain = {.bound = 4, .composite = 4}, .max_instances = 1, .max_steps = 500'000});
    bool found = false;
    enumeration.run([&] {
      found = true;
      return false;
    });
    EXPECT_TRUE(found) << axiom.name;
  }
}

TEST(Enumeration, FamiliesAreKeptWhole) {
  const Substitution rule = parse("axiom a: matmul(x, matmul(y, z)) = matmul(matmul(x, y), z)")[0];
  // y and z are decided first, and x last; there are enough families with the same y and z.
  const Domain domain{.bound = 3, .composite = 3};
  auto families = [](const std::vector<Instance>& instances) {
    std::map<std::string, std::size_t> sizes;
    for (const Instance& instance : instances)
      ++sizes[to_string(instance.variables[1]) + " " + to_string(instance.variables[2])];
    return sizes;
  };
  const std::vector<Instance> everything = enumerated(rule, {.domain = domain});
  const auto all = families(everything);
  const std::size_t half = everything.size() / 2;
  auto split = [&](const std::map<std::string, std::size_t>& part) {
    return std::count_if(part.begin(), part.end(),
                         [&](const auto& family) { return family.second != all.at(family.first); });
  };
  const EnumerationOptions wanted{.domain = domain, .thin_above = half, .families = true};
  const std::vector<Instance> kept = enumerated(rule, wanted), again = enumerated(rule, wanted);
  const auto part = families(kept);
  EXPECT_GT(part.size(), 100U);
  EXPECT_LT(part.size(), all.size());
  EXPECT_EQ(split(part), 0) << "of " << part.size() << " of " << all.size() << ", " << everything.size()
                            << " instances";
  ASSERT_EQ(kept.size(), again.size());
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i].variables, again[i].variables);
  // Without families every decision is thinned.
  EXPECT_GT(split(families(enumerated(rule, {.domain = domain, .thin_above = half}))), 0);
}

TEST(Registry, ManyValuesAtOnceAreAcceptedAsOneByOne) {
  std::vector<AttributeValue> lists;
  for (std::int64_t a = -3; a <= 3; ++a) {
    lists.push_back(std::vector<std::int64_t>{a});
    for (std::int64_t b = -3; b <= 4; ++b) lists.push_back(std::vector<std::int64_t>{a, b});
  }
  lists.push_back(std::vector<std::int64_t>{});
  lists.push_back(std::vector<std::int64_t>{2, 1, 3});
  lists.push_back(std::int64_t{1});
  using List = std::vector<std::int64_t>;
  const TensorType matrix{ElementType::f32, {2, 3}, true};
  struct Case {
    std::string op, name;
    Attributes attributes;
  };
  const List zeros{0, 0}, ones{1, 1};
  const std::vector<Case> cases = {
      {"slice", "starts", {{"sizes", ones}, {"starts", zeros}, {"steps", ones}}},
      {"slice", "sizes", {{"sizes", ones}, {"starts", List{1, 0}}, {"steps", List{1, 2}}}},
      {"slice", "steps", {{"sizes", List{1, 2}}, {"starts", zeros}, {"steps", ones}}},
      {"split", "sizes", {{"axis", std::int64_t{-1}}, {"sizes", List{3}}}},
      {"split", "sizes", {{"axis", std::int64_t{-3}}, {"sizes", List{3}}}},
      {"reduce_sum", "axes", {{"axes", List{-1}}}},
      {"transpose", "perm", {{"perm", List{1, 0}}}},
      {"reshape", "shape", {{"shape", List{6}}}},
      {"broadcast", "shape", {{"shape", List{2, 3}}}},
      {"pad", "before", {{"before", zeros}, {"after", ones}, {"value", 0.0}}},
  };
  std::size_t accepted = 0, rejected = 0;
  for (const Case& c : cases) {
    const std::vector<TensorType> inputs{matrix};
    const std::vector<bool> together = registry().accepted(c.op, c.attributes, inputs, c.name, lists);
    ASSERT_EQ(together.size(), lists.size());
    for (std::size_t i = 0; i < lists.size(); ++i) {
      Attributes alone = c.attributes;
      alone.set(c.name, lists[i]);
      const bool one =
          lists[i].index() == c.attributes.find(c.name)->index() && registry().accepts(c.op, alone, inputs);
      EXPECT_EQ(together[i], one) << c.op << " " << c.name << " = " << to_string(lists[i]);
      (one ? accepted : rejected) += 1;
    }
  }
  EXPECT_GT(accepted, 40U);
  EXPECT_GT(rejected, 40U);
}

TEST(FactField, KnowsTheFactsOfFunctions) {
  FactField ring(1);
  auto function = [](const char* name) -> const FunctionDefinition& { return registry().functions().at(name); };
  const FunctionDefinition &relu = function("relu"), &exp = function("exp"), &tanh = function("tanh");
  const Mod61 x = Mod61::from_bits(123456789), y = Mod61::from_bits(987654321), z = Mod61::from_bits(555555555);
  auto max = [&](std::vector<Mod61> values) { return ring.extremum(true, values); };
  auto min = [&](std::vector<Mod61> values) { return ring.extremum(false, values); };
  EXPECT_EQ(ring.call(relu, ring.call(relu, x)), ring.call(relu, x));
  EXPECT_EQ(ring.call(relu, Mod61()), Mod61());
  EXPECT_NE(ring.call(exp, ring.call(exp, x)), ring.call(exp, x));
  EXPECT_NE(ring.call(relu, ring.call(tanh, x)), ring.call(tanh, x));
  EXPECT_EQ(max({max({x, y}), z}), max({z, max({y, x}), x}));
  EXPECT_EQ(max({x, x}), x);
  EXPECT_NE(max({min({x, y}), z}), max({x, y, z}));
  EXPECT_NE(max({x, y}), min({x, y}));
  EXPECT_EQ(ring.call(tanh, max({x, y, z})), max({ring.call(tanh, z), ring.call(tanh, x), ring.call(tanh, y)}));
  EXPECT_EQ(ring.call(exp, min({x, y})), min({ring.call(exp, x), ring.call(exp, y)}));
  EXPECT_NE(ring.call(function("abs"), max({x, y})),
            max({ring.call(function("abs"), x), ring.call(function("abs"), y)}));
  // The order of questions makes no difference, nor does forgetting all results, once they are computed again.
  const Mod61 before = ring.call(relu, max({x, y}));
  ring.forget();
  EXPECT_EQ(ring.call(relu, max({x, y})), before);
  // Square as a product.
  EXPECT_EQ(ring.call(function("pow"), x, ring.number(2)), x * x);
  EXPECT_EQ(ring.number(1.0 / 3), FieldRing(1).number(1.0 / 3));
  EXPECT_EQ(ring.number(-7), -Mod61(std::int64_t{7}));
  (void)ring.divide(x, Mod61());
  EXPECT_FALSE(ring.status());
  ring.clear_status();
  EXPECT_TRUE(ring.status());
}

TEST(FactField, GrowsAndSaysWhenItIsFull) {
  FactField ring(1);
  const FunctionDefinition& relu = registry().functions().at("relu");
  std::uint64_t n = 0;
  while (!ring.full() && n < 1'000'000) {
    const Mod61 x = Mod61::from_bits(++n * 0x9e3779b97f4a7c15ULL), y = ring.call(relu, x);
    ASSERT_EQ(ring.call(relu, y), y);
  }
  EXPECT_TRUE(ring.full());
  ring.forget();
  EXPECT_FALSE(ring.full());
}

// A piece of a kernel may have no outputs.
TEST(Candidates, AnExtentOfZeroHasFactors) {
  const InputSpec& kernel = registry().find("conv2d")->inputs.at(1);
  const std::vector<NamedSizes> found = solve_sizes(kernel, {0, 2, 1, 1}, {{"g", {3}}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at("o"), std::vector<std::int64_t>{0});
}

// Given variables have values at which the conditions hold, also where few values do.
TEST(Instances, GivenVariablesSatisfyTheConditions) {
  const std::vector<Substitution> rules = parse(
      "rule r: conv2d(x, k) => concat(conv2d(s.0, t.0), conv2d(s.1, t.1); axis=-3)\n"
      "  where s = split(x; axis=-3, sizes=[dim(k, -3) * m, dim(x, -3) - dim(k, -3) * m]),\n"
      "        t = split(k; axis=-4, sizes=[o * m, dim(k, -4) - o * m])\n"
      "  for g, o, m if dim(k, -3) * g == dim(x, -3), g * o == dim(k, -4), 0 < m, m < g");
  ASSERT_EQ(rules.size(), 1u);
  const InstanceSet set = find_instances(registry(), rules[0], {.max_instances = 20});
  EXPECT_GE(set.instances.size(), 10u);
  for (const TypedInstance& typed : set.instances) {
    const auto value = [&](std::size_t v) { return std::get<std::int64_t>(*typed.instance.attributes.at(v)); };
    EXPECT_EQ(value(0) * typed.instance.variables[1].shape[1], typed.instance.variables[0].shape[1]);
    EXPECT_LT(value(2), value(0));
  }
}

}  // namespace
}  // namespace taso
