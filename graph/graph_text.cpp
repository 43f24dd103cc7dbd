#include "graph/graph_text.h"

#include <cstring>
#include <map>
#include <set>

#include "graph/reals.h"
#include "graph/term_syntax.h"
#include "support/lexer.h"
#include "support/random.h"

namespace taso {
namespace {

constexpr std::int64_t max_written_elements = 64;
constexpr std::int64_t max_elements = std::int64_t{1} << 28;

// Multiples of 1/8 in [-1, 1) made from the name: exact in every float type, and not symmetric.
std::shared_ptr<const ConstantData> contents_from_name(const TensorType& type, const std::string& name) {
  Random random(0, name);
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
  if (is_real(type.element)) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(type.elements()); ++i)
      store_real(bytes.data(), type.element, i, (static_cast<double>(random.below(16)) - 8) / 8);
  } else if (type.element == ElementType::i64) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::int64_t)) {
      const auto value = static_cast<std::int64_t>(random.below(4));
      std::memcpy(bytes.data() + i, &value, sizeof value);
    }
  }
  return ConstantData::own(type, std::move(bytes));
}

class GraphParser {
 public:
  GraphParser(std::vector<Token> tokens, const OperatorCatalog& catalog)
      : cursor_(std::move(tokens)), catalog_(catalog) {}

  Expected<Graph> parse() {
    while (!cursor_.at_end()) {
      if (cursor_.accept("input")) {
        TASO_RETURN_IF_ERROR(input());
      } else if (cursor_.accept("weight")) {
        TASO_RETURN_IF_ERROR(weight());
      } else if (cursor_.accept("output")) {
        do {
          TASO_ASSIGN(const TermSyntax term, parse_term(cursor_));
          TASO_ASSIGN(const Value value, tensor(term));
          graph_.add_output(value);
        } while (cursor_.accept(","));
      } else {
        TASO_RETURN_IF_ERROR(assignment());
      }
    }
    return std::move(graph_);
  }

 private:
  struct Named {
    NodeId node = 0;
    std::optional<std::uint32_t> port;
  };

  Status define(const std::string& name, Named named, const SourceLocation& where) {
    if (name == "input" || name == "weight" || name == "output" || name == "opaque")
      return bad_input("'" + name + "' is a word of the language", where);
    if (!names_.emplace(name, named).second) return bad_input("'" + name + "' is defined twice", where);
    return {};
  }

  Expected<TensorType> type() {
    TensorType result;
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(const std::string element, cursor_.expect_identifier("a type such as f32[2, 3]"));
    const std::optional<ElementType> named = element_type_named(element);
    if (!named) return bad_input("unknown element type '" + element + "'", where);
    result.element = *named;
    TASO_RETURN_IF_ERROR(cursor_.expect("[", "after " + element));
    if (cursor_.accept("?")) {
      result.known = false;
    } else if (!cursor_.at("]")) {
      do {
        TASO_ASSIGN(const std::int64_t extent, cursor_.expect_integer("an extent"));
        result.shape.push_back(extent);
      } while (cursor_.accept(","));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect("]", "after the extents"));
    if (!is_reasonable(result.shape))
      return bad_input("unreasonable shape " + to_string(std::span(result.shape)), where);
    return result;
  }

