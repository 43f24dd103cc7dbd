/// Makes operator models (partition/operator_model.h). Private to the folder: shapes are in operator_model.cpp,
/// equations in model_equations.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "partition/operator_model.h"
#include "partition/rule_domain.h"

namespace taso {

using ModelInterpreter = SizeInterpreter<RuleDomain>;

class OperatorModelBuilder {
 public:
  OperatorModelBuilder(const OperatorRegistry& registry, const OperatorDefinition& definition,
                       const ModelChoice& choice)
      : registry_(registry), definition_(definition), choice_(choice) {
    model_.definition = &definition;
  }
  [[nodiscard]] Expected<OperatorModel> build();

 private:
  /// Whether pieces of a reduction make pieces of the output, where an expression stands: why not, for sums and for
  /// other reductions.
  struct Context {
    std::string of_sums, of_others;
    [[nodiscard]] Context below(const std::string& obstacle) const {
      return {of_sums.empty() ? obstacle : of_sums, of_others.empty() ? obstacle : of_others};
    }
    [[nodiscard]] Context linear(const std::string& obstacle) const {
      return {of_sums, of_others.empty() ? obstacle : of_others};
    }
  };
  /// An element of an intermediate that is unfolded.
  struct Unfolded {
    std::string name;
    std::vector<SizePolynomial> coordinates;
  };

  [[nodiscard]] SizePolynomial scalar(const Expression& e);
  [[nodiscard]] ModelInterpreter::Value vector(const Expression& e);
  [[nodiscard]] std::uint32_t new_variable(const std::string& wanted);
  bool note(const std::string& obstacle);

  void bind_attribute(const AttributeSpec& attribute);
  void learn_signs(const Expression& e);
  [[nodiscard]] std::optional<std::size_t> model_length(const AxisSpec& axis) const;
  [[nodiscard]] std::optional<SizePolynomial> rule_length(const AxisSpec& axis);
  [[nodiscard]] bool is_rest(const std::string& name) const;
  void align(std::size_t input, std::uint32_t tensor);
  [[nodiscard]] std::vector<ModelAxis> axes_of(const AxisSpec& axis, const ModelInterpreter::Value& extents,
                                               const SizePolynomial& trailing, bool input);
  [[nodiscard]] SizePolynomial generic_number(const std::string& rest, const SizePolynomial& trailing);
  [[nodiscard]] bool input(std::size_t number, const SizeStep& step, std::uint32_t tensor);
  void bind_entry(const AxisSpec& axis, const SizeStep& step, std::vector<ModelAxis>& axes);
  void find_factor(const std::string& name, const AxisSpec& axis, const SizePolynomial& extent);
  void statements();
  [[nodiscard]] std::vector<ModelAxis> output_axes();

  /// The equations of the output.
  void equation(const Equation& equation);
  void bind_output(const Equation& equation);
  [[nodiscard]] SizePolynomial output_variable(const std::string& name, std::size_t axis, std::size_t digit,
                                               const SizePolynomial& extent);
  void bind_segment(const Expression& coordinate, const Equation& equation, std::size_t axis, std::size_t first);
  [[nodiscard]] SegmentRow& row_of(std::size_t axis, bool of_outputs);
  void open(const Expression::Range& range, const std::string& reducer, const std::string& obstacle);
  [[nodiscard]] SizePolynomial new_index(ModelVariable variable);
  void walk(const Expression& e, const Context& context);
  void walk_call(const Expression& e, const Context& context);
  void walk_reduction(const Expression& e, const Context& context);
  void walk_read(const Expression& e, const Context& context);
  void compare(const Expression& e);
  void read_input(const Expression& e, std::size_t tensor, const Context& context);
  void unfold(const Expression& e, const Context& context);
  [[nodiscard]] std::vector<std::vector<SizePolynomial>> coordinates_of(const Expression& e, const Context& context);
  [[nodiscard]] SizePolynomial indirect(const Expression& e, std::size_t axis, const Context& context);

  const OperatorRegistry& registry_;
  const OperatorDefinition& definition_;
  const ModelChoice& choice_;
  OperatorModel model_;
  SizeScope<SizePolynomial> scope_;
  std::string obstacle_;
  std::map<std::string, SizePolynomial> lengths_;        ///< Of rests and lists, as rules say them.
  std::map<std::string, std::string> origins_;           ///< The rest of whose length a vector of sizes is.
  std::map<std::string, SizePolynomial> rest_trailing_;  ///< Axes right of a rest where it was first met.
  std::map<std::uint32_t, std::vector<std::vector<ModelAxis>>> entries_;  ///< Of tensors.
  std::vector<Unfolded> unfolding_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> outputs_;  ///< Variables of digits of the output.
  std::size_t output_ = 0;                                              ///< Whose equation is read.
};

}  // namespace taso
