/// What symbolic extents flow into while a model is imported at one size of them. Internal to onnx_io: includes
/// protobuf.
///
/// Shapes of a model with symbolic extents are numbers at the sizes given, and integer arithmetic on them is folded
/// like any other. That is right at all sizes only for arithmetic that shows its dependence when the model is imported
/// at other sizes (onnx_io/symbolic_export.h): moving elements, sums, differences and products, and shapes of
/// constants. What may be right at some sizes only (a minimum, a quotient, a comparison) must not be folded.
///
/// Representation. Per tensor that is a folded constant, a constant of the same shape that says of each element whether
/// it follows from symbolic extents: 0 (no), 1, or 2 (so does the constant's shape); null: none does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onnx_io/import.h"

namespace taso {

class SymbolFlow {
 public:
  explicit SymbolFlow(const Document& document) : document_(&document), flags_(document.tensors().size()) {}

  /// Says what the inputs' extents are: `symbols` of which `options` give sizes. `rounding`: some node rounds extents,
  /// besides those that are known here.
  void begin(const std::vector<Symbol>& symbols, const ImportOptions& options, bool rounding);
  [[nodiscard]] NodeContext::Sizes sizes() const { return sizes_; }
  /// Some elements of a constant, or its shape, follow from symbolic extents.
  [[nodiscard]] bool reaches(int tensor) const { return flags_[static_cast<std::size_t>(tensor)] != nullptr; }
  /// `to` is another name for `from`.
  void alias(int from, int to) { flags_[static_cast<std::size_t>(to)] = flags_[static_cast<std::size_t>(from)]; }

  /// Notes what flows into the output of a node that was folded to `folded`. A text is the reason why it must not be
  /// folded.
  [[nodiscard]] std::string fold(const NodeContext& context, const ConstantData& folded);
  /// A list that follows from symbolic extents where the importer would take it for numbers that are the same at all
  /// sizes: why the node is carried; else empty.
  [[nodiscard]] static std::string misuse(const NodeContext& context);

 private:
  using Flags = std::shared_ptr<const ConstantData>;
  [[nodiscard]] Flags moved(const NodeContext& context) const;

  const Document* document_;
  NodeContext::Sizes sizes_ = NodeContext::Sizes::all;
  std::vector<Flags> flags_;
};

}  // namespace taso
