#include "onnx_io/builder.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx/onnx_pb.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>

#include "onnx_io/attribute_proto.h"
#include "onnx_io/tensor_proto.h"
#include "support/file.h"

namespace taso {
namespace {

void declare(onnx::ValueInfoProto& info, const std::string& name, const std::vector<std::string>& extents,
             ElementType element) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(element == ElementType::other ? onnx::TensorProto::STRING : data_type_of(element));
  tensor.mutable_shape();
  for (const std::string& extent : extents) {
    auto& dimension = *tensor.mutable_shape()->add_dim();
    std::int64_t number = 0;
    const auto [end, failure] = std::from_chars(extent.data(), extent.data() + extent.size(), number);
    if (failure == std::errc() && end == extent.data() + extent.size())
      dimension.set_dim_value(number);
    else if (!extent.empty())
      dimension.set_dim_param(extent);
  }
}

std::vector<std::string> as_text(const Shape& shape) {
  std::vector<std::string> extents;
  for (std::int64_t extent : shape) extents.push_back(std::to_string(extent));
  return extents;
}

template <class T>
void fill(onnx::TensorProto& tensor, const std::string& name, const Shape& shape, int type, std::span<const T> values) {
  TASO_CHECK(static_cast<std::int64_t>(values.size()) == volume(shape), "values of " + name + " do not fit its shape");
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (std::int64_t extent : shape) tensor.add_dims(extent);
  tensor.set_raw_data(values.data(), values.size_bytes());
}

bool write(const onnx::ModelProto& model, google::protobuf::io::ZeroCopyOutputStream& out) {
  google::protobuf::io::CodedOutputStream coded(&out);
  coded.SetSerializationDeterministic(true);
  return model.SerializeToCodedStream(&coded);
}

}  // namespace

struct ModelBuilder::State {
  onnx::ModelProto model;
  std::map<std::string, std::int64_t> absent;  ///< Bytes in each file that is not there.
};

ModelBuilder::ModelBuilder(int opset, const std::string& graph_name) : state_(std::make_unique<State>()) {
  state_->model.set_ir_version(8);
  state_->model.set_producer_name("taso");
  state_->model.mutable_graph()->set_name(graph_name);
  add_opset("", opset);
}

ModelBuilder::~ModelBuilder() = default;
ModelBuilder::ModelBuilder(ModelBuilder&&) noexcept = default;
ModelBuilder& ModelBuilder::operator=(ModelBuilder&&) noexcept = default;

void ModelBuilder::add_input(const std::string& name, const Shape& shape, ElementType element) {
  add_symbolic_input(name, as_text(shape), element);
}

void ModelBuilder::add_symbolic_input(const std::string& name, const std::vector<std::string>& extents,
                                      ElementType element) {
  declare(*state_->model.mutable_graph()->add_input(), name, extents, element);
}

void ModelBuilder::add_output(const std::string& name, const Shape& shape, ElementType element) {
  add_symbolic_output(name, as_text(shape), element);
}

void ModelBuilder::add_symbolic_output(const std::string& name, const std::vector<std::string>& extents,
                                       ElementType element) {
  declare(*state_->model.mutable_graph()->add_output(), name, extents, element);
}

void ModelBuilder::add_initializer(const std::string& name, const Shape& shape, std::span<const float> values) {
  fill(*state_->model.mutable_graph()->add_initializer(), name, shape, onnx::TensorProto::FLOAT, values);
}

void ModelBuilder::add_initializer(const std::string& name, const Shape& shape, std::span<const std::int64_t> values) {
  fill(*state_->model.mutable_graph()->add_initializer(), name, shape, onnx::TensorProto::INT64, values);
}

void ModelBuilder::add_boolean_initializer(const std::string& name, const Shape& shape,
                                           std::span<const std::uint8_t> values) {
  fill(*state_->model.mutable_graph()->add_initializer(), name, shape, onnx::TensorProto::BOOL, values);
}

void ModelBuilder::add_absent_initializer(const std::string& name, const Shape& shape, const std::string& location) {
  auto& tensor = *state_->model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : shape) tensor.add_dims(extent);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  std::int64_t& offset = state_->absent[location];
  const auto bytes = volume(shape) * static_cast<std::int64_t>(sizeof(float));
  const auto entry = [&](const char* key, const std::string& value) {
    auto& added = *tensor.add_external_data();
    added.set_key(key);
    added.set_value(value);
  };
  entry("location", location);
  entry("offset", std::to_string(offset));
  entry("length", std::to_string(bytes));
  offset += bytes;
}

void ModelBuilder::add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs, const std::vector<OnnxAttribute>& attributes,
                            const std::string& name, const std::string& domain) {
  auto& node = *state_->model.mutable_graph()->add_node();
  node.set_op_type(op_type);
  if (!name.empty()) node.set_name(name);
  if (!domain.empty()) node.set_domain(domain);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  for (const OnnxAttribute& attribute : attributes) append_attribute(node, attribute);
}

void ModelBuilder::add_opset(const std::string& domain, std::int64_t version) {
  auto& opset = *state_->model.add_opset_import();
  opset.set_domain(domain);
  opset.set_version(version);
}

void ModelBuilder::set_ir_version(std::int64_t version) { state_->model.set_ir_version(version); }

void ModelBuilder::set_metadata(const std::string& key, const std::string& value) {
  auto& entry = *state_->model.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

std::string ModelBuilder::serialize() const {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  TASO_CHECK(write(state_->model, stream), "a built model cannot be serialized");
  return bytes;
}

Status ModelBuilder::save(const std::string& path) const {
  constexpr std::size_t protobuf_limit = 0x7fffffff;
  const std::size_t bytes = state_->model.ByteSizeLong();
  if (bytes > protobuf_limit)
    return bad_input("the model has " + std::to_string(bytes) + " bytes; a file without external data holds 2 GiB",
                     {path});
  return replace_file(path, [&](const std::string& temporary) -> Status {
    std::ofstream file(temporary, std::ios::binary);
    {
      google::protobuf::io::OstreamOutputStream stream(&file);
      if (!write(state_->model, stream)) return bad_input("cannot write the model", {path});
    }
    file.close();
    if (!file) return bad_input("cannot write: " + std::string(std::strerror(errno)), {path});
    return {};
  });
}

}  // namespace taso
