#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "gradients/table.h"
#include "support/file.h"
#include "support/lexer.h"

namespace taso {

/// A recursive-descent parser that looks names up as it goes; the grammar is in docs/gradients.md.
class GradientParser {
 public:
  GradientParser(TokenCursor cursor, const OperatorRegistry& registry, GradientTable& table)
      : cursor_(std::move(cursor)), registry_(registry), table_(table) {}

  Status file() {
    while (!cursor_.at_end()) {
      if (cursor_.accept("derivative"))
        TASO_RETURN_IF_ERROR(derivative());
      else if (cursor_.accept("gradient"))
        TASO_RETURN_IF_ERROR(gradient());
      else
        return cursor_.unexpected("'gradient' or 'derivative'");
    }
    return {};
  }

 private:
  static constexpr int max_depth = 100;
  static constexpr std::string_view prefix = "d_";

  /// NAME(x, y) = expression, expression
  Status derivative() {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("the name of a function"));
    const FunctionDefinition* function = registry_.find_function(name);
    if (function == nullptr || !function->is_primitive())
      return bad_input("'" + name + "' is not a primitive function: only those have derivatives of their own", where);
    if (table_.derivatives_.contains(name)) return bad_input("there is a derivative of '" + name + "' already", where);
    std::vector<std::string> parameters;
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the parameters"));
    do {
      TASO_ASSIGN(std::string parameter, cursor_.expect_identifier("a parameter name"));
      parameters.push_back(std::move(parameter));
    } while (cursor_.accept(","));
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "after the parameters"));
    if (parameters.size() != static_cast<std::size_t>(function->arity))
      return bad_input("'" + name + "' has " + std::to_string(function->arity) + " parameters, not " +
                           std::to_string(parameters.size()),
                       where);
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "before the derivative"));
    FunctionDerivative result{name, {}, where};
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (i > 0) TASO_RETURN_IF_ERROR(cursor_.expect(",", "and the derivative by the next parameter"));
      TASO_RETURN_IF_ERROR(partial_derivative(result, parameters));
    }
    table_.derivatives_.emplace(name, std::move(result));
    return {};
  }

  Status partial_derivative(FunctionDerivative& result, const std::vector<std::string>& parameters) {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(const Expression expression, parse_size_expression(cursor_));
    const std::string name = "derivative_" + result.function + "_" + std::to_string(result.partial.size());
    TASO_ASSIGN(OperatorRegistry extended, with_scalar_operator(registry_, name, parameters, expression, where));
    table_.registries_.push_back(std::make_shared<const OperatorRegistry>(std::move(extended)));
    const std::vector<TensorType> types(parameters.size(), TensorType{ElementType::f64, {}, true});
    TASO_ASSIGN(OperatorInstance instance, OperatorInstance::create(*table_.registries_.back(), name, {}, types));
    result.partial.push_back(std::move(instance));
    return {};
  }

  /// NAME let... entry...
  Status gradient() {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("the name of an operator"));
    op_ = registry_.find(name);
    if (op_ == nullptr) return bad_input("unknown operator '" + name + "'", where);
    if (table_.operators_.contains(name)) return bad_input("there are gradients of '" + name + "' already", where);
    sizes_.clear();
    tensors_.clear();
    OperatorGradients result{name, {}, where};
    while (!cursor_.at_end() && !cursor_.at("gradient") && !cursor_.at("derivative")) {
      if (cursor_.accept("let")) {
        TASO_RETURN_IF_ERROR(let());
      } else {
        TASO_ASSIGN(GradientEntry one, entry());
        result.entries.push_back(std::move(one));
      }
    }
    if (result.entries.empty())
      return bad_input("the gradients of '" + name + "' have no entry 'd_INPUT = TERM'", where);
    table_.operators_.emplace(name, std::move(result));
    return {};
  }

  /// NAME = term, or an expression of sizes.
  Status let() {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(std::string name, cursor_.expect_identifier("a name"));
    if (tensors_.contains(name) || names_tensor(name) || name.starts_with(prefix))
      return bad_input("'" + name + "' is a tensor already", where);
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "after the name"));
    if (cursor_.peek(1).text == "(" && registry_.defines(cursor_.peek().text)) {
      TASO_ASSIGN(GradientOperand value, operand());
      tensors_.emplace(std::move(name), std::move(value));
      return {};
    }
    TASO_ASSIGN(Expression value, parse_size_expression(cursor_));
    sizes_.emplace_back(std::move(name), std::move(value));
    const auto tried = SizeQuery::create(registry_, op_->name, sizes_, Expression{});
    if (!tried) return tried.error();
    return {};
  }

  [[nodiscard]] const InputSpec* input(std::string_view name) const {
    for (const InputSpec& spec : op_->inputs)
      if (spec.name == name) return &spec;
    return nullptr;
  }
  [[nodiscard]] bool names_tensor(std::string_view name) const { return input(name) != nullptr || name == "out"; }

  /// d_INPUT = term where condition
  Expected<GradientEntry> entry() {
    GradientEntry result;
    result.where = cursor_.peek().where;
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("'let', 'd_INPUT' or 'gradient'"));
    const InputSpec* spec = name.starts_with(prefix) ? input(std::string_view(name).substr(prefix.size())) : nullptr;
    if (spec == nullptr) {
      std::string known;
      for (const InputSpec& one : op_->inputs) known += (known.empty() ? "d_" : ", d_") + one.name;
      return bad_input("'" + name + "' is not the gradient of an input of " + op_->name + "; these are " +
                           (known.empty() ? "none" : known),
                       result.where);
    }
    if (spec->domain != ElementDomain::real)
      return bad_input("input " + spec->name + " holds no reals: it has no gradient", result.where);
    result.input = static_cast<std::size_t>(spec - op_->inputs.data());
    if (spec->variadic()) {
      TASO_RETURN_IF_ERROR(cursor_.expect(".", "and the name that counts the inputs, as in d_x.k"));
      TASO_ASSIGN(counter_, cursor_.expect_identifier("the name that counts the inputs"));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "after the gradient's name"));
    TASO_ASSIGN(result.value, operand());
    counter_.clear();
    if (cursor_.accept("where")) {
      TASO_ASSIGN(Expression condition, parse_size_expression(cursor_));
      TASO_ASSIGN(result.condition, SizeQuery::condition(registry_, op_->name, sizes_, std::move(condition)));
    }
    return result;
  }

  Expected<GradientOperand> operand() {
    const SourceLocation where = cursor_.peek().where;
    if (cursor_.peek(1).text == "(") {
      const int depth = depth_++;
      if (depth > max_depth) return bad_input("operators are applied deeper than 100", where);
      TASO_ASSIGN(GradientTerm result, term());
      depth_ = depth;
      return GradientOperand{GradientOperand::Kind::term, 0, std::make_shared<const GradientTerm>(std::move(result))};
    }
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("a tensor, or an operator that is applied"));
    return tensor(name, cursor_.accept(".."), where);
  }

  [[nodiscard]] Expected<GradientOperand> tensor(const std::string& name, bool all, const SourceLocation& where) const {
    using Kind = GradientOperand::Kind;
    if (const auto found = tensors_.find(name); found != tensors_.end() && !all) return found->second;
    if (name == "d_out") {
      if (all != op_->several_outputs())
        return bad_input(std::string(all ? "'d_out..' is" : "'d_out' is") + " for operators with " +
                             (all ? "several outputs" : "one output") + "; expected " + (all ? "'d_out'" : "'d_out..'"),
                         where);
      return GradientOperand{all ? Kind::output_gradients : Kind::output_gradient, 0, nullptr};
    }
    if (name == "out" && !all && !op_->several_outputs()) return GradientOperand{Kind::output, 0, nullptr};
    if (const InputSpec* spec = input(name)) {
      if (all != spec->variadic())
        return bad_input("'" + name +
                             (all ? "..' is for variadic operators; expected '" + name + "'"
                                  : "' is variadic; expected '" + name + "..'"),
                         where);
      return GradientOperand{all ? Kind::inputs : Kind::input, static_cast<std::size_t>(spec - op_->inputs.data()),
                             nullptr};
    }
    return bad_input(
        "'" + name + "' is no tensor: expected an input of " + op_->name + ", 'out', 'd_out', or a name of a let",
        where);
  }

  /// op(operand, ...; name=value, ...).output
  Expected<GradientTerm> term() {
    GradientTerm result;
    result.where = cursor_.peek().where;
    TASO_ASSIGN(result.op, cursor_.expect_identifier("an operator"));
    const OperatorDefinition* applied = registry_.find(result.op);
    if (applied == nullptr) return bad_input("unknown operator '" + result.op + "'", result.where);
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the operands"));
    bool counted = true;
    while (!cursor_.at(";") && !cursor_.at(")")) {
      TASO_ASSIGN(GradientOperand one, operand());
      counted =
          counted && one.kind != GradientOperand::Kind::inputs && one.kind != GradientOperand::Kind::output_gradients;
      result.operands.push_back(std::move(one));
      if (!cursor_.accept(",")) break;
    }
    if (counted && (result.operands.size() < applied->signature.min_inputs ||
                    result.operands.size() > applied->signature.max_inputs))
      return bad_input(result.op + " does not take " + std::to_string(result.operands.size()) +
                           (result.operands.size() == 1 ? " input" : " inputs"),
                       result.where);
    if (cursor_.accept(";")) {
      do {
        TASO_RETURN_IF_ERROR(attribute(result, *applied));
      } while (cursor_.accept(","));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "after the operands and attributes"));
    if (!cursor_.accept(".")) return result;
    if (!counter_.empty() && cursor_.accept(counter_)) {
      result.counted = true;
    } else {
      TASO_ASSIGN(const std::int64_t output, cursor_.expect_integer("the number of an output, from 0"));
      result.output = static_cast<std::uint32_t>(std::clamp<std::int64_t>(output, 0, UINT32_MAX));
    }
    return result;
  }

  Status attribute(GradientTerm& result, const OperatorDefinition& applied) {
    const Token token = cursor_.peek();
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("the name of an attribute"));
    if (applied.find_attribute(name) == nullptr)
      return bad_input(applied.name + " has no attribute '" + name + "'", token.where);
    Expression value;
    value.kind = Expression::Kind::name;
    value.name = name;
    value.where = token.where;
    if (cursor_.accept("=")) {
      TASO_ASSIGN(value, parse_size_expression(cursor_));
    }
    if (const auto number = value.number(); number && applied.find_attribute(name)->kind == AttributeKind::real) {
      result.attributes.emplace_back(name, AttributeValue(*number));
    } else if (value.kind == Expression::Kind::name && op_->find_attribute(value.name) != nullptr) {
      result.attributes.emplace_back(name, CopiedAttribute{value.name});
    } else {
      TASO_ASSIGN(SizeQuery query, SizeQuery::create(registry_, op_->name, sizes_, std::move(value)));
      result.attributes.emplace_back(name, std::move(query));
    }
    return {};
  }

  TokenCursor cursor_;
  const OperatorRegistry& registry_;
  GradientTable& table_;
  const OperatorDefinition* op_ = nullptr;  ///< The operator that entries are of.
  SizeLets sizes_;                          ///< Its lets of sizes, and of tensors.
  std::map<std::string, GradientOperand> tensors_;
  std::string counter_;  ///< The name that counts the inputs of a variadic operator.
  int depth_ = 0;
};

