#include "tests/onnx_io/onnx_text.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "graph/graph_text.h"
#include "support/lexer.h"
#include "tests/support/shipped.h"

namespace taso::test {
namespace {

using DataType = onnx::TensorProto::DataType;

const std::map<std::string, DataType, std::less<>>& element_types() {
  static const std::map<std::string, DataType, std::less<>> types = {
      {"float", onnx::TensorProto::FLOAT},     {"double", onnx::TensorProto::DOUBLE},
      {"float16", onnx::TensorProto::FLOAT16}, {"bfloat16", onnx::TensorProto::BFLOAT16},
      {"int8", onnx::TensorProto::INT8},       {"int16", onnx::TensorProto::INT16},
      {"int32", onnx::TensorProto::INT32},     {"int64", onnx::TensorProto::INT64},
      {"uint8", onnx::TensorProto::UINT8},     {"uint16", onnx::TensorProto::UINT16},
      {"uint32", onnx::TensorProto::UINT32},   {"uint64", onnx::TensorProto::UINT64},
      {"bool", onnx::TensorProto::BOOL},       {"string", onnx::TensorProto::STRING}};
  return types;
}

/// A number or a text: an element of a tensor or of an attribute.
struct Literal {
  enum class Kind : std::uint8_t { integer, real, text };
  Kind kind = Kind::integer;
  std::int64_t integer = 0;
  double real = 0;  ///< Of an integer, too.
  std::string text;
};

class Parser {
 public:
  Parser(std::vector<Token> tokens) : cursor_(std::move(tokens)) {}

  Expected<onnx::GraphProto> parse() {
    onnx::GraphProto graph;
    TASO_RETURN_IF_ERROR(parse_graph(graph));
    if (!cursor_.at_end()) return cursor_.unexpected("the end of the graph");
    return graph;
  }

 private:
  struct Declared {
    onnx::ValueInfoProto info;
    SourceLocation where;
  };

  Status parse_graph(onnx::GraphProto& graph) {
    TASO_ASSIGN(*graph.mutable_name(), cursor_.expect_identifier("the name of the graph"));
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the inputs of the graph"));
    while (!cursor_.accept(")")) {
      TASO_ASSIGN(Declared input, declaration());
      if (cursor_.accept("=")) {
        TASO_ASSIGN(*graph.add_initializer(), elements(input));
      }
      *graph.add_input() = std::move(input.info);
      if (!cursor_.accept(",") && !cursor_.at(")")) return cursor_.unexpected("',' or ')' after an input");
    }
    TASO_RETURN_IF_ERROR(cursor_.expect("=>", "before the outputs of the graph"));
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the outputs of the graph"));
    while (!cursor_.accept(")")) {
      TASO_ASSIGN(Declared output, declaration());
      *graph.add_output() = std::move(output.info);
      if (!cursor_.accept(",") && !cursor_.at(")")) return cursor_.unexpected("',' or ')' after an output");
    }
    std::vector<Declared> without_values;
    if (cursor_.accept("<")) {
      while (!cursor_.accept(">")) {
        TASO_ASSIGN(Declared tensor, declaration());
        if (cursor_.accept("=")) {
          TASO_ASSIGN(*graph.add_initializer(), elements(tensor));
        } else {
          without_values.push_back(std::move(tensor));
        }
        if (!cursor_.accept(",") && !cursor_.at(">")) return cursor_.unexpected("',' or '>' after a tensor");
      }
    }
    TASO_RETURN_IF_ERROR(cursor_.expect("{", "before the nodes"));
    while (!cursor_.accept("}")) TASO_RETURN_IF_ERROR(node(*graph.add_node()));
    std::set<std::string> defined;
    for (const onnx::NodeProto& each : graph.node()) defined.insert(each.output().begin(), each.output().end());
    for (Declared& tensor : without_values) {
      if (defined.contains(tensor.info.name())) {
        *graph.add_value_info() = std::move(tensor.info);
      } else {
        TASO_ASSIGN(*graph.add_initializer(), contents_of_name(tensor));
      }
    }
    return {};
  }

