/// The tokeniser shared by operator specs, rules, axioms and profiles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/status.h"

namespace taso {

enum class TokenKind { identifier, integer, real, string, symbol, newline, end };

/// One token. `text` is the identifier, the digits, the contents of a string, or the symbol itself.
struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  SourceLocation where;
  bool space_before = false;  ///< White space or a line start stands before it.
};

/// Splits text into tokens. Comments run from '#' to the end of the line. Symbols are the longest of
/// `=> -> .. // <= >= == != && ||` or a single punctuation character. With `keep_newlines` each
/// line end that ends a non-empty line is a token.
[[nodiscard]] Expected<std::vector<Token>> tokenize(std::string_view text, const std::string& file,
                                                    bool keep_newlines = false);

/// A cursor over tokens with the usual helpers of a recursive-descent parser.
class TokenCursor {
 public:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const;
  Token next();
  [[nodiscard]] bool at_end() const { return peek().kind == TokenKind::end; }
  [[nodiscard]] bool at(std::string_view text) const;
  /// Consumes the token if it is the symbol or identifier `text`.
  bool accept(std::string_view text);
  /// Consumes `text` or fails with "expected 'text' CONTEXT, found ...".
  [[nodiscard]] Status expect(std::string_view text, std::string_view context);
  [[nodiscard]] Expected<std::string> expect_identifier(std::string_view context);
  /// An optional '-' and an integer that fits 64 bits.
  [[nodiscard]] Expected<std::int64_t> expect_integer(std::string_view context);
  /// An error at the current token: "expected WHAT, found 'token'".
  [[nodiscard]] Error unexpected(std::string_view what) const;

 private:
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
};

}  // namespace taso
