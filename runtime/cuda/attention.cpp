#include "runtime/cuda/attention.h"

#include <algorithm>

#include "runtime/moves.h"

namespace taso::cuda {
namespace {

/// Rows, and where they begin, are multiples of so many elements: 16 bytes.
constexpr std::int64_t whole = 8;

bool is_product(const KernelRequest& request) { return request.op == "matmul"; }

/// With axes of extent 1 in front; nothing of more than four axes.
std::optional<AttentionOperand> four_axes(const MovedInput& moved) {
  if (!moved.access || moved.access->shape.size() > 4) return std::nullopt;
  AttentionOperand operand;
  operand.input = moved.input;
  operand.offset = moved.access->offset;
  const std::size_t first = 4 - moved.access->shape.size();
  for (std::size_t axis = 0; axis < moved.access->shape.size(); ++axis) {
    operand.extents[first + axis] = moved.access->shape[axis];
    operand.strides[first + axis] = moved.access->strides[axis];
  }
  return operand;
}

/// Whether the elements along the axis are neighbours, and all rows begin where they may. Axes of extent 1 get a stride
/// that says so, too.
bool has_rows_along(AttentionOperand& operand, std::size_t row_axis) {
  if (operand.strides[row_axis] != 1 || operand.extents[row_axis] % whole != 0 || operand.offset % whole != 0)
    return false;
  std::int64_t longest = operand.extents[row_axis];
  for (std::size_t axis = 0; axis < 4; ++axis)
    if (operand.extents[axis] > 1) longest = std::max(longest, operand.strides[axis] * operand.extents[axis]);
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (axis == row_axis) continue;
    if (operand.extents[axis] == 1) operand.strides[axis] = longest;
    if (operand.strides[axis] <= 0 || operand.strides[axis] % whole != 0) return false;
  }
  return true;
}

class AttentionFinder {
 public:
  explicit AttentionFinder(const KernelRequest& request) : fused_(*request.fused), moves_(request) {}

  PlannedAttention find() {
    if (!find_products()) return {std::nullopt, std::move(reason_)};
    // From the second product back to the first.
    const FusedPart& second = fused_.parts[products_[1]];
    std::optional<std::size_t> at = computed(second.sources[0]);
    if (!at || fused_.parts[*at].request.op != "softmax" || !is_last_axis(fused_.parts[*at].request))
      return decline("no softmax along the keys before the second product");
    ++computed_;
    at = computed(fused_.parts[*at].sources[0]);
    if (at && fused_.parts[*at].request.op == "add" && !read_mask(at)) return decline("a mask that is none");
    if (at && is_scaling(fused_.parts[*at].request) && !read_scale(at)) return decline("a scale that is none");
    if (at != products_[0]) return decline("what stands between the products is no attention");
    if (computed_ != parts_computing()) return decline("more than attention");
    return read_operands() ? PlannedAttention{plan_, ""} : decline("operands that no strides describe");
  }

 private:
  static PlannedAttention decline(std::string reason) { return {std::nullopt, std::move(reason)}; }

  bool find_products() {
    for (std::size_t i = 0; i < fused_.parts.size(); ++i)
      if (is_product(fused_.parts[i].request)) products_.push_back(i);
    if (products_.size() == 2) return true;
    reason_ = "two products are needed";
    return false;
  }

  [[nodiscard]] std::size_t parts_computing() const {
    return static_cast<std::size_t>(std::count_if(fused_.parts.begin(), fused_.parts.end(), [](const FusedPart& part) {
      return !is_product(part.request) && !only_moves(part.request);
    }));
  }

  /// The part that makes a value, if it is used as it is.
  static std::optional<std::size_t> computed(const FusedPart::Source& source) {
    return source.is_input ? std::nullopt : std::optional<std::size_t>(source.index);
  }

  static bool is_last_axis(const KernelRequest& softmax) { return softmax.attributes.integer("axis") == -1; }

  static bool is_scaling(const KernelRequest& request) {
    return request.op == "mul" || request.op == "smul" || request.op == "div";
  }

