/// Operators without a form in ONNX as functions of the model (ModelProto.functions), so that every runtime that knows
/// functions can run them: the body is the operator's definition, in operators of ONNX's own. Internal to onnx_io:
/// includes protobuf.
///
/// A body is made for the types of an application (operators/unfold.h) and may hold numbers that follow from them.
/// Applications with equal bodies share a function; the first function of an operator has the operator's name, others
/// are called "rms_norm.2", "rms_norm.3", ...: no operator of a specification has a '.' in its name, so that a node is
/// recognised whichever it calls.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "onnx_io/document.h"
#include "onnx_io/export.h"
#include "onnx_io/mapped.h"
#include "operators/registry.h"

namespace taso {

/// The first IR version with functions.
inline constexpr std::int64_t ir_version_of_functions = 8;

/// The operator that a node of the domain `taso` stands for: its type without what tells functions apart.
[[nodiscard]] inline std::string specified_operator(const std::string& op_type) {
  return op_type.substr(0, op_type.find('.'));
}

/// The functions that a model is written with besides its own.
class FunctionWriter {
 public:
  FunctionWriter(const Document& document, const MapWriter& maps, const OperatorRegistry& registry)
      : document_(document), maps_(maps), registry_(registry) {}

  /// The type of node that an application is written as, in the domain `taso`. `sizes`: what the graph's integers are,
  /// or null; then a function serves only if its body is the same at all samples. Without a function it is the
  /// operator's name, and without_function() says why.
  [[nodiscard]] std::string type_of(const Graph& graph, NodeId id, const SampledSizes* sizes);

  [[nodiscard]] const std::vector<onnx::FunctionProto>& functions() const { return functions_; }
  /// Why there is none, by operator.
  [[nodiscard]] const std::map<std::string, std::string>& without_function() const { return without_; }

 private:
  [[nodiscard]] Expected<onnx::FunctionProto> function_of(const Graph& graph, NodeId id,
                                                          const SampledSizes* sizes) const;
  [[nodiscard]] Expected<onnx::FunctionProto> body_of(const std::string& op, const Attributes& attributes,
                                                      std::span<const TensorType> inputs) const;
  [[nodiscard]] bool has_form(std::string_view op) const;

  const Document& document_;
  const MapWriter& maps_;
  const OperatorRegistry& registry_;
  std::vector<onnx::FunctionProto> functions_;
  std::map<std::string, std::string> names_;  ///< Of functions, by operator and body.
  std::set<std::string> taken_;
  std::map<std::string, std::string> without_;
};

}  // namespace taso
