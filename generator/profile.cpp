#include "generator/profile.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "support/file.h"
#include "support/lexer.h"

namespace taso {
namespace {

using Symbols = std::vector<std::optional<AttributeValue>>;

/// Recursive descent over one profile text.
class ProfileParser {
 public:
  ProfileParser(std::vector<Token> tokens, const OperatorRegistry& registry, int depth = 0)
      : cursor_(std::move(tokens)), registry_(registry), depth_(depth) {}

  Expected<Profile> parse() {
    Profile profile;
    skip_newlines();
    TASO_RETURN_IF_ERROR(cursor_.expect("profile", "at the start of a profile"));
    TASO_ASSIGN(profile.name, cursor_.expect_identifier("as the profile's name"));
    TASO_RETURN_IF_ERROR(end_of_line());
    while (!cursor_.at_end()) {
      const SourceLocation where = cursor_.peek().where;
      if (cursor_.accept("include")) {
        TASO_ASSIGN(const std::string name, cursor_.expect_identifier("as the name of a profile"));
        TASO_RETURN_IF_ERROR(end_of_line());
        TASO_RETURN_IF_ERROR(include(name, where, profile));
        continue;
      }
      TASO_RETURN_IF_ERROR(cursor_.expect("group", "(a profile is a list of groups)"));
      group_ = {};
      TASO_ASSIGN(group_.name, cursor_.expect_identifier("as the group's name"));
      for (const ProfileGroup& other : profile.groups)
        if (other.name == group_.name) return bad_input("group '" + group_.name + "' is defined twice", where);
      TASO_RETURN_IF_ERROR(end_of_line());
      while (!cursor_.at_end() && !cursor_.at("group") && !cursor_.at("include")) TASO_RETURN_IF_ERROR(statement());
      TASO_RETURN_IF_ERROR(check_group(where));
      profile.groups.push_back(std::move(group_));
    }
    if (profile.groups.empty()) return cursor_.unexpected("a group");
    return profile;
  }

 private:
  /// Appends the groups of the profile NAME.profile in the same folder.
  Status include(const std::string& name, const SourceLocation& where, Profile& profile) {
    constexpr int max_depth = 8;
    if (depth_ >= max_depth) return bad_input("profiles include each other, or more than 8 deep", where);
    const std::string path = (std::filesystem::path(where.file).parent_path() / (name + ".profile")).string();
    auto text = read_file(path);
    if (!text) return bad_input("cannot include '" + name + "': " + text.error().message, where);
    TASO_ASSIGN(std::vector<Token> tokens, tokenize(*text, path, true));
    TASO_ASSIGN(Profile other, ProfileParser(std::move(tokens), registry_, depth_ + 1).parse());
    for (ProfileGroup& group : other.groups) {
      for (const ProfileGroup& known : profile.groups)
        if (known.name == group.name)
          return bad_input("group '" + group.name + "' of '" + name + "' is defined already", where);
      profile.groups.push_back(std::move(group));
    }
    return {};
  }

  void skip_newlines() {
    while (cursor_.peek().kind == TokenKind::newline) cursor_.next();
  }

  Status end_of_line() {
    if (cursor_.at_end()) return {};
    if (cursor_.peek().kind != TokenKind::newline) return cursor_.unexpected("the end of the line");
    skip_newlines();
    return {};
  }

  Status statement() {
    const SourceLocation where = cursor_.peek().where;
    if (cursor_.accept("max_ops")) {
      TASO_ASSIGN(const std::int64_t value, cursor_.expect_integer("as the largest number of operators"));
      if (value < 1 || value > 8) return bad_input("max_ops must be in 1..8", where);
      group_.max_ops = static_cast<int>(value);
    } else if (cursor_.accept("max_weight_ops")) {
      TASO_ASSIGN(const std::int64_t value, cursor_.expect_integer("as the largest number of operators on weights"));
      if (value < 0 || value > 12) return bad_input("max_weight_ops must be in 0..12", where);
      group_.max_weight_ops = static_cast<int>(value);
    } else if (cursor_.accept("source_weight_ops")) {
      TASO_ASSIGN(const std::int64_t value, cursor_.expect_integer("as the largest number of operators on weights"));
      if (value < 0 || value > 12) return bad_input("source_weight_ops must be in 0..12", where);
      group_.source_weight_ops = static_cast<int>(value);
    } else if (cursor_.accept("lowering")) {
      group_.lowering = true;
    } else if (cursor_.accept("ordered")) {
      group_.ordered = true;
    } else if (cursor_.accept("unconnected")) {
      group_.unconnected = true;
    } else if (cursor_.accept("extent")) {
      TASO_RETURN_IF_ERROR(symbol(true));
    } else if (cursor_.accept("param")) {
      TASO_RETURN_IF_ERROR(symbol(false));
    } else if (cursor_.accept("activation")) {
      TASO_RETURN_IF_ERROR(input(false));
    } else if (cursor_.accept("weight")) {
      TASO_RETURN_IF_ERROR(input(true));
    } else if (cursor_.accept("apply")) {
      TASO_RETURN_IF_ERROR(application(false));
    } else if (cursor_.accept("on_weights")) {
      TASO_RETURN_IF_ERROR(application(true));
    } else {
      return cursor_.unexpected(
          "'extent', 'param', 'activation', 'weight', 'apply', 'on_weights', 'max_ops', 'max_weight_ops', "
          "'source_weight_ops', 'unconnected', 'lowering', 'ordered', 'group' or 'include'");
    }
    return end_of_line();
  }

