#include "onnx_io/external_files.h"

#include <google/protobuf/message.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "onnx_io/wire.h"
#include "support/file.h"

namespace taso {
namespace {

/// Adds the locations that tensors anywhere in a message name.
void collect(const google::protobuf::Message& message, std::vector<std::string>& locations) {
  if (message.GetDescriptor() == onnx::TensorProto::descriptor()) {
    const auto& tensor = static_cast<const onnx::TensorProto&>(message);
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    for (const auto& entry : tensor.external_data())
      if (entry.key() == "location" && std::find(locations.begin(), locations.end(), entry.value()) == locations.end())
        locations.push_back(entry.value());
    return;
  }
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      collect(reflection.GetMessage(message, field), locations);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      collect(reflection.GetRepeatedMessage(message, field, i), locations);
  }
}

std::vector<std::string> files_of(const google::protobuf::Message& message, const std::string& path) {
  std::vector<std::string> files;
  collect(message, files);
  for (std::string& file : files) file = (std::filesystem::path(path).parent_path() / file).string();
  return files;
}

}  // namespace

std::vector<std::string> external_data_of_model(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return {};
  const auto skeleton = wire::take_weights_out((*file)->bytes(), path);
  if (!skeleton || skeleton->bytes.size() > std::numeric_limits<int>::max()) return {};
  onnx::ModelProto model;
  if (!model.ParseFromArray(skeleton->bytes.data(), static_cast<int>(skeleton->bytes.size()))) return {};
  return files_of(model, path);
}

std::vector<std::string> external_data_of_tensor(const std::string& path) {
  const auto bytes = read_file(path);
  onnx::TensorProto tensor;
  if (!bytes || !tensor.ParseFromString(*bytes)) return {};
  return files_of(tensor, path);
}

}  // namespace taso