  Status input() {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("the name of an input"));
    std::string full_name = name;
    if (cursor_.peek().kind == TokenKind::string) full_name = cursor_.next().text;
    TASO_ASSIGN(TensorType tensor_type, type());
    return define(name, {graph_.add_input(full_name, std::move(tensor_type)), 0}, where);
  }

  Status weight() {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("the name of a weight"));
    std::optional<std::string> full_name;
    if (cursor_.peek().kind == TokenKind::string) full_name = cursor_.next().text;
    TASO_ASSIGN(TensorType tensor_type, type());
    const bool only_shape = cursor_.at("=") && cursor_.peek(1).text == "?";
    if (!tensor_type.known || (!only_shape && tensor_type.elements() > max_elements) ||
        size_of(tensor_type.element) == 0)
      return bad_input("a weight cannot have type " + to_string(tensor_type), where);
    if (only_shape) {
      cursor_.next();
      cursor_.next();
      auto constant = ConstantData::shape_only(std::move(tensor_type), full_name.value_or(name));
      return define(name, {graph_.add_constant(std::move(constant)), 0}, where);
    }
    if (full_name) return bad_input("only a weight without contents (= ?) has a name in quotes", where);
    if (!cursor_.accept("="))
      return define(name, {graph_.add_constant(contents_from_name(tensor_type, name)), 0}, where);
    const bool real = is_real(tensor_type.element);
    if (!real && tensor_type.element != ElementType::i64)
      return bad_input("contents can be given for f16, bf16, f32, f64 and i64 only", where);
    const SourceLocation value_where = cursor_.peek().where;
    TASO_ASSIGN(const ExpressionSyntax value, parse_expression(cursor_));
    const bool list = value.kind == ExpressionSyntax::Kind::list;
    const std::vector<ExpressionSyntax> elements = list ? value.operands : std::vector{value};
    std::vector<std::byte> bytes(elements.size() * size_of(tensor_type.element));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const ExpressionSyntax& element = elements[i];
      const bool integer = element.kind == ExpressionSyntax::Kind::integer;
      if (!integer && !(real && element.kind == ExpressionSyntax::Kind::real))
        return bad_input(real ? "expected a number" : "expected an integer", element.where);
      if (real)
        store_real(bytes.data(), tensor_type.element, i, integer ? static_cast<double>(element.integer) : element.real);
      else
        std::memcpy(bytes.data() + i * sizeof(std::int64_t), &element.integer, sizeof(std::int64_t));
    }
    if (list && static_cast<std::int64_t>(elements.size()) != tensor_type.elements())
      return bad_input(to_string(tensor_type) + " has " + std::to_string(tensor_type.elements()) +
                           " elements, here are " + std::to_string(elements.size()),
                       value_where);
    auto constant = list ? ConstantData::own(tensor_type, bytes) : ConstantData::splat(tensor_type, bytes);
    return define(name, {graph_.add_constant(std::move(constant)), 0}, where);
  }

  Status assignment() {
    std::vector<std::pair<std::string, SourceLocation>> names;
    do {
      const SourceLocation where = cursor_.peek().where;
      TASO_ASSIGN(std::string name, cursor_.expect_identifier("'input', 'weight', 'output' or NAME = ..."));
      names.emplace_back(std::move(name), where);
    } while (cursor_.accept(","));
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "after '" + names.back().first + "'"));
    Named named;
    if (cursor_.at("opaque") && cursor_.peek(1).kind == TokenKind::identifier) {
      TASO_ASSIGN(named.node, opaque(names[0].first));
    } else {
      TASO_ASSIGN(const TermSyntax term, parse_term(cursor_));
      std::optional<TensorType> stated;
      const SourceLocation where = cursor_.peek().where;
      if (states_type()) {
        TASO_ASSIGN(stated, type());
      }
      TASO_ASSIGN(named, resolve(term, stated ? stated->element : ElementType::f32));
      if (const TensorType& made = graph_.node(named.node).outputs.at(named.port.value_or(0));
          stated && *stated != made)
        return bad_input("this is " + to_string(made) + ", not " + to_string(*stated), where);
    }
    const std::size_t outputs = named.port ? 1 : graph_.node(named.node).outputs.size();
    if (names.size() == 1) {
      if (outputs == 1 && !named.port) named.port = 0;
      return define(names[0].first, named, names[0].second);
    }
    if (names.size() != outputs)
      return bad_input(std::to_string(names.size()) + " names for " + std::to_string(outputs) +
                           (outputs == 1 ? " output" : " outputs"),
                       names[0].second);
    for (std::uint32_t port = 0; port < names.size(); ++port)
      TASO_RETURN_IF_ERROR(define(names[port].first, {named.node, port}, names[port].second));
    return {};
  }

  Expected<NodeId> opaque(const std::string& name) {
    cursor_.next();
    TASO_ASSIGN(const TermSyntax term, parse_term(cursor_));
    if (!term.attributes.empty()) return bad_input("opaque nodes have no attributes", term.where);
    Node node;
    node.kind = NodeKind::opaque;
    node.op = term.name;
    node.name = name;
    for (const TermSyntax& argument : term.arguments) {
      TASO_ASSIGN(const Value value, tensor(argument));
      node.inputs.push_back(value);
    }
    do {
      TASO_ASSIGN(TensorType output, type());
      node.outputs.push_back(std::move(output));
    } while (cursor_.accept(","));
    return graph_.add(std::move(node));
  }

  Expected<Value> tensor(const TermSyntax& term) {
    TASO_ASSIGN(const Named named, resolve(term));
    if (!named.port && graph_.node(named.node).outputs.size() != 1)
      return bad_input("'" + term.name + "' has " + std::to_string(graph_.node(named.node).outputs.size()) +
                           " outputs, choose one: .0, .1, ...",
                       term.where);
    return Value{named.node, named.port.value_or(0)};
  }

  /// Whether what follows is a type, and not the next statement.
  [[nodiscard]] bool states_type() {
    return element_type_named(cursor_.peek().text).has_value() && cursor_.peek(1).text == "[";
  }

  /// `element`: of what an operator without inputs makes.
  Expected<Named> resolve(const TermSyntax& term, ElementType element = ElementType::f32) {
    Named result;
    if (term.is_application) {
      TASO_ASSIGN(result.node, application(term, element));
    } else {
      const auto known = names_.find(term.name);
      if (known == names_.end()) return bad_input("'" + term.name + "' is not defined", term.where);
      result = known->second;
    }
    if (!term.port) return result;
    const std::size_t outputs = graph_.node(result.node).outputs.size();
    if ((result.port && outputs > 1) || *term.port >= outputs)
      return bad_input("'" + term.name + "' has no output " + std::to_string(*term.port), term.where);
    result.port = *term.port;
    return result;
  }

  Expected<NodeId> application(const TermSyntax& term, ElementType element) {
    const OperatorSignature* signature = catalog_.signature(term.name);
    if (signature == nullptr) return bad_input("unknown operator '" + term.name + "'", term.where);
    if (const std::string problem = arity_problem(*signature, term.arguments.size()); !problem.empty())
      return bad_input(term.name + " " + problem, term.where);
    Attributes attributes;
    for (const TermSyntax::Attribute& given : term.attributes) {
      const AttributeSignature* declared = nullptr;
      for (const AttributeSignature& candidate : signature->attributes)
        if (candidate.name == given.name) declared = &candidate;
      if (declared == nullptr)
        return bad_input(term.name + " has no attribute '" + given.name + "'; it has " + attribute_names(*signature),
                         given.where);
      TASO_ASSIGN(AttributeValue value, attribute(given.value, *declared, term.name));
      attributes.set(given.name, std::move(value));
    }
    std::vector<Value> inputs;
    for (const TermSyntax& argument : term.arguments) {
      TASO_ASSIGN(const Value value, tensor(argument));
      inputs.push_back(value);
    }
    const Expected<NodeId> id =
        add_op(graph_, catalog_, term.name, attributes, std::move(inputs), {.element = element});
    if (!id) return bad_input(id.error().message, term.where);
    return *id;
  }

  static Expected<AttributeValue> attribute(const ExpressionSyntax& value, const AttributeSignature& declared,
                                            const std::string& op) {
    const Error wrong =
        bad_input("attribute " + declared.name + " of " + op + " must be " + describe(declared.kind), value.where);
    switch (declared.kind) {
      case AttributeKind::integer:
        if (value.kind == ExpressionSyntax::Kind::integer) return AttributeValue(value.integer);
        return wrong;
      case AttributeKind::real:
        if (value.kind == ExpressionSyntax::Kind::integer) return AttributeValue(static_cast<double>(value.integer));
        if (value.kind == ExpressionSyntax::Kind::real) return AttributeValue(value.real);
        if (value.kind == ExpressionSyntax::Kind::binary && value.operands[1].kind == ExpressionSyntax::Kind::real &&
            value.where.column == value.operands[0].where.column)
          return AttributeValue(-value.operands[1].real);
        return wrong;
      case AttributeKind::integers: {
        std::vector<std::int64_t> list;
        if (value.kind != ExpressionSyntax::Kind::list) return wrong;
        for (const ExpressionSyntax& element : value.operands) {
          if (element.kind != ExpressionSyntax::Kind::integer) return wrong;
          list.push_back(element.integer);
        }
        return AttributeValue(std::move(list));
      }
      case AttributeKind::symbol:
        if (value.kind == ExpressionSyntax::Kind::name) return AttributeValue(SymbolValue{value.name});
        return wrong;
    }
    return wrong;
  }

  TokenCursor cursor_;
  const OperatorCatalog& catalog_;
  Graph graph_;
  std::map<std::string, Named> names_;
};

