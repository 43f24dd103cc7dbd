// Runs symbolic.cases: steps in graphs whose extents are symbols.
//
//   sizes N=1:, H=1:256    the symbols and their ranges (0: as well)
//   at N=2, H=128          the sizes at which the rule is matched
//   samples even           the samples are even (large: at least 60; small: at most 30)
//   graph:                 a graph; {2*H+1} is a number that follows from the symbols
//   rule:                  a rule
//   untouched TEXT         nodes became opaque, and the reason of the first holds this text
//   holds                  the first match is a step for all sizes
//   fails TEXT             it is not, and the reason holds this text
//   nomatch                the rule has no match
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "certificate/occurrence.h"
#include "certificate/replay.h"
#include "certificate/sampled_graphs.h"
#include "certificate/symbolic_model.h"
#include "graph/graph_text.h"
#include "support/random.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using ::testing::HasSubstr;

using test::CaseCount;
using test::CaseValue;

const test::CaseKeys& symbolic_keys() {
  static const test::CaseKeys keys = {
      {"sizes", CaseValue::words, CaseCount::once},       {"at", CaseValue::words, CaseCount::once},
      {"samples", CaseValue::words, CaseCount::optional}, {"graph", CaseValue::section, CaseCount::once},
      {"rule", CaseValue::section, CaseCount::once},      {"untouched", CaseValue::text, CaseCount::optional},
      {"holds", CaseValue::none, CaseCount::optional},    {"fails", CaseValue::words, CaseCount::optional},
      {"nomatch", CaseValue::none, CaseCount::optional}};
  return keys;
}

// "2*H+1", "min(N, 20)", "H//2" at sizes.
class Calculator {
 public:
  Calculator(std::string_view text, const SymbolSizes& sizes) : text_(text), sizes_(sizes) {}
  std::int64_t sum() {
    std::int64_t result = product();
    while (true) {
      if (take("+"))
        result += product();
      else if (take("-"))
        result -= product();
      else
        return result;
    }
  }

 private:
  bool take(std::string_view token) {
    while (text_.starts_with(" ")) text_.remove_prefix(1);
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  std::int64_t product() {
    std::int64_t result = atom();
    while (true) {
      if (take("*"))
        result *= atom();
      else if (take("//"))
        result /= atom();
      else
        return result;
    }
  }
  std::int64_t atom() {
    if (take("min(")) {
      const std::int64_t a = sum();
      EXPECT_TRUE(take(","));
      const std::int64_t b = sum();
      EXPECT_TRUE(take(")"));
      return std::min(a, b);
    }
    (void)take("");
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
    if (error == std::errc()) {
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      return number;
    }
    const auto size = sizes_.find(std::string(text_.substr(0, 1)));
    EXPECT_NE(size, sizes_.end()) << text_;
    text_.remove_prefix(1);
    return size == sizes_.end() ? 0 : size->second;
  }

  std::string_view text_;
  const SymbolSizes& sizes_;
};

Expected<Graph> parse_at(const std::string& text, const SymbolSizes& sizes) {
  std::string numbers;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t open = std::min(text.find('{', begin), text.size());
    numbers += text.substr(begin, open - begin);
    if (open == text.size()) break;
    const std::size_t close = text.find('}', open);
    numbers += std::to_string(Calculator(std::string_view(text).substr(open + 1, close - open - 1), sizes).sum());
    begin = close + 1;
  }
  return parse_graph(numbers, "graph", test::registry());
}

Graph graph_at(const std::string& text, const SymbolSizes& sizes) {
  Expected<Graph> graph = parse_at(text, sizes);
  EXPECT_TRUE(graph) << graph.error().to_string();
  return graph ? *graph : Graph();
}

SymbolRanges ranges_of(std::string text) {
  SymbolRanges ranges;
  while (!text.empty()) {
    const std::size_t end = text.find(", ");
    // Users' sizes are at least 1, those of extents that depend on elements not.
    std::string one = text.substr(0, end);
    const std::size_t zero = one.find("=0:");
    if (zero != std::string::npos) one[zero + 1] = '1';
    auto range = parse_range(one);
    EXPECT_TRUE(range) << text;
    if (range && zero != std::string::npos) range->second.least = 0;
    if (range) ranges.insert(*range);
    text = end == std::string::npos ? "" : text.substr(end + 2);
  }
  return ranges;
}

