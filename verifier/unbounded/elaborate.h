/// Definitions unfolded at symbolic indices: an element of a side's output as a normal form.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "verifier/unbounded/domains.h"
#include "verifier/unbounded/shared_values.h"
#include "verifier/unbounded/states.h"
#include "verifier/unbounded/symbolic_types.h"

namespace taso::unbounded {

/// Unfolds one side of a rule. Reads without `or` lie inside wherever the operator can be applied, which the target
/// must be where the source is: where it does not follow, it is asked for. Reads with `or` become guards.
class Elaborator {
 public:
  /// Elements of shared values, if there are any given, are read and not unfolded; and so are states of recurrences.
  Elaborator(const OperatorRegistry& registry, const Typing& typing, const TypedSide& side, Facts& facts,
             States& states, const SharedValues* shared = nullptr)
      : registry_(registry),
        typing_(typing),
        side_(side),
        shared_(shared),
        states_(states),
        facts_(facts),
        builder_(facts) {}

  /// The element of a value at given indices, which lie inside of its shape.
  [[nodiscard]] NormalForm element(const PatternValue& value, const std::vector<Polynomial>& indices);
  /// The element of a state of this side by its equation: a step. States of its recurrence at the same step are
  /// unfolded, too, those of all other steps are read. `context`: what holds there besides the facts.
  [[nodiscard]] NormalForm step(const State& state, const std::vector<Polynomial>& indices,
                                const std::vector<Atom>& context);
  /// Notes what makes the side's operators fail where they are applied, whatever of their results is read: reads
  /// without `or` that lie outside, equations that leave the output, elements that are written twice or not at all.
  /// `strictly`: what cannot be shown of equations is an obstacle.
  void oblige_applications(bool strictly);
  /// Whether the operator itself divides by something that is not a number or a size, or is not understood.
  [[nodiscard]] bool divides(const TypedNode& node);
  [[nodiscard]] const Obstacle& obstacle();
  /// What the elements so far ask of values and what their signs do not tell.
  [[nodiscard]] const std::vector<Obligation>& obligations() const { return obligations_; }
  /// Whether some divisor is not a number or a size.
  [[nodiscard]] bool divided() const { return builder_.divided() || divided_in_steps_; }

 private:
  /// Where an expression stands.
  struct Frame {
    const TypedNode* node = nullptr;
    SizeEnvironment environment;
    const std::map<std::string, NormalForm, std::less<>>* parameters = nullptr;
    const std::map<std::string, SignSet, std::less<>>* parameter_signs = nullptr;
  };
  /// What equations write: an output or an intermediate.
  struct Written {
    std::string_view name;
    const std::vector<AxisSpec>& axes;
    std::string_view piece;  ///< The name that counts the pieces; or empty.
    std::size_t first = 0;   ///< The pieces from this one on have a part in the element,
    std::size_t pieces = 1;  ///< so many of them.
  };
  /// A place in a tensor.
  struct Place {
    const InputSpec* input = nullptr;  ///< Null for an intermediate.
    std::size_t position = 0;          ///< Of the input tensor.
    const IntermediateSpec* intermediate = nullptr;
    std::vector<Polynomial> shape;
    std::vector<Polynomial> indices;
    std::vector<Atom> inside;  ///< What must hold for the place to exist.
    std::vector<Atom> known;   ///< What holds wherever the definition applies.
  };

