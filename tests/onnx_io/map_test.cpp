// Maps of nodes: maps/*.cases.
//
//   operators:     definitions in addition to the shipped ones
//   maps:          the text of a map file; without it only the shipped maps are read
//   error MESSAGE  the text is refused with "LINE:COLUMN: message"; nothing else follows
//   opset N        of ONNX's own domain; 17 if it is not given
//   nodes:         of a model, "com.acme::Silu v2 (x: f32[2, 3], _; alpha = 0.5) -> y"; an input without a type is the
//                  output of a node before, one with a number ("e: f32[] = 0.5") a constant
//   graph:         what is imported; a carried node is followed by why
//   change:        a graph that is saved instead of what was imported
//   written:       the nodes of the saved file when every operator is written anew
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "graph/graph_text.h"
#include "graph/term_syntax.h"
#include "operators/node_maps.h"
#include "support/lexer.h"
#include "support/random.h"
#include "tests/onnx_io/fixture.h"
#include "tests/support/cases.h"

namespace taso {
namespace {

namespace fs = std::filesystem;

using test::CaseCount;
using test::CaseValue;
using test::TextCase;

std::vector<TextCase> cases_of(const std::string& path) {
  return test::load_cases(path, {{"operators", CaseValue::section, CaseCount::optional},
                                 {"maps", CaseValue::section, CaseCount::optional},
                                 {"error", CaseValue::text, CaseCount::optional},
                                 {"opset", CaseValue::integer, CaseCount::optional},
                                 {"nodes", CaseValue::section, CaseCount::optional},
                                 {"graph", CaseValue::section, CaseCount::optional},
                                 {"change", CaseValue::section, CaseCount::optional},
                                 {"written", CaseValue::section, CaseCount::optional}});
}

/// Adds the nodes of a section to a model, with an input for each tensor of a type.
class Nodes {
 public:
  Nodes(TokenCursor cursor, ModelBuilder& model) : cursor_(std::move(cursor)), model_(&model) {}

  Status add() {
    while (!cursor_.at_end()) TASO_RETURN_IF_ERROR(node());
    for (const std::string& output : outputs_)
      if (!read_.contains(output)) model_->add_output(output, {});
    for (const auto& [domain, version] : domains_) model_->add_opset(domain, version);
    return {};
  }
  [[nodiscard]] std::vector<std::string> results() const {
    std::vector<std::string> names;
    for (const std::string& output : outputs_)
      if (!read_.contains(output)) names.push_back(output);
    return names;
  }

 private:
  Status node() {
    TASO_ASSIGN(std::string type, cursor_.expect_identifier("a node"));
    std::string domain;
    while (cursor_.accept(".")) {
      TASO_ASSIGN(const std::string part, cursor_.expect_identifier("a domain"));
      type += "." + part;
    }
    if (cursor_.accept(":")) {
      cursor_.next();
      domain = type;
      TASO_ASSIGN(type, cursor_.expect_identifier("a type"));
    }
    std::int64_t version = 1;
    if (!cursor_.at("(")) version = std::stoll(cursor_.next().text.substr(1));
    if (!domain.empty()) domains_.emplace(domain, version);
    std::vector<std::string> inputs, outputs;
    std::vector<OnnxAttribute> attributes;
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before inputs"));
    while (!cursor_.at(";") && !cursor_.at(")")) {
      TASO_RETURN_IF_ERROR(input(inputs));
      cursor_.accept(",");
    }
    if (cursor_.accept(";")) {
      do TASO_RETURN_IF_ERROR(attribute(attributes));
      while (cursor_.accept(","));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "after inputs"));
    TASO_RETURN_IF_ERROR(cursor_.expect("->", "before outputs"));
    do {
      TASO_ASSIGN(std::string name, cursor_.expect_identifier("an output"));
      outputs.push_back(name == "_" ? "" : name);
      if (name != "_") outputs_.push_back(name);
    } while (cursor_.accept(","));
    model_->add_node(type, inputs, outputs, attributes, "", domain);
    return {};
  }