Expected<GradientTable> GradientTable::parse(std::string_view text, const std::string& file,
                                             const OperatorRegistry& registry, const GradientTable* base) {
  GradientTable result = base == nullptr ? GradientTable() : *base;
  TASO_ASSIGN(std::vector<Token> tokens, tokenize(text, file));
  TASO_RETURN_IF_ERROR(GradientParser(TokenCursor(std::move(tokens)), registry, result).file());
  return result;
}

Expected<GradientTable> GradientTable::load(const std::string& path, const OperatorRegistry& registry,
                                            const GradientTable* base) {
  std::vector<std::string> files{path};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    files.clear();
    for (const auto& entry : std::filesystem::directory_iterator(path, error))
      if (entry.path().extension() == ".grad") files.push_back(entry.path().string());
    if (files.empty()) return bad_input("no table of gradients (*.grad) in this folder", {path, 0, 0});
    std::sort(files.begin(), files.end());
  }
  GradientTable result = base == nullptr ? GradientTable() : *base;
  for (const std::string& file : files) {
    TASO_ASSIGN(const std::string text, read_file(file));
    TASO_ASSIGN(result, parse(text, file, registry, &result));
  }
  return result;
}

const OperatorGradients* GradientTable::find(std::string_view op) const {
  const auto found = operators_.find(op);
  return found == operators_.end() ? nullptr : &found->second;
}

}  // namespace taso
