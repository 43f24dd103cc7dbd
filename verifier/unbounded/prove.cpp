#include "verifier/unbounded/prove.h"

#include <algorithm>
#include <list>
#include <map>

#include "verifier/instances.h"
#include "verifier/rule_conditions.h"
#include "verifier/unbounded/conditions.h"
#include "verifier/unbounded/elaborate.h"
#include "verifier/unbounded/equal_by_laws.h"
#include "verifier/unbounded/induction.h"
#include "verifier/unbounded/matching.h"
#include "verifier/unbounded/shared_values.h"
#include "verifier/unbounded/signs.h"
#include "verifier/unbounded/symbolic_types.h"
#include "verifier/unbounded/witness.h"

namespace taso {
namespace {

using namespace unbounded;

// Typings tried for one rule: choices that turn out ill-typed count, too.
constexpr std::size_t hard_typings = 40'000;
// Conditions, and pairs of them, that are tried.
constexpr std::size_t max_attempts = 40;
constexpr std::size_t hard_cases = 4'000;
// Steps that an operator takes to be typed, besides the questions that are asked for it.
constexpr std::uint64_t typing_steps = 24;
// Pairs of values of the two sides that are compared in vain.
constexpr std::size_t max_pairs = 64;
// Concrete instances that a proof must speak of, and assignments of shapes that are all tried for them.
constexpr std::size_t checked_instances = 6;
constexpr std::size_t checked_candidates = 400;

// The integer that an attribute variable, or an element of it, is at an instance.
std::optional<std::int64_t> integer_of(const std::optional<AttributeValue>& value, std::int64_t position) {
  if (!value) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&*value); integer != nullptr && position < 0) return *integer;
  const auto* list = std::get_if<std::vector<std::int64_t>>(&*value);
  if (list == nullptr || position < 0 || position >= static_cast<std::int64_t>(list->size())) return std::nullopt;
  return (*list)[static_cast<std::size_t>(position)];
}

// What was supposed in one case of a proof: there are thousands of some rules.
struct Case {
  Case(Assumptions supposed, const Facts& facts, std::vector<Typing::FactorOfAxis> found, bool nothing)
      : assumptions(std::move(supposed)),
        symbols(&facts.symbols()),
        solved(facts.solved()),
        atoms(facts.atoms()),
        factors(std::move(found)),
        empty(nothing) {}

  Assumptions assumptions;
  const Symbols* symbols;
  std::vector<std::pair<SymbolId, Polynomial>> solved;  // once both sides were typed
  std::vector<Atom> atoms;                              // then, too
  std::vector<Typing::FactorOfAxis> factors;
  bool empty;  // no output has an element, so that nothing was compared

  // Whether its ranks and lengths are those of an instance and all of its hypotheses hold there. Hypotheses that were
  // chosen before may speak of factors that were symbols then and are none any more: `known` has all, of this case,
  // too.
  [[nodiscard]] bool covers(const Instance& instance, const std::map<SymbolId, Typing::FactorOfAxis>& known) const {
    for (std::size_t v = 0; v < instance.variables.size(); ++v)
      if (assumptions.ranks[v] && *assumptions.ranks[v] != instance.variables[v].shape.size()) return false;
    for (std::size_t a = 0; a < instance.attributes.size(); ++a) {
      if (!assumptions.lengths[a] || !instance.attributes[a]) continue;
      const auto* list = std::get_if<std::vector<std::int64_t>>(&*instance.attributes[a]);
      if (list != nullptr && list->size() != *assumptions.lengths[a]) return false;
    }
    Point point(1);
    for (SymbolId id = 0; id < symbols->size(); ++id) {
      const Symbol& symbol = (*symbols)[id];
      std::optional<std::int64_t> value;
      if (symbol.kind == Symbol::Kind::extent) {
        const Shape& shape = instance.variables[symbol.variable].shape;
        const std::int64_t axis = static_cast<std::int64_t>(shape.size()) + symbol.position;
        if (axis >= 0) value = shape[static_cast<std::size_t>(axis)];
      } else if (symbol.kind == Symbol::Kind::attribute) {
        value = integer_of(instance.attributes[symbol.variable], symbol.position);
      }
      if (value) point.choose(id, *value);
    }
    // In the order in which the symbols were made, since each is made of those before it. All of this case must divide.
    for (const auto& [symbol, factor] : known) {
      const bool own = std::any_of(factors.begin(), factors.end(),
                                   [&, id = symbol](const Typing::FactorOfAxis& other) { return other.symbol == id; });
      const auto extent = point.evaluate(*symbols, factor.extent), product = point.evaluate(*symbols, factor.product);
      if (extent && product && *product > 0 && *extent % *product == 0)
        point.choose(symbol, *extent / *product);
      else if (own)
        return false;
    }
    for (const auto& [symbol, value] : solved)
      if (!point.satisfies(*symbols, equal_to(Polynomial::symbol(symbol), value))) return false;
    return std::all_of(atoms.begin(), atoms.end(), [&](const Atom& atom) { return point.satisfies(*symbols, atom); });
  }
};

