#include "verifier/unbounded/law_forms.h"

#include <algorithm>
#include <numeric>

#include "support/hash.h"

namespace taso::unbounded {
namespace {

// A number that does not depend on names of bound variables, on the order of summands and factors, or on coefficients.
std::uint64_t shape(const NormalForm& form, bool with_coefficients);

std::uint64_t shape(const Factor& factor) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(factor.kind));
  hasher.add(static_cast<std::uint64_t>(static_cast<std::int64_t>(factor.power)));
  hasher.add(factor.tensor);
  hasher.add(static_cast<std::uint64_t>(factor.indices.size()));
  hasher.add(factor.name);
  std::uint64_t elements = 0;
  for (const Element& element : factor.elements) elements += shape(element.value, true) | 1U;
  hasher.add(elements);
  return hasher.finish().low;
}

std::uint64_t shape(const Term& term) {
  std::uint64_t sum = term.bound.size() * 0x9e3779b97f4a7c15ULL;
  for (const Factor& factor : term.factors) sum += shape(factor) | 1U;
  return sum;
}

std::uint64_t shape(const NormalForm& form, bool with_coefficients) {
  std::uint64_t sum = 0;
  for (const Term& term : form) {
    Hasher hasher;
    hasher.add(shape(term));
    if (with_coefficients) {
      hasher.add(static_cast<std::uint64_t>(term.coefficient.numerator));
      hasher.add(static_cast<std::uint64_t>(term.coefficient.denominator));
    }
    sum += hasher.finish().low;
  }
  return sum;
}

}  // namespace

bool is_bare(const NormalForm& form) { return form.size() == 1 && form[0].bound.empty() && form[0].guards.empty(); }

const Factor* only_factor(const NormalForm& form) {
  if (!is_bare(form) || form[0].coefficient != Rational{1, 1} || form[0].factors.size() != 1) return nullptr;
  return form[0].factors[0].power == 1 ? form[0].factors.data() : nullptr;
}

NormalForm form_of(Factor factor, int power) {
  factor.power = power;
  Term term;
  term.factors.push_back(std::move(factor));
  return {term};
}

std::size_t size_of(const NormalForm& form, std::size_t known) {
  std::size_t size = known;
  for (const Term& term : form)
    for (const Factor& factor : term.factors) {
      ++size;
      for (const Element& element : factor.elements) {
        if (size > max_rewritten_size) return size;
        size = size_of(element.value, size);
      }
    }
  return size;
}

bool written_negatively(const NormalForm& form) {
  std::uint64_t best = 0;
  std::int64_t sign = 1;
  bool unique = false;
  for (const Term& term : form) {
    const std::uint64_t here = shape(term);
    if (here == best) unique = false;
    if (here <= best && best != 0) continue;
    best = here;
    sign = term.coefficient.numerator < 0 ? -1 : 1;
    unique = true;
  }
  return unique && sign < 0;
}

Rational common_number(const NormalForm& form) {
  std::int64_t numerator = 0, denominator = 1;
  for (const Term& term : form) {
    numerator = std::gcd(numerator, term.coefficient.numerator);
    denominator = std::max(denominator, term.coefficient.denominator);
  }
  const bool shared = numerator > 0 && std::all_of(form.begin(), form.end(), [&](const Term& term) {
                        return denominator % term.coefficient.denominator == 0;
                      });
  return shared ? Rational{numerator, denominator} : Rational{1, 1};
}

}  // namespace taso::unbounded
