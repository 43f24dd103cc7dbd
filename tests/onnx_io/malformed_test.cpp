// Malformed files: each gives one error, bad_input at the file, with the message given here.
#include <gmock/gmock.h>

#include <fstream>
#include <limits>

#include "tests/onnx_io/fixture.h"

namespace taso {
namespace {

using test::message;
using test::numbers;

/// y = Conv(x, w); x [1, 2, 5, 5], w [4, 2, 3, 3].
ModelBuilder convolution() {
  ModelBuilder model(13, "g");
  model.add_input("x", {1, 2, 5, 5});
  model.add_initializer("w", {4, 2, 3, 3}, numbers(72));
  model.add_node("Conv", {"x", "w"}, {"y"}, {{"kernel_shape", {3, 3}}}, "conv");
  model.add_output("y", {1, 4, 3, 3});
  return model;
}

std::string edited(const ModelBuilder& model, const std::function<void(onnx::ModelProto&)>& edit) {
  onnx::ModelProto proto = message(model.serialize());
  edit(proto);
  return proto.SerializeAsString();
}

/// The convolution with one change.
std::string convolution_with(const std::function<void(onnx::ModelProto&)>& edit) { return edited(convolution(), edit); }

/// y = op(x) with x [2, 3].
std::string node_on_matrix(
    const std::string& op, const std::vector<OnnxAttribute>& attributes,
    const std::vector<std::string>& more_inputs = {}, int opset = 13,
    const std::function<void(ModelBuilder&)>& more = [](ModelBuilder&) {}) {
  ModelBuilder model(opset, "g");
  model.add_input("x", {2, 3});
  more(model);
  std::vector<std::string> inputs = {"x"};
  inputs.insert(inputs.end(), more_inputs.begin(), more_inputs.end());
  model.add_node(op, inputs, {"y"}, attributes, "n");
  model.add_symbolic_output("y", {"a", "b"});
  return model.serialize();
}

std::function<void(ModelBuilder&)> integers(const std::string& name, const std::vector<std::int64_t>& values) {
  return [=](ModelBuilder& model) { model.add_initializer(name, {static_cast<std::int64_t>(values.size())}, values); };
}

onnx::TensorProto& weights(onnx::ModelProto& model) { return *model.mutable_graph()->mutable_initializer(0); }

std::string external(const std::string& location, const std::string& offset = "0", const std::string& length = "288") {
  return convolution_with([&](onnx::ModelProto& model) {
    weights(model).clear_raw_data();
    weights(model).set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair{"location", location}, {"offset", offset}, {"length", length}}) {
      auto& entry = *weights(model).add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
  });
}

struct Malformed {
  std::string name;
  std::string bytes;
  std::string error;
};

std::vector<Malformed> cases() {
  const std::string sound = convolution().serialize();
  std::vector<Malformed> all;
  auto add = [&](const std::string& name, std::string bytes, const std::string& error) {
    all.push_back({name, std::move(bytes), error});
  };
  add("empty", "", "the file is empty; an ONNX model was expected");
  add("text", "hello", "not an ONNX model: a field has wire type 4 at byte 2");
  add("zeros", std::string(100, '\0'), "not an ONNX model: a field has no valid number at byte 0");
  add("wire_type", "\x0f", "not an ONNX model: a field has wire type 7 at byte 0");
  add("long_number", "\x08" + std::string(12, '\xff'), "not an ONNX model: a number has more than ten bytes at byte 1");
  add("truncated", sound.substr(0, sound.size() / 2), "the file is truncated or not an ONNX model: the field at byte ");
  add("no_graph", convolution_with([](onnx::ModelProto& m) { m.clear_graph(); }), "not an ONNX model: it has no graph");
  add("old_ir", convolution_with([](onnx::ModelProto& m) { m.set_ir_version(2); }),
      "IR version 2 is not supported; 3 or newer is");
  add("no_opset", convolution_with([](onnx::ModelProto& m) { m.clear_opset_import(); }),
      "node \"conv\" (Conv): opset_import names no version for domain \"\"");
  add("opset_zero", convolution_with([](onnx::ModelProto& m) { m.mutable_opset_import(0)->set_version(0); }),
      "opset_import gives version 0 for domain \"\"");
  add("unknown_domain",
      convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_domain("acme"); }),
      "node \"conv\" (acme::Conv): opset_import names no version for domain \"acme\"");
  add("no_op_type", convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->mutable_node(0)->clear_op_type(); }),
      "node \"conv\" () has no operator type");
  add("no_outputs", convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->clear_output(); }),
      "the graph has no outputs");
  add("undefined_output",
      convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->mutable_output(0)->set_name("z"); }),
      "graph output \"z\" is not defined by anything");
  add("missing_initializer", convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->clear_initializer(); }),
      "node \"conv\" (Conv) reads \"w\", which nothing defines");
  add("nameless_input",
      convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->mutable_input(0)->clear_name(); }),
      "graph input #0 has no name");
  add("nameless_initializer", convolution_with([](onnx::ModelProto& m) { weights(m).clear_name(); }),
      "initializer #0 has no name");
  add("defined_twice",
      convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_output(0, "x"); }),
      "tensor \"x\" is defined twice, the second time by node \"conv\" (Conv)");
  add("input_twice", convolution_with([](onnx::ModelProto& m) {
        const onnx::ValueInfoProto copy = m.graph().input(0);
        *m.mutable_graph()->add_input() = copy;
      }),
      "tensor \"x\" is defined twice");
  add("cycle",
      edited(convolution(),
             [](onnx::ModelProto& m) {
               auto& node = *m.mutable_graph()->add_node();
               node.set_op_type("Relu");
               node.set_name("back");
               node.add_input("y");
               node.add_output("r");
               m.mutable_graph()->mutable_node(0)->set_input(0, "r");
             }),
      "the graph has a cycle through node \"conv\" (Conv)");
  add("captured_name",
      edited(convolution(),
             [](onnx::ModelProto& m) {
               auto& node = *m.mutable_graph()->add_node();
               node.set_op_type("If");
               node.set_name("if");
               node.add_input("y");
               node.add_output("z");
               auto& body = *node.add_attribute();
               body.set_name("then_branch");
               body.set_type(onnx::AttributeProto::GRAPH);
               auto& inner = *body.mutable_g()->add_node();
               inner.set_op_type("Neg");
               inner.add_input("ghost");
               inner.add_output("t");
               body.mutable_g()->add_output()->set_name("t");
             }),
      "node \"if\" (If): a node (Neg) of its subgraph reads \"ghost\", which nothing defines");

  add("raw_too_short", convolution_with([](onnx::ModelProto& m) { weights(m).set_raw_data(std::string(284, 'a')); }),
      "initializer \"w\": shape [4, 2, 3, 3] of type FLOAT needs 288 bytes, it has 284");
  add("typed_too_short", convolution_with([](onnx::ModelProto& m) {
        weights(m).clear_raw_data();
        weights(m).add_float_data(1);
      }),
      "initializer \"w\": shape [4, 2, 3, 3] of type FLOAT needs 72 values, float_data has 1");
  add("wrong_field", convolution_with([](onnx::ModelProto& m) {
        weights(m).clear_raw_data();
        weights(m).set_data_type(onnx::TensorProto::INT64);
        for (int i = 0; i < 72; ++i) weights(m).add_float_data(1);
      }),
      "initializer \"w\": values of type INT64 are stored as float_data");
  add("strings_missing", convolution_with([](onnx::ModelProto& m) {
        weights(m).clear_raw_data();
        weights(m).set_data_type(onnx::TensorProto::STRING);
      }),
      "initializer \"w\": shape [4, 2, 3, 3] of type STRING needs 72 values, string_data has 0");
  add("negative_extent", convolution_with([](onnx::ModelProto& m) { weights(m).set_dims(1, -2); }),
      "initializer \"w\": shape [4, -2, 3, 3] has a negative extent");
  add("huge_extent",
      convolution_with([](onnx::ModelProto& m) { weights(m).set_dims(0, std::numeric_limits<std::int64_t>::max()); }),
      "initializer \"w\": shape [9223372036854775807, 2, 3, 3] has more than 2^40 elements");
  add("no_element_type", convolution_with([](onnx::ModelProto& m) { weights(m).clear_data_type(); }),
      "initializer \"w\": it has no element type");
  add("unknown_element_type", convolution_with([](onnx::ModelProto& m) { weights(m).set_data_type(99); }),
      "node \"conv\" (Conv): the element type of input 1, type 99, is not known");
  add("huge_input", convolution_with([](onnx::ModelProto& m) {
        auto& shape = *m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
        for (int i = 0; i < 4; ++i) shape.mutable_dim(i)->set_dim_value(1 << 30);
      }),
      "graph input \"x\" declares shape [1073741824, 1073741824, 1073741824, 1073741824], more than 2^40 elements");
  add("negative_input", convolution_with([](onnx::ModelProto& m) {
        m.mutable_graph()
            ->mutable_input(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->mutable_shape()
            ->mutable_dim(0)
            ->set_dim_value(-1);
      }),
      "graph input \"x\" declares extent -1");
  add("output_type", convolution_with([](onnx::ModelProto& m) {
        m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
      }),
      "graph output \"y\" is declared i64, but it is f32");
  add("output_shape", convolution_with([](onnx::ModelProto& m) {
        m.mutable_graph()
            ->mutable_output(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->mutable_shape()
            ->mutable_dim(1)
            ->set_dim_value(5);
      }),
      "graph output \"y\" is declared with another shape than f32[1, 4, 3, 3], which it has");

  add("outside_folder", external("../w.bin"),
      "initializer \"w\": external data location \"../w.bin\" leaves the model's folder");
  add("absolute", external("/etc/passwd"),
      "initializer \"w\": external data location \"/etc/passwd\" must be a path relative to the model's folder");
  add("no_location", external(""),
      "initializer \"w\": external data location \"\" must be a path relative to the model's folder");
  add("link", external("link.bin"), "initializer \"w\": external data \"link.bin\" is reached through a symbolic link");
  add("link_to_folder", external("linked/w.bin"),
      "initializer \"w\": external data \"linked/w.bin\" is reached through a symbolic link");
  add("folder", external("folder"), "initializer \"w\": external data \"folder\" is not a regular file");
  add("missing_file", external("absent.bin"),
      "initializer \"w\": cannot open external data \"absent.bin\": No such file or directory");
  add("short_file", external("w.bin", "64"),
      "initializer \"w\": external data \"w.bin\" has 300 bytes, but bytes 64 to 64+288 are asked for");
  add("wrong_length", external("w.bin", "0", "12"),
      "initializer \"w\": shape [4, 2, 3, 3] of type FLOAT needs 288 bytes, it has 12");
  add("bad_offset", external("w.bin", "-4"), "initializer \"w\": external data offset \"-4\" is not a number of bytes");

  add("too_few_inputs",
      convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->mutable_node(0)->mutable_input()->RemoveLast(); }),
      "node \"conv\" (Conv): it has 1 inputs, 2 to 3 were expected");
  add("absent_input",
      convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, ""); }),
      "node \"conv\" (Conv): input 0 is absent but not optional");
  add("no_node_outputs",
      node_on_matrix("Relu", {}).empty() ? ""
                                         : edited(convolution(),
                                                  [](onnx::ModelProto& m) {
                                                    auto& node = *m.mutable_graph()->add_node();
                                                    node.set_op_type("Relu");
                                                    node.add_input("y");
                                                  }),
      "node #1 (Relu): it has no outputs");
  add("attribute_type", node_on_matrix("Concat", {{"axis", "one"}}, {"x"}),
      "node \"n\" (Concat): attribute \"axis\" is STRING, INT was expected");
  add("channels", convolution_with([](onnx::ModelProto& m) {
        weights(m).set_dims(0, 8);
        weights(m).set_dims(1, 1);
      }),
      "node \"conv\" (Conv): input [1, 2, 5, 5] and weights [8, 1, 3, 3] do not fit with group 1");
  add("kernel_shape", convolution_with([](onnx::ModelProto& m) {
        m.mutable_graph()->mutable_node(0)->mutable_attribute(0)->set_ints(0, 5);
      }),
      "node \"conv\" (Conv): kernel_shape is not that of the weights, [4, 2, 3, 3]");
  add("bias", convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->mutable_node(0)->add_input("x"); }),
      "node \"conv\" (Conv): bias [1, 2, 5, 5] must be [4]");
  add("mixed_types", node_on_matrix("Add", {}, {"i"}, 13, integers("i", {1, 2, 3})),
      "node \"n\" (Add): its inputs have different element types, f32 and i64");
  add("broadcast",
      node_on_matrix("Add", {}, {"v"}, 13, [](ModelBuilder& m) { m.add_initializer("v", {4}, numbers(4)); }),
      "node \"n\" (Add): shapes [2, 3] and [4] do not broadcast");
  add("matmul", node_on_matrix("MatMul", {}, {"x"}),
      "node \"n\" (MatMul): matrices [2, 3] and [2, 3] do not multiply: 3 columns against 2 rows");
  add("gemm", node_on_matrix("Gemm", {}, {"x"}), "node \"n\" (Gemm): matrices [2, 3] and [2, 3] do not multiply");
  add("perm", node_on_matrix("Transpose", {{"perm", {0, 0}}}),
      "node \"n\" (Transpose): perm [0, 0] is no permutation of 2 axes");
  add("axis", node_on_matrix("Softmax", {{"axis", 2}}), "node \"n\" (Softmax): axis 2 is outside [-2, 1]");
  add("reshape", node_on_matrix("Reshape", {}, {"s"}, 13, integers("s", {4, 2})),
      "node \"n\" (Reshape): [2, 3] cannot be reshaped to [4, 2]");
  add("reshape_two_unknown", node_on_matrix("Reshape", {}, {"s"}, 13, integers("s", {-1, -1})),
      "node \"n\" (Reshape): shape [-1, -1] is not a shape");
  add("reshape_floats",
      node_on_matrix("Reshape", {}, {"s"}, 13, [](ModelBuilder& m) { m.add_initializer("s", {2}, numbers(2)); }),
      "node \"n\" (Reshape): input 1 must be of integers, it is f32");
  add("concat",
      node_on_matrix("Concat", {{"axis", 0}}, {"v"}, 13,
                     [](ModelBuilder& m) {
                       m.add_initializer("v", {2, 2}, numbers(4));
                     }),
      "node \"n\" (Concat): shapes [2, 3] and [2, 2] do not concatenate along axis 0");
  add("split", node_on_matrix("Split", {{"axis", 1}}, {"s"}, 13, integers("s", {4})),
      "node \"n\" (Split): sizes [4] do not split an extent of 3 into 1 outputs");
  add("squeeze", node_on_matrix("Squeeze", {}, {"s"}, 13, integers("s", {0})),
      "node \"n\" (Squeeze): axis 0 of [2, 3] is not 1");
  add("unsqueeze", node_on_matrix("Unsqueeze", {}, {"s"}, 13, integers("s", {1, 1})),
      "node \"n\" (Unsqueeze): axes name one axis twice");
  add("slice_step", node_on_matrix("Slice", {}, {"a", "a", "a", "a"}, 13, integers("a", {0})),
      "node \"n\" (Slice): a step is 0");
  add("pad", node_on_matrix("Pad", {}, {"s"}, 13, integers("s", {1, 1})),
      "node \"n\" (Pad): pads [1, 1] do not have two numbers for each of 2 axes");
  add("gather", node_on_matrix("Gather", {}, {"s"}, 13, integers("s", {2})),
      "node \"n\" (Gather): index 2 is outside an axis of extent 2");
  add("expand_overflow", node_on_matrix("Expand", {}, {"s"}, 13, integers("s", {1 << 30, 1 << 30, 1, 1})),
      "node \"n\" (Expand): shape [1073741824, 1073741824, 1, 1] is negative or has more than 2^40 elements");
  add("reduce_axes", node_on_matrix("ReduceSum", {}, {"s"}, 13, integers("s", {0, -2})),
      "node \"n\" (ReduceSum): axes name one axis twice");
  add("window", node_on_matrix("MaxPool", {{"kernel_shape", {2}}}),
      "node \"n\" (MaxPool): its input [2, 3] has no spatial axes");
  add("constant_of_shape",
      edited(convolution(),
             [](onnx::ModelProto& m) {
               auto& shape = *m.mutable_graph()->add_initializer();
               shape.set_name("s");
               shape.set_data_type(onnx::TensorProto::INT64);
               shape.add_dims(2);
               shape.add_int64_data(std::int64_t{1} << 40);
               shape.add_int64_data(std::int64_t{1} << 40);
               auto& node = *m.mutable_graph()->add_node();
               node.set_op_type("ConstantOfShape");
               node.set_name("cos");
               node.add_input("s");
               node.add_output("c");
             }),
      "node \"cos\" (ConstantOfShape): shape [1099511627776, 1099511627776] is negative or has more than 2^40 "
      "elements");
  add("constant_without_value",
      edited(convolution(),
             [](onnx::ModelProto& m) {
               auto& node = *m.mutable_graph()->add_node();
               node.set_op_type("Constant");
               node.set_name("k");
               node.add_output("c");
             }),
      "node \"k\" (Constant): it has 0 attributes, exactly one value was expected");
  return all;
}