// Guards by which the question whether a value is asked for is divided into cases: a concatenation of nine.
constexpr std::size_t max_divisions = 8;

// What is to be shown of all cases.
enum class Aim : std::uint8_t {
  equal,      // The sides are equal wherever the source is defined, and the target is defined there.
  defined,    // The latter alone.
  applicable  // The target's operators can be applied wherever the source's can.
};

class Search {
 public:
  Search(const OperatorRegistry& registry, const Substitution& rule, const UnboundedOptions& options,
         std::size_t max_queries, Budget& budget, Aim aim = Aim::equal)
      : registry_(registry),
        rule_(rule),
        options_(options),
        aim_(aim),
        max_queries_(max_queries),
        budget_(budget),
        kinds_(kinds_of_variables(registry, rule)),
        solver_(symbols_, options.rlimit, max_queries, &budget) {}

  /// Whether more questions to Z3 might have helped.
  [[nodiscard]] bool refused() const { return solver_.refused(); }
  [[nodiscard]] std::size_t max_queries() const { return max_queries_; }
  /// Of the first case that failed.
  [[nodiscard]] const std::vector<Condition>& candidates() const { return candidates_; }
  /// Whether the first case that failed goes through under more conditions: much cheaper than the whole proof, which
  /// cannot succeed otherwise.
  bool failure_vanishes(std::vector<Condition> conditions) {
    if (!failed_) return false;
    extra_ = std::move(conditions);
    solver_.begin_again();
    outcome_ = {};
    out_of_cases_ = false;
    const bool vanishes = explore(Assumptions(*failed_));
    extra_.clear();
    return vanishes;
  }

  // Whether no case speaks of an instance whose ranks and lengths were examined.
  [[nodiscard]] bool misses(const Instance& instance) const {
    // No proof speaks of tensors without elements.
    if (std::any_of(instance.variables.begin(), instance.variables.end(),
                    [](const TensorType& type) { return type.elements() == 0; }))
      return false;
    for (const TensorType& type : instance.variables)
      if (outcome_.max_rank && type.shape.size() > *outcome_.max_rank) return false;
    for (const std::optional<AttributeValue>& value : instance.attributes)
      if (const auto* list = value ? std::get_if<std::vector<std::int64_t>>(&*value) : nullptr;
          list != nullptr && outcome_.max_rank && list->size() > *outcome_.max_rank)
        return false;
    return std::none_of(cases_.begin(), cases_.end(),
                        [&](const Case& known) { return known.covers(instance, factors_); });
  }

  UnboundedOutcome run() {
    Assumptions start;
    start.ranks.resize(rule_.tensor_variables.size());
    start.lengths.resize(rule_.attribute_variables.size());
    for (std::size_t v = 0; v < start.ranks.size(); ++v) start.ranks[v] = kinds_.only_rank[v];
    // All ranks up to the least that is worth a proof, then one rank more at a time as long as it is affordable.
    for (limit_ = options_.least_rank; limit_ <= options_.max_rank; ++limit_) {
      const std::size_t cases = outcome_.cases;
      if (!(limit_ == options_.least_rank ? explore(start) : explore_further())) {
        if (!out_of_cases_ || limit_ <= options_.least_rank) {
          outcome_.proved = false;
          if (budget_.exhausted()) outcome_.reason = out_of_steps;
          if (outcome_.reason.empty()) outcome_.reason = "too many cases";
          return outcome_;
        }
        outcome_.reason.clear();
        outcome_.cases = cases;
        break;
      }
      covered_ = limit_;
      if (open_.empty()) break;  // nothing depends on the limit
    }
    if (!open_.empty()) outcome_.max_rank = covered_;
    for (const Choice& choice : open_) add_limit(choice);
    if ((options_.check_instances || !witness_) && !agrees_with_instances()) return outcome_;
    if (!witness_ || proved_cases_ == 0) {
      outcome_.reason = "vacuous: no instance was found at which both sides are well-typed with equal types";
      return outcome_;
    }
    outcome_.proved = true;
    // What only some cases ask for (some ranks, some axes) does not stand for itself.
    bool general = false;
    for (const auto& [condition, cases] : asked_for_) {
      general = general || cases < proved_cases_;
      if (cases == proved_cases_) add_implicit({ImplicitCondition::Kind::of_target, to_string(symbols_, condition)});
    }
    if (general) add_implicit({ImplicitCondition::Kind::well_typed_target});
    return outcome_;
  }

