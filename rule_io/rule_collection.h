/// Rule files of the original TASO (`graph_subst.pb`): the messages as they stand in the file.
///
/// The format is protobuf 2, package GraphSubst (github.com/jiazhihao/TASO, src/core/rules.proto):
///
///   RuleCollection { repeated Rule rule = 1; }
///   Rule           { repeated Operator srcOp = 1; repeated Operator dstOp = 2; repeated MapOutput mappedOutput = 3; }
///   Operator       { int32 type = 1; repeated Tensor input = 2; repeated Parameter para = 3; }
///   Tensor         { int32 opId = 1; int32 tsId = 2; }           opId < 0: the input of this number, else an operator
///   Parameter      { int32 key = 1; int32 value = 2; }
///   MapOutput      { int32 srcOpId = 1; int32 dstOpId = 2; int32 srcTsId = 3; int32 dstTsId = 4; }
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/status.h"

namespace taso::rule_io {

/// An output of an operator of the same side, or (negative `op`) an input of the rule.
struct FileTensor {
  std::int32_t op = 0;
  std::int32_t output = 0;
};

/// An operator application: numbers as in the file.
struct FileOperator {
  std::int32_t type = 0;
  std::vector<FileTensor> inputs;
  std::map<std::int32_t, std::int32_t> parameters;
};

/// A pair of equal outputs.
struct FileOutput {
  FileTensor source, target;
};

/// A rule.
struct FileRule {
  std::vector<FileOperator> source, target;
  std::vector<FileOutput> outputs;
};

/// The rules of a file. bad_input, with the rule's number where there is one, if the bytes are not such a file: cut
/// off, of another format, required fields missing, parameters given twice, references to operators that do not stand
/// before.
[[nodiscard]] Expected<std::vector<FileRule>> read_rule_collection(std::span<const std::byte> bytes,
                                                                   const std::string& path);

}  // namespace taso::rule_io