class MalformedTest : public test::FolderTest {};

TEST_F(MalformedTest, EachHasItsMessage) {
  ASSERT_TRUE(write_file_atomically(path("w.bin"), std::string(300, 'w')).ok());
  std::filesystem::create_symlink("w.bin", path("link.bin"));
  std::filesystem::create_directory(path("folder"));
  ASSERT_TRUE(write_file_atomically(path("folder/w.bin"), std::string(300, 'w')).ok());
  std::filesystem::create_directory_symlink("folder", path("linked"));
  for (const Malformed& malformed : cases()) {
    SCOPED_TRACE(malformed.name);
    const std::string file = path(malformed.name + ".onnx");
    ASSERT_TRUE(write_file_atomically(file, malformed.bytes).ok());
    const auto model = Model::load(file, test::registry());
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, ErrorCode::bad_input);
    EXPECT_EQ(model.error().where.file, file);
    EXPECT_THAT(model.error().message, testing::Not(testing::HasSubstr("\n")));
    ASSERT_FALSE(malformed.error.empty());
    EXPECT_THAT(model.error().message, testing::StartsWith(malformed.error));
  }
}

TEST_F(MalformedTest, MissingFile) {
  const auto model = Model::load(path("absent.onnx"), test::registry());
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().to_string(), path("absent.onnx") + ": cannot open: No such file or directory");
}

