/// What symbolic extents flow into while a model is imported at one size of them. Internal to onnx_io: includes
/// protobuf.
///
/// Shapes of a model with symbolic extents are numbers at the sizes given, and integer arithmetic on them is folded
/// like any other. How each integer is made of extents is noted, so that who takes the model at all sizes knows it
/// there: moving elements, sums, differences and products, and shapes of constants. What may be right at some sizes
/// only (a minimum, a quotient, a comparison) must not be folded.
///
/// Representation. Each integer that follows from extents is noted with how (SymbolicInteger, in
/// onnx_io/size_decisions.h). Per tensor that is a folded constant and has such elements, a constant of the same shape
/// says of each element which it is (the first one is 1), or that it is a number (0). A constant whose shape follows
/// from extents has shape_mark for each element instead, and the integers, or numbers, that its extents are. Its
/// elements repeat one, or count up: others are not folded, as no file could hold them for all sizes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "onnx_io/import.h"

namespace taso {

class SymbolFlow {
 public:
  /// Integers are noted in `decisions`.
  SymbolFlow(const Document& document, SizeDecisions& decisions)
      : document_(&document), decisions_(&decisions), flows_(document.tensors().size()) {}

  /// Says what the inputs' extents are: `symbols` of which `options` give sizes. `rounding`: some node rounds extents,
  /// besides those that are known here.
  void begin(const std::vector<Symbol>& symbols, const ImportOptions& options, bool rounding);
  [[nodiscard]] NodeContext::Sizes sizes() const { return sizes_; }
  /// Some elements of a constant, or its shape, follow from symbolic extents.
  [[nodiscard]] bool reaches(int tensor) const { return flows_[static_cast<std::size_t>(tensor)].elements != nullptr; }
  /// `to` is another name for `from`.
  void alias(int from, int to) { flows_[static_cast<std::size_t>(to)] = flows_[static_cast<std::size_t>(from)]; }

  /// Notes what flows into the output of a node that was folded to `folded`. A text is the reason why it must not be
  /// folded.
  [[nodiscard]] std::string fold(const NodeContext& context, const ConstantData& folded);
  /// A list that follows from symbolic extents where the importer would take it for numbers that are the same at all
  /// sizes: why the node is carried; else empty.
  [[nodiscard]] static std::string misuse(const NodeContext& context);
  /// How the extents of what a Reshape, Expand or Flatten makes follow from the list that it reads.
  [[nodiscard]] CarriedShape listed(const NodeContext& context);
  /// The integers in the lists that a node reads: positions in SizeDecisions::integers.
  [[nodiscard]] std::vector<std::size_t> read_by(const NodeContext& context) const;
  /// Notes which extents of what an Expand reads are those of its list; `reader` is a node of what it became.
  void note_expanded(const NodeContext& context, NodeId reader);

 private:
  using Data = std::shared_ptr<const ConstantData>;
  /// An integer (its position, from 1), or a number.
  struct Term {
    std::size_t integer = 0;
    std::int64_t value = 0;
  };
  struct Flow {
    Data elements;  ///< Null: nothing follows from extents.
    std::vector<Term> shape;
    /// Of integers that have a shape: the element at flat place i is start + i * step. Where they count, the start may
    /// follow from extents, and at most one extent is not 1.
    Term start;
    std::int64_t step = 0;
    [[nodiscard]] bool shaped() const { return !shape.empty(); }
  };

  [[nodiscard]] const Flow& flow_of(const NodeContext& context, std::size_t i) const;
  [[nodiscard]] std::vector<Term> terms_of(const NodeContext& context, std::size_t i) const;
  [[nodiscard]] std::vector<Term> extents_of(const NodeContext& context, std::size_t i);
  [[nodiscard]] Term combine(SymbolicInteger::Kind kind, Term a, Term b, std::int64_t value);
  [[nodiscard]] Term product(const std::vector<Term>& terms);
  [[nodiscard]] std::size_t integer_of(Term term);
  [[nodiscard]] Term note(SymbolicInteger integer);
  /// What flows into the output; nothing where that is not known.
  [[nodiscard]] std::optional<Flow> of_extents(const NodeContext& context, const ConstantData& folded);
  [[nodiscard]] std::optional<Flow> moved(const NodeContext& context);
  [[nodiscard]] std::optional<Flow> computed(const NodeContext& context, const ConstantData& folded);
  [[nodiscard]] std::optional<Flow> counted(const NodeContext& context, const ConstantData& folded);
  [[nodiscard]] std::optional<Flow> count_of(const NodeContext& context, std::size_t i) const;
  [[nodiscard]] std::optional<std::vector<Term>> common_extents(const NodeContext& context, std::size_t rank);
  [[nodiscard]] std::optional<Flow> chosen(const NodeContext& context, const ConstantData& folded) const;
  [[nodiscard]] bool is_decided(const NodeContext& context, const ConstantData& folded) const;
  [[nodiscard]] bool is_not_negative(Term term) const;
  [[nodiscard]] std::optional<Flow> repeated(const NodeContext& context, const ConstantData& folded);
  [[nodiscard]] std::optional<std::vector<Term>> shape_of_moved(const NodeContext& context);
  [[nodiscard]] std::optional<std::vector<Term>> reshaped(const NodeContext& context, const std::vector<Term>& extents);
  [[nodiscard]] std::optional<std::vector<Term>> flattened(const NodeContext& context);
  void mark_computed(std::size_t integer);

  const Document* document_;
  SizeDecisions* decisions_;
  NodeContext::Sizes sizes_ = NodeContext::Sizes::all;
  bool quotients_ = true;                                         ///< ImportOptions::quotients
  const std::map<std::string, std::string>* unfolded_ = nullptr;  ///< ImportOptions::unfolded
  std::string maker_;                                             ///< The node that is folded.
  bool describing_ = false;                                       ///< What is noted is not computed by the file.
  std::vector<Flow> flows_;
  using Key =
      std::tuple<SymbolicInteger::Kind, NodeId, std::uint32_t, std::size_t, std::size_t, std::size_t, std::int64_t>;
  std::map<Key, std::size_t> known_;  ///< Integers by how they are made.
};

}  // namespace taso