class SymbolicCases : public ::testing::TestWithParam<test::TextCase> {};

TEST_P(SymbolicCases, AreDecidedForAllSizes) {
  const test::TextCase& test = GetParam();
  const SymbolRanges ranges = ranges_of(test.text("sizes"));

  // Samples, and the sizes at which the rule is matched.
  Random random(7);
  std::vector<SampledSymbol> symbols;
  std::vector<SymbolSizes> sizes(14);
  for (const auto& [name, range] : ranges) {
    const std::string& kind = test.text("samples");
    ASSERT_THAT(kind, ::testing::AnyOf("", "even", "large", "small"));
    const std::int64_t least = std::max<std::int64_t>(range.least, kind == "large" ? 60 : 1);
    const std::int64_t most = std::min<std::int64_t>(range.most.value_or(200), kind == "small" ? 30 : 200);
    symbols.push_back({name, range, {}});
    for (SymbolSizes& at : sizes) {
      std::int64_t size = least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
      if (kind == "even") size *= 2;
      at[name] = size;
      symbols.back().samples.push_back(size);
    }
  }
  SymbolSizes base;
  for (const auto& [name, range] : ranges) {
    const std::string &at = test.text("at"), key = name + "=";
    base[name] = std::stoll(at.substr(at.find(key) + key.size()));
  }

  const auto rules = parse_rules(test.placed("rule"), test.file, test::registry());
  ASSERT_TRUE(rules) << rules.error().to_string();
  Graph matched = graph_at(test.text("graph"), base);
  normalize(matched, test::registry());
  const std::vector<Match> matches = RuleIndex(*rules, test::registry()).find(matched, 0);
  EXPECT_EQ(matches.empty(), test.has("nomatch"));
  if (matches.empty()) return;

  SymbolicSizes symbolic(symbols);
  const SymbolicCatalog catalog(test::registry(), symbolic);
  std::vector<Graph> graphs;
  for (const SymbolSizes& at : sizes) graphs.push_back(graph_at(test.text("graph"), at));
  std::vector<SampledGraph> samples;
  // Windows that do not fit are no part of the graph's text.
  SizeDecisions decisions;
  for (NodeId id = 0; id < graphs[0].id_bound(); ++id)
    if (graphs[0].contains(id) && (graphs[0].node(id).op == "conv2d" || graphs[0].node(id).op == "max_pool2d"))
      decisions.windows.insert(id);
  for (const Graph& sampled : graphs) samples.push_back({&sampled, &decisions});
  std::vector<std::string> untouched;
  std::shared_ptr<SymbolicConstants> constants;
  NotKnown not_known;
  Expected<Graph> graph = graph_for_all_sizes(samples, symbolic, catalog, constants, untouched, not_known);
  ASSERT_TRUE(graph) << graph.error().to_string();
  normalize(*graph, catalog);
  EXPECT_EQ(untouched.empty(), !test.has("untouched")) << ::testing::PrintToString(untouched);
  if (!untouched.empty()) {
    EXPECT_THAT(untouched[0], HasSubstr(test.text("untouched")));
  }

  std::vector<CertificateStep> steps = {{"r", matches[0]}};
  forget_sizes(steps[0].match);
  std::map<std::string, std::size_t> uses;
  std::vector<Match> taken;
  const Expected<Graph> result = repeat_steps(*graph, *rules, steps, catalog, uses, &taken);
  ASSERT_EQ(test.has("holds"), !test.has("fails")) << "a case holds or fails";
  if (test.has("holds")) {
    ASSERT_TRUE(result) << result.error().to_string();
    // At every sample it is what the step makes of the graph there.
    for (std::size_t k = 0; k < samples.size(); ++k) {
      Graph there = graphs[k];
      normalize(there, test::registry());
      std::vector<Match> again;
      const Expected<Graph> expected = repeat_steps(there, *rules, steps, test::registry(), uses, &again);
      ASSERT_TRUE(expected) << to_string(sizes[k]) << ": " << expected.error().to_string();
      for (std::size_t i = 0; i < expected->outputs().size(); ++i)
        EXPECT_EQ(catalog.at(result->type(result->outputs()[i]), k), expected->type(expected->outputs()[i]))
            << to_string(sizes[k]);
    }
  } else {
    ASSERT_FALSE(result) << to_string(*result);
    EXPECT_THAT(result.error().message, HasSubstr(test.text("fails")));
  }
}