 private:
  // Whether some case speaks of each of a few instances; one of them may show that something was proved at all.
  bool agrees_with_instances() {
    for (const TypedInstance& typed :
         find_instances(registry_, rule_,
                        {.max_instances = checked_instances, .rare = false, .max_candidates = checked_candidates})
             .instances) {
      if (misses(typed.instance)) {
        outcome_.reason = readings_differ + to_string(rule_, typed.instance);
        return false;
      }
      witness_ = witness_ || std::any_of(cases_.begin(), cases_.end(), [&](const Case& known) {
                   return !known.empty && known.covers(typed.instance, factors_);
                 });
    }
    return true;
  }

  // A case in which a rank or a length was chosen.
  struct Choice {
    Assumptions assumptions;
    Obstacle::Kind kind = Obstacle::Kind::rank;
    std::uint32_t variable = 0;

    [[nodiscard]] Assumptions with(std::size_t value) const {
      Assumptions next = assumptions;
      (kind == Obstacle::Kind::rank ? next.ranks : next.lengths)[variable] = value;
      return next;
    }
  };
  [[nodiscard]] std::size_t least(const Choice& choice) const {
    return choice.kind == Obstacle::Kind::rank ? kinds_.least_rank[choice.variable] : 0;
  }

  // That a rank or a length is within what was examined.
  void add_limit(const Choice& choice) {
    Condition limit;
    limit.relation = Condition::Relation::less_equal;
    limit.left.index = choice.variable;
    if (choice.kind == Obstacle::Kind::rank) {
      limit.left.kind = AttributeExpression::Kind::rank;
    } else {
      AttributeExpression list;
      list.kind = AttributeExpression::Kind::variable;
      list.index = choice.variable;
      limit.left.kind = AttributeExpression::Kind::length;
      limit.left.index = 0;
      limit.left.operands = {list};
    }
    limit.right.literal = static_cast<std::int64_t>(covered_);
    if (!is_limited(rule_, limit.left, static_cast<std::int64_t>(covered_))) add({limit});
  }
  void add_implicit(const ImplicitCondition& condition) {
    if (std::find(outcome_.conditions.begin(), outcome_.conditions.end(), condition) == outcome_.conditions.end())
      outcome_.conditions.push_back(condition);
  }
  // Counts what the target of one more case asks for.
  void count(const std::vector<TargetCondition>& conditions) {
    for (auto it = conditions.begin(); it != conditions.end(); ++it) {
      if (std::find(conditions.begin(), it, *it) != it) continue;
      const auto known =
          std::find_if(asked_for_.begin(), asked_for_.end(), [&](const auto& entry) { return entry.first == *it; });
      if (known == asked_for_.end())
        asked_for_.emplace_back(*it, 1);
      else
        ++known->second;
    }
  }
  void add(const std::vector<Condition>& conditions) {
    for (const Condition& condition : conditions)
      if (std::find(outcome_.added.begin(), outcome_.added.end(), condition) == outcome_.added.end() &&
          std::find(rule_.conditions.begin(), rule_.conditions.end(), condition) == rule_.conditions.end())
        outcome_.added.push_back(condition);
  }

  // Whether what is asked for is asked for at the same element already: at once, or in all of the cases into which
  // guards of what is asked for divide it (a value of a concatenation is one of a piece).
  [[nodiscard]] bool asked(const Obligation& wanted, const std::vector<Obligation>& obligations, const Facts& facts) {
    std::size_t steps = options_.max_steps;
    Elements given, calls;
    for (const Obligation& other : obligations) {
      if (other.call) calls.push_back(*other.call);
      if (other.call && !other.counts && wanted.domain != ArgumentDomain::all) continue;
      if (SignSet::of(other.domain).within(wanted.domain)) given.push_back(other.element);
    }
    const std::vector<Atom> boundaries = guards_of_places(given, calls, facts);
    Facts here = facts;
    const auto asked_under = [&](auto&& self, const std::vector<Atom>& known, std::size_t divisions) -> bool {
      Element call = wanted.call.value_or(Element{});
      call.guards = known;
      if (wanted.call && !calls.empty() && Matcher(steps).covered(call, calls, facts)) return true;
      Element values = wanted.element;
      values.guards = known;
      if (!given.empty() && Matcher(steps).covered(values, given, facts)) return true;
      if (divisions == 0) return false;
      for (const Atom& boundary : boundaries) {
        std::vector<Atom> inside = known, outside = known;
        inside.push_back(boundary);
        outside.push_back({Atom::Relation::nonnegative, -boundary.p - 1});
        if (here.entails_quickly(boundary, known) || here.contradictory_quickly(inside)) continue;
        return self(self, inside, divisions - 1) && self(self, outside, divisions - 1);
      }
      return false;
    };
    return asked_under(asked_under, wanted.known, max_divisions);
  }

