#include "onnx_io/tensor_file.h"

#include "onnx_io/tensor_proto.h"
#include "support/file.h"

namespace taso {

Expected<std::shared_ptr<const ConstantData>> load_tensor(const std::string& path) {
  TASO_ASSIGN(const std::string bytes, read_file(path));
  onnx::TensorProto tensor;
  if (bytes.empty() || !tensor.ParseFromString(bytes)) return bad_input("not an ONNX tensor", {path});
  ExternalData external(path);
  auto contents = read_contents(tensor, nullptr, external, nullptr);
  if (!contents) return bad_input("not an ONNX tensor: " + contents.error().message, {path});
  if (contents->type.element == ElementType::other)
    return bad_input("tensors of " + data_type_name(contents->data_type) + " cannot be read", {path});
  return make_constant(*contents);
}

Status save_tensor(const std::string& path, const std::string& name, const ConstantData& data) {
  if (data.type().element == ElementType::other)
    return bad_input("the tensor's element type cannot be written", {path});
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(data_type_of(data.type().element));
  for (std::int64_t extent : data.type().shape) tensor.add_dims(extent);
  const std::vector<std::byte> bytes = data.to_bytes();
  tensor.set_raw_data(bytes.data(), bytes.size());
  return write_file_atomically(path, tensor.SerializeAsString());
}

}  // namespace taso
