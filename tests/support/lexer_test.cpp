#include "support/lexer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace taso {
namespace {

std::vector<std::string> spelled(const std::string& text, bool keep_newlines = false) {
  std::vector<std::string> result;
  const std::vector<Token> tokens = tokenize(text, "f", keep_newlines).value();
  for (const Token& token : tokens)
    if (token.kind != TokenKind::end) result.push_back(token.kind == TokenKind::newline ? "NEWLINE" : token.text);
  return result;
}

TEST(Lexer, LongestSymbolsAndComments) {
  EXPECT_EQ(spelled("a=>b->c..d//e<=f>=g==h!=i&&j||k # and no more"),
            (std::vector<std::string>{"a",  "=>", "b",  "->", "c",  "..", "d",  "//", "e",  "<=", "f",
                                      ">=", "g",  "==", "h",  "!=", "i",  "&&", "j",  "||", "k"}));
  EXPECT_EQ(spelled("x.0 I.. 1.5e-3 2e3 7 2.x"),
            (std::vector<std::string>{"x", ".", "0", "I", "..", "1.5e-3", "2e3", "7", "2", ".", "x"}));
  EXPECT_EQ(spelled("\"a # b\""), (std::vector<std::string>{"a # b"}));
}

TEST(Lexer, Kinds) {
  const std::vector<Token> tokens = tokenize("x_1 12 1e5 1.5 \"s\" +", "f").value();
  ASSERT_EQ(tokens.size(), 7U);
  EXPECT_EQ(tokens[0].kind, TokenKind::identifier);
  EXPECT_EQ(tokens[1].kind, TokenKind::integer);
  EXPECT_EQ(tokens[2].kind, TokenKind::real);
  EXPECT_EQ(tokens[3].kind, TokenKind::real);
  EXPECT_EQ(tokens[4].kind, TokenKind::string);
  EXPECT_EQ(tokens[5].kind, TokenKind::symbol);
  EXPECT_EQ(tokens[6].kind, TokenKind::end);
}

TEST(Lexer, PlacesAndSpace) {
  const std::vector<Token> tokens = tokenize("ab(\n  c )", "f.op").value();
  EXPECT_EQ(tokens[1].where.line, 1);
  EXPECT_EQ(tokens[1].where.column, 3);
  EXPECT_FALSE(tokens[1].space_before);
  EXPECT_EQ(tokens[2].where.line, 2);
  EXPECT_EQ(tokens[2].where.column, 3);
  EXPECT_TRUE(tokens[2].space_before);
  EXPECT_EQ(tokens[2].where.file, "f.op");
}

TEST(Lexer, NewlinesEndNonEmptyLines) {
  EXPECT_EQ(spelled("a\n\n# c\nb", true), (std::vector<std::string>{"a", "NEWLINE", "b", "NEWLINE"}));
}

TEST(Lexer, Errors) {
  EXPECT_EQ(tokenize("a \"b", "f").error().to_string(), "f:1:3: string without a closing '\"' on the same line");
  EXPECT_EQ(tokenize("a\n\x01", "f").error().to_string(), "f:2:1: byte 1 is not text");
}

TEST(TokenCursor, Integers) {
  TokenCursor cursor(tokenize("-12 9223372036854775808 -9223372036854775808 x", "f").value());
  EXPECT_EQ(cursor.expect_integer("a number").value(), -12);
  EXPECT_EQ(cursor.expect_integer("a number").error().to_string(),
            "f:1:5: integer 9223372036854775808 does not fit 64 bits");
  cursor.next();
  EXPECT_EQ(cursor.expect_integer("a number").value(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(cursor.expect_integer("a number").error().to_string(), "f:1:46: expected a number, found 'x'");
}

TEST(TokenCursor, Expectations) {
  TokenCursor cursor(tokenize("f ( \"s\"", "f").value());
  EXPECT_EQ(cursor.expect("(", "after the name").error().to_string(), "f:1:1: expected '(' after the name, found 'f'");
  EXPECT_EQ(cursor.expect_identifier("a name").value(), "f");
  EXPECT_TRUE(cursor.accept("("));
  EXPECT_FALSE(cursor.accept("s")) << "a string is not the symbol it holds";
  EXPECT_EQ(cursor.expect_identifier("a name").error().message, "expected a name, found \"s\"");
  cursor.next();
  EXPECT_EQ(cursor.unexpected("more").message, "expected more, found the end of the file");
  cursor.next();
  EXPECT_TRUE(cursor.at_end()) << "the end stays";
}

}  // namespace
}  // namespace taso