  // Guards under which values are asked for that speak of no variables of reductions, each once.
  static std::vector<Atom> guards_of_places(const Elements& given, const Elements& calls, const Facts& facts) {
    std::vector<Atom> result;
    for (const Elements* elements : {&given, &calls})
      for (const Element& element : *elements)
        for (const Atom& guard : element.guards)
          if (guard.relation == Atom::Relation::nonnegative && !facts.symbols().mentions(guard.p, element.bound) &&
              std::find(result.begin(), result.end(), guard) == result.end())
            result.push_back(guard);
    return result;
  }

  // The sign of a form wherever the source's value is defined, under the rule's conditions.
  SignSet known_sign(const NormalForm& form, const NormalForm& source, const Typing& typing, Facts& facts) const {
    Signs signs(facts);
    signs.assume(suppositions(typing));
    signs.assume_defined(source);
    const Sign sign = signs.of(form);
    return {sign.negative, sign.zero, sign.positive};
  }

  // What the target asks for of values follows from what the source asks for at the same element, or from conditions
  // that are to be added; else a reason. What the source asks for of attributes alone is to be added, too.
  std::string check_domains(const Elaborator& source, const NormalForm& value, const Elaborator& target,
                            const NormalForm& target_value, const Typing& typing, Facts& facts,
                            std::vector<Condition>& added) {
    if (rule_.is_axiom) return "";  // it speaks of where both sides are defined
    for (const Obligation& wanted : target.obligations()) {
      // Sides that are equal are so as extended reals, in which the maximum of nothing is -inf: not a value of the
      // source.
      const bool is_result = wanted.counts && wanted.call->bound.empty() && wanted.call->guards.empty() &&
                             wanted.call->value == target_value;
      if (aim_ == Aim::equal && is_result) continue;
      if (asked(wanted, source.obligations(), facts)) continue;
      std::optional<std::vector<Condition>> conditions;
      if (wanted.domain != ArgumentDomain::all) {
        std::size_t steps = options_.max_steps;
        Facts there = facts;
        for (const Atom& atom : wanted.known) (void)there.add(atom);
        Obligation simple = wanted;
        simple.element.value = Matcher(steps).simplify(wanted.element.value, there);
        if (known_sign(simple.element.value, value, typing, there).within(wanted.domain)) continue;
        conditions = conditions_for(simple, typing, there);
      }
      if (!conditions)
        return "the target is defined only where " + wanted.what + " is " +
               (wanted.domain == ArgumentDomain::all ? "defined" : to_string(wanted.domain)) +
               ", and nothing tells that it is wherever the source is defined";
      added.insert(added.end(), conditions->begin(), conditions->end());
    }
    for (const Obligation& wanted : source.obligations())
      if (wanted.domain != ArgumentDomain::all && !wanted.counts)
        if (const auto conditions = conditions_on_attributes(wanted, typing, facts))
          added.insert(added.end(), conditions->begin(), conditions->end());
    return "";
  }

  // That the target's operators can be applied where the source's can, whatever of their results the outputs read: else
  // a reason.
  std::string check_applications(const Typing& typing, const Facts& facts) {
    Facts here = facts;
    States states;
    Elaborator source(registry_, typing, typing.source(), here, states),
        target(registry_, typing, typing.target(), here, states);
    source.oblige_applications(false);
    target.oblige_applications(true);
    if (target.obstacle().any()) return "the target: " + target.obstacle().reason;
    std::vector<Condition> asked;
    std::string reason = check_domains(source, {}, target, {}, typing, here, asked);
    if (reason.empty() && budget_.exhausted()) reason = out_of_steps;
    if (reason.empty()) add(asked);
    return reason;
  }

  // Whether two values are defined at the same elements: what is shared stands for either of them.
  bool defined_alike(const Elaborator& source, const Elaborator& target, const Facts& facts) {
    auto covers = [&](const Elaborator& all, const Elaborator& some) {
      return std::all_of(some.obligations().begin(), some.obligations().end(),
                         [&](const Obligation& wanted) { return asked(wanted, all.obligations(), facts); });
    };
    return covers(source, target) && covers(target, source);
  }

  // The cases that a limit larger by one brings: each has, first of all, the new value in one of the choices so far.
  bool explore_further() {
    const std::size_t choices = open_.size();
    for (std::size_t i = 0; i < choices; ++i)
      if (limit_ >= least(open_[i]) && !explore(open_[i].with(limit_))) return false;
    return true;
  }