  Status input(std::vector<std::string>& inputs) {
    TASO_ASSIGN(std::string name, cursor_.expect_identifier("an input"));
    inputs.push_back(name == "_" ? "" : name);
    read_.insert(name);
    if (!cursor_.accept(":")) return {};
    TASO_ASSIGN(const std::string element, cursor_.expect_identifier("an element type"));
    Shape shape;
    TASO_RETURN_IF_ERROR(cursor_.expect("[", "before extents"));
    while (!cursor_.accept("]")) {
      TASO_ASSIGN(const std::int64_t extent, cursor_.expect_integer("an extent"));
      shape.push_back(extent);
      cursor_.accept(",");
    }
    if (cursor_.accept("=")) {
      TASO_ASSIGN(const ExpressionSyntax number, parse_expression(cursor_));
      const std::vector<float> values(static_cast<std::size_t>(TensorType{ElementType::f32, shape, true}.elements()),
                                      static_cast<float>(number.real));
      model_->add_initializer(name, shape, values);
      return {};
    }
    model_->add_input(name, shape,
                      element == "f32"   ? ElementType::f32
                      : element == "i64" ? ElementType::i64
                                         : ElementType::f16);
    return {};
  }

  Status attribute(std::vector<OnnxAttribute>& attributes) {
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("an attribute"));
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "after an attribute"));
    if (cursor_.peek().kind == TokenKind::string) {
      attributes.emplace_back(name, cursor_.next().text);
      return {};
    }
    TASO_ASSIGN(const ExpressionSyntax value, parse_expression(cursor_));
    if (value.kind == ExpressionSyntax::Kind::list) {
      Shape list;
      for (const ExpressionSyntax& entry : value.operands) list.push_back(entry.integer);
      attributes.emplace_back(name, list);
    } else if (value.kind == ExpressionSyntax::Kind::real) {
      attributes.emplace_back(name, value.real);
    } else {
      attributes.emplace_back(name, value.integer);
    }
    return {};
  }

  TokenCursor cursor_;
  ModelBuilder* model_;
  std::vector<std::string> outputs_;
  std::set<std::string> read_;
  std::map<std::string, std::int64_t> domains_;
};

std::string attribute_text(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return to_string(AttributeValue(attribute.i()));
    case onnx::AttributeProto::FLOAT:
      return testing::PrintToString(attribute.f());
    case onnx::AttributeProto::STRING:
      return "\"" + attribute.s() + "\"";
    case onnx::AttributeProto::INTS:
      return to_string(AttributeValue(Shape(attribute.ints().begin(), attribute.ints().end())));
    default:
      return "?";
  }
}

/// "com.acme::Silu(x, _; alpha=0.5) -> y", a line for each node.
std::string nodes_text(const onnx::ModelProto& model) {
  std::string text;
  for (const auto& node : model.graph().node()) {
    std::string inputs, attributes, outputs;
    for (const auto& name : node.input()) inputs += (inputs.empty() ? "" : ", ") + (name.empty() ? "_" : name);
    for (const auto& attribute : node.attribute())
      attributes += (attributes.empty() ? "; " : ", ") + attribute.name() + "=" + attribute_text(attribute);
    for (const auto& name : node.output()) outputs += (outputs.empty() ? "" : ", ") + (name.empty() ? "_" : name);
    text += type_name(node.domain(), node.op_type()) + "(" + inputs + attributes + ") -> " + outputs + "\n";
  }
  return text;
}

class MapCases : public test::FolderTest, public ::testing::WithParamInterface<TextCase> {};