  /// The operand of a part of two that is computed; the other is an input, perhaps moved. Goes on to the part that
  /// computes it.
  std::optional<MovedInput> other_operand(std::optional<std::size_t>& at, bool in_order) {
    const FusedPart& part = fused_.parts[*at];
    for (const std::size_t other : {std::size_t{1}, std::size_t{0}}) {
      const MovedInput moved = moves_.source(part.sources[other]);
      const std::optional<std::size_t> before = computed(part.sources[1 - other]);
      if (!moved.access || !before || only_moves(fused_.parts[*before].request)) continue;
      if (in_order && other != 1) return std::nullopt;
      if (part.request.inputs[1 - other].type.shape != part.request.outputs[0].type.shape) return std::nullopt;
      ++computed_;
      at = before;
      return moved;
    }
    return std::nullopt;
  }

  bool read_mask(std::optional<std::size_t>& at) {
    const std::optional<MovedInput> moved = other_operand(at, false);
    if (!moved) return false;
    plan_.mask = four_axes(*moved);
    return plan_.mask.has_value();
  }

  bool read_scale(std::optional<std::size_t>& at) {
    plan_.divides = fused_.parts[*at].request.op == "div";
    const std::optional<MovedInput> moved = other_operand(at, plan_.divides);
    if (!moved || moved->access->offset != 0) return false;
    plan_.scale = moved->input;
    return std::all_of(moved->access->shape.begin(), moved->access->shape.end(),
                       [](std::int64_t extent) { return extent == 1; });
  }

  bool read_operands() {
    const FusedPart &first = fused_.parts[products_[0]], &second = fused_.parts[products_[1]];
    const auto q = four_axes(moves_.source(first.sources[0])), k = four_axes(moves_.source(first.sources[1])),
               v = four_axes(moves_.source(second.sources[1])), y = four_axes({0, moves_.result_of(products_[1])});
    if (!q || !k || !v || !y) return false;
    plan_.q = *q;
    plan_.k = *k;
    plan_.v = *v;
    plan_.y = *y;
    return has_rows_along(plan_.q, 3) && has_rows_along(plan_.k, 2) && has_rows_along(plan_.v, 3) &&
           has_rows_along(plan_.y, 3) && extents_fit();
  }

  [[nodiscard]] bool extents_fit() const {
    const auto &q = plan_.q.extents, &k = plan_.k.extents, &v = plan_.v.extents, &y = plan_.y.extents;
    bool fit = q[3] == k[2] && k[3] == v[2] && y == std::array<std::int64_t, 4>{q[0], q[1], q[2], v[3]};
    for (const std::size_t axis : {0U, 1U}) fit = fit && q[axis] == k[axis] && q[axis] == v[axis];
    const std::array<std::int64_t, 4> scores{q[0], q[1], q[2], k[3]};
    for (std::size_t axis = 0; plan_.mask && axis < 4; ++axis)
      fit = fit && (plan_.mask->extents[axis] == 1 || plan_.mask->extents[axis] == scores[axis]);
    return fit;
  }

  const Fused& fused_;
  const Moves moves_;
  AttentionPlan plan_;
  std::string reason_;
  std::vector<std::size_t> products_;
  std::size_t computed_ = 0;  ///< Parts that have been found to be softmax, mask or scale.
};

bool is_narrow_float(const Operand& operand) {
  return operand.type.known && operand.type.elements() > 0 && operand.layout == Layout::row_major &&
         (operand.type.element == ElementType::f16 || operand.type.element == ElementType::bf16);
}

}  // namespace

bool has_two_products(const KernelRequest& request) {
  return request.fused && std::count_if(request.fused->parts.begin(), request.fused->parts.end(),
                                        [](const FusedPart& part) { return is_product(part.request); }) == 2;
}

PlannedAttention plan_attention(const KernelRequest& request) {
  if (!has_two_products(request)) return {std::nullopt, "two products are needed"};
  if (request.outputs.size() != 1) return {std::nullopt, "several results"};
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands)
      if (!is_narrow_float(operand) || operand.type.element != request.outputs[0].type.element)
        return {std::nullopt, "only f16 or bf16, by rows"};
  return AttentionFinder(request).find();
}

}  // namespace taso::cuda