  /// TYPE NAME. `float` is a scalar, `float[]` of unknown rank, as in the standard.
  Expected<Declared> declaration() {
    Declared result;
    TASO_ASSIGN(const DataType element, element_type());
    onnx::TypeProto::Tensor& type = *result.info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(element);
    if (!cursor_.accept("[")) {
      type.mutable_shape();
    } else if (!cursor_.accept("]")) {
      do {
        onnx::TensorShapeProto::Dimension& dimension = *type.mutable_shape()->add_dim();
        if (cursor_.accept("?")) continue;
        if (cursor_.peek().kind == TokenKind::identifier) {
          dimension.set_dim_param(cursor_.next().text);
        } else {
          TASO_ASSIGN(const std::int64_t extent, cursor_.expect_integer("an extent"));
          dimension.set_dim_value(extent);
        }
      } while (cursor_.accept(","));
      TASO_RETURN_IF_ERROR(cursor_.expect("]", "after the extents"));
    }
    result.where = cursor_.peek().where;
    TASO_ASSIGN(*result.info.mutable_name(), name("the name of a tensor"));
    return result;
  }

  Expected<DataType> element_type() {
    const auto known = element_types().find(cursor_.peek().text);
    if (cursor_.peek().kind != TokenKind::identifier || known == element_types().end())
      return cursor_.unexpected("an element type of ONNX");
    cursor_.next();
    return known->second;
  }

  /// An identifier, or any name in quotes.
  Expected<std::string> name(const char* what) {
    if (cursor_.peek().kind == TokenKind::string) return cursor_.next().text;
    return cursor_.expect_identifier(what);
  }

  Expected<Literal> literal() {
    Literal result;
    if (cursor_.peek().kind == TokenKind::string) {
      result.kind = Literal::Kind::text;
      result.text = cursor_.next().text;
      return result;
    }
    const Token& number = cursor_.peek(cursor_.at("-") ? 1 : 0);
    const bool named = number.text == "inf" || number.text == "nan";
    if (number.kind == TokenKind::real || (number.kind == TokenKind::identifier && named)) {
      const double sign = cursor_.accept("-") ? -1 : 1;
      result.kind = Literal::Kind::real;
      result.real = sign * std::strtod(cursor_.next().text.c_str(), nullptr);
      return result;
    }
    TASO_ASSIGN(result.integer, cursor_.expect_integer("a value"));
    result.real = static_cast<double>(result.integer);
    return result;
  }

  /// The values between an opening token, which has been taken, and `close`.
  Expected<std::vector<Literal>> literals(std::string_view close) {
    std::vector<Literal> values;
    while (!cursor_.accept(close)) {
      TASO_ASSIGN(Literal value, literal());
      values.push_back(std::move(value));
      if (!cursor_.accept(",") && !cursor_.at(close))
        return cursor_.unexpected("',' or '" + std::string(close) + "' after a value");
    }
    return values;
  }

  /// Shape and element type of a tensor whose extents are numbers.
  static Expected<onnx::TensorProto> empty_tensor(const Declared& declared) {
    const onnx::TypeProto::Tensor& type = declared.info.type().tensor_type();
    onnx::TensorProto tensor;
    tensor.set_name(declared.info.name());
    tensor.set_data_type(type.elem_type());
    if (!type.has_shape()) return bad_input("a tensor with values has a rank", declared.where);
    for (const auto& dimension : type.shape().dim()) {
      if (!dimension.has_dim_value() || dimension.dim_value() < 0)
        return bad_input("the extents of a tensor with values are numbers", declared.where);
      tensor.add_dims(dimension.dim_value());
    }
    return tensor;
  }

  static std::int64_t elements_of(const onnx::TensorProto& tensor) {
    std::int64_t count = 1;
    for (const std::int64_t extent : tensor.dims()) count *= extent;
    return count;
  }

