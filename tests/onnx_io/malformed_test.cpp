// Malformed files: each gives one error, bad_input at the file, with the message given here. Models that are wrong in a
// way that the text of a graph can show are cases in import/errors.cases.
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
  add("nameless_input",
      convolution_with([](onnx::ModelProto& m) { m.mutable_graph()->mutable_input(0)->clear_name(); }),
      "graph input #0 has no name");
  add("nameless_initializer", convolution_with([](onnx::ModelProto& m) { weights(m).clear_name(); }),
      "initializer #0 has no name");
  add("input_twice", convolution_with([](onnx::ModelProto& m) {
        const onnx::ValueInfoProto copy = m.graph().input(0);
        *m.mutable_graph()->add_input() = copy;
      }),
      "tensor \"x\" is defined twice");

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
