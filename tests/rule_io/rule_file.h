/// Rule files of the original TASO, made for tests byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/wire.h"

namespace taso::test {

inline std::string varint_field(int field, std::int64_t value) {
  std::string out;
  wire::append_varint(out, static_cast<std::uint64_t>(field) << 3);
  wire::append_varint(out, static_cast<std::uint64_t>(value));  // negative numbers have ten bytes
  return out;
}

inline std::string message_field(int field, const std::string& message) {
  std::string out;
  wire::append_length_prefix(out, field, message.size());
  return out + message;
}

/// An operator: its type, inputs as (operator or negative input, output), parameters as (key, value).
inline std::string operator_message(std::int64_t type, const std::vector<std::pair<int, int>>& inputs,
                                    const std::vector<std::pair<int, std::int64_t>>& parameters = {}) {
  std::string out = varint_field(1, type);
  for (const auto& [op, output] : inputs) out += message_field(2, varint_field(1, op) + varint_field(2, output));
  for (const auto& [key, value] : parameters) out += message_field(3, varint_field(1, key) + varint_field(2, value));
  return out;
}

/// A mapped output: source operator and output, target operator and output.
struct MappedOutput {
  int source_op, source_output, target_op, target_output;
};

/// A rule collection's field with one rule.
inline std::string rule_field(const std::vector<std::string>& source, const std::vector<std::string>& target,
                              const std::vector<MappedOutput>& outputs) {
  std::string rule;
  for (const std::string& op : source) rule += message_field(1, op);
  for (const std::string& op : target) rule += message_field(2, op);
  for (const MappedOutput& output : outputs)
    rule += message_field(3, varint_field(1, output.source_op) + varint_field(2, output.target_op) +
                                 varint_field(3, output.source_output) + varint_field(4, output.target_output));
  return message_field(1, rule);
}

// The operators of the format, with the parameters that its generator writes.
inline std::string conv2d(int image, int kernel, int pad = 0, int acti = 0, int stride = 1, int extent = 3) {
  return operator_message(3, {{image, 0}, {kernel, 0}},
                          {{4, extent}, {5, extent}, {6, stride}, {7, stride}, {8, pad}, {9, acti}});
}
inline std::string pool(bool max, int image, int extent, int pad = 0, int stride = 1, int acti = 0) {
  const int type = max ? 6 : 7;
  return operator_message(type, {{image, 0}},
                          {{0, type}, {4, extent}, {5, extent}, {6, stride}, {7, stride}, {8, pad}, {9, acti}});
}
inline std::string relu(int x, int output = 0) { return operator_message(8, {{x, output}}); }
inline std::string concat(int axis, int rank, const std::vector<int>& operands) {
  std::vector<std::pair<int, int>> inputs;
  for (const int operand : operands) inputs.emplace_back(operand, 0);
  return operator_message(12, inputs, {{1, static_cast<int>(operands.size())}, {11, axis}, {10, rank}});
}
inline std::string split(int axis, int x, int count = 2) {
  return operator_message(13, {{x, 0}}, {{2, count}, {11, axis}});
}
inline std::string transpose(int rank, int perm, int x) {
  return operator_message(15, {{x, 0}}, {{10, rank}, {12, perm}, {13, 1}});
}
inline std::string ewadd(int x, int y) { return operator_message(16, {{x, 0}, {y, 0}}); }
inline std::string ewmul(int x, int y) { return operator_message(17, {{x, 0}, {y, 0}}); }
inline std::string matmul(int a, int b, int acti = 0) { return operator_message(18, {{a, 0}, {b, 0}}, {{9, acti}}); }
inline std::string scalar_mul(int x, int s) { return operator_message(19, {{x, 0}, {s, 0}}); }
inline std::string enlarge(int kernel, int extent) {
  return operator_message(20, {{kernel, 0}}, {{4, extent}, {5, extent}});
}
inline std::string constant(int type, int extent = 0) {
  if (extent == 0) return operator_message(type, {});
  return operator_message(type, {}, {{4, extent}, {5, extent}});
}

}  // namespace taso::test
