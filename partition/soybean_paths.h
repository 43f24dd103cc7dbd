/// Sequences of aligned forms and of tilings, and what it costs to come from the one to the other. Private to the
/// folder.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "partition/placement.h"
#include "partition/soybean.h"

namespace taso {

/// Aligned forms of pieces, each asked for once. Pieces differ in their places, too.
class FormTable {
 public:
  explicit FormTable(StrategyTable& strategies) : strategies_(strategies) {}
  using Forms = std::vector<std::shared_ptr<const AlignedForm>>;
  [[nodiscard]] const Forms& of(const OperatorPiece& piece);

 private:
  StrategyTable& strategies_;
  std::map<std::string, Forms> known_;
};

/// A form per cut, each of the first piece of the one before.
using FormPath = std::vector<std::shared_ptr<const AlignedForm>>;

/// Which forms are looked at; empty: all.
using FormFilter = std::function<bool(const AlignedForm&)>;

/// All of a piece, of so many cuts: at each of the forms that are allowed, of all if none is.
[[nodiscard]] std::vector<FormPath> form_paths(const OperatorPiece& piece, std::size_t cuts, FormTable& forms,
                                               const FormFilter& allowed = {});
/// The one that cuts these variables (AlignedForm::variable), which there is (TASO_CHECK).
[[nodiscard]] FormPath form_path(const OperatorPiece& piece, const std::vector<std::string>& variables,
                                 FormTable& forms);
/// All tilings of a tensor: T^cuts.
[[nodiscard]] std::vector<Tiling> tilings_of(const Shape& shape, std::size_t cuts);

/// An operand or a result of an operator.
struct OperandPlace {
  bool output = false;
  std::size_t number = 0;
  auto operator<=>(const OperandPlace&) const = default;
};

/// What each cut costs in one group, of a tensor of a type.
[[nodiscard]] std::vector<double> cut_costs(const OperatorPiece& piece, const FormPath& path, OperandPlace place,
                                            const TensorType& type, const Tiling& tiling);
/// The sum of 2^i times the i-th.
[[nodiscard]] double weighted_sum(const std::vector<double>& cut_costs);

/// Where a tensor is, one box per device; the device's number has a bit per cut, the first cut's highest.
[[nodiscard]] Placement placement_of(const Shape& shape, const Tiling& tiling);
/// Where devices need an operand, or have a result, of an operator whose pieces follow the variables of a path.
[[nodiscard]] Placement placement_of(const OperatorPiece& piece, const FormPath& path, OperandPlace place,
                                     FormTable& forms);
/// A mesh of so many axes of two devices, all links alike.
[[nodiscard]] Mesh binary_mesh(std::size_t cuts);

}  // namespace taso
