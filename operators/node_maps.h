/// Maps: which nodes of models stand for which operators, as text files say it. Format: docs/onnx.md, "Maps".
///
///   com.acme::RmsNorm v1 (x, weight; epsilon: real = 1e-5) -> y = rms_norm(x, weight; epsilon=epsilon)
///
/// A mapping is a pair of patterns, one of a node and one of an application of an operator, over the same names. From
/// left to right it reads nodes, from right to left it writes them.
///
/// Invariant: a node is written only if the maps read it back as the application that it was written for. So neither
/// the order of mappings nor a default, a condition or a rounded number changes what a node means.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/term_syntax.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// The kind of an attribute's value.
[[nodiscard]] inline AttributeKind kind_of(const AttributeValue& value) {
  return static_cast<AttributeKind>(value.index());
}

/// One mapping, checked against the operators that were known when it was read.
struct NodeMapping {
  /// The name of an input that must be absent, or of an output that the operator does not compute.
  static constexpr std::string_view nothing = "_";

  /// An attribute of the node.
  struct Attribute {
    std::string name;
    AttributeKind kind = AttributeKind::integer;  ///< Of the node's value; a string is a symbol.
    std::optional<AttributeValue> default_value;  ///< Empty: the mapping applies only where it is given.
    /// What each value stands for; empty: itself. All of one kind.
    std::vector<std::pair<AttributeValue, AttributeValue>> table;
  };
  /// `left` compared with `right`, or an attribute with a string.
  struct Condition {
    ExpressionSyntax left, right;
    std::string comparison;  ///< "==", "!=", "<", "<=", ">", ">=".
    std::optional<std::string> text;
    SourceLocation where;
  };

  std::string domain;  ///< Empty: ONNX's own.
  std::string type;
  std::int64_t first = 1, last = std::numeric_limits<std::int64_t>::max();  ///< Versions of the domain.
  std::vector<std::string> inputs;
  bool variadic = false;  ///< The last input stands for one or more.
  std::vector<Attribute> attributes;
  std::vector<std::string> outputs;
  std::string op;
  std::vector<std::size_t> arguments;  ///< Positions in `inputs`; of a variadic one the first tensor.
  std::vector<bool> valued;            ///< Per input: `value(input)` is read of it.
  std::vector<std::pair<std::string, ExpressionSyntax>> values;  ///< Of attributes of the operator.
  bool broadcasting = false;  ///< Arguments are broadcast to their common shape first, as in numpy.
  std::vector<Condition> conditions;
  SourceLocation where;

  [[nodiscard]] const Attribute* find_attribute(std::string_view name) const;
};

/// "com.acme::Silu"; the type alone in ONNX's own domain.
[[nodiscard]] std::string type_name(std::string_view domain, std::string_view type);

/// A text of maps.
struct NodeMapFile {
  std::vector<NodeMapping> mappings;
  /// Domains all of whose mapped operators the runtime of every model is known to have.
  std::vector<std::string> allowed_domains;
};

/// Parses a text of mappings and checks them; the first error names file, line and column.
[[nodiscard]] Expected<NodeMapFile> parse_node_maps(std::string_view text, const std::string& file,
                                                    const OperatorRegistry& registry);

/// The mappings of a run in the order in which they are tried: folders added last first, each in file order.
class NodeMaps {
 public:
  /// Puts mappings before those that are there.
  void put_first(NodeMapFile file);

  using Mappings = std::vector<std::shared_ptr<const NodeMapping>>;
  [[nodiscard]] const Mappings& all() const { return all_; }
  /// Those of a type of node.
  [[nodiscard]] const Mappings& of_type(std::string_view domain, std::string_view type) const;
  /// Those whose operator this is.
  [[nodiscard]] const Mappings& of_operator(std::string_view op) const;
  /// Whether models may gain operators of a domain: else only a model that has a node of a type may have more of them.
  [[nodiscard]] bool allows(std::string_view domain) const { return allowed_domains_.contains(domain); }
  [[nodiscard]] const std::set<std::string, std::less<>>& allowed_domains() const { return allowed_domains_; }

 private:
  Mappings all_;
  std::map<std::string, Mappings, std::less<>> by_type_, by_operator_;
  std::set<std::string, std::less<>> allowed_domains_;
};

/// `registry` with maps that allow a domain. An error as of a file of that name with this one line.
[[nodiscard]] Expected<OperatorRegistry> allow_domain(const std::string& domain, const std::string& file,
                                                      const OperatorRegistry& registry);

/// A tensor that a node reads.
struct MappedOperand {
  TensorType type;
  /// Known in the model: its extents are the same at all sizes, and conditions may look at them.
  bool constant = false;
  /// Of a constant of one real number: that number, if it follows from no size.
  std::optional<double> number = std::nullopt;
};

/// A node of a model, as far as maps look at it.
struct MappedNode {
  std::string domain, type;
  std::int64_t version = 0;                          ///< Of its domain.
  std::vector<std::optional<MappedOperand>> inputs;  ///< Nothing: absent. Not at the end.
  std::vector<bool> outputs;                         ///< Whether something reads them.
  std::map<std::string, AttributeValue> attributes;  ///< Strings as symbols; reals as the floats that files hold.
  std::set<std::string> other_attributes;            ///< Names of those of other kinds.
};

/// What the maps make of a node.
struct NodeReading {
  const NodeMapping* mapping = nullptr;  ///< The first that applies.
  std::string reason;                    ///< Otherwise: why none does.
  /// What the last line that does not apply has against it.
  enum class Misfit : std::uint8_t { form, element_type, unknown_type };
  Misfit misfit = Misfit::form;
  std::vector<std::size_t> arguments;  ///< The operands of the application: positions of inputs of the node.
  Attributes attributes;               ///< Complete.
  std::optional<Shape> common;         ///< Operands are broadcast to this shape first.
  /// Per output of the node the output of the application, or nothing.
  std::vector<std::optional<std::uint32_t>> outputs;
};
[[nodiscard]] NodeReading read_node(const OperatorRegistry& registry, const MappedNode& node);

/// A node that stands for an application.
struct NodeWriting {
  MappedNode node;
  std::vector<std::optional<std::size_t>> inputs;     ///< Per input of the node the operand, or nothing.
  std::vector<std::optional<double>> numbers;         ///< Per input: the constant that it must be instead, of rank 0.
  std::vector<std::optional<std::uint32_t>> outputs;  ///< Per output of the node that of the application.
};
/// The node by which a mapping writes an application, if it can. `version` is that of the mapping's domain;
/// `attributes` are complete; of a broadcasting mapping the operands may have any shapes that broadcast.
[[nodiscard]] std::optional<NodeWriting> write_node(const OperatorRegistry& registry, const NodeMapping& mapping,
                                                    std::int64_t version, const Attributes& attributes,
                                                    std::span<const MappedOperand> operands, std::size_t outputs);

}  // namespace taso
