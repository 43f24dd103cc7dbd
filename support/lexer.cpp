#include "support/lexer.h"

#include <array>
#include <cctype>
#include <charconv>

namespace taso {
namespace {

constexpr std::array<std::string_view, 10> two_character_symbols = {
    "=>", "->", "..", "//", "<=", ">=", "==", "!=", "&&", "||"};

bool starts_identifier(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::end:
      return "the end of the file";
    case TokenKind::newline:
      return "the end of the line";
    case TokenKind::string:
      return "\"" + token.text + "\"";
    case TokenKind::identifier:
    case TokenKind::integer:
    case TokenKind::real:
    case TokenKind::symbol:
      break;
  }
  return "'" + token.text + "'";
}

}  // namespace

Expected<std::vector<Token>> tokenize(std::string_view text, const std::string& file, bool keep_newlines) {
  std::vector<Token> tokens;
  int line = 1;
  std::size_t line_start = 0;
  bool space = true;
  std::size_t i = 0;
  auto here = [&] { return SourceLocation{file, line, static_cast<int>(i - line_start) + 1}; };
  auto emit = [&](TokenKind kind, std::string token_text, SourceLocation where) {
    tokens.push_back({kind, std::move(token_text), std::move(where), space});
    space = false;
  };
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\n') {
      if (keep_newlines && !tokens.empty() && tokens.back().kind != TokenKind::newline)
        emit(TokenKind::newline, "\n", here());
      ++i;
      ++line;
      line_start = i;
      space = true;
    } else if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
      space = true;
    } else if (starts_identifier(c)) {
      const std::size_t begin = i;
      const SourceLocation where = here();
      while (i < text.size() && continues_identifier(text[i])) ++i;
      emit(TokenKind::identifier, std::string(text.substr(begin, i - begin)), where);
    } else if (is_digit(c)) {
      const std::size_t begin = i;
      const SourceLocation where = here();
      TokenKind kind = TokenKind::integer;
      while (i < text.size() && is_digit(text[i])) ++i;
      if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])) {
        kind = TokenKind::real;
        ++i;
        while (i < text.size() && is_digit(text[i])) ++i;
      }
      if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        std::size_t j = i + 1;
        if (j < text.size() && (text[j] == '+' || text[j] == '-')) ++j;
        if (j < text.size() && is_digit(text[j])) {
          kind = TokenKind::real;
          i = j;
          while (i < text.size() && is_digit(text[i])) ++i;
        }
      }
      emit(kind, std::string(text.substr(begin, i - begin)), where);
    } else if (c == '"') {
      const SourceLocation where = here();
      const std::size_t begin = ++i;
      while (i < text.size() && text[i] != '"' && text[i] != '\n') ++i;
      if (i == text.size() || text[i] != '"') return bad_input("string without a closing '\"' on the same line", where);
      emit(TokenKind::string, std::string(text.substr(begin, i - begin)), where);
      ++i;
    } else {
      const SourceLocation where = here();
      std::string_view symbol = text.substr(i, 1);
      for (std::string_view candidate : two_character_symbols)
        if (text.substr(i, 2) == candidate) symbol = candidate;
      if (std::isprint(static_cast<unsigned char>(c)) == 0)
        return bad_input("byte " + std::to_string(static_cast<unsigned char>(c)) + " is not text", where);
      emit(TokenKind::symbol, std::string(symbol), where);
      i += symbol.size();
    }
  }
  if (keep_newlines && !tokens.empty() && tokens.back().kind != TokenKind::newline)
    emit(TokenKind::newline, "\n", here());
  emit(TokenKind::end, "", here());
  return tokens;
}

const Token& TokenCursor::peek(std::size_t ahead) const {
  const std::size_t index = position_ + ahead;
  return index < tokens_.size() ? tokens_[index] : tokens_.back();
}

Token TokenCursor::next() {
  Token token = peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool TokenCursor::at(std::string_view text) const {
  const Token& token = peek();
  return (token.kind == TokenKind::symbol || token.kind == TokenKind::identifier) && token.text == text;
}

bool TokenCursor::accept(std::string_view text) {
  if (!at(text)) return false;
  next();
  return true;
}

Status TokenCursor::expect(std::string_view text, std::string_view context) {
  if (accept(text)) return {};
  return unexpected("'" + std::string(text) + "' " + std::string(context));
}

Expected<std::string> TokenCursor::expect_identifier(std::string_view context) {
  if (peek().kind != TokenKind::identifier) return unexpected(context);
  return next().text;
}

Expected<std::int64_t> TokenCursor::expect_integer(std::string_view context) {
  const bool negative = at("-") && peek(1).kind == TokenKind::integer;
  if (negative) next();
  if (peek().kind != TokenKind::integer) return unexpected(context);
  const std::string digits = (negative ? "-" : "") + peek().text;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{}) return bad_input("integer " + digits + " does not fit 64 bits", peek().where);
  next();
  return value;
}

Error TokenCursor::unexpected(std::string_view what) const {
  return bad_input("expected " + std::string(what) + ", found " + describe(peek()), peek().where);
}

}  // namespace taso
