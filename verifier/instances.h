/// Concrete instances of a rule: types of its tensor variables and values of its attribute variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/pattern.h"
#include "operators/evaluate.h"
#include "operators/instance.h"
#include "operators/registry.h"
#include "support/random.h"
#include "verifier/typer.h"

namespace taso {

/// Values for a rule's variables.
struct Instance {
  std::vector<TensorType> variables;
  std::vector<std::optional<AttributeValue>> attributes;
};

/// "x: f32[2, 3]; axis = -1": what stands for the variables of a rule.
[[nodiscard]] std::string to_string(const Substitution& rule, const Instance& instance);

/// Random numbers for one purpose that depend on what the rule says: not on its name, nor on those of its variables.
[[nodiscard]] Random random_for(const OperatorRegistry& registry, const Substitution& rule, std::uint64_t seed,
                                std::string_view purpose);

/// One side of a rule at an instance, lowered, ready to be evaluated in any ring.
class Program {
 public:
  /// The source (or the target) of the typer's rule; nothing where it is not well-typed at the instance.
  [[nodiscard]] static std::optional<Program> create(Typer& typer, bool target, const Instance& instance);
  [[nodiscard]] const std::vector<TensorType>& output_types() const { return output_types_; }
  /// Scalar operations of one evaluation.
  [[nodiscard]] double work() const { return work_; }

  template <class Element>
  using Tensors = std::vector<RingTensor<Element>>;

  /// The outputs at given inputs (one tensor per variable). After each operator `after` is called with its outputs.
  template <class Ring, class After>
  [[nodiscard]] Expected<Tensors<typename Ring::Element>> run(Ring& ring, const Tensors<typename Ring::Element>& inputs,
                                                              After&& after) const {
    using Tensor = RingTensor<typename Ring::Element>;
    std::vector<std::vector<Tensor>> values;
    values.reserve(steps_.size());
    auto find = [&](const PatternValue& value) -> const Tensor& {
      return value.is_variable ? inputs[value.index] : values[value.index][value.port];
    };
    for (const Step& step : steps_) {
      std::vector<const Tensor*> operands;
      operands.reserve(step.inputs.size());
      for (const PatternValue& input : step.inputs) operands.push_back(&find(input));
      TASO_ASSIGN(std::vector<Tensor> results,
                  evaluate(*step.instance, ring, std::span<const Tensor* const>(operands)));
      after(*step.instance, results);
      values.push_back(std::move(results));
    }
    Tensors<typename Ring::Element> outputs;
    for (const PatternValue& output : outputs_) outputs.push_back(find(output));
    return outputs;
  }
  template <class Ring>
  [[nodiscard]] Expected<Tensors<typename Ring::Element>> run(Ring& ring,
                                                              const Tensors<typename Ring::Element>& inputs) const {
    return run(ring, inputs, [](const OperatorInstance&, const std::vector<RingTensor<typename Ring::Element>>&) {});
  }

 private:
  struct Step {
    std::shared_ptr<const OperatorInstance> instance;
    std::vector<PatternValue> inputs;
  };
  std::vector<Step> steps_;
  std::vector<PatternValue> outputs_;
  std::vector<TensorType> output_types_;
  double work_ = 0;
};

/// A well-typed instance with both sides lowered.
struct TypedInstance {
  Instance instance;
  Program source, target;
};

/// Tensor variables of instances have no larger rank, unless definitions fix it.
inline constexpr std::size_t max_instance_rank = 4;

/// What a search found.
struct InstanceSet {
  std::vector<TypedInstance> instances;   ///< Smallest first. Both sides well-typed, outputs of equal types.
  std::optional<Instance> shapes_differ;  ///< Both sides well-typed, outputs of different types.
  std::size_t ill_typed_target = 0;       ///< Instances found at which the source alone is well-typed.
  bool complete = false;                  ///< All instances within the bound are here.
};

struct InstanceOptions {
  std::int64_t bound = 3;
  std::uint64_t seed = 1;
  std::size_t max_instances = 160;
  std::size_t max_work = 6000;
  /// Work on canonical forms of all instances together (PolynomialRing): those beyond it are left out.
  std::uint64_t max_steps = 3'000'000;
  /// Instances whose canonical forms are compared (validate_bounded); values in GF(2^61-1) at a random point must do
  /// for those beyond it, unless they differ.
  std::size_t max_canonical = 1'000'000;
  bool search = true;             ///< Before that, search small instances for a difference (validate_bounded).
  bool search_both_ways = true;   ///< Also from the target's side, where operators infer groups from shapes.
  std::size_t search_rounds = 5;  ///< Of the search for a difference, each at another part of the instances.
  bool rare = true;               ///< Look for rare combinations after the quota is filled.
  /// All shapes are tried only if there are at most so many assignments of them.
  std::size_t max_candidates = 15'000;
};

/// Well-typed instances of a rule that satisfy its conditions: all of them if only tensor variables occur and there are
/// few enough, otherwise a sample that is the same for the same seed. Shapes are proposed from the operators'
/// definitions: names of sizes that occur twice get one value, composite axes get factors (so that several groups
/// are common), shapes that must agree are reused. Which proposal is right is always decided by type inference.
/// The cache saves work only.
[[nodiscard]] InstanceSet find_instances(const OperatorRegistry& registry, const Substitution& rule,
                                         const InstanceOptions& options, LoweredCache& cache);
[[nodiscard]] InstanceSet find_instances(const OperatorRegistry& registry, const Substitution& rule,
                                         const InstanceOptions& options);

/// Checks types and conditions of one instance: nothing if the source or a condition fails.
struct TypeCheck {
  bool source = false;                 ///< The source is well-typed and the conditions hold.
  bool target = false;                 ///< The target is well-typed, too.
  bool equal_types = false;            ///< And so are the types of all outputs.
  std::optional<TypedInstance> typed;  ///< If all three.
};
[[nodiscard]] TypeCheck check_types(Typer& typer, const Instance& instance);
[[nodiscard]] TypeCheck check_types(const OperatorRegistry& registry, const Substitution& rule,
                                    const Instance& instance);

}  // namespace taso
