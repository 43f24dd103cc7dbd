#include "tests/acceptance/malformed.h"

#include <onnx/onnx_pb.h>

#include <functional>

#include "examples/models/models.h"
#include "onnx_io/builder.h"

namespace taso::acceptance {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 40;

std::vector<float> zeros(std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count), 0.5F); }

// x[1, 4, 8, 8] -> y by the nodes that `fill` adds.
std::string image_model(const std::function<void(ModelBuilder&)>& fill, const Shape& result = {1, 4, 8, 8}) {
  ModelBuilder model(17, "malformed");
  model.add_input("x", {1, 4, 8, 8});
  model.add_initializer("k", {4, 4, 3, 3}, zeros(4 * 4 * 3 * 3));
  fill(model);
  model.add_output("y", result);
  return model.serialize();
}

// A sound model: y = Conv(x, k), then changed through its protobuf message.
std::string edited(const std::function<void(onnx::ModelProto&)>& edit) {
  onnx::ModelProto model;
  model.ParseFromString(image_model([](ModelBuilder& builder) {
    builder.add_node("Conv", {"x", "k"}, {"y"}, {{"pads", {1, 1, 1, 1}}}, "conv");
  }));
  edit(model);
  return model.SerializeAsString();
}

std::string external(const std::string& location, const std::string& offset = "0", const std::string& length = "576") {
  return edited([&](onnx::ModelProto& model) {
    onnx::TensorProto& tensor = *model.mutable_graph()->mutable_initializer(0);
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair{"location", location}, {"offset", offset}, {"length", length}}) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
  });
}

std::string conv(const std::vector<OnnxAttribute>& attributes) {
  return image_model([&](ModelBuilder& model) { model.add_node("Conv", {"x", "k"}, {"y"}, attributes, "conv"); });
}

std::string unary(const std::string& op, const std::vector<OnnxAttribute>& attributes) {
  return image_model([&](ModelBuilder& model) { model.add_node(op, {"x"}, {"y"}, attributes, "node"); });
}

}  // namespace

