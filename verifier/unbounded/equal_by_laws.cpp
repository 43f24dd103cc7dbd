#include "verifier/unbounded/equal_by_laws.h"

#include <algorithm>
#include <utility>

#include "verifier/unbounded/families.h"
#include "verifier/unbounded/law_forms.h"
#include "verifier/unbounded/laws.h"
#include "verifier/unbounded/matching.h"

namespace taso::unbounded {
namespace {

// Cases of order that are distinguished one inside of the other.
constexpr int max_cases = 6;

// Whether laws, signs or divisors may say more of a form than the comparison without them knows.
bool has_something_to_rewrite(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Term& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& factor) {
      if (factor.kind == Factor::Kind::maximum || factor.kind == Factor::Kind::minimum) return true;
      if (factor.kind == Factor::Kind::sum && factor.power < 0) return true;
      if (factor.kind == Factor::Kind::call && factor.function != nullptr && !factor.function->laws.empty())
        return true;
      return std::any_of(factor.elements.begin(), factor.elements.end(),
                         [](const Element& element) { return has_something_to_rewrite(element.value); });
    });
  });
}

bool has_extremum(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Term& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& factor) {
      return factor.kind == Factor::Kind::maximum || factor.kind == Factor::Kind::minimum ||
             std::any_of(factor.elements.begin(), factor.elements.end(),
                         [](const Element& element) { return has_extremum(element.value); });
    });
  });
}

// The difference of two elements of a maximum or minimum whose order is not known.
std::optional<NormalForm> undecided_order(const NormalForm& form, FormBuilder& builder, Signs& signs,
                                          std::vector<SymbolId>& bound) {
  const std::size_t mark = bound.size();
  std::optional<NormalForm> found;
  for (const Term& term : form) {
    bound.insert(bound.end(), term.bound.begin(), term.bound.end());
    for (const Factor& factor : term.factors) {
      for (const Element& element : factor.elements) {
        const std::size_t inner = bound.size();
        bound.insert(bound.end(), element.bound.begin(), element.bound.end());
        if (!found) found = undecided_order(element.value, builder, signs, bound);
        bound.resize(inner);
      }
      if (found || (factor.kind != Factor::Kind::maximum && factor.kind != Factor::Kind::minimum)) continue;
      for (std::size_t i = 0; i < factor.elements.size() && !found; ++i)
        for (std::size_t j = 0; j < i && !found; ++j) {
          const Element &x = factor.elements[i], &y = factor.elements[j];
          if (!x.bound.empty() || !x.guards.empty() || !y.bound.empty() || !y.guards.empty()) continue;
          NormalForm difference = builder.add(x.value, builder.negate(y.value));
          if (depends_on(builder.facts().symbols(), difference, bound)) continue;
          while (auto simpler = signs.deciding(difference)) difference = std::move(*simpler);
          const Sign sign = signs.of(difference);
          if (!sign.is_nonnegative() && !sign.is_nonpositive()) found = std::move(difference);
        }
    }
    bound.resize(mark);
    if (found) break;
  }
  return found;
}

class Comparison {
 public:
  // Of two forms that are known to differ as they stand.
  Comparison(const OperatorRegistry& registry, const NormalForm& a, const NormalForm& b, const Facts& facts,
             std::size_t& steps)
      : registry_(registry), facts_(facts), steps_(steps), different_{{a, b}} {}

  bool equal(const NormalForm& a, const NormalForm& b, const Signs& known, LawRewriter::Level level) {
    level_ = level;
    return equal(a, b, known, max_cases);
  }

 private:
  bool equal(const NormalForm& a, const NormalForm& b, const Signs& known, int cases) {
    Signs signs = known;
    LawRewriter rewriter(registry_, facts_, signs, level_);
    const NormalForm left = rewriter.rewrite(a);
    if (!rewriter.problem().empty() || size_of(left) > max_rewritten_size) return false;
    const NormalForm right = rewriter.rewrite(b);
    if (!rewriter.problem().empty() || size_of(right) > max_rewritten_size || facts_.budget().exhausted()) return false;
    if (same(left, right)) return true;
    FormBuilder builder(facts_);
    const auto cleared = rewriter.without_divisors(builder.add(left, builder.negate(right)));
    if (cleared && rewriter.problem().empty() && same(*cleared, {})) return true;
    if (has_extremum(left) || has_extremum(right)) {
      const NormalForm outside = rewriter.with_common_parts_outside(left),
                       other = rewriter.with_common_parts_outside(right);
      const bool changed = !alike(outside, left, facts_) || !alike(other, right, facts_);
      if (changed && same(rewriter.rewrite(outside), rewriter.rewrite(other)) && rewriter.problem().empty())
        return true;
    }
    if (cases == 0) return false;
    std::vector<SymbolId> bound;
    std::optional<NormalForm> difference = undecided_order(left, builder, signs, bound);
    if (!difference) difference = undecided_order(right, builder, signs, bound);
    if (!difference || !builder.problem().empty()) return false;
    for (const NormalForm& above : {*difference, builder.negate(*difference)}) {
      Signs assumed = known;
      assumed.assume(above, Sign::at_least_zero());
      if (!equal(left, right, assumed, cases - 1)) return false;
    }
    return true;
  }

  bool same(const NormalForm& a, const NormalForm& b) {
    const bool known = std::any_of(different_.begin(), different_.end(), [&](const auto& pair) {
      return alike(pair.first, a, facts_) && alike(pair.second, b, facts_);
    });
    if (known) return false;
    Matcher matcher(steps_);
    if (matcher.equal(a, b, facts_)) return true;
    different_.emplace_back(a, b);
    return false;
  }

  const OperatorRegistry& registry_;
  Facts facts_;
  std::size_t& steps_;
  LawRewriter::Level level_ = LawRewriter::Level::laws;
  std::vector<std::pair<NormalForm, NormalForm>> different_;  // what was compared in vain
};

}  // namespace

bool equal_by_laws(const OperatorRegistry& registry, const NormalForm& a, const NormalForm& b, const Facts& facts,
                   const Suppositions& suppositions, std::size_t& steps) {
  if (size_of(a) > max_rewritten_size || size_of(b) > max_rewritten_size) return false;
  if (!has_something_to_rewrite(a) && !has_something_to_rewrite(b)) return false;
  Facts here = facts;
  Signs signs(here);
  signs.assume(suppositions);
  signs.assume_defined(a);
  Comparison comparison(registry, a, b, facts, steps);
  return comparison.equal(a, b, signs, LawRewriter::Level::laws) ||
         comparison.equal(a, b, signs, LawRewriter::Level::definitions);
}

}  // namespace taso::unbounded