TEST_P(MapCases, AreReadAndWritten) {
  const TextCase& c = GetParam();
  OperatorRegistry registry = test::registry();
  if (c.has("operators")) {
    Expected<OperatorRegistry> more = OperatorRegistry::parse(c.text("operators"), "user.op", &registry);
    ASSERT_TRUE(more.ok()) << more.error().to_string();
    registry = std::move(more).value();
  }
  const Expected<OperatorRegistry> mapped = OperatorRegistry::parse_maps(c.text("maps"), "user.map", registry);
  if (c.has("error")) {
    ASSERT_FALSE(mapped.ok()) << "the text is not refused";
    EXPECT_EQ(mapped.error().code, ErrorCode::bad_input);
    EXPECT_EQ(mapped.error().to_string(), "user.map:" + c.text("error"));
    return;
  }
  ASSERT_TRUE(mapped.ok()) << mapped.error().to_string();

  ModelBuilder builder(static_cast<int>(c.integer("opset", 17)), "graph");
  Expected<std::vector<Token>> tokens = tokenize(c.text("nodes"), c.file);
  ASSERT_TRUE(tokens.ok()) << tokens.error().to_string();
  Nodes nodes(TokenCursor(*tokens), builder);
  const Status added = nodes.add();
  ASSERT_TRUE(added.ok()) << added.error().to_string();
  onnx::ModelProto proto = test::message(builder.serialize());
  for (auto& output : *proto.mutable_graph()->mutable_output())
    output.mutable_type()->mutable_tensor_type()->clear_shape();
  const Expected<Model> model = Model::parse(proto.SerializeAsString(), "model.onnx", *mapped);
  if (!model.ok()) {
    EXPECT_EQ(model.error().to_string() + "\n", c.text("graph"));
    return;
  }
  std::string imported = to_text(model->graph());
  std::set<std::string> reasons;
  for (const CarriedNode& carried : model->carried_nodes())
    reasons.insert("# " + carried.op + ": " + carried.reason + "\n");
  for (const std::string& reason : reasons) imported += reason;
  EXPECT_EQ(imported, c.text("graph"));

  // What is not changed is the same file again.
  ASSERT_TRUE(model->save(model->graph(), path("same.onnx")).ok());
  EXPECT_EQ(nodes_text(test::read_message(path("same.onnx"))), nodes_text(proto)) << "unchanged nodes";
  const auto same = test::read_message(path("same.onnx"));
  EXPECT_EQ(same.opset_import_size(), proto.opset_import_size());

  Graph graph = model->graph();
  if (c.has("change")) {
    Expected<Graph> changed = parse_graph(c.text("change"), "change", *mapped);
    ASSERT_TRUE(changed.ok()) << changed.error().to_string();
    graph = std::move(changed).value();
  }
  SaveOptions anew;
  anew.verbatim = false;
  const auto saved = model->save(graph, path("written.onnx"), anew);
  if (!saved.ok()) {
    EXPECT_EQ(saved.error().message + "\n", c.text("written"));
    return;
  }
  EXPECT_EQ(nodes_text(test::read_message(path("written.onnx"))), c.text("written"));
  const Expected<Model> again = Model::load(path("written.onnx"), *mapped);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  if (model->carried_nodes().empty() && !c.has("change")) {
    EXPECT_EQ(to_text(again->graph()), to_text(graph)) << "what was written means something else";
  }
}

INSTANTIATE_TEST_SUITE_P(Maps, MapCases, ::testing::ValuesIn(cases_of("tests/onnx_io/maps")), test::case_name);

TEST(Maps, AddedFoldersAreTriedFirstAndFilesInNameOrder) {
  const auto type = [](const OperatorRegistry& registry) { return registry.node_maps().of_type("", "Relu")[0]->op; };
  EXPECT_EQ(type(test::registry()), "relu");
  const auto added = OperatorRegistry::parse_maps("Relu (x) -> y = tanh(x)", "a.map", test::registry());
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(type(*added), "tanh");
  const auto absent = OperatorRegistry::load_maps("/nonexistent/folder", test::registry());
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().to_string(),
            "/nonexistent/folder: cannot read the folder of maps: No such file or directory");
}

// Random changes of texts that are right: each is refused in one line, or read.
TEST(Maps, ChangedTextsAreRefusedOrRead) {
  std::vector<std::string> texts;
  for (const char* file : {"specs/onnx/elementwise.map", "specs/onnx/images.map"})
    texts.push_back(read_file(fs::path(TASO_SOURCE_DIR) / file).value());
  for (const TextCase& c : cases_of("tests/onnx_io/maps/nodes.cases"))
    if (!c.has("operators") && !c.text("maps").empty()) texts.push_back(c.text("maps"));
  Random random(1);
  const std::string characters = "().,;:=->{}[]\"#_ 019avx<\n";
  int read = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = texts[random.below(texts.size())];
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      const std::size_t place = random.below(text.size());
      switch (random.below(3)) {
        case 0:
          text.erase(place, 1 + random.below(5));
          break;
        case 1:
          text.insert(place, 1, characters[random.below(characters.size())]);
          break;
        default:
          text.insert(place, text.substr(random.below(text.size()), random.below(20)));
          break;
      }
      if (text.empty()) text = "x";
    }
    const auto mapped = OperatorRegistry::parse_maps(text, "user.map", test::registry());
    ++(mapped.ok() ? read : refused);
    if (mapped.ok()) continue;
    ASSERT_EQ(mapped.error().code, ErrorCode::bad_input) << text;
    ASSERT_GT(mapped.error().where.line, 0) << text;
    ASSERT_EQ(mapped.error().message.find('\n'), std::string::npos) << text;
  }
  EXPECT_GT(read, 200);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace taso
