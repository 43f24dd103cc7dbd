#include "runtime/cuda/products.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "runtime/access.h"
#include "runtime/moves.h"

namespace taso::cuda {
namespace {

constexpr std::int64_t most_products = 256;  ///< Launches of one kernel.

/// A matrix with strides: rows, columns.
struct Matrix {
  std::int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;
};

/// One leading axis: its extent, and the operands' strides along it (b's is 0 where b does not have it).
struct Axis {
  std::int64_t extent = 1, a = 0, b = 0, y = 0;
};

/// As rows one after the other, that is column-major with rows and columns exchanged.
std::optional<ColumnMajor> by_rows(const Matrix& matrix) {
  if (matrix.columns != 1 && matrix.column_stride != 1) return std::nullopt;
  const std::int64_t leading = matrix.rows == 1 ? matrix.columns : matrix.row_stride;
  if (leading < matrix.columns) return std::nullopt;
  return ColumnMajor{matrix.columns, matrix.rows, leading, 0, false};
}
std::optional<ColumnMajor> by_columns(const Matrix& matrix) {
  return by_rows({matrix.columns, matrix.rows, matrix.column_stride, matrix.row_stride});
}

/// The matrix as an operand of a product in which it is read as stored by rows (`rows`: its transpose is what a
/// column-major library sees) or by columns.
std::optional<ColumnMajor> operand(const Matrix& matrix, bool wants_rows) {
  auto direct = wants_rows ? by_rows(matrix) : by_columns(matrix);
  if (direct) return direct;
  auto other = wants_rows ? by_columns(matrix) : by_rows(matrix);
  if (other) other->transposed = true;
  return other;
}

PlannedProduct decline(std::string reason) { return {std::nullopt, std::move(reason)}; }

/// A product's operands where they lie.
struct ProductOperands {
  Access a, b, y;
  std::size_t a_input = 0, b_input = 1, bias_input = 2;
};

bool is_image(const Operand& operand) {
  return operand.layout == Layout::channels_last || block_of(operand.layout) != 0;
}

/// False, with a reason, if something else than moving happens round the product.
bool resolve(const KernelRequest& request, ProductOperands& operands, std::string& reason) {
  const Fused& fused = *request.fused;
  if (fused.results.size() != 1) return (reason = "several results", false);
  const Moves moves(request);
  std::size_t number = 0;
  for (std::size_t i = 0; i < fused.parts.size(); ++i) {
    const KernelRequest& part = fused.parts[i].request;
    if (&part == product_in(request))
      number = i;
    else if (!only_moves(part))
      return (reason = "a product with " + part.op, false);
  }
  const FusedPart& product = fused.parts[number];
  MovedInput a = moves.source(product.sources[0]), b = moves.source(product.sources[1]);
  if (!a.access || !b.access) return (reason = "an operand that no strides describe", false);
  std::optional<Access> y = moves.result_of(number);
  if (!y) return (reason = "a result that no strides describe", false);
  operands = {std::move(*a.access), std::move(*b.access), std::move(*y), a.input, b.input, 2};
  if (product.sources.size() < 3) return true;
  operands.bias_input = product.sources[2].index;
  if (!product.sources[2].is_input) return (reason = "a bias that is no input", false);
  return true;
}

}  // namespace

const KernelRequest* product_in(const KernelRequest& request) {
  const auto is_product = [](const KernelRequest& one) { return one.op == "matmul" || one.op == "matmul_bias_act"; };
  if (!request.fused) return is_product(request) ? &request : nullptr;
  const KernelRequest* found = nullptr;
  for (const FusedPart& part : request.fused->parts) {
    if (!is_product(part.request)) continue;
    if (found != nullptr) return nullptr;
    found = &part.request;
  }
  return found;
}

PlannedProduct plan_product(const KernelRequest& request) {
  const KernelRequest* product = product_in(request);
  if (product == nullptr || product->inputs.size() < 2 || product->outputs.size() != 1)
    return decline("one product of two operands is needed");
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands)
      if (is_image(operand)) return decline("no matrices in layouts of images");
  ProductOperands operands;
  if (!request.fused) {
    operands = {access_of(request.inputs[0]), access_of(request.inputs[1]), access_of(request.outputs[0]), 0, 1, 2};
  } else if (std::string reason; !resolve(request, operands, reason)) {
    return decline(std::move(reason));
  }
  const Access &a = operands.a, &b = operands.b, &y = operands.y;
  const std::size_t rank = a.shape.size(), of_b = b.shape.size();
  if (of_b < 2 || rank < of_b || y.shape.size() != rank) return decline("rank 2 or more is needed, of a as of b");
  const std::vector<std::int64_t>&sa = a.strides, &sb = b.strides, &sy = y.strides;
  Matrix ma{a.shape[rank - 2], a.shape[rank - 1], sa[rank - 2], sa[rank - 1]};
  const Matrix mb{b.shape[of_b - 2], b.shape[of_b - 1], sb[of_b - 2], sb[of_b - 1]};
  Matrix my{y.shape[rank - 2], y.shape[rank - 1], sy[rank - 2], sy[rank - 1]};
  if (ma.columns != mb.rows || my.rows != ma.rows || my.columns != mb.columns)
    return decline("the operands' extents do not fit");

