/// TensorProto to constants and back. Internal to onnx_io: includes protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "graph/constant.h"
#include "onnx_io/external_data.h"
#include "onnx_io/wire.h"

namespace taso {

/// The IR's element type of an ONNX data_type; `other` for all that the IR only carries.
[[nodiscard]] ElementType element_of(std::int32_t data_type);
/// The ONNX data_type of an element type other than `other` (TASO_CHECK).
[[nodiscard]] std::int32_t data_type_of(ElementType element);
/// True for the numbers that ONNX gives to element types.
[[nodiscard]] bool is_known_data_type(std::int32_t data_type);
/// "FLOAT", "INT4", "type 99".
[[nodiscard]] std::string data_type_name(std::int32_t data_type);

/// "[1, 3, 224, 224]".
[[nodiscard]] inline std::string shape_text(const Shape& shape) {
  return to_string(std::span<const std::int64_t>(shape));
}

/// A tensor's shape and bytes, checked against each other.
struct TensorContents {
  TensorType type;  ///< `known` is false for element type `other`.
  std::int32_t data_type = 0;
  SharedBytes bytes;  ///< Row-major little-endian elements; empty for strings.
  bool external = false;
  bool absent = false;  ///< There are no bytes though there are elements (AbsentData::allowed).
};

/// Whether a tensor of numbers may be stored without its bytes: its external file is not there, or no field has any.
enum class AbsentData : std::uint8_t { refused, allowed };

/// Checks a tensor and finds its bytes: in the file they were taken from (kept alive by `owner`, perhaps mapped), in an
/// external file, or copied from raw_data or typed fields. Errors do not name the tensor.
[[nodiscard]] Expected<TensorContents> read_contents(const onnx::TensorProto& tensor, const wire::TakenData* taken,
                                                     ExternalData& external, const std::shared_ptr<const void>& owner,
                                                     bool mapped = false, AbsentData absent = AbsentData::refused);

/// The constant of contents whose element type is not `other`; where its bytes are absent only a shape, called `name`.
[[nodiscard]] std::shared_ptr<const ConstantData> make_constant(const TensorContents& contents,
                                                                const std::string& name = "");

}  // namespace taso
