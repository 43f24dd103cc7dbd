#include "verifier/unbounded/induction.h"

#include <algorithm>
#include <functional>
#include <set>

#include "verifier/unbounded/matching.h"

namespace taso::unbounded {
namespace {

// Candidates that are tried for two forms.
constexpr std::size_t max_candidates = 12;

template <class Visit>
void for_each_state(const NormalForm& form, const Visit& visit) {
  for (const Term& term : form)
    for (const Factor& factor : term.factors) {
      if (States::is_state(factor)) visit(factor);
      for (const Element& element : factor.elements) for_each_state(element.value, visit);
    }
}

bool has_state(const NormalForm& form) {
  bool any = false;
  for_each_state(form, [&](const Factor&) { any = true; });
  return any;
}

std::vector<std::uint32_t> states_of(const NormalForm& form) {
  std::set<std::uint32_t> result;
  for_each_state(form, [&](const Factor& factor) { result.insert(factor.tensor); });
  return {result.begin(), result.end()};
}

// Gives reads of states other values. The values must have no bound variable of the form's.
class Rewriter {
 public:
  // The value in place of a read, where `context` holds; nothing where the read stays.
  using Replace = std::function<std::optional<NormalForm>(const Factor&, const std::vector<Atom>&)>;
  Rewriter(FormBuilder& builder, Replace replace) : builder_(builder), replace_(std::move(replace)) {}

  NormalForm rewrite(const NormalForm& form) {
    NormalForm result;
    for (const Term& term : form) {
      const std::size_t mark = context_.size();
      context_.insert(context_.end(), term.guards.begin(), term.guards.end());
      Term number;
      number.coefficient = term.coefficient;
      NormalForm product = {number};
      for (const Factor& factor : term.factors) product = times(std::move(product), factor);
      context_.erase(context_.begin() + static_cast<std::ptrdiff_t>(mark), context_.end());
      result = builder_.add(std::move(result), builder_.summed(std::move(product), term.bound, term.guards));
    }
    return result;
  }

 private:
  NormalForm times(NormalForm product, const Factor& factor) {
    std::optional<NormalForm> base;
    int power = factor.power;
    if (States::is_state(factor)) {
      base = replace_(factor, context_);
    } else if (std::any_of(factor.elements.begin(), factor.elements.end(),
                           [](const Element& element) { return has_state(element.value); })) {
      base = rebuilt(factor);
    }
    if (!base) return builder_.multiply(product, builder_.factor(factor));
    for (; power > 0; --power) product = builder_.multiply(product, *base);
    for (; power < 0; ++power) product = builder_.divide(product, *base);
    return product;
  }

  NormalForm rebuilt(const Factor& factor) {
    std::vector<Element> elements;
    for (const Element& element : factor.elements) {
      const std::size_t mark = context_.size();
      context_.insert(context_.end(), element.guards.begin(), element.guards.end());
      elements.push_back({element.bound, element.guards, rewrite(element.value)});
      context_.erase(context_.begin() + static_cast<std::ptrdiff_t>(mark), context_.end());
    }
    switch (factor.kind) {
      case Factor::Kind::call: {
        std::vector<NormalForm> arguments;
        for (Element& element : elements) arguments.push_back(std::move(element.value));
        return builder_.call(factor.function, factor.name, std::move(arguments));
      }
      case Factor::Kind::sum:
        return elements[0].value;
      case Factor::Kind::maximum:
      case Factor::Kind::minimum:
        return builder_.extremum(factor.kind == Factor::Kind::maximum, std::move(elements));
      default: {
        Factor result = factor;
        result.power = 1;
        result.elements = std::move(elements);
        return builder_.factor(std::move(result));
      }
    }
  }

