#include "verifier/symbolic_sizes.h"

#include <algorithm>
#include <unordered_map>

#include "support/hash.h"
#include "support/mod61.h"
#include "verifier/unbounded/facts.h"
#include "verifier/unbounded/infer.h"
#include "verifier/unbounded/points.h"

namespace taso {

using unbounded::at_least;
using unbounded::equal_to;
using unbounded::less_than;
using unbounded::Monomial;
using unbounded::Polynomial;
using unbounded::SymbolId;

namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::int64_t first_name = std::int64_t{1} << 56;
constexpr std::int64_t hash_bits = 24;
/// Samples beyond those that determine a polynomial.
constexpr std::size_t spare_samples = 3;
/// Larger coefficients are no sizes of models.
constexpr std::int64_t largest_coefficient = std::int64_t{1} << 40;

std::int64_t name_of(std::size_t number) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(number));
  const auto mark = static_cast<std::int64_t>(hasher.finish().low & ((std::uint64_t{1} << hash_bits) - 1));
  return first_name + (static_cast<std::int64_t>(number) << hash_bits) + mark;
}

/// The number of a name; nothing if it is none.
std::optional<std::size_t> number_of(std::int64_t name, std::size_t count) {
  if (name < first_name) return std::nullopt;
  const auto number = static_cast<std::size_t>((name - first_name) >> hash_bits);
  if (number >= count || name_of(number) != name) return std::nullopt;
  return number;
}

bool looks_like_a_number(std::int64_t size) { return size < first_name; }

bool all_equal(std::span<const std::int64_t> values) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == values[0]; });
}

/// Solves for coefficients such that the sum of coefficient * column is `values`, modulo 2^61 - 1. Nothing if there
/// are none, or several.
std::optional<Integers> solve(const std::vector<Integers>& columns, std::span<const std::int64_t> values) {
  const std::size_t rows = values.size(), width = columns.size();
  std::vector<std::vector<Mod61>> matrix(rows, std::vector<Mod61>(width + 1));
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t c = 0; c < width; ++c) matrix[row][c] = Mod61(columns[c][row]);
    matrix[row][width] = Mod61(values[row]);
  }
  for (std::size_t c = 0; c < width; ++c) {
    const auto pivot = std::find_if(matrix.begin() + static_cast<std::ptrdiff_t>(c), matrix.end(),
                                    [&](const auto& row) { return row[c] != Mod61(); });
    if (pivot == matrix.end()) return std::nullopt;
    std::swap(*pivot, matrix[c]);
    const Mod61 inverse = matrix[c][c].inverse();
    for (Mod61& entry : matrix[c]) entry *= inverse;
    for (std::size_t row = 0; row < rows; ++row) {
      if (row == c || matrix[row][c] == Mod61()) continue;
      const Mod61 factor = matrix[row][c];
      for (std::size_t k = c; k <= width; ++k) matrix[row][k] = matrix[row][k] - factor * matrix[c][k];
    }
  }
  for (std::size_t row = width; row < rows; ++row)
    if (matrix[row][width] != Mod61()) return std::nullopt;
  Integers coefficients;
  for (std::size_t c = 0; c < width; ++c) {
    const std::uint64_t residue = matrix[c][width].value();
    const bool negative = residue > Mod61::prime / 2;
    const auto size = static_cast<std::int64_t>(negative ? Mod61::prime - residue : residue);
    if (size > largest_coefficient) return std::nullopt;
    coefficients.push_back(negative ? -size : size);
  }
  return coefficients;
}

/// Products of at most `degree` of the variables, 1 included; each at most once in a product if `distinct`.
std::vector<std::vector<std::size_t>> products(std::size_t variables, std::size_t degree, bool distinct) {
  std::vector<std::vector<std::size_t>> result = {{}};
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i].size() == degree) continue;
    const std::size_t next = result[i].empty() ? 0 : result[i].back() + (distinct ? 1 : 0);
    for (std::size_t v = next; v < variables; ++v) {
      result.push_back(result[i]);
      result.back().push_back(v);
    }
  }
  return result;
}

}  // namespace