std::vector<MalformedModel> malformed_models() {
  const examples::ExampleModel& example = *examples::find_example_model("squeezenet1_1");
  const std::string sound = example.build(example.small).serialize();
  std::vector<MalformedModel> all;
  const auto add = [&](const std::string& name, std::string bytes, const std::string& says,
                       std::vector<std::pair<std::string, std::string>> companions = {}) {
    all.push_back({name, std::move(bytes), says, std::move(companions)});
  };

  add("empty", "", "");
  add("text", "This is not a model.\n", "");
  add("zeros", std::string(4096, '\0'), "");
  add("truncated_in_the_middle", sound.substr(0, sound.size() / 2), "");
  add("truncated_by_one_byte", sound.substr(0, sound.size() - 1), "");
  add("truncated_after_the_header", sound.substr(0, 8), "");
  add("no_graph", edited([](onnx::ModelProto& model) { model.clear_graph(); }), "graph");
  add("no_operator_set", edited([](onnx::ModelProto& model) { model.clear_opset_import(); }), "opset");

  add("name_with_the_end_of_a_line", edited([](onnx::ModelProto& model) {
        model.mutable_graph()->mutable_initializer(0)->set_name("k\nk");
        model.mutable_graph()->mutable_initializer(0)->clear_raw_data();
      }),
      "k?k");

  add("cycle", image_model([](ModelBuilder& model) {
        model.add_node("Relu", {"b"}, {"a"}, {}, "first");
        model.add_node("Add", {"a", "x"}, {"b"}, {}, "second");
        model.add_node("Relu", {"b"}, {"y"}, {}, "third");
      }),
      "");
  add("node_that_reads_itself", image_model([](ModelBuilder& model) {
        model.add_node("Add", {"x", "y"}, {"y"}, {}, "loop");
      }),
      "y");
  add("missing_initializer", image_model([](ModelBuilder& model) {
        model.add_node("Conv", {"x", "nowhere"}, {"y"}, {{"pads", {1, 1, 1, 1}}}, "conv");
      }),
      "nowhere");
  add("name_defined_twice", image_model([](ModelBuilder& model) {
        model.add_node("Relu", {"x"}, {"y"}, {}, "first");
        model.add_node("Tanh", {"x"}, {"y"}, {}, "second");
      }),
      "y");
  add("output_that_nothing_defines",
      image_model([](ModelBuilder& model) { model.add_node("Relu", {"x"}, {"z"}, {}, "relu"); }), "y");
  add("input_declared_twice", image_model([](ModelBuilder& model) {
        model.add_input("x", {1, 4, 8, 8});
        model.add_node("Relu", {"x"}, {"y"}, {}, "relu");
      }),
      "x");

  add("element_types_that_do_not_fit", image_model([](ModelBuilder& model) {
        const std::vector<std::int64_t> integers(4 * 8 * 8, 1);
        model.add_initializer("i", {1, 4, 8, 8}, integers);
        model.add_node("Add", {"x", "i"}, {"y"}, {}, "add");
      }),
      "add");
  add("channels_that_do_not_fit", image_model([](ModelBuilder& model) {
        model.add_initializer("three", {4, 3, 3, 3}, zeros(4 * 3 * 3 * 3));
        model.add_node("Conv", {"x", "three"}, {"y"}, {{"pads", {1, 1, 1, 1}}}, "conv");
      }),
      "conv");
  add("inner_extents_that_do_not_fit", image_model([](ModelBuilder& model) {
        model.add_initializer("m", {5, 6}, zeros(30));
        model.add_node("MatMul", {"x", "m"}, {"y"}, {}, "product");
      }),
      "product");
  add("shapes_that_do_not_broadcast", image_model([](ModelBuilder& model) {
        model.add_initializer("seven", {7}, zeros(7));
        model.add_node("Mul", {"x", "seven"}, {"y"}, {}, "mul");
      }),
      "mul");
  add("declared_output_shape_is_wrong",
      image_model([](ModelBuilder& model) { model.add_node("Relu", {"x"}, {"y"}); }, {1, 4, 9, 9}), "y");
  add("impossible_reshape", image_model([](ModelBuilder& model) {
        model.add_initializer("s", {2}, std::vector<std::int64_t>{7, 9});
        model.add_node("Reshape", {"x", "s"}, {"y"}, {}, "reshape");
      }),
      "reshape");
  add("split_sizes_that_do_not_add_up", image_model([](ModelBuilder& model) {
        model.add_initializer("s", {2}, std::vector<std::int64_t>{3, 3});
        model.add_node("Split", {"x", "s"}, {"y", "z"}, {{"axis", 1}}, "split");
      }),
      "split");
  add("too_few_inputs", image_model([](ModelBuilder& model) { model.add_node("Conv", {"x"}, {"y"}, {}, "conv"); }),
      "conv");

  add("attribute_of_the_wrong_type", image_model([](ModelBuilder& model) {
        model.add_node("Concat", {"x", "x"}, {"y"}, {{"axis", "one"}}, "concat");
      }),
      "axis");
  add("axis_out_of_range", image_model([](ModelBuilder& model) {
        model.add_node("Concat", {"x", "x"}, {"y"}, {{"axis", 9}}, "concat");
      }),
      "axis");
  add("stride_zero", conv({{"strides", {0, 0}}}), "stride");
  add("negative_pads", conv({{"pads", {-9, -9, -9, -9}}}), "pad");
  add("kernel_larger_than_the_image", unary("MaxPool", {{"kernel_shape", {99, 99}}}), "node");
  add("kernel_shape_differs_from_the_weight", conv({{"kernel_shape", {5, 5}}}), "kernel_shape");
  add("group_that_does_not_divide", conv({{"group", 3}, {"pads", {1, 1, 1, 1}}}), "group");
  add("permutation_with_a_repetition", unary("Transpose", {{"perm", {0, 1, 1, 3}}}), "perm");

  add("initializer_with_too_few_bytes", edited([](onnx::ModelProto& model) {
        model.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->resize(100);
      }),
      "k");
  add("initializer_with_huge_extents", edited([](onnx::ModelProto& model) {
        onnx::TensorProto& tensor = *model.mutable_graph()->mutable_initializer(0);
        tensor.clear_dims();
        for (int i = 0; i < 4; ++i) tensor.add_dims(huge);
      }),
      "k");
  add("initializer_with_a_negative_extent",
      edited([](onnx::ModelProto& model) { model.mutable_graph()->mutable_initializer(0)->set_dims(1, -4); }), "k");
  add("initializer_of_an_unknown_type",
      edited([](onnx::ModelProto& model) { model.mutable_graph()->mutable_initializer(0)->set_data_type(99); }), "k");
  add("input_with_huge_extents", edited([](onnx::ModelProto& model) {
        auto& shape = *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
        for (auto& extent : *shape.mutable_dim()) extent.set_dim_value(huge);
      }),
      "x");
  add("input_with_a_negative_extent", edited([](onnx::ModelProto& model) {
        auto& shape = *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
        shape.mutable_dim(0)->set_dim_value(-1);
      }),
      "x");

  const std::string weights(576, '\1');
  add("external_data_in_the_folder_above", external("../outside.bin"), "outside.bin");
  add("external_data_at_an_absolute_path", external("/etc/passwd"), "/etc/passwd");
  add("external_data_behind_a_link", external("link.bin"), "link.bin", {{"link.bin@", "/etc/passwd"}});
  add("external_data_missing", external("absent.bin"), "absent.bin");
  add("external_data_too_short", external("short.bin"), "short.bin", {{"short.bin", weights.substr(0, 100)}});
  add("external_data_offset_too_large", external("w.bin", "9223372036854775807"), "k", {{"w.bin", weights}});
  add("external_data_offset_no_number", external("w.bin", "start"), "offset", {{"w.bin", weights}});
  add("external_data_length_wrong", external("w.bin", "0", "12"), "k", {{"w.bin", weights}});
  return all;
}

}  // namespace taso::acceptance