  // Tries all ways to go on; false ends the search.
  bool explore(const Assumptions& assumptions) {
    const bool extra = limit_ > options_.least_rank;
    if (++outcome_.typings > (extra ? options_.max_typings : hard_typings) ||
        outcome_.cases > (extra ? options_.max_cases : hard_cases) || budget_.exhausted()) {
      out_of_cases_ = true;
      return false;
    }
    budget_.spend(typing_steps * (rule_.source.nodes.size() + rule_.target.nodes.size()));
    Facts facts(symbols_, solver_);
    Typing typing(registry_, rule_, kinds_, facts, assumptions);
    for (const Condition& condition : extra_) typing.require(condition);
    Obstacle obstacle = typing.run();
    for (const Typing::FactorOfAxis& factor : typing.factors()) factors_.emplace(factor.symbol, factor);
    if (!obstacle.any()) {
      if (facts.contradictory()) return true;
      obstacle = prove(assumptions, typing, facts);
    }
    // What comes after the last step means nothing.
    if (budget_.exhausted()) {
      out_of_cases_ = true;
      return false;
    }
    switch (obstacle.kind) {
      case Obstacle::Kind::none:
      case Obstacle::Kind::ill_typed:
        return true;
      case Obstacle::Kind::unsupported:
        outcome_.reason = obstacle.reason;
        if (!failed_) failed_ = assumptions;
        return false;
      case Obstacle::Kind::rank:
      case Obstacle::Kind::length: {
        const Choice choice{assumptions, obstacle.kind, static_cast<std::uint32_t>(obstacle.variable)};
        open_.push_back(choice);
        for (std::size_t value = least(choice); value <= limit_; ++value)
          if (!explore(choice.with(value))) return false;
        return true;
      }
      case Obstacle::Kind::alternatives: {
        if (assumptions.atoms.size() > 64) {
          outcome_.reason = "too many cases of " + obstacle.reason;
          return false;
        }
        for (const std::vector<Atom>& atoms : obstacle.alternatives) {
          Assumptions next = assumptions;
          next.atoms.insert(next.atoms.end(), atoms.begin(), atoms.end());
          if (!explore(next)) return false;
        }
        return true;
      }
    }
    return true;
  }

  // The reason of a comparison with tensors called as the rule calls them.
  [[nodiscard]] std::string with_names(const std::string& reason) const {
    std::string text;
    for (std::size_t i = 0; i < reason.size();) {
      std::size_t end = i + 1;
      if (reason[i] == '#') end = std::min(reason.find_first_not_of("0123456789", end), reason.size());
      if (end == i + 1) {
        text += reason[i++];
        continue;
      }
      const std::size_t tensor = std::stoul(reason.substr(i + 1, end - i - 1));
      text += tensor < rule_.tensor_variables.size() ? rule_.tensor_variables[tensor]
              : tensor < States::first               ? "(a value of both sides)"
                                                     : "(a state of a recurrence)";
      i = end;
    }
    return text;
  }

  // What the comparisons of one case have in common.
  struct Comparison {
    Typing& typing;
    Facts& facts;
    std::size_t steps;                                  // comparisons of summands that are left
    std::optional<SharedValues> shared = std::nullopt;  // once they have been needed
    bool divided = false;
  };

  // Why two values were not found to be equal.
  struct Difference {
    Obstacle obstacle;     // of unfolding
    std::string reason;    // else
    bool refuted = false;  // there is a point at which they differ
    [[nodiscard]] bool any() const { return obstacle.any() || !reason.empty(); }
  };