struct SymbolicSizes::State {
  unbounded::Symbols symbols;
  unbounded::IntegerSolver solver{symbols, 0, 0};
  unbounded::Facts facts{symbols, solver};
  std::vector<unbounded::Point> samples;
  std::vector<SymbolId> given;
  std::vector<SymbolId> others;                                  ///< Symbols that came later,
  std::int64_t least_other = 1;                                  ///< and are not smaller.
  std::map<SymbolId, std::pair<Polynomial, Polynomial>> minima;  ///< Each is one of two.
  std::vector<Polynomial> polynomials;                           ///< By number of the name.
  std::map<Polynomial::Terms, std::size_t> numbers;
  std::map<Integers, std::vector<std::int64_t>> by_values;  ///< Names by their values at the samples.

  /// A size as a polynomial; invalid for what is neither a number nor a name.
  [[nodiscard]] Polynomial polynomial(std::int64_t size) const {
    if (looks_like_a_number(size)) return size > -first_name ? Polynomial(size) : Polynomial::invalid();
    const auto number = number_of(size, polynomials.size());
    return number ? polynomials[*number] : Polynomial::invalid();
  }
  /// The name of a polynomial; nothing for an invalid one.
  [[nodiscard]] std::optional<std::int64_t> name(const Polynomial& p) {
    const Polynomial reduced = facts.reduce(p);
    if (!reduced.valid()) return std::nullopt;
    if (const auto constant = reduced.constant())
      return *constant<first_name&& * constant> - first_name ? constant : std::nullopt;
    const auto [place, added] = numbers.try_emplace(reduced.terms(), polynomials.size());
    if (added) {
      polynomials.push_back(reduced);
      Integers values;
      for (unbounded::Point& sample : samples)
        if (const auto value = sample.evaluate(symbols, reduced)) values.push_back(*value);
      if (values.size() == samples.size()) by_values[std::move(values)].push_back(name_of(place->second));
    }
    return name_of(place->second);
  }
  [[nodiscard]] std::optional<std::int64_t> fit(std::span<const std::int64_t> values,
                                                const std::vector<SymbolId>& variables);
  [[nodiscard]] std::vector<SymbolId> symbols_of(std::span<const std::int64_t> sizes);
  /// Whether a size follows from symbols that were not given first.
  [[nodiscard]] bool is_unknown(std::int64_t size) { return symbols.mentions(facts.reduce(polynomial(size)), others); }
  SymbolId add(const SampledSymbol& symbol) {
    const std::string key = std::to_string(symbols.size()) + " " + symbol.name;
    const SymbolId id = symbols.named(unbounded::Symbol::Kind::extent, key, symbol.name);
    TASO_CHECK(Polynomial::symbol(id).valid(), "so many symbols");
    (void)facts.add(at_least(Polynomial::symbol(id), symbol.range.least));
    if (symbol.range.most) (void)facts.add(at_least(Polynomial(*symbol.range.most), Polynomial::symbol(id)));
    for (std::size_t k = 0; k < samples.size(); ++k) samples[k].choose(id, symbol.samples[k]);
    return id;
  }
};

SymbolicSizes::SymbolicSizes(const std::vector<SampledSymbol>& symbols) : state_(std::make_unique<State>()) {
  const std::size_t samples = symbols.empty() ? 0 : symbols[0].samples.size();
  for (std::size_t k = 0; k < samples; ++k) state_->samples.emplace_back(k);
  for (const SampledSymbol& symbol : symbols) {
    TASO_CHECK(symbol.samples.size() == samples, "symbols with different numbers of samples");
    state_->given.push_back(state_->add(symbol));
    state_->least_other = std::min(state_->least_other, symbol.range.least);
  }
}

SymbolicSizes::~SymbolicSizes() = default;

std::size_t SymbolicSizes::sample_count() const { return state_->samples.size(); }

std::size_t SymbolicSizes::symbol_count() const { return state_->given.size(); }

std::int64_t SymbolicSizes::symbol(std::size_t i) const {
  return state_->name(Polynomial::symbol(state_->given.at(i))).value();
}