bool is_identifier(const std::string& name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return name != "input" && name != "weight" && name != "output" && name != "opaque";
}

std::string contents(const ConstantData& constant) {
  const TensorType& type = constant.type();
  if (!constant.has_data()) return " = ?";
  const bool real = is_real(type.element);
  if ((!real && type.element != ElementType::i64) || (constant.is_dense() && type.elements() > max_written_elements))
    return "";
  std::string text;
  if (real) {
    const std::vector<double> values = constant.is_dense()
                                           ? constant.to_reals()
                                           : std::vector{load_real(constant.splat_element().data(), type.element, 0)};
    for (const double value : values) text += (text.empty() ? "" : ", ") + to_string(AttributeValue(value));
  } else {
    std::vector<std::int64_t> values;
    if (constant.is_dense()) {
      values = constant.to_integers();
    } else {
      values.resize(1);
      std::memcpy(values.data(), constant.splat_element().data(), sizeof(std::int64_t));
    }
    for (const std::int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  }
  return constant.is_dense() ? " = [" + text + "]" : " = " + text;
}

}  // namespace

Expected<Graph> parse_graph(std::string_view text, const std::string& file, const OperatorCatalog& catalog) {
  TASO_ASSIGN(std::vector<Token> tokens, tokenize(text, file));
  return GraphParser(std::move(tokens), catalog).parse();
}

