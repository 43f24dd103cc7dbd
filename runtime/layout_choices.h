/// The configurations in which one node may work: the part of a layout space that needs to know operators. Private to
/// the folder.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "runtime/configuration.h"

namespace taso {

/// A set of layouts: a bit for each.
using LayoutSet = std::uint8_t;
constexpr LayoutSet set_of(Layout layout) { return static_cast<LayoutSet>(1U << static_cast<unsigned>(layout)); }
constexpr std::array<Layout, layout_count> all_layouts = {
    Layout::row_major,     Layout::channels_last, Layout::column_major, Layout::rows_outer,
    Layout::columns_outer, Layout::blocks_of_8,   Layout::blocks_of_16};
/// Those that are an order of axes.
constexpr std::array<Layout, 5> orders = {Layout::row_major, Layout::channels_last, Layout::column_major,
                                          Layout::rows_outer, Layout::columns_outer};

/// What is known of a node's operand when its configurations are made.
struct OperandLayouts {
  const TensorType* type = nullptr;
  bool weight = false;
  LayoutSet available = 0;  ///< Layouts in which it may be there, besides row_major.
};

/// The layouts that readers of a node's outputs profit from.
struct ReaderPreferences {
  LayoutSet transposed = 0;  ///< Of a product: layouts in which a transpose behind it is a view of rows.
  bool images = false;       ///< A convolution or pooling reads output 0.
  bool piece = false;        ///< Output 0 may become a piece of a concatenation.
  bool in_place = false;     ///< Of a concatenation: its operands may be pieces.
};

using Choices = std::vector<std::shared_ptr<const Configuration>>;

/// Makes configurations: `blocks` as for LayoutSpaces. The kernels must outlive it.
class LayoutChoices {
 public:
  LayoutChoices(PlannedKernels& kernels, std::optional<Layout> blocks) : kernels_(kernels), blocks_(blocks) {}

  /// Not empty. The types of all outputs are known.
  [[nodiscard]] Choices of(const Node& node, const Behaviour& traits, std::span<const OperandLayouts> in,
                           const ReaderPreferences& preferences);

 private:
  using Operands = std::span<const OperandLayouts>;
  std::shared_ptr<const Configuration> kernel_choice(const Node& node, Operands in, std::vector<Layout> inputs,
                                                     std::vector<Layout> outputs);
  void operators_on_images(Choices& choices, const Node& node, const Behaviour& traits, Operands in);
  [[nodiscard]] bool can_be_blocked(const Node& node, Operands in) const;
  void follow(Choices& choices, const Node& node, const Behaviour& traits, Operands in,
              const ReaderPreferences& preferences, Layout layout);
  Choices transposes(const Node& node, Operands in, const ReaderPreferences& preferences);
  void products(Choices& choices, const Node& node, Operands in, const ReaderPreferences& preferences);

  PlannedKernels& kernels_;
  std::optional<Layout> blocks_;
};

}  // namespace taso
