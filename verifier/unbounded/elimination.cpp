#include "verifier/unbounded/elimination.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace taso::unbounded {
namespace {

// Elimination stops, undecided, with more rows than this, or after as many combinations.
constexpr std::size_t max_rows = 140;
constexpr std::size_t max_combinations = 3000;
// Products of rows by symbols that are formed at most.
constexpr std::size_t max_products = 48;

// constant + sum of coefficient * column >= 0; terms sorted by column.
struct Row {
  std::int64_t constant = 0;
  absl::InlinedVector<std::pair<std::uint32_t, std::int64_t>, 4> terms;
  std::uint64_t key = 0;  // of the terms, once the row is kept

  [[nodiscard]] std::uint64_t key_of_terms() const {
    std::uint64_t result = terms.size();
    for (const auto& [column, coefficient] : terms)
      result = (result ^ column ^ (static_cast<std::uint64_t>(coefficient) << 32)) * 0x9e3779b97f4a7c15U;
    return result;
  }
};

class Elimination {
 public:
  Elimination(const LowerBounds& bounds, Budget& budget) : bounds_(bounds), budget_(budget) {}

  bool run(const std::vector<Polynomial>& input) {
    std::vector<Polynomial> polynomials = input;
    form_products(polynomials);
    for (const Polynomial& p : polynomials) {
      Row row;
      for (const auto& [monomial, coefficient] : p.terms()) {
        if (monomial.degree() == 0)
          row.constant = coefficient;
        else
          row.terms.emplace_back(column(monomial), coefficient);
      }
      std::sort(row.terms.begin(), row.terms.end());
      if (add(std::move(row))) return true;
    }
    return eliminate();
  }

 private:
  // A product s * m with m >= 0 is bounded by the rows on s.
  void form_products(std::vector<Polynomial>& rows) {
    std::vector<Monomial> products;
    for (const Polynomial& row : rows)
      for (const auto& [monomial, coefficient] : row.terms())
        if (monomial.degree() >= 2 && std::find(products.begin(), products.end(), monomial) == products.end())
          products.push_back(monomial);
    const std::size_t originals = rows.size();
    std::size_t formed = 0;
    for (const Monomial& product : products) {
      SymbolId last = 0;
      for (std::size_t i = 0; i < product.degree(); ++i) {
        const SymbolId symbol = product.symbols()[i];
        if (i > 0 && symbol == last) continue;
        last = symbol;
        const Monomial factor = *Monomial::quotient(product, Monomial(symbol));
        const bool positive = std::all_of(factor.symbols().begin(), factor.symbols().end(), [&](SymbolId other) {
          const auto bound = bounds_(other);
          return bound && *bound >= 0;
        });
        if (!positive) continue;
        for (std::size_t r = 0; r < originals && formed < max_products; ++r) {
          if (rows[r].terms().size() > 4 || !rows[r].linear_coefficient(symbol)) continue;
          Polynomial multiplied = rows[r] * Polynomial::term(factor, 1);
          // Of use only if nothing but what already occurs comes of it.
          const bool known = std::all_of(multiplied.terms().begin(), multiplied.terms().end(), [&](const auto& term) {
            return term.monomial.degree() < 2 ||
                   std::find(products.begin(), products.end(), term.monomial) != products.end();
          });
          if (!multiplied.valid() || !known) continue;
          ++formed;
          if (std::find(rows.begin(), rows.end(), multiplied) == rows.end()) rows.push_back(std::move(multiplied));
        }
      }
    }
  }

  std::uint32_t column(const Monomial& monomial) {
    const auto it = std::find(columns_.begin(), columns_.end(), monomial);
    if (it != columns_.end()) return static_cast<std::uint32_t>(it - columns_.begin());
    columns_.push_back(monomial);
    return static_cast<std::uint32_t>(columns_.size() - 1);
  }

  static void tighten(Row& row) {
    std::int64_t content = 0;
    for (const auto& [column, coefficient] : row.terms) content = std::gcd(content, coefficient);
    if (content <= 1) return;
    for (auto& [column, coefficient] : row.terms) coefficient /= content;
    row.constant = floor_quotient(row.constant, content);
  }

  // s * p + k >= 0 with s >= 1 and k < 0 gives p >= 1, with k = 0 it gives p >= 0.
  void strengthen(Row& row) {
    tighten(row);
    while (row.constant <= 0 && !row.terms.empty()) {
      std::optional<SymbolId> common;
      for (const SymbolId symbol : columns_[row.terms[0].first].symbols()) {
        const bool everywhere = std::all_of(row.terms.begin(), row.terms.end(),
                                            [&](const auto& term) { return columns_[term.first].contains(symbol); });
        if (!everywhere) continue;
        const auto bound = bounds_(symbol);
        if (bound && *bound >= 1) {
          common = symbol;
          break;
        }
      }
      // A symbol alone, s >= k, says more than that s / s is positive.
      if (!common || (row.terms.size() == 1 && columns_[row.terms[0].first].degree() == 1)) return;
      Row divided;
      divided.constant = row.constant < 0 ? -1 : 0;
      for (const auto& [old, coefficient] : row.terms) {
        const Monomial rest = *Monomial::quotient(columns_[old], Monomial(*common));
        if (rest.degree() == 0)
          divided.constant += coefficient;
        else
          divided.terms.emplace_back(column(rest), coefficient);
      }
      std::sort(divided.terms.begin(), divided.terms.end());
      row = std::move(divided);
      tighten(row);
    }
  }