  Status check_fresh(const std::string& name, const SourceLocation& where) const {
    for (const ProfileSymbol& symbol : group_.symbols)
      if (symbol.name == name) return bad_input("'" + name + "' is declared twice", where);
    for (const ProfileInput& input : group_.inputs)
      if (input.name == name) return bad_input("'" + name + "' is declared twice", where);
    if (registry_.is_function(name)) return bad_input("'" + name + "' is the name of a function", where);
    return {};
  }

  /// extent NAME [in LOW..HIGH]: VALUE, VALUE...   |   extent NAME = EXPRESSION
  /// param NAME [in LOW..HIGH | in NAME NAME ...]: VALUE, ...   |   param NAME = EXPRESSION
  Status symbol(bool is_extent) {
    const SourceLocation where = cursor_.peek().where;
    ProfileSymbol symbol;
    symbol.is_extent = is_extent;
    TASO_ASSIGN(symbol.name, cursor_.expect_identifier("as the name of a symbol"));
    TASO_RETURN_IF_ERROR(check_fresh(symbol.name, where));
    if (cursor_.accept("=")) {
      if (group_.worlds == 0) return bad_input("a derived symbol must follow the symbols it is made of", where);
      TASO_ASSIGN(symbol.definition, expression());
      for (std::size_t world = 0; world < group_.worlds; ++world) {
        auto value = evaluate_symbolic(*symbol.definition, group_.world(world));
        if (!value) return bad_input(value.error().message, where);
        symbol.values.push_back(std::move(value).value());
      }
    } else {
      bool ranged = false;
      if (cursor_.accept("in")) {
        ranged = true;
        if (cursor_.peek().kind == TokenKind::identifier) {
          while (cursor_.peek().kind == TokenKind::identifier) {
            const Token token = cursor_.next();
            if (!registry_.is_function(token.text))
              return bad_input("'" + token.text + "' is not a declared function", token.where);
            symbol.choices.push_back(token.text);
          }
        } else {
          TASO_ASSIGN(symbol.low, cursor_.expect_integer("as the lower bound"));
          TASO_RETURN_IF_ERROR(cursor_.expect("..", "between the bounds"));
          TASO_ASSIGN(symbol.high, cursor_.expect_integer("as the upper bound"));
          if (symbol.low > symbol.high) return bad_input("the range of '" + symbol.name + "' is empty", where);
        }
      }
      TASO_RETURN_IF_ERROR(cursor_.expect(":", "before the values, one per world"));
      do {
        TASO_ASSIGN(const AttributeExpression value, expression());
        auto number = evaluate_symbolic(value, {});
        if (!number) return bad_input("the values of '" + symbol.name + "' must be literals", where);
        symbol.values.push_back(std::move(number).value());
      } while (cursor_.accept(","));
      if (!ranged && !is_extent) default_range(symbol);
      if (group_.worlds == 0) group_.worlds = symbol.values.size();
      if (symbol.values.size() != group_.worlds)
        return bad_input("'" + symbol.name + "' has " + std::to_string(symbol.values.size()) +
                             " values, but there are " + std::to_string(group_.worlds) + " worlds",
                         where);
    }
    for (const AttributeValue& value : symbol.values) {
      if (is_extent && (!std::holds_alternative<std::int64_t>(value) || std::get<std::int64_t>(value) < 1))
        return bad_input("extent '" + symbol.name + "' must be a positive integer, is " + to_string(value), where);
      if (value.index() != symbol.values[0].index())
        return bad_input("the values of '" + symbol.name + "' are of different kinds", where);
    }
    group_.symbols.push_back(std::move(symbol));
    return {};
  }

  static void default_range(ProfileSymbol& symbol) {
    bool first = true;
    auto widen = [&](std::int64_t value) {
      symbol.low = first ? value : std::min(symbol.low, value);
      symbol.high = first ? value : std::max(symbol.high, value);
      first = false;
    };
    for (const AttributeValue& value : symbol.values) {
      if (const auto* integer = std::get_if<std::int64_t>(&value)) widen(*integer);
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
        for (const std::int64_t element : *list) widen(element);
      if (const auto* name = std::get_if<SymbolValue>(&value)) symbol.choices.push_back(name->name);
    }
  }