  FormBuilder& builder_;
  Replace replace_;
  std::vector<Atom> context_;
};

// A form at given indices, with bound variables of its own.
NormalForm at(FormBuilder& builder, const NormalForm& form, const std::vector<SymbolId>& variables,
              const std::vector<Polynomial>& indices) {
  Facts::Replacement replacement;
  for (std::size_t i = 0; i < variables.size(); ++i) replacement.emplace_back(variables[i], indices[i]);
  NormalForm result = builder.substitute(form, replacement);
  for (Term& term : result) term = builder.renamed(term);
  return result;
}

// The only factor of a summand that is one read of a state and nothing else.
const Factor* only_state(const Term& term) {
  if (!(term.coefficient == Rational{1, 1}) || !term.bound.empty() || !term.guards.empty() ||
      term.factors.size() != 1 || term.factors[0].power != 1 || !States::is_state(term.factors[0]))
    return nullptr;
  return &term.factors[0];
}

// The only state among the factors of a summand, which stands there once.
const Factor* one_state(const Term& term) {
  const Factor* result = nullptr;
  for (const Factor& factor : term.factors) {
    if (States::is_state(factor)) {
      if (result != nullptr || factor.power != 1) return nullptr;
      result = &factor;
    } else if (std::any_of(factor.elements.begin(), factor.elements.end(),
                           [](const Element& element) { return has_state(element.value); })) {
      return nullptr;
    }
  }
  return result;
}

// The summands that stand under all of some guards, without these.
NormalForm under(const std::vector<Atom>& guards, const NormalForm& form) {
  NormalForm result;
  for (Term term : form) {
    const bool all = std::all_of(guards.begin(), guards.end(), [&](const Atom& guard) {
      return std::find(term.guards.begin(), term.guards.end(), guard) != term.guards.end();
    });
    if (!all) continue;
    std::erase_if(term.guards,
                  [&](const Atom& guard) { return std::find(guards.begin(), guards.end(), guard) != guards.end(); });
    result.push_back(std::move(term));
  }
  return result;
}

}  // namespace

std::vector<SymbolId> Induction::variables(std::uint32_t state) {
  std::vector<SymbolId> result;
  for (std::size_t i = 0; i < states_[state].shape.size(); ++i) result.push_back(facts_.symbols().bound());
  return result;
}

std::optional<Induction::Relation> Induction::as_relation(const Term& read, const NormalForm& form) {
  Term bare = read;
  bare.guards.clear();
  const Factor* const state = only_state(bare);
  if (state == nullptr) return std::nullopt;
  Relation relation{state->tensor, variables(state->tensor), {}};
  const std::size_t steps = states_[state->tensor].steps;
  // The step may be any expression, as long as all states are read at it; other indices are variables, or the only ones
  // that there are.
  Facts facts = facts_;
  Facts::Replacement replacement;
  for (std::size_t i = 0; i < relation.at.size(); ++i) {
    const std::optional<SymbolId> symbol = state->indices[i].as_symbol();
    const bool known = symbol && std::any_of(replacement.begin(), replacement.end(),
                                             [&](const auto& entry) { return entry.first == *symbol; });
    if (symbol && !known) replacement.emplace_back(*symbol, Polynomial::symbol(relation.at[i]));
    const bool only = facts.reduce(states_[state->tensor].shape[i]) == Polynomial(1);
    if ((!symbol || known) && i != steps && !only) return std::nullopt;
  }
  FormBuilder builder(facts);
  const Polynomial step = Polynomial::symbol(relation.at[steps]);
  const auto at_step = [&](const Factor& factor, const std::vector<Atom>&) -> std::optional<NormalForm> {
    Factor result = factor;
    Polynomial& index = result.indices[states_[factor.tensor].steps];
    if (index == state->indices[steps]) index = step;
    result.power = 1;
    return builder.factor(std::move(result));
  };
  relation.form = builder.substitute(Rewriter(builder, at_step).rewrite(under(read.guards, form)), replacement);
  if (!builder.problem().empty()) return std::nullopt;
  return relation;
}

std::optional<Induction::Relation> Induction::as_sum(const NormalForm& one, const NormalForm& sum) {
  if (one.size() != 1) return std::nullopt;
  const Factor* const state = one_state(one[0]);
  if (state == nullptr) return std::nullopt;
  Relation relation{state->tensor, variables(state->tensor), {}};
  Facts facts = facts_;
  FormBuilder builder(facts);
  for (const Term& term : sum) {
    const Factor* const other = one_state(term);
    if (other == nullptr || other->indices.size() != state->indices.size()) return std::nullopt;
    Factor factor = *other;
    for (std::size_t i = 0; i < factor.indices.size(); ++i) factor.indices[i] = Polynomial::symbol(relation.at[i]);
    const Rational inverse{one[0].coefficient.denominator, one[0].coefficient.numerator};
    if (inverse.denominator <= 0) return std::nullopt;
    relation.form = builder.add(std::move(relation.form),
                                builder.multiply(builder.rational(builder.multiply(term.coefficient, inverse)),
                                                 builder.factor(std::move(factor))));
  }
  if (!builder.problem().empty()) return std::nullopt;
  return relation;
}

std::optional<Induction::Relation> Induction::as_pair(std::uint32_t state, std::uint32_t other) {
  Facts facts = facts_;
  const State &one = states_[state], &two = states_[other];
  if (one.steps != two.steps ||
      !std::equal(one.shape.begin(), one.shape.end(), two.shape.begin(), two.shape.end(),
                  [&](const Polynomial& a, const Polynomial& b) { return facts.reduce(a) == facts.reduce(b); }))
    return std::nullopt;
  Relation relation{state, variables(state), {}};
  Factor factor;
  factor.kind = Factor::Kind::read;
  factor.tensor = other;
  for (const SymbolId symbol : relation.at) factor.indices.push_back(Polynomial::symbol(symbol));
  FormBuilder builder(facts);
  relation.form = builder.factor(std::move(factor));
  return relation;
}

std::vector<std::uint32_t> Induction::carried(std::uint32_t state) {
  const State one = states_[state];
  const Recurrence& steps = *one.tensor->recurrence;
  std::vector<std::uint32_t> result;
  // All of them have been met: the steps of each were looked at when it was met first.
  for (std::size_t i = 0; i < steps.count; ++i) {
    const IntermediateSpec& spec = one.node->definition->intermediates[steps.first + i];
    if (!spec.recurrence->carried) continue;
    const std::optional<std::uint32_t> number = states_.find(*one.side, *one.node, spec);
    if (number) result.push_back(*number);
  }
  return result;
}

Induction::Relations Induction::with_others(const Relation& relation) {
  Relations result = {relation};
  const std::vector<std::uint32_t> own = carried(relation.state);
  const auto position = std::find(own.begin(), own.end(), relation.state) - own.begin();
  Facts facts = facts_;
  FormBuilder builder(facts);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] == relation.state || states_[own[i]].shape.size() != relation.at.size()) continue;
    bool fits = true;
    const auto corresponding = [&](const Factor& factor, const std::vector<Atom>&) -> std::optional<NormalForm> {
      const std::vector<std::uint32_t> others = carried(factor.tensor);
      Factor other = factor;
      other.power = 1;
      fits = fits && others.size() == own.size() && others[static_cast<std::size_t>(position)] == factor.tensor &&
             states_[others[i]].shape.size() == factor.indices.size();
      if (fits) other.tensor = others[i];
      return builder.factor(std::move(other));
    };
    Relation another{own[i], variables(own[i]), {}};
    std::vector<Polynomial> indices;
    for (const SymbolId symbol : another.at) indices.push_back(Polynomial::symbol(symbol));
    another.form = at(builder, Rewriter(builder, corresponding).rewrite(relation.form), relation.at, indices);
    if (fits) result.push_back(std::move(another));
  }
  return result;
}