  /// {value, ...}, repeated until the tensor is full.
  Expected<onnx::TensorProto> elements(const Declared& declared) {
    TASO_ASSIGN(onnx::TensorProto tensor, empty_tensor(declared));
    TASO_RETURN_IF_ERROR(cursor_.expect("{", "before the elements"));
    TASO_ASSIGN(const std::vector<Literal> values, literals("}"));
    const std::int64_t count = elements_of(tensor);
    const auto given = static_cast<std::int64_t>(values.size());
    if (count > 0 ? given == 0 || count % given != 0 : given > 0)
      return bad_input(
          "tensor '" + tensor.name() + "' has " + std::to_string(count) + " elements, not " + std::to_string(given),
          declared.where);
    for (std::int64_t i = 0; i < count; ++i) {
      const Literal& value = values[static_cast<std::size_t>(i % given)];
      const auto type = static_cast<DataType>(tensor.data_type());
      const bool real = type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::DOUBLE;
      const bool text = type == onnx::TensorProto::STRING;
      if (text != (value.kind == Literal::Kind::text) || (!real && value.kind == Literal::Kind::real))
        return bad_input("a value of tensor '" + tensor.name() + "' is not of its type", declared.where);
      switch (type) {
        case onnx::TensorProto::FLOAT:
          tensor.add_float_data(static_cast<float>(value.real));
          break;
        case onnx::TensorProto::DOUBLE:
          tensor.add_double_data(value.real);
          break;
        case onnx::TensorProto::INT64:
          tensor.add_int64_data(value.integer);
          break;
        case onnx::TensorProto::UINT32:
        case onnx::TensorProto::UINT64:
          tensor.add_uint64_data(static_cast<std::uint64_t>(value.integer));
          break;
        case onnx::TensorProto::STRING:
          tensor.add_string_data(value.text);
          break;
        default:  // Of half-precision types, the bits.
          tensor.add_int32_data(static_cast<std::int32_t>(value.integer));
          break;
      }
    }
    return tensor;
  }

  /// A tensor with the contents that `weight NAME` has in the text of a graph of ours.
  static Expected<onnx::TensorProto> contents_of_name(const Declared& declared) {
    TASO_ASSIGN(onnx::TensorProto tensor, empty_tensor(declared));
    if (tensor.data_type() != onnx::TensorProto::FLOAT && tensor.data_type() != onnx::TensorProto::INT64)
      return bad_input("'" + tensor.name() + "' needs values: only those of float and int64 can follow from its name",
                       declared.where);
    std::string shape;
    for (const std::int64_t extent : tensor.dims()) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    const std::string text = "weight " + tensor.name() +
                             (tensor.data_type() == onnx::TensorProto::FLOAT ? " f32[" : " i64[") + shape +
                             "]\noutput " + tensor.name() + "\n";
    const Expected<Graph> graph = taso::parse_graph(text, "weight", registry());
    if (!graph) return bad_input(graph.error().message, declared.where);
    const ConstantData& constant = *graph->node(graph->outputs()[0].node).constant;
    if (tensor.data_type() == onnx::TensorProto::FLOAT) {
      for (const float value : constant.to_floats()) tensor.add_float_data(value);
    } else {
      for (const std::int64_t value : constant.to_integers()) tensor.add_int64_data(value);
    }
    return tensor;
  }

  /// [label] a, b = domain.Op <attributes> (x, , y); the attributes may also stand behind.
  Status node(onnx::NodeProto& node) {
    if (cursor_.accept("[")) {
      TASO_ASSIGN(*node.mutable_name(), name("the name of a node"));
      TASO_RETURN_IF_ERROR(cursor_.expect("]", "after the name of a node"));
    }
    if (!cursor_.at("=")) {
      do {
        // An output may have no name.
        std::string output;
        if (!cursor_.at(",") && !cursor_.at("=")) {
          TASO_ASSIGN(output, name("the name of an output"));
        }
        node.add_output(std::move(output));
      } while (cursor_.accept(","));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "after the outputs of a node"));
    TASO_ASSIGN(std::string op, cursor_.expect_identifier("an operator"));
    while (cursor_.accept(".")) {
      node.set_domain(node.domain().empty() ? op : node.domain() + "." + op);
      TASO_ASSIGN(op, cursor_.expect_identifier("an operator"));
    }
    node.set_op_type(op);
    TASO_RETURN_IF_ERROR(attributes(node));
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the inputs of a node"));
    while (!cursor_.accept(")")) {
      // An input may be absent.
      std::string input;
      if (!cursor_.at(",")) {
        TASO_ASSIGN(input, name("the name of an input"));
      }
      node.add_input(std::move(input));
      if (!cursor_.accept(",") && !cursor_.at(")")) return cursor_.unexpected("',' or ')' after an input");
    }
    return node.attribute().empty() ? attributes(node) : Status();
  }