std::string to_text(const Graph& graph) {
  return to_text(graph, [](const Node&, bool) { return std::string(); });
}

std::string to_text(const Graph& graph, const std::function<std::string(const Node& node, bool complete)>& remark) {
  std::map<NodeId, std::string> names;
  std::set<std::string> taken;
  std::string text;
  int inputs = 0, weights = 0, others = 0;
  auto fresh = [&](const char* prefix, int& number) {
    std::string name;
    do name = prefix + std::to_string(number++);
    while (!taken.insert(name).second);
    return name;
  };
  auto value = [&](Value v) {
    return names[v.node] + (graph.node(v.node).outputs.size() > 1 ? "." + std::to_string(v.port) : "");
  };
  auto line = [&](const Node& node, const std::string& written, bool complete) {
    const std::string comment = remark(node, complete);
    text += written + (comment.empty() ? "" : "  # " + comment) + "\n";
  };
  for (const NodeId id : graph.inputs()) {
    const Node& node = graph.node(id);
    const bool plain = is_identifier(node.name) && taken.insert(node.name).second;
    names[id] = plain ? node.name : fresh("x", inputs);
    line(node, "input " + names[id] + (plain ? "" : " \"" + node.name + "\"") + " " + to_string(node.outputs[0]), true);
  }
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::input) continue;
    if (node.kind == NodeKind::constant) {
      const std::string& name = node.constant->name();
      const bool only_shape = !node.constant->has_data();
      const bool plain = only_shape && is_identifier(name) && taken.insert(name).second;
      names[id] = plain ? name : fresh("w", weights);
      const std::string written_out = contents(*node.constant);
      line(node,
           "weight " + names[id] + (only_shape && !plain ? " \"" + name + "\" " : " ") + to_string(node.outputs[0]) +
               written_out,
           !written_out.empty());
      continue;
    }
    const bool opaque = node.kind == NodeKind::opaque;
    names[id] = opaque && is_identifier(node.name) && taken.insert(node.name).second ? node.name : fresh("t", others);
    std::string written = names[id] + " = " + (opaque ? "opaque " : "") + node.op + "(";
    for (std::size_t i = 0; i < node.inputs.size(); ++i) written += (i == 0 ? "" : ", ") + value(node.inputs[i]);
    if (!node.attributes.empty()) written += "; " + to_string(node.attributes);
    written += ")";
    // Nothing else tells the type of what an operator without inputs makes.
    if (opaque || (node.inputs.empty() && node.outputs[0].element != ElementType::f32))
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        written += (i == 0 ? " " : ", ") + to_string(node.outputs[i]);
    line(node, written, true);
  }
  for (const Value& output : graph.outputs()) text += "output " + value(output) + "\n";
  return text;
}

}  // namespace taso