  // Leading axes, merged where all operands allow, innermost last.
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
    const std::int64_t extent = a.shape[axis];
    if (extent == 1) continue;
    const bool in_b = axis + of_b >= rank;
    const Axis next{extent, sa[axis], in_b ? sb[axis + of_b - rank] : 0, sy[axis]};
    if (!axes.empty() && axes.back().a == next.a * extent && axes.back().b == next.b * extent &&
        axes.back().y == next.y * extent)
      axes.back() = {axes.back().extent * extent, next.a, next.b, next.y};
    else
      axes.push_back(next);
  }
  // An axis that b has not, and along which rows go on regularly, is more rows.
  for (std::size_t i = axes.size(); i-- > 0;) {
    const Axis& axis = axes[i];
    if (axis.b != 0) continue;
    Matrix more_a = ma, more_y = my;
    if (ma.rows == 1) {
      more_a.row_stride = axis.a;
      more_y.row_stride = axis.y;
    } else if (axis.a != ma.row_stride * ma.rows || axis.y != my.row_stride * my.rows) {
      continue;
    }
    more_a.rows *= axis.extent;
    more_y.rows *= axis.extent;
    if (!operand(more_a, true) || !operand(more_y, true)) continue;  // one row may lie as more may not
    ma = more_a;
    my = more_y;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
  }

  ProductPlan plan;
  plan.a = operands.a_input;
  plan.b = operands.b_input;
  plan.bias = operands.bias_input;
  // A row-major y is the column-major transpose: y' = b' a'.
  std::optional<ColumnMajor> result = by_rows(my);
  plan.swapped = result.has_value();
  if (!result) result = by_columns(my);
  const auto of_a = operand(ma, plan.swapped), of_second = operand(mb, plan.swapped);
  if (!result || !of_a || !of_second) return decline("an operand is contiguous along neither rows nor columns");
  plan.first = plan.swapped ? *of_second : *of_a;
  plan.second = plan.swapped ? *of_a : *of_second;
  plan.result = *result;

  // One axis is the library's batch, the longest; the others are products of their own.
  if (!axes.empty()) {
    const auto longest =
        std::max_element(axes.begin(), axes.end(), [](const Axis& l, const Axis& r) { return l.extent < r.extent; });
    plan.batch = longest->extent;
    (plan.swapped ? plan.second : plan.first).batch_stride = longest->a;
    (plan.swapped ? plan.first : plan.second).batch_stride = longest->b;
    plan.result.batch_stride = longest->y;
    axes.erase(longest);
  }
  std::int64_t products = 1;
  for (const Axis& axis : axes) products *= axis.extent;
  if (products > most_products) return decline("batches in more than one direction");
  plan.offsets.assign(1, {a.offset, b.offset, y.offset});
  for (const Axis& axis : axes) {
    std::vector<ProductPlan::Offsets> all;
    for (const ProductPlan::Offsets& begin : plan.offsets)
      for (std::int64_t i = 0; i < axis.extent; ++i)
        all.push_back({begin.a + i * axis.a, begin.b + i * axis.b, begin.y + i * axis.y});
    plan.offsets = std::move(all);
  }
  return {std::move(plan), ""};
}

bool is_one_product(const KernelRequest& request) {
  const KernelRequest* product = product_in(request);
  if (product == nullptr) return false;
  const PlannedProduct planned = plan_product(request);
  if (!planned.plan || planned.plan->offsets.size() != 1) return false;
  const AttributeValue* act = product->attributes.find("act");
  const bool plain =
      act == nullptr || product->attributes.symbol("act") == "identity" || product->attributes.symbol("act") == "relu";
  const bool biased = product->inputs.size() == 3;
  // Else a pass of our own follows, over a result as it is.
  const Fused& fused = *request.fused;
  return &fused.parts[fused.results[0].index].request == product || (plain && (!biased || planned.plan->swapped));
}

bool is_as_good_within(const KernelRequest& request) {
  KernelRequest alone = request;
  for (Operand& output : alone.outputs) output.within = {};
  const PlannedProduct within = plan_product(request), plain = plan_product(alone);
  // Where the bias goes along the library's columns, it is added by a pass of our own.
  return within.plan && plain.plan && within.plan->offsets.size() <= plain.plan->offsets.size() &&
         within.plan->swapped == plain.plan->swapped;
}

std::string to_string(const ChosenAlgorithm& algorithm) {
  std::string text = "algorithm";
  for (const std::uint64_t word : algorithm.words) {
    std::array<char, 16> digits{};
    const auto [end, failure] = std::to_chars(digits.data(), digits.data() + digits.size(), word, 16);
    text += ' ' + std::string(digits.data(), end);
  }
  return text + "; " + algorithm.description;
}

std::optional<ChosenAlgorithm> parse_algorithm(std::string_view text) {
  constexpr std::string_view head = "algorithm", between = "; ";
  if (!text.starts_with(head)) return std::nullopt;
  text.remove_prefix(head.size());
  ChosenAlgorithm algorithm;
  for (std::uint64_t& word : algorithm.words) {
    if (!text.starts_with(' ')) return std::nullopt;
    const auto [end, failure] = std::from_chars(text.data() + 1, text.data() + text.size(), word, 16);
    if (failure != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  if (!text.starts_with(between)) return std::nullopt;
  algorithm.description = text.substr(between.size());
  return algorithm;
}

}  // namespace taso::cuda