  Status attributes(onnx::NodeProto& node) {
    if (!cursor_.accept("<")) return {};
    do {
      onnx::AttributeProto& attribute = *node.add_attribute();
      TASO_ASSIGN(*attribute.mutable_name(), cursor_.expect_identifier("an attribute"));
      std::string type;
      if (cursor_.accept(":")) {
        TASO_ASSIGN(type, cursor_.expect_identifier("the type of an attribute"));
      }
      TASO_RETURN_IF_ERROR(cursor_.expect("=", "after an attribute's name"));
      TASO_RETURN_IF_ERROR(value(attribute, type));
    } while (cursor_.accept(","));
    return cursor_.expect(">", "after the attributes");
  }

  Status value(onnx::AttributeProto& attribute, const std::string& type) {
    const SourceLocation where = cursor_.peek().where;
    if (cursor_.accept("[")) {
      TASO_ASSIGN(const std::vector<Literal> values, literals("]"));
      if (values.empty() && type.empty()) return bad_input("an empty list needs a type: NAME : ints = []", where);
      bool real = type == "floats", text = type == "strings";
      for (const Literal& each : values) {
        real = real || each.kind == Literal::Kind::real;
        text = text || each.kind == Literal::Kind::text;
      }
      attribute.set_type(text   ? onnx::AttributeProto::STRINGS
                         : real ? onnx::AttributeProto::FLOATS
                                : onnx::AttributeProto::INTS);
      for (const Literal& each : values) {
        if (text != (each.kind == Literal::Kind::text)) return bad_input("the list mixes texts and numbers", where);
        if (text)
          attribute.add_strings(each.text);
        else if (real)
          attribute.add_floats(static_cast<float>(each.real));
        else
          attribute.add_ints(each.integer);
      }
      return {};
    }
    // float[2] {1, 2} is a tensor, name (...) => (...) {...} a graph.
    if (cursor_.peek().kind == TokenKind::identifier && element_types().contains(cursor_.peek().text)) {
      TASO_ASSIGN(*attribute.mutable_t(), tensor_value());
      attribute.set_type(onnx::AttributeProto::TENSOR);
      return {};
    }
    if (cursor_.peek().kind == TokenKind::identifier && cursor_.peek(1).text == "(") {
      attribute.set_type(onnx::AttributeProto::GRAPH);
      return parse_graph(*attribute.mutable_g());
    }
    TASO_ASSIGN(const Literal literal_value, literal());
    if (literal_value.kind == Literal::Kind::text) {
      attribute.set_type(onnx::AttributeProto::STRING);
      attribute.set_s(literal_value.text);
    } else if (literal_value.kind == Literal::Kind::real || type == "float") {
      attribute.set_type(onnx::AttributeProto::FLOAT);
      attribute.set_f(static_cast<float>(literal_value.real));
    } else {
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(literal_value.integer);
    }
    return {};
  }

  /// TYPE {elements}: a declaration without a name.
  Expected<onnx::TensorProto> tensor_value() {
    Declared declared;
    declared.where = cursor_.peek().where;
    TASO_ASSIGN(const DataType element, element_type());
    onnx::TypeProto::Tensor& type = *declared.info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(element);
    type.mutable_shape();
    if (cursor_.accept("[")) {
      do {
        TASO_ASSIGN(const std::int64_t extent, cursor_.expect_integer("an extent"));
        type.mutable_shape()->add_dim()->set_dim_value(extent);
      } while (cursor_.accept(","));
      TASO_RETURN_IF_ERROR(cursor_.expect("]", "after the extents"));
    }
    return elements(declared);
  }

  TokenCursor cursor_;
};

}  // namespace

Expected<onnx::GraphProto> parse_onnx_graph(std::string_view text, const std::string& file) {
  TASO_ASSIGN(std::vector<Token> tokens, tokenize(text, file));
  return Parser(std::move(tokens)).parse();
}

}  // namespace taso::test