std::int64_t SymbolicSizes::unknown(const std::string& name, std::vector<std::int64_t> samples) {
  state_->others.push_back(state_->add({name, {state_->least_other, {}}, std::move(samples)}));
  return state_->name(Polynomial::symbol(state_->others.back())).value();
}

std::int64_t SymbolicSizes::minimum(const std::string& name, std::int64_t a, std::int64_t b,
                                    std::vector<std::int64_t> samples) {
  const Polynomial x = state_->polynomial(a), y = state_->polynomial(b);
  for (const auto& [id, known] : state_->minima)
    if ((known.first == x && known.second == y) || (known.first == y && known.second == x))
      return state_->name(Polynomial::symbol(id)).value();
  const SymbolId id = state_->add({name, {state_->least_other, {}}, std::move(samples)});
  const Polynomial least = Polynomial::symbol(id);
  (void)state_->facts.add(at_least(x, least));
  (void)state_->facts.add(at_least(y, least));
  state_->others.push_back(id);
  state_->minima.emplace(id, std::pair(x, y));
  return state_->name(least).value();
}

bool SymbolicSizes::learn_equal(std::int64_t a, std::int64_t b, bool or_one) {
  unbounded::Facts& facts = state_->facts;
  const Polynomial x = facts.reduce(state_->polynomial(a)), y = facts.reduce(state_->polynomial(b));
  if (!x.valid() || !y.valid() || facts.entails_quickly(equal_to(x, y))) return false;
  // Of what nothing is known, nothing is learned.
  const auto is_free = [&](const Polynomial& p) {
    const std::vector<SymbolId> all = p.symbols();
    return std::any_of(all.begin(), all.end(), [&](SymbolId id) {
      return !state_->minima.contains(id) &&
             std::find(state_->others.begin(), state_->others.end(), id) != state_->others.end();
    });
  };
  if (is_free(x) || is_free(y)) return false;
  if (!or_one) return facts.add(equal_to(x, y));
  // What else each minimum among the symbols may be.
  std::vector<std::vector<unbounded::Atom>> cases = {{}};
  for (const Polynomial& side : {x, y})
    for (const SymbolId id : side.symbols()) {
      const auto minimum = state_->minima.find(id);
      if (minimum == state_->minima.end() || cases.size() > 4) continue;
      std::vector<std::vector<unbounded::Atom>> refined;
      for (const auto& known : cases)
        for (const Polynomial& one : {minimum->second.first, minimum->second.second}) {
          refined.push_back(known);
          refined.back().push_back(equal_to(Polynomial::symbol(id), one));
        }
      cases = std::move(refined);
    }
  for (const std::vector<unbounded::Atom>& known : cases)
    for (const unbounded::Atom& differ : {less_than(x, y), less_than(y, x)})
      for (const Polynomial& one : {x, y}) {
        std::vector<unbounded::Atom> all = known;
        all.push_back(differ);
        all.push_back(equal_to(one, Polynomial(1)));
        if (!facts.contradictory_quickly(all)) return false;
      }
  return facts.add(equal_to(x, y));
}

bool SymbolicSizes::is_number(std::int64_t size) const { return looks_like_a_number(size); }

bool SymbolicSizes::is_known(std::int64_t size) const { return !state_->is_unknown(size); }

std::vector<std::int64_t> SymbolicSizes::unknowns_of(std::int64_t size) const {
  const Polynomial p = state_->facts.reduce(state_->polynomial(size));
  std::vector<std::int64_t> names;
  for (const SymbolId other : state_->others)
    if (state_->symbols.mentions(p, std::span(&other, 1)))
      names.push_back(state_->name(Polynomial::symbol(other)).value());
  return names;
}

bool SymbolicSizes::is_told_by_samples(std::int64_t size) const {
  if (looks_like_a_number(size)) return true;
  Integers values;
  for (std::size_t k = 0; k < sample_count(); ++k) values.push_back(at(size, k).value_or(0));
  const auto other = all_equal(values) ? std::optional(values[0]) : state_->fit(values, state_->given);
  return !other || follows(Condition::Relation::equal, size, *other);
}