std::vector<Induction::Relations> Induction::candidates(const NormalForm& a, const NormalForm& b) {
  std::vector<Relations> result;
  const auto add = [&](const std::optional<Relation>& relation) {
    if (!relation || result.size() >= max_candidates) return;
    const TypedSide* const side = states_[relation->state].side;
    const std::vector<std::uint32_t> others = states_of(relation->form);
    if (others.empty() ||
        std::any_of(others.begin(), others.end(), [&](std::uint32_t other) { return states_[other].side == side; }))
      return;
    result.push_back(with_others(*relation));
  };
  for (const Term& term : a) add(as_relation(term, b));
  for (const Term& term : b) add(as_relation(term, a));
  for (const std::uint32_t state : states_of(a))
    for (const std::uint32_t other : states_of(b)) add(as_pair(state, other));
  add(as_sum(a, b));
  add(as_sum(b, a));
  return result;
}

bool Induction::inside(const NormalForm& form, Facts& facts, std::vector<Atom>& context, const Polynomial& step,
                       const Polynomial& count) {
  const auto under = [&](const std::vector<Atom>& guards, const auto& holds) {
    const std::size_t mark = context.size();
    context.insert(context.end(), guards.begin(), guards.end());
    const bool result = holds();
    context.erase(context.begin() + static_cast<std::ptrdiff_t>(mark), context.end());
    return result;
  };
  for (const Term& term : form) {
    const bool all = under(term.guards, [&] {
      for (const Factor& factor : term.factors) {
        if (States::is_state(factor)) {
          const State& state = states_[factor.tensor];
          if (!(facts.reduce(factor.indices[state.steps]) == step)) return false;
          if (!(facts.reduce(state.shape[state.steps]) == count)) return false;
          for (std::size_t axis = 0; axis < state.shape.size(); ++axis) {
            if (axis == state.steps) continue;
            const Polynomial index = facts.reduce(factor.indices[axis]);
            if (!facts.entails_quickly(at_least(index, 0), context) ||
                !facts.entails_quickly(less_than(index, facts.reduce(state.shape[axis])), context))
              return false;
          }
        }
        for (const Element& element : factor.elements)
          if (!under(element.guards, [&] { return inside(element.value, facts, context, step, count); })) return false;
      }
      return true;
    });
    if (!all) return false;
  }
  return true;
}

