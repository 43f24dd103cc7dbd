/// Random well-typed graphs over all operators of a registry, with sample values at which they are defined.
///
/// What an operator takes is read off its definition: ranks and extents of operands from the names that its axes share,
/// kinds and lengths of attributes; whether an application is legal is always decided by type inference. Extents are
/// drawn from a few per graph, so that they often agree, 1 among them and sometimes 0. An application is kept only
/// if its values at the sample inputs are finite and of moderate size: then every element of every output says
/// something. Operators that are added to the specifications need nothing here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/pattern.h"
#include "operators/evaluate.h"
#include "operators/registry.h"
#include "support/random.h"

namespace taso::testing {

struct Draw;  // tests/verifier/draws.h

/// A graph and inputs for it. Opaque nodes are told by their names; what they produce is an input, too.
struct RandomGraph {
  Graph graph;
  /// By the name of a graph input, or "<opaque node>:out<port>" (runtime/lowering.h, CutGraph).
  std::map<std::string, RingTensor<double>> inputs;
  bool planted = false;  ///< An instance of the rule is in it.
};

/// How large graphs are, and of what.
struct GraphDrawOptions {
  std::vector<std::int64_t> extents =
      {};                            ///< From which they are drawn; empty: a few small ones, others for each graph.
  std::int64_t most_elements = 400;  ///< Of a tensor.
  double most_work = 40'000;         ///< Scalar operations of an operator.
  std::int64_t indices = 1;          ///< Elements of integer tensors are at least minus this and less than this.
  int opaque_percent = 3;            ///< Of the nodes.
};

/// Draws graphs; the same for the same seed.
class GraphGenerator {
 public:
  GraphGenerator(const OperatorRegistry& registry, std::uint64_t seed, const GraphDrawOptions& options = {});

  /// Adds an instance of the source of a rule. False if none is found that has moderate values.
  bool plant(const Substitution& rule);
  /// Adds up to so many operators or opaque nodes; fewer where too few are found that can be applied.
  void grow_by(int operators);
  /// Adds an application of this operator. False if none is found that has moderate values.
  bool grow_by_one(const std::string& op);
  /// Adds up to `operators` operators (or opaque nodes), ends the graph and gives it away.
  [[nodiscard]] RandomGraph finish(int operators);

 private:
  using Integers = std::vector<std::int64_t>;
  using Sizes = std::map<std::string, Integers>;  // What names of axes stand for: one extent, or those of a list.

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_.below(bound)); }
  bool chance(int percent) { return random_.below(100) < static_cast<std::uint64_t>(percent); }
  std::int64_t between(std::int64_t low, std::int64_t high);
  std::int64_t extent() { return palette_[below(palette_.size())]; }
  [[nodiscard]] const Shape& shape(Value value) const { return graph_.type(value).shape; }

  /// Whether `attempt` returns true; else nothing that it drew stays.
  bool kept_if(const std::function<bool()>& attempt);
  bool grow();
  bool grow(const std::string& op);
  bool plant(const Substitution& rule, const Draw& draw);
  bool grow_opaque();
  /// Adds the application if it is legal, small and of moderate values.
  std::optional<NodeId> apply(const std::string& op, const Attributes& attributes, const std::vector<Value>& inputs);
  bool accept(NodeId id, std::vector<RingTensor<double>> outputs);

  /// A leaf: a graph input or a constant.
  Value leaf(const Shape& shape, bool integers);
  Value operand(const InputSpec& input, const Sizes& sizes, bool first);
  /// A value of this shape: one that is there, a smaller one repeated, or a leaf.
  Value of_shape(const Shape& shape);
  void learn(const InputSpec& input, const Shape& shape, Sizes& sizes);
  std::optional<Shape> propose(const InputSpec& input, Sizes sizes);
  AttributeValue attribute(const AttributeSpec& spec, const Shape& like);
  Integers integer_list(const AttributeSpec& spec, const Shape& like);

  const OperatorRegistry& registry_;
  GraphDrawOptions options_;
  std::vector<std::string> operators_, functions_;
  Random random_;
  Integers palette_;
  Graph graph_;
  std::vector<Value> values_;  // Real tensors.
  std::map<NodeId, std::vector<RingTensor<double>>> samples_;
  std::map<std::string, RingTensor<double>> inputs_;
  std::uint64_t seed_;
  int opaque_ = 0;
  bool planted_ = false;
};

}  // namespace taso::testing
