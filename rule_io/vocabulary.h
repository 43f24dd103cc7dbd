/// The numbers of the original TASO's format (include/taso/ops.h: OpType, PMParameter, ActiMode, PaddingMode).
/// Internal to rule_io.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taso::rule_io {

/// Operators that rules may have, by their numbers.
enum class OperatorType : std::int32_t {
  conv2d = 3,
  pool2d_max = 6,
  pool2d_avg = 7,
  relu = 8,
  sigmoid = 9,
  tanh = 10,
  concat = 12,
  split = 13,
  transpose = 15,
  ewadd = 16,
  ewmul = 17,
  matmul = 18,
  scalar_mul = 19,
  enlarge = 20,
  const_imm = 22,
  const_iconv = 23,
  const_one = 24,
  const_pool = 25,
};

/// Parameters, by their keys.
enum class Parameter : std::int32_t {
  op_type = 0,
  num_inputs = 1,
  num_outputs = 2,
  group = 3,
  kernel_h = 4,
  kernel_w = 5,
  stride_h = 6,
  stride_w = 7,
  pad = 8,
  acti = 9,
  numdim = 10,
  axis = 11,
  perm = 12,
  outshuffle = 13,
};

/// What the format says of an operator.
struct OperatorKind {
  OperatorType type;
  std::string_view name;
  std::size_t least_inputs, most_inputs;
  std::vector<Parameter> required, allowed;  ///< `allowed` says nothing that a translation needs.
};

/// The operator of a number, or nullptr if rules cannot have it.
[[nodiscard]] const OperatorKind* find_operator(std::int32_t type);
/// "conv2d", "reshape", "operator 99": the name of any operator of the format.
[[nodiscard]] std::string operator_name(std::int32_t type);
/// "PM_AXIS", "parameter 99".
[[nodiscard]] std::string parameter_name(std::int32_t key);

}  // namespace taso::rule_io