// Every prefix of a model, and every model with one byte changed, is read or refused, but nothing worse.
TEST_F(MalformedTest, DamagedBytes) {
  const std::string sound = convolution().serialize();
  for (std::size_t length = 0; length < sound.size(); ++length)
    EXPECT_FALSE(Model::parse(sound.substr(0, length), path("prefix.onnx"), test::registry()).ok()) << length;
  int refused = 0;
  for (std::size_t i = 0; i < sound.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = sound;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const auto model = Model::parse(damaged, path("damaged.onnx"), test::registry());
      if (!model.ok()) {
        EXPECT_EQ(model.error().code, ErrorCode::bad_input) << model.error().to_string();
        ++refused;
        continue;
      }
      const auto saved = model->save(model->graph(), path("out.onnx"));
      EXPECT_TRUE(saved.ok()) << i << ": " << (saved.ok() ? "" : saved.error().to_string());
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(InputShape, Parsed) {
  const auto parsed = parse_input_shape("images:0:1,3,224,224");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->first, "images:0");
  EXPECT_EQ(parsed->second, (Shape{1, 3, 224, 224}));
  EXPECT_EQ(parse_input_shape("scalar:")->second, Shape{});
  for (const char* wrong : {"x", ":1", "x:0", "x:-1", "x:1,", "x:1,,2", "x:a", "x:1 2", "x:99999999999,99999999999"}) {
    const auto result = parse_input_shape(wrong);
    ASSERT_FALSE(result.ok()) << wrong;
    EXPECT_EQ(result.error().code, ErrorCode::usage);
    EXPECT_EQ(result.error().message, "\"" + std::string(wrong) + "\" is not NAME:D,D,.. with extents of at least 1");
  }
}

TEST(InputShape, MustFitTheModel) {
  ModelBuilder builder(13, "g");
  builder.add_symbolic_input("x", {"N", "3"});
  builder.add_node("Relu", {"x"}, {"y"});
  builder.add_symbolic_output("y", {"N", "3"});
  const auto load = [&](const std::string& name, Shape shape) {
    ImportOptions options;
    options.input_shapes[name] = std::move(shape);
    return Model::parse(builder.serialize(), "m.onnx", test::registry(), options);
  };
  EXPECT_TRUE(load("x", {4, 3}).ok());
  EXPECT_EQ(load("z", {4, 3}).error().message,
            "there is no graph input \"z\" to give a shape to; its inputs are \"x\"");
  EXPECT_EQ(load("x", {4}).error().message, "graph input \"x\" has rank 2, the shape given for it is [4]");
  EXPECT_EQ(load("x", {4, 5}).error().message,
            "graph input \"x\" declares extent 3 for axis 1, the shape given for it is [4, 5]; only symbolic extents "
            "can be chosen");
}

}  // namespace
}  // namespace taso