  // Keeps a row, and what it implies, unless others say more; true for a contradiction.
  bool add(Row row) {
    tighten(row);
    if (row.constant > 0) return keep(std::move(row));
    Row stronger = row;
    strengthen(stronger);
    if (stronger.terms != row.terms && keep(std::move(stronger))) return true;
    return keep(std::move(row));
  }

  bool keep(Row row) {
    if (row.terms.empty()) return row.constant < 0;
    const std::uint64_t key = row.key_of_terms();
    for (Row& known : rows_)
      if (known.key == key && known.terms == row.terms) {
        known.constant = std::min(known.constant, row.constant);
        return false;
      }
    row.key = key;
    rows_.push_back(std::move(row));
    return false;
  }

  static bool combine(const Row& a, std::int64_t x, const Row& b, std::int64_t y, Row& result) {
    auto scaled = [x, y](std::int64_t p, std::int64_t q, std::int64_t& sum) {
      std::int64_t left = 0, right = 0;
      return !__builtin_mul_overflow(p, x, &left) && !__builtin_mul_overflow(q, y, &right) &&
             !__builtin_add_overflow(left, right, &sum);
    };
    if (!scaled(a.constant, b.constant, result.constant)) return false;
    auto i = a.terms.begin();
    auto j = b.terms.begin();
    result.terms.reserve(a.terms.size() + b.terms.size());
    while (i != a.terms.end() || j != b.terms.end()) {
      const bool left = j == b.terms.end() || (i != a.terms.end() && i->first <= j->first);
      const bool right = i == a.terms.end() || (j != b.terms.end() && j->first <= i->first);
      std::int64_t sum = 0;
      if (!scaled(left ? i->second : 0, right ? j->second : 0, sum)) return false;
      if (sum != 0) result.terms.emplace_back(left ? i->first : j->first, sum);
      if (left) ++i;
      if (right) ++j;
    }
    return true;
  }

  bool eliminate() {
    std::size_t combinations = 0;
    for (;;) {
      // Symbols that are in no product first, then products, then factors of products, since rows on products may imply
      // rows on their factors; among these the column with the fewest combinations.
      std::vector<std::pair<std::int64_t, std::int64_t>> counts(columns_.size());
      for (const Row& row : rows_)
        for (const auto& [column, coefficient] : row.terms)
          ++(coefficient > 0 ? counts[column].first : counts[column].second);
      factors_.clear();
      for (std::uint32_t c = 0; c < counts.size(); ++c)
        if (columns_[c].degree() >= 2 && counts[c].first + counts[c].second > 0)
          factors_.insert(factors_.end(), columns_[c].symbols().begin(), columns_[c].symbols().end());
      std::optional<std::uint32_t> best;
      std::pair<int, std::int64_t> cost;
      for (std::uint32_t c = 0; c < counts.size(); ++c) {
        const auto [above, below] = counts[c];
        if (above + below == 0) continue;
        const std::int64_t growth = above * below - above - below;
        int order = 0;
        if (columns_[c].degree() >= 2) {
          order = 1;
        } else if (std::find(factors_.begin(), factors_.end(), columns_[c].symbols()[0]) != factors_.end()) {
          order = 2;
        } else if (growth > 24) {
          order = 1;
        }
        const std::pair<int, std::int64_t> here(order, growth);
        if (!best || here < cost) {
          best = c;
          cost = here;
        }
      }
      if (!best) return false;
      std::vector<Row> old = std::move(rows_);
      rows_.clear();
      std::vector<std::pair<const Row*, std::int64_t>> above, below;
      for (Row& row : old) {
        const auto it = std::lower_bound(row.terms.begin(), row.terms.end(), std::pair(*best, INT64_MIN));
        if (it == row.terms.end() || it->first != *best)
          rows_.push_back(std::move(row));
        else
          (it->second > 0 ? above : below).emplace_back(&row, it->second);
      }
      combinations += above.size() * below.size();
      budget_.spend(1 + old.size() / 8 + above.size() * below.size());
      if (rows_.size() + above.size() * below.size() > max_rows || combinations > max_combinations) return false;
      for (const auto& [a, x] : above)
        for (const auto& [b, y] : below) {
          if (y == INT64_MIN) continue;
          const std::int64_t common = std::gcd(x, -y);
          Row row;
          if (combine(*a, -y / common, *b, x / common, row) && add(std::move(row))) return true;
        }
    }
  }

  const LowerBounds& bounds_;
  Budget& budget_;
  std::vector<Monomial> columns_;
  std::vector<Row> rows_;
  std::vector<SymbolId> factors_;  // of the products that are left
};

}  // namespace

Polynomial tightened(const Polynomial& p) {
  std::int64_t content = 0;
  for (const auto& [monomial, coefficient] : p.terms())
    if (monomial.degree() != 0) content = std::gcd(content, coefficient);
  if (content <= 1) return p;
  Polynomial result;
  for (const auto& [monomial, coefficient] : p.terms())
    result = result + Polynomial::term(monomial, monomial.degree() == 0 ? floor_quotient(coefficient, content)
                                                                        : coefficient / content);
  return result;
}

bool eliminates_to_contradiction(const std::vector<Polynomial>& rows, const LowerBounds& bounds, Budget& budget) {
  return Elimination(bounds, budget).run(rows);
}

}  // namespace taso::unbounded