  /// The element as a factor: of a tensor variable, or of what is read like one.
  [[nodiscard]] NormalForm element_read(std::uint32_t tensor, const std::vector<Polynomial>& indices);
  [[nodiscard]] NormalForm node_element(const TypedNode& node, std::size_t port,
                                        const std::vector<Polynomial>& indices);
  /// An element of an output or intermediate by its equations, which exclude one another.
  [[nodiscard]] NormalForm written(const Written& tensor, const TypedNode& node,
                                   const std::vector<Polynomial>& indices);
  /// The same by one of them, for piece k; `only`: there is no other.
  [[nodiscard]] NormalForm equation_at(const TypedNode& node, const Equation& equation, const Written& tensor,
                                       std::size_t k, const std::vector<Polynomial>& indices, bool only);
  [[nodiscard]] NormalForm equation_at(const TypedNode& node, const Equation& equation, const Written& tensor,
                                       const std::vector<Polynomial>& indices, bool only, Frame& frame);
  /// Gives the names on the left side of an equation their indices; false with an obstacle. What it leaves are
  /// coordinates that are more than a name, with their indices.
  [[nodiscard]] bool bind_left_side(const TypedNode& node, const Equation& equation, const std::vector<AxisSpec>& axes,
                                    const std::vector<Polynomial>& indices, Frame& frame,
                                    std::vector<std::pair<const Expression*, Polynomial>>& later);
  [[nodiscard]] NormalForm scalar(const Expression& e, Frame& frame);
  [[nodiscard]] NormalForm call(const Expression& e, Frame& frame);
  [[nodiscard]] const FunctionLaw* special_case(const FunctionDefinition& function,
                                                const std::vector<NormalForm>& arguments);
  [[nodiscard]] NormalForm reduce(const Expression& e, Frame& frame);
  [[nodiscard]] NormalForm read(const Expression& e, Frame& frame);
  [[nodiscard]] NormalForm conditional(const Expression& e, Frame& frame);
  [[nodiscard]] Place place(const Expression& e, Frame& frame, bool may_leave);
  [[nodiscard]] std::vector<Polynomial> shape_of(const IntermediateSpec& intermediate, const Frame& frame);
  [[nodiscard]] NormalForm value_at(const Place& place, Frame& frame);
  /// The element of a state as a factor.
  [[nodiscard]] NormalForm state_read(const Place& place, Frame& frame);
  /// What the steps of a state ask of values: they must not.
  void check_steps(std::uint32_t number);
  [[nodiscard]] std::size_t place_of_steps(const IntermediateSpec& spec, Frame& frame);
  [[nodiscard]] Polynomial lookup(const Expression& e, Frame& frame, const Polynomial& extent);
  /// The element of a value that holds integers, as one of `extent` places; `e` is the read that asks for it.
  [[nodiscard]] Polynomial lookup(const PatternValue& value, const std::vector<Polynomial>& indices,
                                  const Polynomial& extent, const Expression& e);
  /// New variables for ranges; what bounds them goes to `guards`.
  void open(std::span<const Expression::Range> ranges, Frame& frame, std::vector<SymbolId>& bound,
            std::vector<Atom>& guards);
  [[nodiscard]] Sizes sizes(const Expression& e, Frame& frame);
  [[nodiscard]] Polynomial index(const Expression& e, Frame& frame);
  [[nodiscard]] Alternatives condition(const Expression& e, Frame& frame);
  /// The digits of an index of a composite axis.
  [[nodiscard]] std::vector<Polynomial> digits(const Polynomial& index, const std::vector<Polynomial>& factors);
  // Signs of what is computed at any place of a tensor, from the definitions (elaborate_signs.cpp).
  [[nodiscard]] SignSet sign(const Expression& e, Frame& frame);
  [[nodiscard]] static bool same_value(const Expression& a, const Expression& b, const Frame& frame);
  [[nodiscard]] SignSet sign_of_size(const Expression& e, Frame& frame);
  [[nodiscard]] SignSet sign_of_form(const NormalForm& form);
  [[nodiscard]] SignSet sign_of_attribute(const std::string& name, const Frame& frame);
  [[nodiscard]] SignSet sign_of_call(const Expression& e, Frame& frame);
  [[nodiscard]] SignSet sign_of_reduction(const Expression& e, Frame& frame);
  [[nodiscard]] SignSet sign_of_read(const Expression& e, Frame& frame);
  [[nodiscard]] SignSet sign_of_value(const PatternValue& value);
  [[nodiscard]] SignSet sign_of_written(const std::string& tensor, const TypedNode& node);
  /// Notes that a value must be in a domain, unless its sign tells; `size`: the value, if it is one.
  void oblige(ArgumentDomain domain, const NormalForm& value, SignSet sign, const Expression& e,
              std::optional<Polynomial> size = std::nullopt, const std::optional<NormalForm>& call = std::nullopt);
  /// Notes that an extremum over `bound` has an element for which all guards hold; the first `box` of them are those of
  /// the ranges of `bound`.
  void oblige_elements(const std::vector<SymbolId>& bound, const std::vector<Atom>& guards, std::size_t box,
                       const Expression& e, const NormalForm& extremum);
  /// Notes that an integer that a tensor holds is the index of something: `arguments` are the extent of the axis, then
  /// where the integer is.
  void oblige_index(std::uint32_t tensor, const std::vector<Polynomial>& arguments, const Expression& e);
  /// Notes that a read without `or` must lie inside, unless that follows: an application of the operator fails
  /// elsewhere.
  void oblige_inside(const Atom& inside, const Expression& e);
  /// Notes that a value must be defined, of which nothing else is known: `what` it is, for a person.
  void oblige_defined(const NormalForm& value, const std::string& what);
  void add(Obligation obligation);
  /// Whether equations with these guards write every element once.
  [[nodiscard]] bool partition(const std::vector<std::vector<Atom>>& equations);
  /// Whether what stands here is evaluated wherever the operator applies: for some values of the variables around it.
  [[nodiscard]] bool is_evaluated();
  void note(const Obstacle& obstacle);
  void unsupported(const std::string& reason);

  static constexpr int max_depth = 200;  ///< Definitions inside of definitions.
  const OperatorRegistry& registry_;
  const Typing& typing_;
  const TypedSide& side_;
  const SharedValues* shared_;
  States& states_;
  Facts& facts_;
  FormBuilder builder_;
  std::vector<Atom> context_;     ///< What holds where the current expression stands.
  std::vector<Atom> guards_;      ///< Those of it without which the expression has no part in the element.
  std::vector<SymbolId> scope_;   ///< Variables of the reductions around it.
  std::vector<SymbolId> places_;  ///< Indices of any element of the tensor of which places are asked for.
  std::vector<Obligation> obligations_;
  std::map<std::uint32_t, SignSet> node_signs_;  ///< Of the outputs of nodes, found so far.
  Obstacle obstacle_;
  bool operands_read_ = false;  ///< Operands are not unfolded.
  int in_ranges_ = 0;           ///< Equations with ranges around the current expression.
  bool only_places_ = false;    ///< Nothing but places in tensors is asked for.
  /// While only places are asked for: the guards of the equations of one tensor, which is unfolded at this depth.
  std::vector<std::vector<Atom>> equations_;
  int equations_depth_ = 0;
  bool divided_in_steps_ = false;
  /// The step that is unfolded, if one is: of which operator's recurrence, and its number.
  const TypedNode* stepping_ = nullptr;
  std::size_t stepping_first_ = 0;
  Polynomial stepping_at_;
  int depth_ = 0;
};

}  // namespace taso::unbounded
