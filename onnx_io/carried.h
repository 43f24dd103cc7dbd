/// Why nodes of a document are carried, and how much of the model is. Internal to onnx_io: includes protobuf.
///
/// The importer notes of each carried node what was in its way (Refusal). Whether that is a reason of its own is found
/// out afterwards: a node that was refused since the type, or the numbers, of something that it reads are not known,
/// stands behind the carried node that computes it, if that is why they are not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx_io/document.h"
#include "onnx_io/model.h"
#include "operators/coverage.h"
#include "operators/registry.h"

namespace taso {

struct ImportedModel;  // onnx_io/import.h

/// What is in the way of importing a node.
enum class Obstacle : std::uint8_t {
  form,            ///< An attribute, an operand or a shape that is not understood.
  operator_type,   ///< The operator.
  map,             ///< No line of a map is for the node.
  constants_only,  ///< The operator is computed if what it reads is constant, and not otherwise.
  element_type,    ///< The elements are not f32.
  unknown_type,    ///< The type of something that is read is not known.
  not_constant,    ///< Something that is read as numbers is not constant.
  symbolic,        ///< What it does may be something else at other sizes of symbolic extents.
  opset,           ///< The model is older than what is understood.
};

/// Why the importer has not taken a node.
struct Refusal {
  std::string reason;  ///< In words, of the node itself.
  Obstacle obstacle = Obstacle::form;
  std::size_t input = 0;  ///< Of not_constant: the position of what is read.
};

/// A node that is carried.
struct CarriedRecord {
  Refusal refusal;
  std::optional<double> flops;  ///< An estimate, where types and meaning are known.
};

/// The nodes that are carried and that outputs need, in the document's order.
[[nodiscard]] std::vector<CarriedNode> explain_carried(const Document& document, const ImportedModel& imported);
/// How much of the model is understood.
[[nodiscard]] Coverage coverage_of(const Document& document, const ImportedModel& imported,
                                   const OperatorRegistry& registry);

}  // namespace taso