  // Indices of some element of a value of the source, of which `here` learns that they lie inside; nothing where it has
  // no elements.
  static std::optional<std::vector<Polynomial>> some_indices(const Typing& typing, const PatternValue& value,
                                                             Facts& here) {
    std::vector<Polynomial> indices;
    const std::vector<Polynomial>& shape = typing.shape(typing.source(), value);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::string name = "i" + std::to_string(axis);
      const Polynomial index = Polynomial::symbol(here.symbols().named(Symbol::Kind::index, name, name));
      // An element exists, so no axis is empty.
      if (!here.add(at_least(here.reduce(shape[axis]), 1)) || !here.add(at_least(index, 0)) ||
          !here.add(less_than(index, here.reduce(shape[axis]))))
        return std::nullopt;
      indices.push_back(here.reduce(index));
    }
    return indices;
  }

  // The facts, and those sizes that the source asks for at this element, whatever its indices are: it is compared where
  // it is defined, a mean where it is one of something.
  static Facts where_defined(const Elaborator& source, const Facts& facts) {
    Facts result = facts;
    for (const Obligation& asked : source.obligations()) {
      if (!asked.size || (asked.call && !asked.counts) || !asked.element.bound.empty() ||
          !asked.element.guards.empty() || !asked.known.empty() || asked.domain == ArgumentDomain::all)
        continue;
      if (asked.domain == ArgumentDomain::nonzero && !result.entails_quickly(at_least(*asked.size, 0))) continue;
      Facts more = result;
      if (more.add(at_least(more.reduce(*asked.size), asked.domain == ArgumentDomain::nonnegative ? 0 : 1)))
        result = std::move(more);
    }
    return result;
  }

  // What the rule's conditions say of values, and those that are to be added.
  [[nodiscard]] Suppositions suppositions(const Typing& typing, const std::vector<Condition>& added = {}) const {
    using Relation = Condition::Relation;
    Suppositions result;
    for (const std::vector<Condition>* conditions : {&rule_.conditions, &added})
      for (const Condition& condition : *conditions)
        if (condition.of_elements() && condition.left.kind == AttributeExpression::Kind::elements)
          result.elements.emplace_back(condition.left.index,
                                       condition.relation == Relation::positive      ? Sign::above_zero()
                                       : condition.relation == Relation::nonnegative ? Sign::at_least_zero()
                                                                                     : Sign::not_zero());
    for (const auto& [relation, difference] : typing.real_conditions())
      result.numbers.emplace_back(difference, relation == Relation::less         ? Sign::above_zero()
                                              : relation == Relation::less_equal ? Sign::at_least_zero()
                                              : relation == Relation::equal      ? Sign::nothing_but_zero()
                                                                                 : Sign::not_zero());
    return result;
  }

  // Compares all elements of two values, outputs or `inner` ones, shared values being unfolded or not.
  Difference compare(Comparison& comparison, const SharedValues::Pair& pair, bool sharing, bool inner = false) {
    Typing& typing = comparison.typing;
    Facts here = comparison.facts;
    const std::optional<std::vector<Polynomial>> indices = some_indices(typing, pair.first, here);
    if (!indices) return {{}, "no elements", false};
    const SharedValues* shared = sharing ? &*comparison.shared : nullptr;
    States states;
    Elaborator source(registry_, typing, typing.source(), here, states, shared);
    Elaborator target(registry_, typing, typing.target(), here, states, shared);
    NormalForm a = source.element(pair.first, *indices);
    if (source.obstacle().any()) return {source.obstacle(), "", false};
    NormalForm b = target.element(pair.second, *indices);
    if (target.obstacle().any()) {
      // Where the target has no value of a size, it cannot be applied: that its types are right does not tell.
      if (target.obstacle().kind == Obstacle::Kind::ill_typed)
        return {{}, "the target cannot be applied at some sizes at which its types are right", false};
      return {target.obstacle(), "", false};
    }
    Matcher matcher(comparison.steps);
    // That the source's value is defined is certain of its outputs only.
    const Facts there = inner || rule_.is_axiom ? here : where_defined(source, here);
    bool equal = aim_ == Aim::defined || matcher.equal(a, b, there);
    // Of states any values were supposed, until it is known what they have to do with one another.
    const bool is_false = !equal && !inner && options_.refuted && options_.refuted();
    const bool refuted = is_false || (matcher.refuted() && states.empty());
    if (!equal && !is_false && !states.empty() &&
        Induction(registry_, typing, here, states, shared, comparison.steps).relate(a, b))
      equal = Matcher(comparison.steps).equal(a, b, there);
    const auto difference = [&]() -> Difference {
      return {{}, matcher.reason().empty() ? "the sides differ" : with_names(matcher.reason()), refuted};
    };
    if (inner) {
      if (!equal) return difference();
      if (!rule_.is_axiom && !defined_alike(source, target, here))
        return {{}, "the values are not defined at the same elements", false};
      if (budget_.exhausted()) return {{}, out_of_steps, false};
    } else {
      if (is_false) return difference();
      // What the target asks for becomes a part of the rule, so that the sides need be equal only under it.
      std::vector<Condition> asked;
      const std::string reason = check_domains(source, a, target, b, typing, here, asked);
      if (!equal && !equal_by_laws(registry_, a, b, there, suppositions(typing, asked), comparison.steps))
        return difference();
      if (!reason.empty()) return {{}, reason, false};
      // What came after the last step of this part means nothing.
      if (budget_.exhausted()) return {{}, out_of_steps, false};
      add(asked);
    }
    comparison.divided = comparison.divided || source.divided() || target.divided();
    return {};
  }

  // Whether an output of the source is that of the target: at first by unfolding all of it, which is short for most
  // rules. Where that takes long, values inside of the two sides are compared, operands first, and what is equal is
  // not unfolded any more.
  Difference compare_output(Comparison& comparison, const SharedValues::Pair& outputs) {
    if (aim_ == Aim::defined) return compare(comparison, outputs, false);
    Difference first;
    if (!sharing_helps_) {
      const Budget::Part part(budget_, options_.max_work / 128);
      first = compare(comparison, outputs, false);
      if (!first.any() || first.refuted || (first.obstacle.any() && first.obstacle.kind != Obstacle::Kind::unsupported))
        return first;
    }
    if (shares(comparison, outputs)) {
      sharing_helps_ = true;
      return {};
    }
    // Nothing but the short part of the budget can have been in the way.
    if (!sharing_helps_ && first.reason != out_of_steps && first.obstacle.reason != out_of_steps) return first;
    comparison.steps = options_.max_steps;
    return compare(comparison, outputs, false);
  }

  // Whether two outputs are found to be equal by means of what both sides compute.
  bool shares(Comparison& comparison, const SharedValues::Pair& outputs) {
    Typing& typing = comparison.typing;
    if (!comparison.shared) comparison.shared.emplace(rule_, typing, comparison.facts);
    SharedValues& shared = *comparison.shared;
    auto compared = [&](const SharedValues::Pair& pair, std::uint64_t steps) {
      const Budget::Part part(budget_, steps);
      comparison.steps = options_.max_steps;
      const bool equal = !compare(comparison, pair, true, pair != outputs).any();
      if (equal && pair != outputs) shared.merge(pair);
      return equal;
    };
    for (bool progress = true; progress && !shared.equal(outputs);) {
      progress = false;
      for (const SharedValues::Pair& pair : shared.candidates()) {
        if (pair == outputs || std::find(different_.begin(), different_.end(), pair) != different_.end()) continue;
        progress = compared(pair, options_.max_work / 128);
        if (progress) break;
        // What was not equal in one case is hardly so in another.
        if (different_.size() < max_pairs) different_.push_back(pair);
        if (different_.size() == max_pairs) break;
      }
    }
    if (!shared.equal(outputs) && !compared(outputs, options_.max_work / 8)) return false;
    // Shared values were not unfolded, so that their divisors were not seen.
    for (const TypedSide* side : {&typing.source(), &typing.target()})
      for (const TypedNode& node : side->nodes) {
        States states;
        Elaborator operators(registry_, typing, *side, comparison.facts, states);
        comparison.divided = comparison.divided || operators.divides(node);
      }
    return true;
  }

  Obstacle prove(const Assumptions& assumptions, Typing& typing, Facts& facts) {
    Comparison comparison{typing, facts, options_.max_steps};
    bool empty = true;
    for (std::size_t o = 0; o < rule_.source.outputs.size(); ++o) {
      Facts here = facts;
      if (!some_indices(typing, rule_.source.outputs[o], here)) continue;
      empty = false;
      if (aim_ == Aim::applicable) continue;
      if (same_term(rule_.source, rule_.source.outputs[o], rule_.target, rule_.target.outputs[o])) continue;
      Difference difference = compare_output(comparison, {rule_.source.outputs[o], rule_.target.outputs[o]});
      if (!difference.any()) continue;
      if (difference.obstacle.any()) return difference.obstacle;
      if (candidates_.empty()) candidates_ = candidate_conditions(typing, facts);
      Obstacle failure;
      failure.kind = Obstacle::Kind::unsupported;
      failure.reason = "output " + std::to_string(o) + ": " + difference.reason;
      return failure;
    }
    if (!empty && !rule_.is_axiom) {
      const std::string reason = check_applications(typing, facts);
      if (!reason.empty()) {
        Obstacle failure;
        failure.kind = Obstacle::Kind::unsupported;
        failure.reason = reason;
        return failure;
      }
    }
    cases_.emplace_back(assumptions, facts, typing.factors(), empty);
    if (empty) return {};
    const bool divided = comparison.divided;
    ++outcome_.cases;
    outcome_.divided = outcome_.divided || divided;
    ++proved_cases_;
    count(typing.target_conditions());
    if (!witness_) witness_ = has_instance(registry_, rule_, kinds_, assumptions, typing, facts);
    return {};
  }

  const OperatorRegistry& registry_;
  const Substitution& rule_;
  const UnboundedOptions& options_;
  Aim aim_;
  std::size_t max_queries_;
  Budget& budget_;
  VariableKinds kinds_;
  Symbols symbols_;
  IntegerSolver solver_;
  UnboundedOutcome outcome_;
  std::vector<Condition> candidates_, extra_;
  std::optional<Assumptions> failed_;
  std::size_t limit_ = 0, covered_ = 0;
  std::vector<Choice> open_;  // Ranks and lengths that definitions leave open, in the cases where they were chosen.
  bool out_of_cases_ = false;
  bool sharing_helps_ = false;                 // Some output was compared only with shared values.
  std::vector<SharedValues::Pair> different_;  // Values that were not found to be equal.
  // What the targets of proved cases ask for, in the order in which it was met, and how many of them ask for it.
  std::vector<std::pair<TargetCondition, std::size_t>> asked_for_;
  std::size_t proved_cases_ = 0;
  std::vector<Case> cases_;                           // All that were proved, and those without elements.
  std::map<SymbolId, Typing::FactorOfAxis> factors_;  // of axes, of all typings
  bool witness_ = false;
};

}  // namespace