  /// activation NAME [EXTENT, ...]
  Status input(bool is_weight) {
    const SourceLocation where = cursor_.peek().where;
    ProfileInput input;
    input.is_weight = is_weight;
    TASO_ASSIGN(input.name, cursor_.expect_identifier("as the name of a tensor"));
    TASO_RETURN_IF_ERROR(check_fresh(input.name, where));
    if (!cursor_.at("[")) return cursor_.unexpected("a shape in brackets");
    TASO_ASSIGN(input.shape, primary());
    for (std::size_t world = 0; world < group_.worlds; ++world) {
      auto shape = evaluate_symbolic(input.shape, group_.world(world));
      if (!shape) return bad_input(shape.error().message, where);
      for (const std::int64_t extent : std::get<std::vector<std::int64_t>>(*shape))
        if (extent < 1) return bad_input("'" + input.name + "' has the extent " + std::to_string(extent), where);
    }
    group_.inputs.push_back(std::move(input));
    return {};
  }

  /// apply OP(ROLE, ...) ATTRIBUTE=EXPRESSION ...
  Status application(bool on_weights) {
    ProfileOperator application;
    application.on_weights = on_weights;
    application.where = cursor_.peek().where;
    TASO_ASSIGN(application.op, cursor_.expect_identifier("as the name of an operator"));
    if (!registry_.defines(application.op))
      return bad_input("unknown operator '" + application.op + "'", application.where);
    if (!registry_.find(application.op)->over_reals)
      return bad_input(
          "'" + application.op + "' computes with integers or truth values; rules are made of operators on reals",
          application.where);
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "after the operator's name"));
    if (!cursor_.at(")")) {
      do {
        TASO_ASSIGN(const ArgumentRole role, argument_role());
        if (on_weights && role == ArgumentRole::activation)
          return bad_input("an operator on weights has no activation as its argument", application.where);
        application.arguments.push_back(on_weights && role == ArgumentRole::any ? ArgumentRole::weight : role);
      } while (cursor_.accept(","));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "after the arguments"));
    std::map<std::string, AttributeExpression> given;
    while (cursor_.peek().kind == TokenKind::identifier) {
      const Token name = cursor_.next();
      TASO_RETURN_IF_ERROR(cursor_.expect("=", "after the attribute's name"));
      TASO_ASSIGN(AttributeExpression value, expression());
      if (!given.emplace(name.text, std::move(value)).second)
        return bad_input("attribute '" + name.text + "' is given twice", name.where);
    }
    // The registry fills in defaults and rejects unknown names and wrong kinds.
    Attributes first_world;
    for (std::size_t world = 0; world < std::max<std::size_t>(group_.worlds, 1); ++world) {
      Attributes attributes;
      const Symbols symbols = group_.worlds == 0 ? Symbols{} : group_.world(world);
      for (const auto& [name, value] : given) {
        auto number = evaluate_symbolic(value, symbols);
        if (!number) return bad_input("attribute '" + name + "': " + number.error().message, application.where);
        attributes.set(name, std::move(number).value());
      }
      auto complete = registry_.complete(application.op, attributes);
      if (!complete) return bad_input(complete.error().message, application.where);
      if (world == 0) first_world = std::move(complete).value();
    }
    for (const auto& [name, value] : first_world.entries()) {
      auto it = given.find(name);
      AttributeExpression literal;
      literal.literal = value;
      application.attributes.emplace_back(name, it == given.end() ? literal : it->second);
    }
    group_.operators.push_back(std::move(application));
    return {};
  }

  Expected<ArgumentRole> argument_role() {
    if (cursor_.accept("any")) return ArgumentRole::any;
    if (cursor_.accept("activation")) return ArgumentRole::activation;
    if (cursor_.accept("weight")) return ArgumentRole::weight;
    if (cursor_.accept("input")) return ArgumentRole::input;
    return cursor_.unexpected("'any', 'activation', 'weight' or 'input'");
  }

  Status check_group(const SourceLocation& where) const {
    if (group_.inputs.empty()) return bad_input("group '" + group_.name + "' has no tensors", where);
    if (group_.operators.empty()) return bad_input("group '" + group_.name + "' has no operators", where);
    if (group_.worlds < 2)
      return bad_input("group '" + group_.name + "' needs symbols with values for at least two worlds", where);
    return {};
  }

  static AttributeExpression combine(AttributeExpression::Kind kind, AttributeExpression left,
                                     AttributeExpression right) {
    AttributeExpression result;
    result.kind = kind;
    result.operands = {std::move(left), std::move(right)};
    return result;
  }

  Expected<AttributeExpression> expression() {
    TASO_ASSIGN(AttributeExpression left, product());
    while (cursor_.at("+") || cursor_.at("-")) {
      const auto kind =
          cursor_.next().text == "+" ? AttributeExpression::Kind::add : AttributeExpression::Kind::subtract;
      TASO_ASSIGN(AttributeExpression right, product());
      left = combine(kind, std::move(left), std::move(right));
    }
    return left;
  }

  Expected<AttributeExpression> product() {
    TASO_ASSIGN(AttributeExpression left, primary());
    while (cursor_.at("*") || cursor_.at("//")) {
      const auto kind =
          cursor_.next().text == "*" ? AttributeExpression::Kind::multiply : AttributeExpression::Kind::floor_divide;
      TASO_ASSIGN(AttributeExpression right, primary());
      left = combine(kind, std::move(left), std::move(right));
    }
    return left;
  }

  Expected<AttributeExpression> primary() {
    const Token token = cursor_.peek();
    AttributeExpression result;
    if (cursor_.accept("(")) {
      TASO_ASSIGN(result, expression());
      TASO_RETURN_IF_ERROR(cursor_.expect(")", "after the expression"));
    } else if (cursor_.accept("[")) {
      result.kind = AttributeExpression::Kind::list;
      bool literal = true;
      if (!cursor_.at("]")) {
        do {
          TASO_ASSIGN(AttributeExpression element, expression());
          literal = literal && element.kind == AttributeExpression::Kind::literal &&
                    std::holds_alternative<std::int64_t>(element.literal);
          result.operands.push_back(std::move(element));
        } while (cursor_.accept(","));
      }
      TASO_RETURN_IF_ERROR(cursor_.expect("]", "after the list"));
      if (literal) {
        std::vector<std::int64_t> values;
        for (const AttributeExpression& element : result.operands)
          values.push_back(std::get<std::int64_t>(element.literal));
        result = {};
        result.literal = std::move(values);
      }
    } else if (token.kind == TokenKind::real || (token.text == "-" && cursor_.peek(1).kind == TokenKind::real)) {
      const bool negative = cursor_.accept("-");
      const double value = std::stod(cursor_.next().text);
      result.literal = negative ? -value : value;
    } else if (token.kind == TokenKind::integer || token.text == "-") {
      TASO_ASSIGN(const std::int64_t value, cursor_.expect_integer("as a value"));
      result.literal = value;
    } else if (token.kind == TokenKind::identifier) {
      cursor_.next();
      const auto symbol = std::find_if(group_.symbols.begin(), group_.symbols.end(),
                                       [&](const ProfileSymbol& candidate) { return candidate.name == token.text; });
      if (symbol != group_.symbols.end()) {
        result.kind = AttributeExpression::Kind::variable;
        result.index = static_cast<std::uint32_t>(symbol - group_.symbols.begin());
      } else if (registry_.is_function(token.text)) {
        result.literal = SymbolValue{token.text};
      } else {
        return bad_input("'" + token.text + "' is neither a declared symbol nor a function", token.where);
      }
    } else {
      return cursor_.unexpected("a value");
    }
    while (cursor_.at("[") && !cursor_.peek().space_before) {
      cursor_.next();
      AttributeExpression element;
      element.kind = AttributeExpression::Kind::element;
      TASO_ASSIGN(element.axis, cursor_.expect_integer("as the index of an element"));
      TASO_RETURN_IF_ERROR(cursor_.expect("]", "after the index"));
      element.operands = {std::move(result)};
      result = std::move(element);
    }
    return result;
  }

  TokenCursor cursor_;
  const OperatorRegistry& registry_;
  int depth_;  ///< How many profiles include this one.
  ProfileGroup group_;
};

}  // namespace

std::vector<std::optional<AttributeValue>> ProfileGroup::world(std::size_t index) const {
  Symbols result;
  for (const ProfileSymbol& symbol : symbols) result.emplace_back(symbol.values.at(index));
  return result;
}

Expected<AttributeValue> evaluate_symbolic(const AttributeExpression& expression, const Symbols& symbols) {
  Bindings bindings;
  bindings.attributes = symbols;
  return evaluate(expression, bindings);
}

Expected<Profile> parse_profile(std::string_view text, const std::string& file, const OperatorRegistry& registry) {
  TASO_ASSIGN(std::vector<Token> tokens, tokenize(text, file, true));
  return ProfileParser(std::move(tokens), registry).parse();
}

Expected<Profile> load_profile(const std::string& path, const OperatorRegistry& registry) {
  TASO_ASSIGN(const std::string text, read_file(path));
  return parse_profile(text, path, registry);
}

}  // namespace taso