INSTANTIATE_TEST_SUITE_P(Certificate, SymbolicCases,
                         ::testing::ValuesIn(test::load_cases("tests/certificate/symbolic.cases", symbolic_keys())),
                         test::case_name);

TEST(SymbolRanges, AreReadAsTheyAreWritten) {
  for (const std::string text : {"height=1:256", "a=b=2:", "x[0]=7:7"}) {
    const auto range = parse_range(text);
    ASSERT_TRUE(range) << text;
    EXPECT_EQ(to_string(SymbolRanges{*range}), text);
  }
  EXPECT_EQ(to_string(SymbolRanges{*parse_range("n=:5")}), "n=1:5");
  EXPECT_EQ(to_string(SymbolRanges{*parse_range("n=:")}), "");
  for (const std::string text :
       {"n", "n=", "n=3", "=1:2", "n=0:2", "n=-1:2", "n=3:2", "n=1:2:3", "n=1:x", "n=1:99999999999999"})
    EXPECT_FALSE(parse_range(text)) << text;
}

// What is computed with names of sizes as if they were numbers is no size.
TEST(SymbolicSizes, NamesAreNoNumbers) {
  SymbolicSizes sizes({{"n", {}, {2, 3, 5}}, {"m", {}, {7, 4, 9}}});
  const std::int64_t n = sizes.symbol(0), m = sizes.symbol(1);
  using Operation = SizeArithmetic::Operation;
  for (const std::int64_t wrong : {n + 1, n - 1, n + m, n + (std::int64_t{1} << 24)}) {
    EXPECT_FALSE(sizes.combine(Operation::add, wrong, 0)) << wrong;
    EXPECT_FALSE(sizes.follows(Condition::Relation::equal, wrong, wrong));
  }
  const std::int64_t sum = sizes.combine(Operation::add, n, m).value();
  EXPECT_EQ(sum, sizes.combine(Operation::add, m, n).value());
  EXPECT_EQ(sizes.combine(Operation::subtract, sum, m).value(), n);
  EXPECT_EQ(sizes.at(sum, 1), 7);
  EXPECT_EQ(sizes.combine(Operation::subtract, n, n).value(), 0);
  EXPECT_EQ(sizes.to_string(sizes.combine(Operation::multiply, n, 2).value()), "2 * n");
}

TEST(SymbolicSizes, AreSumsOfProductsOfSymbolsOrNot) {
  SymbolicSizes sizes({{"n", {}, {2, 3, 5}}, {"m", {}, {7, 4, 9}}});
  const std::int64_t n = sizes.symbol(0), m = sizes.symbol(1);
  using Operation = SizeArithmetic::Operation;
  const std::int64_t product = sizes.combine(Operation::multiply, n, m).value();
  const std::int64_t sum =
      sizes.combine(Operation::add, sizes.combine(Operation::multiply, product, 3).value(), 4).value();
  const auto terms = sizes.terms(sum);
  ASSERT_TRUE(terms.has_value());
  std::int64_t at_first = 0;
  for (const SizeTerm& term : *terms) {
    std::int64_t value = term.number;
    for (const SizeFactor& factor : term.factors) value *= factor.symbol == "n" ? 2 : 7;
    at_first += value;
  }
  EXPECT_EQ(at_first, 3 * 2 * 7 + 4);
  EXPECT_TRUE(sizes.terms(12).has_value());
  const auto half = sizes.terms(sizes.combine(Operation::floor_divide, n, 2).value());
  ASSERT_TRUE(half.has_value());
  ASSERT_EQ(half->size(), 1U);
  ASSERT_EQ((*half)[0].factors.size(), 1U);
  EXPECT_EQ((*half)[0].factors[0].dividend, n);
  EXPECT_EQ((*half)[0].factors[0].divisor, 2);
  // ONNX rounds towards zero.
  const std::int64_t may_be_negative = sizes.combine(Operation::subtract, n, 5).value();
  EXPECT_FALSE(sizes.terms(sizes.combine(Operation::floor_divide, may_be_negative, m).value()));
  EXPECT_FALSE(sizes.terms(sizes.unknown("u", {1, 2, 3})));
  EXPECT_FALSE(sizes.terms(n + 1));
}

}  // namespace
}  // namespace taso