struct UnboundedProver::State {
  State(const OperatorRegistry& the_registry, const Substitution& the_rule, const UnboundedOptions& the_options)
      : registry(the_registry), rule(the_rule), options(the_options), budget(the_options.max_work) {}

  const OperatorRegistry& registry;
  const Substitution& rule;
  UnboundedOptions options;
  Budget budget;                    // of all searches
  std::list<Search> searches = {};  // without Z3, then with it
  UnboundedOutcome outcome = {};

  void search(std::size_t queries) {
    searches.emplace_back(registry, rule, options, queries, budget);
    outcome = searches.back().run();
  }
};

UnboundedProver::UnboundedProver(const OperatorRegistry& registry, const Substitution& rule,
                                 const UnboundedOptions& options)
    : state_(std::make_unique<State>(registry, rule, options)) {}
UnboundedProver::~UnboundedProver() = default;

const UnboundedOutcome& UnboundedProver::prove() {
  State& state = *state_;
  if (!state.searches.empty()) return state.outcome;
  if (state.rule.source.outputs.empty() || state.rule.source.outputs.size() != state.rule.target.outputs.size()) {
    state.outcome.reason = "the two sides have different numbers of outputs";
    return state.outcome;
  }
  state.search(0);
  return state.outcome;
}

const UnboundedOutcome& UnboundedProver::prove_with_solver() {
  State& state = *state_;
  (void)prove();
  if (!state.outcome.proved && state.searches.size() == 1 && state.searches.back().refused() &&
      !state.budget.exhausted() && state.options.max_queries > 0)
    state.search(state.options.max_queries);
  return state.outcome;
}

