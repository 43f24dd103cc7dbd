/// The ways in which single nodes can be computed: what the lowering emits and the choice of layouts ranges over.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"
#include "runtime/kernel.h"
#include "support/hash.h"

namespace taso {

class OperatorRegistry;  // operators/registry.h

/// A kernel request with its key, shared between all places that need the same kernel.
struct PlannedKernel {
  KernelRequest request;
  std::string key;           ///< request.key().
  Hash128 key_hash;          ///< hash_text(key).
  std::uint32_t number = 0;  ///< Among the kernels of the PlannedKernels that made it, from 0.
};

/// The layouts of operands and results that an operator's kernels work in.
enum class LayoutPreference : std::uint8_t {
  row,       ///< Row-major in and out.
  spatial,   ///< Input 0, a residual and the outputs in one layout, all else row-major; channels_last unless costs say
             ///< otherwise.
  follower,  ///< Operands of full rank in one layout, whichever they come in.
  channel,   ///< Input 0 and the outputs in one layout, all else row-major.
  product,   ///< Every operand in a layout of its own (matrices and batches of them by strides), the bias row-major.
};

/// How an operator may come out as a view.
enum class ViewKind : std::uint8_t { none, reshape, broadcast, transpose, split, slice, concat };

struct Behaviour {
  LayoutPreference preference = LayoutPreference::row;
  ViewKind view = ViewKind::none;
  bool folds_broadcast = false;  ///< A broadcast that feeds it is part of its kernel.
  bool any_order = false;        ///< A follower whose kernels take every order of axes, not just channels_last.
  bool blocks = false;           ///< Its kernels take blocks of channels.
  std::size_t residual = 0;      ///< Of a spatial operator: the input that is added to the result; 0: there is none.

  /// Whether input `i` of a spatial or channel operator is an image in the layout of the outputs.
  [[nodiscard]] bool is_image(std::size_t i) const { return i == 0 || i == residual; }
};

/// Of element-wise operators it follows from the definition; others that the table does not list are row-major kernels.
[[nodiscard]] const Behaviour& behaviour_of(std::string_view op, const OperatorRegistry& registry);
/// Behaviour::residual of an operator.
[[nodiscard]] std::size_t residual_of(std::string_view op);

/// Whether tensors of a type are kept in other orders than rows: those computed in f32.
[[nodiscard]] bool has_layouts(ElementType type);
/// channels_last is for images of such elements.
[[nodiscard]] bool can_be_channels_last(const TensorType& type);

/// One way to compute a node.
struct Configuration {
  enum class Kind : std::uint8_t {
    kernel,
    view,      ///< Of input 0; no kernel.
    in_place,  ///< A concatenation that the kernels of its operands write: no kernel.
  };
  Kind kind = Kind::kernel;
  /// A view of a kernel's whole output that becomes a piece of a concatenation made in place.
  bool claims = false;
  /// Per input. Of an operator that folds broadcasts: what the broadcast reads.
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  std::vector<std::int64_t> offsets;  ///< Of a view, per output, in bytes.
  std::shared_ptr<const PlannedKernel> kernel;
};

/// A configuration per node id; null where the runtime's rule decides.
using LayoutAssignment = std::vector<std::shared_ptr<const Configuration>>;

/// Offsets in bytes of the outputs of a split or slice in the memory of its input, if they are ranges of bytes there.
[[nodiscard]] std::optional<std::vector<std::int64_t>> split_offsets(const Node& node, const TensorType& input,
                                                                     Layout layout);
[[nodiscard]] std::optional<std::vector<std::int64_t>> slice_offsets(const Node& node, const TensorType& input,
                                                                     Layout layout);
/// Whether the bytes of the transposed tensor's input in layout `from` are its output in layout `to`.
[[nodiscard]] bool transpose_moves_nothing(const Node& node, const TensorType& input, Layout from, Layout to);

/// The axis of an attribute (negative: from the end) as a position.
[[nodiscard]] std::size_t axis_of(std::int64_t axis, std::size_t rank);

/// An operand of a kernel that is looked for: an Operand whose type is kept by someone else.
struct OperandView {
  const TensorType* type = nullptr;
  Layout layout = Layout::row_major;
  bool weight = false;
};

/// Kernels by request, remembered. Not thread-safe.
class PlannedKernels {
 public:
  /// `cached_tenths`: see KernelRequest. `float_storage`: the type in which kernels find what is f32 in the graph.
  explicit PlannedKernels(int threads, int cached_tenths = 0, ElementType float_storage = ElementType::f32)
      : threads_(threads), cached_tenths_(cached_tenths), float_storage_(float_storage) {}
  /// The kernel of a node on `operands` with outputs in `layouts` (one per output). What these return stays.
  [[nodiscard]] const std::shared_ptr<const PlannedKernel>& of_node(const Node& node,
                                                                    std::span<const OperandView> operands,
                                                                    std::span<const Layout> layouts);
  [[nodiscard]] const std::shared_ptr<const PlannedKernel>& reorder(const TensorType& type, Layout from, Layout to);
  /// How many there are, and one of them.
  [[nodiscard]] std::size_t size() const { return by_number_.size(); }
  [[nodiscard]] const std::shared_ptr<const PlannedKernel>& at(std::uint32_t number) const {
    return by_number_[number];
  }

 private:
  [[nodiscard]] std::shared_ptr<const PlannedKernel> finish(KernelRequest request);
  int threads_;
  int cached_tenths_;
  ElementType float_storage_;
  std::unordered_map<Hash128, std::shared_ptr<const PlannedKernel>> kernels_;
  std::vector<std::shared_ptr<const PlannedKernel>> by_number_;
};

/// A fast 128-bit mixing of words, for keys that live in this process only.
class Mixer {
 public:
  void add(std::uint64_t word) {
    high_ = (high_ ^ word) * 0x9e3779b97f4a7c15ULL;
    high_ ^= high_ >> 32;
    low_ = (low_ + word) * 0xd6e8feb86659fd93ULL;
    low_ ^= (low_ >> 29) ^ high_;
  }
  void add(const Hash128& hash) {
    add(hash.high);
    add(hash.low);
  }
  void add(const TensorType& type) {
    add((static_cast<std::uint64_t>(type.element) << 8) | type.shape.size());
    for (const std::int64_t extent : type.shape) add(static_cast<std::uint64_t>(extent));
  }
  [[nodiscard]] Hash128 finish() const { return {high_, low_}; }

 private:
  std::uint64_t high_ = 0x243f6a8885a308d3ULL, low_ = 0x13198a2e03707344ULL;
};

}  // namespace taso
