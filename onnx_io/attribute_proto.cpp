#include "onnx_io/attribute_proto.h"

namespace taso {

void append_attribute(onnx::NodeProto& node, const OnnxAttribute& source) {
  struct Setter {
    onnx::AttributeProto& attribute;
    void operator()(std::int64_t v) const {
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(v);
    }
    void operator()(float v) const {
      attribute.set_type(onnx::AttributeProto::FLOAT);
      attribute.set_f(v);
    }
    void operator()(const std::string& v) const {
      attribute.set_type(onnx::AttributeProto::STRING);
      attribute.set_s(v);
    }
    void operator()(const std::vector<std::int64_t>& v) const {
      attribute.set_type(onnx::AttributeProto::INTS);
      for (std::int64_t element : v) attribute.add_ints(element);
    }
    void operator()(const std::vector<float>& v) const {
      attribute.set_type(onnx::AttributeProto::FLOATS);
      for (float element : v) attribute.add_floats(element);
    }
    void operator()(const std::vector<std::string>& v) const {
      attribute.set_type(onnx::AttributeProto::STRINGS);
      for (const std::string& element : v) attribute.add_strings(element);
    }
  };
  auto& attribute = *node.add_attribute();
  attribute.set_name(source.name);
  std::visit(Setter{attribute}, source.value);
}

}  // namespace taso