std::optional<std::int64_t> SymbolicSizes::at(std::int64_t size, std::size_t sample) const {
  if (looks_like_a_number(size)) return size;
  return state_->samples.at(sample).evaluate(state_->symbols, state_->polynomial(size));
}

std::optional<std::vector<SizeTerm>> SymbolicSizes::terms(std::int64_t size) const {
  const Polynomial p = state_->facts.reduce(state_->polynomial(size));
  if (!p.valid()) return std::nullopt;
  std::vector<SizeTerm> terms;
  for (const auto& [monomial, coefficient] : p.terms()) {
    SizeTerm term{coefficient, {}};
    for (const SymbolId id : monomial.symbols()) {
      const std::optional<SizeFactor> factor = factor_of(id);
      if (!factor) return std::nullopt;
      term.factors.push_back(*factor);
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

std::optional<SizeFactor> SymbolicSizes::factor_of(std::uint32_t symbol) const {
  if (std::find(state_->given.begin(), state_->given.end(), symbol) != state_->given.end())
    return SizeFactor{state_->symbols[symbol].name, 0, 1};
  if (state_->symbols[symbol].kind != unbounded::Symbol::Kind::quotient) return std::nullopt;
  const Polynomial dividend = state_->symbols[symbol].arguments[0], divisor = state_->symbols[symbol].arguments[1];
  if (!state_->facts.entails_quickly(at_least(dividend, 0)) || !state_->facts.entails_quickly(at_least(divisor, 1)))
    return std::nullopt;
  const auto above = state_->name(dividend), below = state_->name(divisor);
  if (!above || !below || !terms(*above) || !terms(*below)) return std::nullopt;
  return SizeFactor{"", *above, *below};
}

std::string SymbolicSizes::to_string(std::int64_t size) const {
  const Polynomial p = state_->polynomial(size);
  return p.valid() ? state_->symbols.to_string(p) : "?";
}

Expected<std::int64_t> SymbolicSizes::combine(Operation operation, std::int64_t a, std::int64_t b) const {
  const Polynomial x = state_->polynomial(a), y = state_->polynomial(b);
  std::optional<Polynomial> result;
  switch (operation) {
    case Operation::add:
      result = x + y;
      break;
    case Operation::subtract:
      result = x - y;
      break;
    case Operation::multiply:
      result = x * y;
      break;
    case Operation::floor_divide:
      result = state_->facts.divide(x, y, {});
      if (!result)
        return bad_input("the divisor of " + to_string(a) + " // " + to_string(b) + " is not positive at all sizes");
      break;
  }
  if (const auto name = state_->name(*result)) return *name;
  return bad_input("a size that is no polynomial of the symbolic extents with coefficients of 64 bits");
}

bool SymbolicSizes::follows(Condition::Relation relation, std::int64_t a, std::int64_t b) const {
  const Polynomial x = state_->polynomial(a), y = state_->polynomial(b);
  if (!x.valid() || !y.valid()) return false;
  unbounded::Facts& facts = state_->facts;
  switch (relation) {
    case Condition::Relation::equal:
      return facts.entails_quickly(equal_to(x, y));
    case Condition::Relation::not_equal: {
      if (facts.entails_quickly(less_than(x, y)) || facts.entails_quickly(less_than(y, x))) return true;
      const unbounded::Atom equal[] = {equal_to(x, y)};
      return facts.contradictory_quickly(equal);
    }
    case Condition::Relation::less:
      return facts.entails_quickly(less_than(x, y));
    case Condition::Relation::less_equal:
      return facts.entails_quickly(at_least(y, x));
    case Condition::Relation::positive:
    case Condition::Relation::nonnegative:
    case Condition::Relation::nonzero:
    case Condition::Relation::finite:
      break;  // of one value, not of two
  }
  return false;
}

bool SymbolicSizes::is_zero_where(std::int64_t size, std::int64_t other) const {
  const Polynomial x = state_->polynomial(size), y = state_->polynomial(other);
  if (!x.valid() || !y.valid()) return false;
  const unbounded::Atom differ[] = {equal_to(y, Polynomial(0)), at_least(x, 1)};
  return state_->facts.contradictory_quickly(differ);
}

/// The polynomial over some symbols, of the lowest degree, that has these values at the samples.
std::optional<std::int64_t> SymbolicSizes::State::fit(std::span<const std::int64_t> values,
                                                      const std::vector<SymbolId>& variables) {
  std::vector<SymbolId> varying;  // A symbol that is one number at all samples cannot be told from a number.
  std::vector<Integers> at_samples;
  for (const SymbolId id : variables) {
    Integers column;
    for (unbounded::Point& point : samples)
      column.push_back(point.evaluate(symbols, Polynomial::symbol(id)).value_or(0));
    if (all_equal(column)) continue;
    varying.push_back(id);
    at_samples.push_back(std::move(column));
  }
  struct Form {
    std::size_t degree;
    bool distinct;
  };
  for (const Form form : {Form{1, true}, Form{2, true}, Form{3, true}, Form{2, false}, Form{3, false}}) {
    const auto terms = products(varying.size(), form.degree, form.distinct);
    if (terms.size() + spare_samples > values.size()) continue;
    std::vector<Integers> columns;
    std::vector<Polynomial> monomials;
    bool fits = true;
    for (const std::vector<std::size_t>& term : terms) {
      Integers column(values.size(), 1);
      Polynomial monomial(1);
      for (const std::size_t v : term) {
        monomial = monomial * Polynomial::symbol(varying[v]);
        for (std::size_t k = 0; k < column.size(); ++k)
          fits = fits && !__builtin_mul_overflow(column[k], at_samples[v][k], &column[k]);
      }
      columns.push_back(std::move(column));
      monomials.push_back(monomial);
    }
    if (!fits) continue;
    const auto coefficients = solve(columns, values);
    if (!coefficients) continue;
    Polynomial sum;
    for (std::size_t i = 0; i < monomials.size(); ++i) sum = sum + monomials[i] * Polynomial((*coefficients)[i]);
    const auto found = name(sum);
    if (!found) continue;
    for (std::size_t k = 0; k < values.size() && fits; ++k)
      fits = samples[k].evaluate(symbols, polynomial(*found)) == values[k];
    if (fits) return found;
  }
  return std::nullopt;
}

std::vector<SymbolId> SymbolicSizes::State::symbols_of(std::span<const std::int64_t> sizes) {
  std::vector<SymbolId> result;
  for (const std::int64_t size : sizes)
    for (const SymbolId id : facts.reduce(polynomial(size)).symbols())
      if (std::find(result.begin(), result.end(), id) == result.end()) result.push_back(id);
  return result;
}

std::optional<std::int64_t> SymbolicSizes::fit_of(std::span<const std::int64_t> values,
                                                  std::span<const std::int64_t> sizes) const {
  if (values.empty() || values.size() != sample_count()) return std::nullopt;
  if (all_equal(values)) return state_->polynomial(values[0]).constant();
  return state_->fit(values, state_->symbols_of(sizes));
}

std::optional<std::int64_t> SymbolicSizes::fit(std::span<const std::int64_t> values,
                                               std::span<const std::int64_t> near) const {
  if (values.empty() || values.size() != sample_count()) return std::nullopt;
  // A number that is as large as a name is none of these.
  if (all_equal(values)) return state_->polynomial(values[0]).constant();
  // Where sizes that have these values at the samples are not equal at all sizes, nothing tells which one it is.
  std::optional<std::int64_t> found;
  bool several = false;
  const auto consider = [&](std::optional<std::int64_t> size) {
    if (!size || state_->is_unknown(*size)) return;
    several = several || (found && size != found && !follows(Condition::Relation::equal, *size, *found));
    if (!found) found = size;
  };
  const auto named = state_->by_values.find(Integers(values.begin(), values.end()));
  if (named != state_->by_values.end())
    for (const std::int64_t size : named->second) consider(size);
  const std::vector<SymbolId> close = state_->symbols_of(near);
  consider(state_->fit(values, close));
  consider(state_->fit(values, state_->given));
  if (several) return std::nullopt;
  if (!found) {
    std::vector<SymbolId> both = close;
    for (const SymbolId id : state_->given)
      if (std::find(both.begin(), both.end(), id) == both.end()) both.push_back(id);
    consider(state_->fit(values, both));
  }
  return found;
}

// ------------------------------------------------------------------------------------------------- the catalog

struct SymbolicCatalog::Memory {
  std::unordered_map<Hash128, Expected<std::vector<TensorType>>> inferred;
};

SymbolicCatalog::SymbolicCatalog(const OperatorRegistry& registry, const SymbolicSizes& sizes)
    : registry_(registry), sizes_(sizes), memory_(std::make_unique<Memory>()) {}
SymbolicCatalog::~SymbolicCatalog() = default;

namespace {

bool all_numbers(const Integers& sizes) { return std::all_of(sizes.begin(), sizes.end(), looks_like_a_number); }

bool all_numbers(const Attributes& attributes) {
  return std::all_of(attributes.entries().begin(), attributes.entries().end(), [](const Attributes::Entry& entry) {
    if (const auto* integer = std::get_if<std::int64_t>(&entry.second)) return looks_like_a_number(*integer);
    const auto* list = std::get_if<Integers>(&entry.second);
    return list == nullptr || all_numbers(*list);
  });
}

}  // namespace

std::optional<Attributes> SymbolicCatalog::at(const Attributes& attributes, std::size_t sample) const {
  Attributes result;
  for (const auto& [name, value] : attributes.entries()) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      const auto number = sizes_.at(*integer, sample);
      if (!number) return std::nullopt;
      result.set(name, *number);
    } else if (const auto* list = std::get_if<Integers>(&value)) {
      Integers numbers;
      for (const std::int64_t element : *list) {
        const auto number = sizes_.at(element, sample);
        if (!number) return std::nullopt;
        numbers.push_back(*number);
      }
      result.set(name, std::move(numbers));
    } else {
      result.set(name, value);
    }
  }
  return result;
}

std::optional<TensorType> SymbolicCatalog::at(const TensorType& type, std::size_t sample) const {
  TensorType result = type;
  for (std::int64_t& extent : result.shape) {
    const auto number = sizes_.at(extent, sample);
    if (!number) return std::nullopt;
    extent = *number;
  }
  return result;
}

Expected<std::vector<TensorType>> SymbolicCatalog::infer(std::string_view op, const Attributes& attributes,
                                                         std::span<const TensorType> inputs) const {
  const bool numbers = all_numbers(attributes) && std::all_of(inputs.begin(), inputs.end(), [](const TensorType& type) {
                         return all_numbers(type.shape);
                       });
  if (numbers) return registry_.infer(op, attributes, inputs);
  Hasher hasher;
  hasher.add(op).add(static_cast<std::uint64_t>(attributes.entries().size()));
  for (const auto& [name, value] : attributes.entries()) {
    hasher.add(name);
    add_to_hash(hasher, value);
  }
  for (const TensorType& type : inputs) hasher.add(to_string(type));
  const Hash128 key = hasher.finish();
  const auto known = memory_->inferred.find(key);
  if (known != memory_->inferred.end()) return known->second;
  Expected<std::vector<TensorType>> inferred =
      are_known(attributes) ? infer_anew(op, attributes, inputs, false)
                            : Expected<std::vector<TensorType>>(bad_input(
                                  std::string(op) + ": an attribute follows from extents that are not known"));
  return memory_->inferred.emplace(key, std::move(inferred)).first->second;
}

Expected<std::vector<TensorType>> SymbolicCatalog::infer_of_model(std::string_view op, const Attributes& attributes,
                                                                  std::span<const TensorType> inputs) const {
  Expected<std::vector<TensorType>> inferred = infer(op, attributes, inputs);
  return inferred || are_known(attributes) ? std::move(inferred) : infer_anew(op, attributes, inputs, false);
}

bool SymbolicCatalog::are_known(const Attributes& attributes) const {
  return std::all_of(attributes.entries().begin(), attributes.entries().end(), [&](const Attributes::Entry& entry) {
    const auto known = [&](std::int64_t size) { return sizes_.is_known(size) && sizes_.is_told_by_samples(size); };
    if (const auto* integer = std::get_if<std::int64_t>(&entry.second)) return known(*integer);
    const auto* list = std::get_if<Integers>(&entry.second);
    return list == nullptr || std::all_of(list->begin(), list->end(), known);
  });
}

Expected<std::vector<TensorType>> SymbolicCatalog::infer_with_elements(std::string_view op,
                                                                       const Attributes& attributes,
                                                                       std::span<const TensorType> inputs) const {
  Expected<std::vector<TensorType>> inferred = infer(op, attributes, inputs);
  if (inferred) return inferred;
  Expected<std::vector<TensorType>> again = infer_anew(op, attributes, inputs, true);
  if (!again) return inferred;
  forget();
  return again;
}

void SymbolicCatalog::forget() const { memory_->inferred.clear(); }

Expected<std::vector<TensorType>> SymbolicCatalog::infer_anew(std::string_view op, const Attributes& attributes,
                                                              std::span<const TensorType> inputs,
                                                              bool with_elements) const {
  const OperatorDefinition* definition = registry_.find(op);
  if (definition == nullptr) return bad_input("unknown operator '" + std::string(op) + "'");
  unbounded::SizeAttributes sizes;
  for (const auto& [name, value] : attributes.entries()) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      sizes[name] = unbounded::Sizes::of(sizes_.state_->polynomial(*integer));
    } else if (const auto* list = std::get_if<Integers>(&value)) {
      std::vector<Polynomial> elements;
      for (const std::int64_t element : *list) {
        elements.push_back(sizes_.state_->polynomial(element));
      }
      sizes[name] = unbounded::Sizes::of(std::move(elements));
    }
  }
  std::vector<std::vector<Polynomial>> shapes;
  for (const TensorType& type : inputs) {
    if (!type.known) return bad_input(std::string(op) + ": the shape of an input is not known");
    shapes.emplace_back();
    for (const std::int64_t extent : type.shape) shapes.back().push_back(sizes_.state_->polynomial(extent));
  }
  unbounded::Facts& facts = sizes_.state_->facts;
  TASO_ASSIGN(const auto outputs,
              with_elements ? unbounded::infer_shapes_with_elements(registry_, *definition, sizes, shapes, facts)
                            : unbounded::infer_shapes(registry_, *definition, sizes, shapes, facts));

  // The samples must agree; they also tell element types.
  std::vector<TensorType> result;
  for (std::size_t k = 0; k < sizes_.sample_count(); ++k) {
    const std::optional<Attributes> numbers = at(attributes, k);
    std::vector<TensorType> types;
    for (const TensorType& type : inputs) {
      auto number = at(type, k);
      if (!number) return bad_input(std::string(op) + ": a size beyond 64 bits");
      types.push_back(std::move(*number));
    }
    if (!numbers) return bad_input(std::string(op) + ": a size beyond 64 bits");
    TASO_ASSIGN(const std::vector<TensorType> expected, registry_.infer(op, *numbers, types));
    if (expected.size() != outputs.size()) return internal_error("another number of outputs of " + std::string(op));
    if (k == 0) {
      result = expected;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].size() != expected[i].shape.size()) return internal_error("another rank of " + std::string(op));
        for (std::size_t axis = 0; axis < outputs[i].size(); ++axis) {
          const auto name = sizes_.state_->name(outputs[i][axis]);
          if (!name) return bad_input(std::string(op) + ": an extent that is no polynomial of the symbolic extents");
          result[i].shape[axis] = *name;
        }
      }
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (at(result[i], k) != expected[i])
        return internal_error("the type of " + std::string(op) + " is " + to_string(expected[i]) +
                              " at a sample, and another for all sizes");
  }
  return result;
}

}  // namespace taso