bool UnboundedProver::misses(const Instance& instance) const {
  return state_->searches.empty() || state_->searches.back().misses(instance);
}

const UnboundedOutcome& UnboundedProver::infer(const Instance* difference) {
  State& state = *state_;
  Bindings at_difference;
  if (difference != nullptr) {
    for (const TensorType& type : difference->variables) at_difference.tensors.push_back(&type);
    at_difference.attributes = difference->attributes;
  }
  // What speaks of values is not known to hold.
  auto admits_difference = [&](const Condition& condition) {
    if (difference == nullptr) return false;
    const Expected<bool> held = holds(condition, at_difference);
    return held && *held;
  };
  if (prove().proved || state.budget.exhausted()) return state.outcome;
  // The weakest first: each candidate alone, then two together; all of them without Z3, then with it.
  for (Search& search : state.searches) {
    const std::vector<Condition> candidates = search.candidates();
    bool refused = false;
    auto holds_under = [&](const std::vector<Condition>& conditions) {
      if (difference != nullptr && std::all_of(conditions.begin(), conditions.end(), admits_difference)) return false;
      const bool vanishes = search.failure_vanishes(conditions);
      refused = refused || search.refused();
      if (!vanishes) return false;
      Substitution narrowed = state.rule;
      narrowed.conditions.insert(narrowed.conditions.end(), conditions.begin(), conditions.end());
      UnboundedOptions options = state.options;
      options.refuted = nullptr;  // not known of what is narrowed
      options.check_instances = true;
      Search whole(state.registry, narrowed, options, search.max_queries(), state.budget);
      const bool holds = whole.run().proved;
      refused = refused || whole.refused();
      if (holds) state.outcome.inferred = conditions;
      return holds;
    };
    std::size_t attempts = 0;
    for (const Condition& condition : candidates)
      if (++attempts <= max_attempts && !state.budget.exhausted() && holds_under({condition})) return state.outcome;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      for (std::size_t j = i + 1; j < candidates.size(); ++j)
        if (++attempts <= max_attempts && !state.budget.exhausted() && holds_under({candidates[i], candidates[j]}))
          return state.outcome;
    if (!refused) break;
  }
  return state.outcome;
}

UnboundedOutcome prove_target_defined(const OperatorRegistry& registry, const Substitution& rule,
                                      const UnboundedOptions& options) {
  Budget budget(options.max_work);
  return Search(registry, rule, options, 0, budget, Aim::defined).run();
}

UnboundedOutcome prove_target_applicable(const OperatorRegistry& registry, const Substitution& rule,
                                         const UnboundedOptions& options) {
  Budget budget(options.max_work);
  return Search(registry, rule, options, 0, budget, Aim::applicable).run();
}

UnboundedOutcome prove_unbounded(const OperatorRegistry& registry, const Substitution& rule,
                                 const UnboundedOptions& options) {
  UnboundedProver prover(registry, rule, options);
  if (prover.prove_with_solver().proved || !options.infer) return prover.prove();
  return prover.infer();
}

}  // namespace taso
