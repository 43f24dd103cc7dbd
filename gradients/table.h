/// Tables of gradients (*.grad): for each input of an operator a term over operators that is its gradient.
///
///   gradient matmul
///     let swapped = nonzero(repeat(1, length(B) + 2)) ...          a name for sizes
///     let product = mul(d_out, out)                                 a name for a tensor
///     d_a = matmul(d_out, transpose(b; perm=swapped))
///     d_b = TERM where length(A) == 0                               the first entry whose condition holds counts
///
///   derivative sigmoid(x) = sigmoid(x) * (1 - sigmoid(x))           of a scalar function, one for each parameter
///
/// Tensors of a term are the operator's inputs, `out`, and `d_out`, the gradient of its output; of a variadic operator
/// `x..` are all inputs, and `d_x.k = TERM.k` is the entry of each: the output of that number. Of an operator with
/// several outputs `d_out..` are the gradients of all. Values of attributes are expressions of the specification
/// language in the names of the operator's definition, names of its attributes (then copied), or literals.
/// docs/gradients.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "operators/instance.h"
#include "operators/registry.h"
#include "operators/table_expressions.h"
#include "support/status.h"

namespace taso {

struct GradientTerm;

/// A tensor of a term.
struct GradientOperand {
  enum class Kind : std::uint8_t {
    input,             ///< Input `index` of the operator.
    inputs,            ///< All of a variadic operator.
    output,            ///< The output of an operator that has one.
    output_gradient,   ///< Its gradient.
    output_gradients,  ///< Those of all outputs.
    term,              ///< Another term.
  };
  Kind kind = Kind::input;
  std::size_t index = 0;
  std::shared_ptr<const GradientTerm> term;
};

/// The name of an attribute of the operator whose gradient it is.
struct CopiedAttribute {
  std::string name;
};

/// An application of an operator.
struct GradientTerm {
  std::string op;
  std::vector<GradientOperand> operands;
  std::vector<std::pair<std::string, std::variant<CopiedAttribute, AttributeValue, SizeQuery>>> attributes;
  std::uint32_t output = 0;  ///< Which of several outputs.
  bool counted = false;      ///< The one of the number of the input that the entry is of.
  SourceLocation where;
};

/// The gradient of one input, or of each of a variadic operator.
struct GradientEntry {
  std::size_t input = 0;
  GradientOperand value;
  std::optional<SizeQuery> condition;
  SourceLocation where;
};

/// All that a table says of an operator.
struct OperatorGradients {
  std::string op;
  std::vector<GradientEntry> entries;
  SourceLocation where;
};

/// The derivative of a scalar function by each parameter, as operators of as many inputs without axes.
struct FunctionDerivative {
  std::string function;
  std::vector<OperatorInstance> partial;
  SourceLocation where;
};

class GradientTable {
 public:
  /// Reads a text on top of a table; the registry must outlive the result. An error names file, line and column.
  [[nodiscard]] static Expected<GradientTable> parse(std::string_view text, const std::string& file,
                                                     const OperatorRegistry& registry,
                                                     const GradientTable* base = nullptr);
  /// Reads a file, or all *.grad of a folder in name order.
  [[nodiscard]] static Expected<GradientTable> load(const std::string& path, const OperatorRegistry& registry,
                                                    const GradientTable* base = nullptr);

  /// Null where the table says nothing of the operator.
  [[nodiscard]] const OperatorGradients* find(std::string_view op) const;
  /// By name.
  [[nodiscard]] const std::map<std::string, OperatorGradients, std::less<>>& operators() const { return operators_; }
  [[nodiscard]] const std::map<std::string, FunctionDerivative, std::less<>>& derivatives() const {
    return derivatives_;
  }

 private:
  friend class GradientParser;
  std::map<std::string, OperatorGradients, std::less<>> operators_;
  std::map<std::string, FunctionDerivative, std::less<>> derivatives_;
  std::vector<std::shared_ptr<const OperatorRegistry>> registries_;  // What the derivatives are instances of.
};

}  // namespace taso
