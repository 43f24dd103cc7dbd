#include "rule_io/vocabulary.h"

#include <algorithm>
#include <array>

namespace taso::rule_io {
namespace {

using enum OperatorType;
using P = Parameter;

const std::vector<OperatorKind>& kinds() {
  static const std::vector<OperatorKind> table = {
      {conv2d, "conv2d", 2, 2, {P::stride_h, P::stride_w, P::pad, P::acti}, {P::kernel_h, P::kernel_w}},
      {pool2d_max,
       "pool2d_max",
       1,
       1,
       {P::kernel_h, P::kernel_w, P::stride_h, P::stride_w, P::pad, P::acti},
       {P::op_type}},
      {pool2d_avg,
       "pool2d_avg",
       1,
       1,
       {P::kernel_h, P::kernel_w, P::stride_h, P::stride_w, P::pad, P::acti},
       {P::op_type}},
      {relu, "relu", 1, 1, {}, {}},
      {sigmoid, "sigmoid", 1, 1, {}, {}},
      {OperatorType::tanh, "tanh", 1, 1, {}, {}},
      {concat, "concat", 2, 32, {P::axis, P::numdim}, {P::num_inputs}},
      {split, "split", 1, 1, {P::axis, P::num_outputs}, {}},
      {transpose, "transpose", 1, 1, {P::numdim, P::perm}, {P::outshuffle}},
      {ewadd, "ewadd", 2, 2, {}, {}},
      {ewmul, "ewmul", 2, 2, {}, {}},
      {matmul, "matmul", 2, 2, {P::acti}, {}},
      {scalar_mul, "scalar_mul", 2, 2, {}, {}},
      {enlarge, "enlarge", 1, 2, {}, {P::kernel_h, P::kernel_w}},
      {const_imm, "const_imm", 0, 0, {}, {}},
      {const_iconv, "const_iconv", 0, 0, {P::kernel_h, P::kernel_w}, {}},
      {const_one, "const_one", 0, 0, {}, {}},
      {const_pool, "const_pool", 0, 0, {P::kernel_h, P::kernel_w}, {}},
  };
  return table;
}

// In the order of OpType.
constexpr std::array<std::string_view, 59> operator_names = {"input",
                                                             "weight",
                                                             "any",
                                                             "conv2d",
                                                             "dropout",
                                                             "linear",
                                                             "pool2d_max",
                                                             "pool2d_avg",
                                                             "relu",
                                                             "sigmoid",
                                                             "tanh",
                                                             "batchnorm",
                                                             "concat",
                                                             "split",
                                                             "reshape",
                                                             "transpose",
                                                             "ewadd",
                                                             "ewmul",
                                                             "matmul",
                                                             "scalar_mul",
                                                             "enlarge",
                                                             "merge_gconv",
                                                             "const_imm",
                                                             "const_iconv",
                                                             "const_one",
                                                             "const_pool",
                                                             "squeeze",
                                                             "unsqueeze",
                                                             "ewsub",
                                                             "ewdiv",
                                                             "ewequal",
                                                             "ewgreater",
                                                             "ewless",
                                                             "ewmax",
                                                             "ewmin",
                                                             "reduce_argmax",
                                                             "reduce_argmin",
                                                             "reduce_max",
                                                             "reduce_mean",
                                                             "reduce_min",
                                                             "reduce_prod",
                                                             "reduce_sum",
                                                             "pad",
                                                             "shape",
                                                             "size",
                                                             "topk",
                                                             "where",
                                                             "ceil",
                                                             "cast",
                                                             "exp",
                                                             "round",
                                                             "log",
                                                             "logical_not",
                                                             "sqrt",
                                                             "leakyrelu",
                                                             "slice",
                                                             "resize",
                                                             "prelu",
                                                             "fuse_conv_batchnorm"};

constexpr std::array<std::string_view, 18> parameter_names = {
    "PM_OP_TYPE",  "PM_NUM_INPUTS", "PM_NUM_OUTPUTS", "PM_GROUP",      "PM_KERNEL_H",
    "PM_KERNEL_W", "PM_STRIDE_H",   "PM_STRIDE_W",    "PM_PAD",        "PM_ACTI",
    "PM_NUMDIM",   "PM_AXIS",       "PM_PERM",        "PM_OUTSHUFFLE", "PM_MERGE_GCONV_COUNT",
    "PM_AXES",     "PM_KEEP_DIMS",  "PM_EPSILON"};

}  // namespace

const OperatorKind* find_operator(std::int32_t type) {
  const auto place = std::find_if(kinds().begin(), kinds().end(), [&](const OperatorKind& kind) {
    return static_cast<std::int32_t>(kind.type) == type;
  });
  return place == kinds().end() ? nullptr : &*place;
}

std::string operator_name(std::int32_t type) {
  if (type < 0 || static_cast<std::size_t>(type) >= operator_names.size()) return "operator " + std::to_string(type);
  return std::string(operator_names[static_cast<std::size_t>(type)]);
}

std::string parameter_name(std::int32_t key) {
  if (key < 0 || static_cast<std::size_t>(key) >= parameter_names.size()) return "parameter " + std::to_string(key);
  return std::string(parameter_names[static_cast<std::size_t>(key)]);
}

}  // namespace taso::rule_io