bool Induction::prove_step(const Relations& relations, const Relation& relation, bool first) {
  Facts here = facts_;
  const State state = states_[relation.state];
  std::vector<Polynomial> indices;
  for (std::size_t axis = 0; axis < relation.at.size(); ++axis) {
    const Polynomial index = Polynomial::symbol(relation.at[axis]);
    const bool is_step = axis == state.steps;
    // Where there is no such element, nothing is to be proved.
    if (!here.add(at_least(index, is_step && !first ? 1 : 0)) ||
        !here.add(less_than(index, here.reduce(state.shape[axis]))) ||
        (is_step && first && !here.add(equal_to(index, Polynomial(0)))))
      return true;
  }
  for (const SymbolId symbol : relation.at) indices.push_back(here.reduce(Polynomial::symbol(symbol)));
  const Polynomial step = indices[state.steps];
  FormBuilder builder(here);
  const NormalForm form = at(builder, relation.form, relation.at, indices);
  std::vector<Atom> context;
  if (!inside(form, here, context, step, here.reduce(state.shape[state.steps]))) return false;

  Elaborator own(registry_, typing_, *state.side, here, states_, shared_);
  const NormalForm now = own.step(state, indices, {});
  if (own.obstacle().any()) return false;
  // The relations hold at the step before, and those that were proved earlier always.
  const auto supposed = [&](const Factor& factor, const std::vector<Atom>&) -> std::optional<NormalForm> {
    for (const Relation& known : relations)
      if (known.state == factor.tensor && !first &&
          here.reduce(factor.indices[states_[known.state].steps]) == here.reduce(step - Polynomial(1)))
        return at(builder, known.form, known.at, factor.indices);
    for (const Relation& known : proved_)
      if (known.state == factor.tensor) return at(builder, known.form, known.at, factor.indices);
    return std::nullopt;
  };
  const NormalForm left = Rewriter(builder, supposed).rewrite(now);
  bool understood = true;
  const auto stepped = [&](const Factor& factor, const std::vector<Atom>& guards) -> std::optional<NormalForm> {
    const State other = states_[factor.tensor];
    Elaborator elaborator(registry_, typing_, *other.side, here, states_, shared_);
    NormalForm value = elaborator.step(other, factor.indices, guards);
    understood = understood && !elaborator.obstacle().any();
    return value;
  };
  const NormalForm right = Rewriter(builder, supposed).rewrite(Rewriter(builder, stepped).rewrite(form));
  if (!understood || !builder.problem().empty()) return false;
  return Matcher(steps_).equal(left, right, here);
}

bool Induction::prove(const Relations& relations) {
  for (const bool first : {true, false})
    for (const Relation& relation : relations)
      if (!prove_step(relations, relation, first)) return false;
  return true;
}

bool Induction::relate(NormalForm& a, NormalForm& b) {
  bool any = false;
  for (bool progress = true; progress && has_state(a) && has_state(b);) {
    progress = false;
    for (Relations& relations : candidates(a, b)) {
      if (!prove(relations)) continue;
      proved_.insert(proved_.end(), std::make_move_iterator(relations.begin()),
                     std::make_move_iterator(relations.end()));
      any = progress = true;
      Facts facts = facts_;
      FormBuilder builder(facts);
      const auto always = [&](const Factor& factor, const std::vector<Atom>&) -> std::optional<NormalForm> {
        for (const Relation& known : proved_)
          if (known.state == factor.tensor) return at(builder, known.form, known.at, factor.indices);
        return std::nullopt;
      };
      NormalForm left = Rewriter(builder, always).rewrite(a), right = Rewriter(builder, always).rewrite(b);
      if (!builder.problem().empty()) return false;
      a = std::move(left);
      b = std::move(right);
      break;
    }
  }
  return any;
}

}  // namespace taso::unbounded
