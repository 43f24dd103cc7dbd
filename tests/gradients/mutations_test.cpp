// The shipped gradients with one word changed: each such table is refused, or an entry of it is not found to hold, or
// what is changed makes no difference, which equal_mutations.cases lists with the reason:
//
//   entry OPERATOR: LINE    the line after the change; lines that are broken are one
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/file.h"
#include "support/lexer.h"
#include "tests/gradients/shipped_gradients.h"
#include "tests/support/cases.h"
#include "verifier/gradients.h"

namespace taso {
namespace {

using test::gradient_registry;
using test::value_of;

/// The words that stand for one word: another sign, operator, operand, number, size or attribute.
const std::map<std::string, std::vector<std::string>>& changes() {
  static const std::map<std::string, std::vector<std::string>> words = {{"add", {"sub"}},
                                                                        {"sub", {"add"}},
                                                                        {"mul", {"div", "add"}},
                                                                        {"div", {"mul"}},
                                                                        {"d_out", {"out"}},
                                                                        {"out", {"d_out", "x"}},
                                                                        {"0", {"1"}},
                                                                        {"1", {"0", "2"}},
                                                                        {"2", {"3"}},
                                                                        {"+", {"-"}},
                                                                        {"-", {"+"}},
                                                                        {"*", {"+"}},
                                                                        {"x", {"y", "d_out"}},
                                                                        {"y", {"x"}},
                                                                        {"a", {"d_out"}},
                                                                        {"b", {"a"}},
                                                                        {"k", {"x"}},
                                                                        {"h", {"w"}},
                                                                        {"w", {"h"}},
                                                                        {"r", {"s"}},
                                                                        {"s", {"r"}},
                                                                        {"m", {"n"}},
                                                                        {"n", {"m"}},
                                                                        {"A", {"B"}},
                                                                        {"B", {"A"}},
                                                                        {"D", {"E"}},
                                                                        {"oh", {"ow"}},
                                                                        {"ow", {"oh"}},
                                                                        {"scale", {"variance"}},
                                                                        {"mean", {"scale"}},
                                                                        {"strides", {"dilations"}},
                                                                        {"pads", {"dilations"}},
                                                                        {"kernel", {"strides"}},
                                                                        {"before", {"after"}},
                                                                        {"after", {"before"}},
                                                                        {"exp", {"sqrt"}},
                                                                        {"log", {"exp"}},
                                                                        {"sign", {"abs"}},
                                                                        {"==", {"!="}},
                                                                        {"reduce_sum", {"reduce_mean"}}};
  return words;
}

std::string joined(const std::vector<Token>& tokens, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += (i > begin && tokens[i].space_before ? " " : "") + tokens[i].text;
  return text;
}

struct Mutation {
  std::string table;  ///< The gradients of one operator.
  std::string entry;  ///< "OPERATOR: LINE".
};

/// All of the gradients of one operator, whose tokens these are.
void add_mutations(std::vector<Token> tokens, std::vector<Mutation>& mutations) {
  // A line begins with `let`, or with d_INPUT before `=` or `.`.
  std::vector<std::size_t> lines;
  for (std::size_t i = 2; i < tokens.size(); ++i)
    if (tokens[i].text == "let" ||
        (tokens[i].text.starts_with("d_") && i + 1 < tokens.size() &&
         (tokens[i + 1].text == "=" || (tokens[i + 1].text == "." && tokens[i + 2].text == "k"))))
      lines.push_back(i);
  lines.push_back(tokens.size());
  for (std::size_t line = 0; line + 1 < lines.size(); ++line)
    for (std::size_t i = lines[line] + 2; i < lines[line + 1]; ++i) {
      const auto found = changes().find(tokens[i].text);
      if (found == changes().end()) continue;
      for (const std::string& word : found->second) {
        const std::string before = std::exchange(tokens[i].text, word);
        mutations.push_back(
            {joined(tokens, 0, tokens.size()), tokens[1].text + ": " + joined(tokens, lines[line], lines[line + 1])});
        tokens[i].text = before;
      }
    }
}

std::vector<Mutation> all_mutations() {
  const std::string file = TASO_SOURCE_DIR "/specs/gradients/operators.grad";
  const std::vector<Token> tokens = value_of(tokenize(value_of(read_file(file)), file));
  std::vector<Mutation> mutations;
  std::vector<Token> one;
  for (const Token& token : tokens) {
    if ((token.text == "gradient" || token.kind == TokenKind::end) && !one.empty()) {
      add_mutations(one, mutations);
      one.clear();
    }
    one.push_back(token);
    one.back().space_before = token.space_before || token.where.column == 1;
  }
  return mutations;
}

bool holds(const Mutation& mutation, const GradientTable& derivatives) {
  const auto table = GradientTable::parse(mutation.table, "mutation", gradient_registry(), &derivatives);
  if (!table) return false;
  const std::vector<GradientVerdict> verdicts =
      check_gradients(gradient_registry(), *table, table->operators().begin()->first);
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const GradientVerdict& verdict) { return verdict.kind == GradientVerdict::Kind::holds; });
}

TEST(GradientMutations, AreNotFoundToHold) {
  constexpr std::size_t step = 13;  // Not all: they take minutes.
  const GradientTable derivatives =
      value_of(GradientTable::load(TASO_SOURCE_DIR "/specs/gradients/functions.grad", gradient_registry()));
  std::set<std::string> equal;
  for (const test::TextCase& one : test::load_cases("tests/gradients/equal_mutations.cases",
                                                    {{"entry", test::CaseValue::text, test::CaseCount::repeated}}))
    for (const std::string& entry : one.all("entry")) equal.insert(entry);
  const std::vector<Mutation> mutations = all_mutations();
  EXPECT_GT(mutations.size(), 700U);
  for (std::size_t i = 0; i < mutations.size(); i += step)
    EXPECT_EQ(holds(mutations[i], derivatives), equal.contains(mutations[i].entry)) << mutations[i].entry;
}

}  // namespace
}  // namespace taso
