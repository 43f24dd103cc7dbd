/// Builds ONNX models without Python: for examples, tests and fixtures.
///
///   ModelBuilder model(17, "mlp");
///   model.add_input("x", {1, 64});
///   model.add_initializer("w", {64, 10}, weights);
///   model.add_node("MatMul", {"x", "w"}, {"y"});
///   model.add_output("y", {1, 10});
///   Status status = model.save("mlp.onnx");
///
/// Nothing is checked while building; Model::load checks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/tensor_type.h"
#include "support/status.h"

namespace taso {

/// The value of an ONNX attribute. `float` becomes FLOAT, std::int64_t INT, and so on.
using OnnxAttributeValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                                        std::vector<std::string>>;

/// A named ONNX attribute. Integers of any width are INT, double literals are FLOAT, so that
/// {"axis", 1}, {"alpha", 0.1}, {"auto_pad", "SAME_UPPER"} and {"pads", {1, 1, 1, 1}} mean what they say.
struct OnnxAttribute {
  OnnxAttribute(std::string attribute_name, int v) : name(std::move(attribute_name)), value(std::int64_t{v}) {}
  OnnxAttribute(std::string attribute_name, std::int64_t v) : name(std::move(attribute_name)), value(v) {}
  OnnxAttribute(std::string attribute_name, float v) : name(std::move(attribute_name)), value(v) {}
  OnnxAttribute(std::string attribute_name, double v) : name(std::move(attribute_name)), value(static_cast<float>(v)) {}
  OnnxAttribute(std::string attribute_name, const char* v) : name(std::move(attribute_name)), value(std::string(v)) {}
  OnnxAttribute(std::string attribute_name, std::string v) : name(std::move(attribute_name)), value(std::move(v)) {}
  OnnxAttribute(std::string attribute_name, std::initializer_list<std::int64_t> v)
      : name(std::move(attribute_name)), value(std::vector<std::int64_t>(v)) {}
  OnnxAttribute(std::string attribute_name, std::vector<std::int64_t> v)
      : name(std::move(attribute_name)), value(std::move(v)) {}
  OnnxAttribute(std::string attribute_name, std::vector<float> v)
      : name(std::move(attribute_name)), value(std::move(v)) {}
  OnnxAttribute(std::string attribute_name, std::vector<std::string> v)
      : name(std::move(attribute_name)), value(std::move(v)) {}

  std::string name;
  OnnxAttributeValue value;
};

/// An ONNX model under construction. Inputs, outputs and initializers are f32 unless said otherwise.
class ModelBuilder {
 public:
  explicit ModelBuilder(int opset = 17, const std::string& graph_name = "graph");
  ~ModelBuilder();
  ModelBuilder(ModelBuilder&&) noexcept;
  ModelBuilder& operator=(ModelBuilder&&) noexcept;

  void add_input(const std::string& name, const Shape& shape, ElementType element = ElementType::f32);
  /// An input with symbolic extents: a text that is not a number is a symbol, {"N", "3", "H", "W"}.
  void add_symbolic_input(const std::string& name, const std::vector<std::string>& extents,
                          ElementType element = ElementType::f32);
  void add_output(const std::string& name, const Shape& shape, ElementType element = ElementType::f32);
  void add_symbolic_output(const std::string& name, const std::vector<std::string>& extents,
                           ElementType element = ElementType::f32);

  /// The number of values must be the shape's volume (TASO_CHECK).
  void add_initializer(const std::string& name, const Shape& shape, std::span<const float> values);
  void add_initializer(const std::string& name, const Shape& shape, std::span<const std::int64_t> values);
  /// Elements of type BOOL, one byte for each: 0 or 1.
  void add_boolean_initializer(const std::string& name, const Shape& shape, std::span<const std::uint8_t> values);

  /// A float initializer whose data are said to lie in the file `location` beside the model, which nobody writes: one
  /// after the other, in the order of calls.
  void add_absent_initializer(const std::string& name, const Shape& shape, const std::string& location);

  /// Appends a node. Empty input names stand for absent optional inputs.
  void add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, const std::vector<OnnxAttribute>& attributes = {},
                const std::string& name = "", const std::string& domain = "");

  /// Another operator set than the default one, such as ("com.microsoft", 1).
  void add_opset(const std::string& domain, std::int64_t version);
  void set_ir_version(std::int64_t version);
  void set_metadata(const std::string& key, const std::string& value);

  /// The serialized model; equal calls give equal bytes.
  [[nodiscard]] std::string serialize() const;
  /// Writes the model (temporary file, then rename).
  [[nodiscard]] Status save(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taso
