#include "operators/compose.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "operators/expressions.h"
#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;
using AxisKind = AxisSpec::Kind;

/// The definition being composed.
class Composer {
 public:
  Composer(OperatorDefinition& definition, const DefinitionLookup& find) : definition_(definition), find_(find) {}

  Status run() {
    auto written = std::make_shared<const OperatorDefinition>(definition_);
    definition_.written = written;
    definition_.applications.clear();
    definition_.statements.clear();
    definition_.intermediates.clear();
    definition_.equations.clear();
    for (const AttributeSpec& attribute : definition_.attributes) names_.insert(attribute.name);
    for (const InputSpec& input : definition_.inputs)
      for (const AxisSpec& axis : input.axes)
        for (const Expression& factor : axis.factors) collect_names(factor, names_);
    std::size_t statement = 0, equation = 0;
    const auto copy_until = [&](std::size_t statements, std::size_t equations) {
      for (; statement < statements; ++statement) add(written->statements[statement]);
      for (; equation < equations; ++equation) {
        const Equation& own = written->equations[equation];
        if (const IntermediateSpec* spec = written->find_intermediate(own.target))
          definition_.intermediates.push_back(*spec);
        definition_.equations.push_back(own);
      }
    };
    for (const Application& application : written->applications) {
      copy_until(application.statements, application.equations);
      TASO_RETURN_IF_ERROR(apply(application));
    }
    copy_until(written->statements.size(), written->equations.size());
    return {};
  }

  void add(SizeStatement statement) {
    if (!statement.name.empty()) names_.insert(statement.name);
    definition_.statements.push_back(std::move(statement));
  }
  void let(std::string name, Expression value, const SourceLocation& where) {
    SizeStatement statement;
    statement.name = std::move(name);
    statement.value = std::move(value);
    statement.where = where;
    add(std::move(statement));
  }
  void require(Expression condition, std::string message, const SourceLocation& where) {
    SizeStatement statement;
    statement.value = std::move(condition);
    statement.message = std::move(message);
    statement.where = where;
    add(std::move(statement));
  }
  /// That two sizes or vectors of sizes are equal: nothing to say if they are written alike.
  void require_equal(const Expression& a, const Expression& b, const std::string& message,
                     const SourceLocation& where) {
    if (!same_text(a, b)) require(make(Kind::equal, {a, b}, where), message, where);
  }

  /// Whether a size has this name.
  [[nodiscard]] bool knows(const std::string& name) const { return names_.contains(name); }

  struct Operand {
    std::string tensor;
    Axes axes;
    ElementDomain domain = ElementDomain::real;
  };
  /// A tensor of the definition; the result of an application, if that is what stands there.
  Expected<Operand> operand(const Application::Operand& given) {
    std::string name = given.tensor;
    if (given.application != nullptr) {
      TASO_ASSIGN(name, apply(*given.application));
    }
    for (const InputSpec& input : definition_.inputs)
      if (input.name == name) {
        if (input.variadic()) return bad_input("'" + name + "' is variadic, and an operand is one tensor", given.where);
        return Operand{name, input.axes, input.domain};
      }
    if (const IntermediateSpec* spec = definition_.find_intermediate(name))
      return Operand{name, spec->axes, spec->domain};
    return bad_input("there is no tensor '" + name + "' before this place", given.where);
  }

  std::string prefix_of(const Application& application) { return prefixes_.next(application); }

  Expected<std::string> apply(const Application& application);

  [[nodiscard]] const OperatorDefinition* find(const std::string& op) const { return find_(op); }
  [[nodiscard]] OperatorDefinition& definition() { return definition_; }

 private:
  OperatorDefinition& definition_;
  const DefinitionLookup& find_;
  std::set<std::string> names_;  ///< Of sizes, lets and attributes.
  ApplicationPrefixes prefixes_;
};

/// One application: the applied definition in the names of the definition around it.
class Expansion {
 public:
  Expansion(Composer& composer, const Application& application, const OperatorDefinition& applied)
      : composer_(composer),
        application_(application),
        applied_(applied),
        where_(application.where),
        prefix_(composer.prefix_of(application)) {}

  /// The name of the tensor that holds the result.
  Expected<std::string> run() {
    TASO_RETURN_IF_ERROR(operands());
    TASO_RETURN_IF_ERROR(attributes());
    TASO_RETURN_IF_ERROR(output());
    TASO_RETURN_IF_ERROR(solve_sizes());
    TASO_RETURN_IF_ERROR(name_result());
    for (const AttributeSpec& attribute : applied_.attributes) require_length(attribute);
    for (const SizeStatement& statement : applied_.statements) {
      TASO_ASSIGN(Expression value, in_place(statement.value));
      if (statement.name.empty()) {
        composer_.require(std::move(value), statement.message, where_);
        continue;
      }
      const auto renamed = names_of_lets_.find(statement.name);
      std::string name = renamed != names_of_lets_.end() ? renamed->second : prefix_ + statement.name;
      values_.insert_or_assign(statement.name, name_of(name, where_));
      composer_.let(std::move(name), std::move(value), where_);
    }
    TASO_RETURN_IF_ERROR(result_axes());
    TASO_RETURN_IF_ERROR(equations());
    return target_;
  }

 private:
  /// A tensor of the applied definition: the axes that each of its axes stands for, and the tensor that it is.
  struct View {
    std::string tensor;
    std::vector<Axes> axes;
    /// Per axis: the extents of the digits where a pair of the applied definition is one axis here; otherwise empty.
    std::vector<std::vector<Expression>> digits;
  };
  /// What an index variable is: the variables of the axes that it ranges over.
  struct Variable {
    bool vector = false;
    std::vector<Expression> parts;
  };

  [[nodiscard]] std::string in_application() const { return " in " + to_text(application_); }

  Status operands() {
    const std::size_t given = application_.operands.size(), expected = applied_.inputs.size();
    if (applied_.variadic() ? given == 0 : given != expected)
      return bad_input("'" + applied_.name + "' takes " +
                           (applied_.variadic() ? "one or more inputs"
                                                : std::to_string(expected) + (expected == 1 ? " input" : " inputs")) +
                           ", not " + std::to_string(given),
                       where_);
    for (std::size_t i = 0; i < given; ++i) {
      TASO_ASSIGN(Composer::Operand operand, composer_.operand(application_.operands[i]));
      const InputSpec& input = applied_.inputs[applied_.variadic() ? 0 : i];
      if (operand.domain != input.domain)
        return bad_input("'" + operand.tensor + "' holds " + elements_of(operand.domain) + ", and '" + input.name +
                             "' of '" + applied_.name + "' " + elements_of(input.domain),
                         application_.operands[i].where);
      operands_.push_back(std::move(operand));
    }
    return {};
  }

  Status attributes() {
    for (const auto& [name, value] : application_.attributes)
      if (applied_.find_attribute(name) == nullptr) {
        std::string known;
        for (const AttributeSpec& spec : applied_.attributes) known += (known.empty() ? "" : ", ") + spec.name;
        return bad_input(
            "'" + applied_.name + "' has no attribute '" + name + "'; it has " + (known.empty() ? "none" : known),
            value.where);
      }
    for (const AttributeSpec& spec : applied_.attributes) {
      const auto given = std::find_if(application_.attributes.begin(), application_.attributes.end(),
                                      [&](const auto& entry) { return entry.first == spec.name; });
      if (given == application_.attributes.end() && !spec.default_value)
        return bad_input("'" + applied_.name + "' needs attribute '" + spec.name + "'", where_);
      Expression value =
          given != application_.attributes.end() ? given->second : literal_of(*spec.default_value, where_);
      if (spec.kind == AttributeKind::symbol) {
        if (value.kind != Kind::name)
          return bad_input("attribute '" + spec.name + "' is " + to_text(value) + ", expected the name of a function",
                           value.where);
        functions_.emplace(spec.name, value);
        continue;
      }
      if (spec.kind != AttributeKind::real && value.kind != Kind::name && !is_literal(value)) {
        composer_.let(prefix_ + spec.name, std::move(value), where_);
        value = name_of(prefix_ + spec.name, where_);
      }
      values_.emplace(spec.name, std::move(value));
    }
    return {};
  }

  /// That a list has as many elements as the applied definition says.
  void require_length(const AttributeSpec& attribute) {
    if (!attribute.length) return;
    const Expected<Expression> length = in_place(*attribute.length);
    const Expression& value = values_.at(attribute.name);
    const auto elements = static_cast<std::int64_t>(value.operands.size());
    if (!length || (value.kind == Kind::list && constant(*length) == elements)) return;
    if (const AttributeSpec* own = composer_.definition().find_attribute(value.name);
        value.kind == Kind::name && own != nullptr && own->length && same_text(*own->length, *length))
      return;
    composer_.require(
        make(Kind::equal, {make(Kind::call, {value}, where_, "length"), *length}, where_),
        "attribute '" + attribute.name + "' of " + applied_.name + " must have " + to_text(*length) + " elements",
        where_);
  }

  /// Which output is meant. How many there are follows from the attributes.
  Status output() {
    const std::optional<std::int64_t>& output = application_.output;
    if (!applied_.several_outputs()) {
      if (output) return bad_input("'" + applied_.name + "' has one output: nothing stands behind it", where_);
      return {};
    }
    if (!output)
      return bad_input("'" + applied_.name + "' has several outputs: '.0' behind it is the first one", where_);
    TASO_ASSIGN(Expression count, in_place(*applied_.output.count));
    if (const std::optional<std::int64_t> number = known_count(*applied_.output.count, count)) {
      if (*output >= *number)
        return bad_input(
            "there is no output " + std::to_string(*output) + " of " + std::to_string(*number) + in_application(),
            where_);
    } else {
      composer_.require(make(Kind::greater, {std::move(count), integer_of(*output, where_)}, where_),
                        "there must be an output " + std::to_string(*output) + in_application(), where_);
    }
    values_.insert_or_assign(applied_.output.piece, integer_of(*output, where_));
    return {};
  }

  /// The number of outputs, if it does not depend on the sizes of the definition: the length of a list that is written
  /// element by element, or a number.
  [[nodiscard]] std::optional<std::int64_t> known_count(const Expression& count, const Expression& here) const {
    if (count.kind == Kind::call && count.name == "length" && count.operands[0].kind == Kind::name)
      for (const auto& [name, value] : application_.attributes)
        if (name == count.operands[0].name && value.kind == Kind::list)
          return static_cast<std::int64_t>(value.operands.size());
    return constant(here);
  }

  // ---- sizes ----

  [[nodiscard]] bool bound(const std::string& name) const { return values_.contains(name) || rests_.contains(name); }
  [[nodiscard]] bool computable(const Expression& e) const {
    std::set<std::string> names;
    collect_names(e, names);
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return bound(name); });
  }

  /// Binds the sizes of the applied definition by the axes of the operands, in the order of Checker::solve_sizes.
  Status solve_sizes() {
    views_.resize(operands_.size());
    std::vector<std::vector<bool>> done;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      views_[i].tensor = operands_[i].tensor;
      done.emplace_back(input_of(i).axes.size(), false);
    }
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t i = 0; i < operands_.size(); ++i) {
        const std::vector<AxisSpec>& axes = input_of(i).axes;
        if (views_[i].axes.size() != axes.size() || axes.empty()) {
          TASO_ASSIGN(const bool aligned, align(i));
          if (!aligned) continue;
        }
        for (std::size_t k = 0; k < axes.size(); ++k) {
          if (done[i][k]) continue;
          TASO_ASSIGN(const bool solved, solve_axis(i, axes[k], views_[i].axes[k], views_[i].digits[k]));
          done[i][k] = solved;
          progress = progress || solved;
        }
      }
    }
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (std::find(done[i].begin(), done[i].end(), false) != done[i].end() ||
          views_[i].axes.size() != input_of(i).axes.size())
        return bad_input("it cannot be told which axes of '" + operands_[i].tensor + "' " + to_text(operands_[i].axes) +
                             " are those of " + to_text(input_of(i)) + in_application(),
                         where_);
    return {};
  }

  [[nodiscard]] const InputSpec& input_of(std::size_t operand) const {
    return applied_.inputs[applied_.variadic() ? 0 : operand];
  }

  [[nodiscard]] Error misfit(std::size_t operand) const {
    return bad_input("the axes " + to_text(operands_[operand].axes) + " of '" + operands_[operand].tensor +
                         "' do not fit " + to_text(input_of(operand)) + in_application(),
                     where_);
  }

  /// Finds the axes of an operand for each axis of the input, once all rests but one are known. False: not yet.
  Expected<bool> align(std::size_t operand) {
    const Axes& own = operands_[operand].axes;
    const std::vector<AxisSpec>& axes = input_of(operand).axes;
    std::vector<std::optional<std::size_t>> lengths;
    std::size_t covered = 0, unknown = 0;
    for (const AxisSpec& axis : axes) {
      std::optional<std::size_t> length = 1;
      if (axis.kind == AxisKind::rest) {
        TASO_ASSIGN(length, length_of(axis, own));
      }
      covered += length.value_or(0);
      unknown += length ? 0 : 1;
      lengths.push_back(length);
    }
    if (unknown > 1) return false;
    if (unknown == 0 ? own.size() != covered : own.size() < covered) return misfit(operand);
    std::vector<Axes> parts;
    auto at = own.begin();
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto end = at + static_cast<std::ptrdiff_t>(lengths[i].value_or(own.size() - covered));
      parts.emplace_back(at, end);
      at = end;
      const bool has_rest = std::any_of(parts[i].begin(), parts[i].end(),
                                        [](const AxisSpec& axis) { return axis.kind == AxisKind::rest; });
      // So many axes, and no vector of them.
      const bool single = axes[i].kind != AxisKind::rest || (axes[i].length && is_number(*axes[i].length));
      if (single && has_rest) return misfit(operand);
    }
    views_[operand].digits.resize(parts.size());
    views_[operand].axes = std::move(parts);
    return true;
  }

  [[nodiscard]] bool is_number(const Expression& length) {
    if (!computable(length)) return false;
    const Expected<Expression> value = in_place(length);
    return value.ok() && constant(*value).has_value();
  }

  /// How many of the axes `own` of an operand a rest covers, if that is known.
  Expected<std::optional<std::size_t>> length_of(const AxisSpec& rest, const Axes& own) {
    using Length = std::optional<std::size_t>;
    if (const auto known = rests_.find(rest.factors[0].name); known != rests_.end())
      return Length(known->second.size());
    if (!rest.length || !computable(*rest.length)) return Length();
    TASO_ASSIGN(const Expression length, in_place(*rest.length));
    if (const std::optional<std::int64_t> number = constant(length)) {
      if (*number >= 0 && *number <= static_cast<std::int64_t>(own.size()))
        return Length(static_cast<std::size_t>(*number));
      return bad_input("the number " + to_text(*rest.length) + " of axes " + to_text(rest.factors[0]) + ".. of '" +
                           applied_.name + "' is " + std::to_string(*number) + in_application(),
                       where_);
    }
    const bool alike = std::any_of(own.begin(), own.end(), [&](const AxisSpec& axis) {
      return axis.kind == AxisKind::rest && axis.length && same_text(*axis.length, length);
    });
    return alike ? Length(1) : Length();
  }

  /// Binds or checks one axis of an input. False: not yet.
  Expected<bool> solve_axis(std::size_t operand, const AxisSpec& axis, const Axes& own,
                            std::vector<Expression>& digits) {
    if (axis.kind == AxisKind::rest) {
      const auto [known, fresh] = rests_.emplace(axis.factors[0].name, own);
      if (!fresh) require_equal(extents_of(known->second, where_), extents_of(own, where_), axis);
      return true;
    }
    const Expression extent = extent_of(own[0]);
    if (axis.factors[0].kind == Kind::piece && axis.kind == AxisKind::size) {
      std::vector<Expression>& extents = pieces_[axis.factors[0].name];
      if (extents.size() != operand) return false;
      extents.push_back(extent);
      values_.insert_or_assign(axis.factors[0].name, make(Kind::list, extents, where_));
      return true;
    }
    if (axis.kind == AxisKind::composite && own[0].kind == AxisKind::size) return solve_digits(axis, extent, digits);
    const std::vector<Expression> extents =
        axis.kind == AxisKind::composite ? own[0].factors : std::vector<Expression>{extent};
    if (extents.size() != axis.factors.size()) return misfit(operand);
    // One factor may be an expression of others.
    for (const Expression& factor : axis.factors)
      if (factor.kind != Kind::name && !computable(factor)) return false;
    for (std::size_t i = 0; i < extents.size(); ++i)
      TASO_RETURN_IF_ERROR(bind_or_require(axis.factors[i], extents[i], axis));
    return true;
  }

  /// A pair (triple, ...) that is one axis of `extent` here: all factors but one are known, which is found by division,
  /// as where shapes are given.
  Expected<bool> solve_digits(const AxisSpec& axis, const Expression& extent, std::vector<Expression>& digits) {
    const Expression* unknown = nullptr;
    std::optional<Expression> known;
    for (const Expression& factor : axis.factors) {
      if (!computable(factor)) {
        if (unknown != nullptr || factor.kind != Kind::name) return false;
        unknown = &factor;
        continue;
      }
      TASO_ASSIGN(Expression value, in_place(factor));
      known = known ? make(Kind::multiply, {*std::move(known), std::move(value)}, where_) : std::move(value);
    }
    if (unknown == nullptr) {
      require_equal(extent, *known, axis);
    } else if (same_text(extent, *known)) {
      values_.emplace(unknown->name, integer_of(1, where_));
    } else {
      composer_.require(
          make(Kind::equal, {make(Kind::modulo, {extent, *known}, where_), integer_of(0, where_)}, where_),
          "axis " + to_text(axis) + " of " + applied_.name + " must be a multiple of " + to_text(*known), where_);
      const std::string name = prefix_ + unknown->name;
      composer_.let(name, make(Kind::floor_divide, {extent, *known}, where_), where_);
      values_.emplace(unknown->name, name_of(name, where_));
    }
    for (const Expression& factor : axis.factors) {
      TASO_ASSIGN(Expression value, in_place(factor));
      digits.push_back(std::move(value));
    }
    return true;
  }

  Status bind_or_require(const Expression& factor, const Expression& extent, const AxisSpec& axis) {
    if (factor.kind == Kind::name && !bound(factor.name)) {
      values_.emplace(factor.name, extent);
      return {};
    }
    TASO_ASSIGN(const Expression value, in_place(factor));
    require_equal(value, extent, axis);
    return {};
  }

  void require_equal(const Expression& a, const Expression& b, const AxisSpec& axis) {
    composer_.require_equal(a, b, "axis " + to_text(axis) + " of " + applied_.name + " must be the same everywhere",
                            where_);
  }

  // ---- the result ----

  /// The axes of the result, one or more for each axis of the applied definition's output.
  Expected<std::vector<Axes>> output_axes() {
    std::vector<Axes> result;
    for (const AxisSpec& axis : applied_.output.axes) {
      TASO_ASSIGN(Axes axes, axes_in_place(axis));
      result.push_back(std::move(axes));
    }
    return result;
  }

  /// How the definition around it calls the axes of the result; nullptr if it does not.
  [[nodiscard]] const std::vector<AxisSpec>* declared() const {
    if (application_.target == "out") return &composer_.definition().output.axes;
    return application_.axes ? &*application_.axes : nullptr;
  }

  /// A `let` of the applied definition that is an axis of its output gets the name that the axis is given.
  Status name_result() {
    if (declared() == nullptr) return {};
    std::size_t at = 0;
    const auto give = [&](const Expression& let, const Expression& name) {
      const bool is_let = std::any_of(applied_.statements.begin(), applied_.statements.end(),
                                      [&](const SizeStatement& statement) { return statement.name == let.name; });
      if (let.kind == Kind::name && is_let && name.kind == Kind::name && !composer_.knows(name.name))
        names_of_lets_.emplace(let.name, name.name);
    };
    for (const AxisSpec& axis : applied_.output.axes) {
      const auto known = axis.kind == AxisKind::rest ? rests_.find(axis.factors[0].name) : rests_.end();
      if (known != rests_.end()) {
        at += known->second.size();
        continue;
      }
      if (at >= declared()->size()) break;
      const AxisSpec& name = (*declared())[at++];
      if (name.kind != axis.kind || name.factors.size() != axis.factors.size()) continue;
      for (std::size_t i = 0; i < axis.factors.size(); ++i) give(axis.factors[i], name.factors[i]);
    }
    return {};
  }

  /// Declares the tensor of the result, and the names that its axes are given.
  Status result_axes() {
    TASO_ASSIGN(result_, output_axes());
    if (declared() != nullptr) TASO_RETURN_IF_ERROR(name_axes(*declared()));
    Axes all;
    for (const Axes& axes : result_) all.insert(all.end(), axes.begin(), axes.end());
    target_ = application_.target.empty() ? prefix_ + "out" : application_.target;
    if (target_ == "out") {
      composer_.definition().output.axes = std::move(all);
    } else {
      result_spec_ = IntermediateSpec{target_, applied_.output.domain, std::move(all), where_};
    }
    return {};
  }

  Status name_axes(const std::vector<AxisSpec>& names) {
    Axes all;
    for (const Axes& axes : result_) all.insert(all.end(), axes.begin(), axes.end());
    if (names.size() == all.size() && std::equal(all.begin(), all.end(), names.begin(), alike)) {
      auto name = names.begin();
      for (Axes& axes : result_)
        for (AxisSpec& axis : axes) TASO_RETURN_IF_ERROR(name_axis(*name++, axis));
      return {};
    }
    // One vector of extents may be written axis by axis.
    const auto vector = std::find_if(result_.begin(), result_.end(), [](const Axes& axes) {
      return axes.size() == 1 && axes[0].kind == AxisKind::rest;
    });
    if (vector == result_.end() || names.size() + 1 < all.size())
      return bad_input(to_text(application_) + " has axes " + to_text(all) + ", not " + to_text(names), where_);
    auto name = names.begin();
    for (auto axes = result_.begin(); axes != result_.end(); ++axes) {
      if (axes != vector) {
        for (AxisSpec& axis : *axes) TASO_RETURN_IF_ERROR(name_axis(*name++, axis));
        continue;
      }
      const Axes written(name, name + static_cast<std::ptrdiff_t>(names.size() + 1 - all.size()));
      name += static_cast<std::ptrdiff_t>(written.size());
      for (const AxisSpec& axis : written) TASO_RETURN_IF_ERROR(require_known(axis));
      composer_.require_equal(extents_of(written, where_), extents_of(*axes, where_), message(written), where_);
      *axes = written;
    }
    return {};
  }

  static bool alike(const AxisSpec& axis, const AxisSpec& name) {
    return (axis.kind == AxisKind::rest) == (name.kind == AxisKind::rest);
  }

  /// That the names of an axis are known before the result is.
  Status require_known(const AxisSpec& axis) const {
    for (const Expression& factor : axis.factors) {
      std::set<std::string> names;
      collect_names(factor, names);
      for (const std::string& name : names)
        if (!composer_.knows(name))
          return bad_input("the extent " + name + " of axis " + to_text(axis) + " is not known" + in_application(),
                           axis.where);
    }
    return {};
  }

  /// `axis`: one of the result; written as in `name` afterwards, where that is possible.
  Status name_axis(const AxisSpec& name, AxisSpec& axis) {
    if (!alike(axis, name))
      return bad_input("axis " + to_text(name) + " is " + to_text(axis) + in_application(), name.where);
    if (name.kind == axis.kind && name.factors.size() == axis.factors.size()) {
      for (std::size_t i = 0; i < name.factors.size(); ++i) name_size(name.factors[i], axis.factors[i], name);
      axis.factors = name.factors;
      return {};
    }
    if (name.kind == AxisKind::size) {
      name_size(name.factors[0], extent_of(axis), name);
      return {};
    }
    TASO_RETURN_IF_ERROR(require_known(name));
    composer_.require_equal(extent_of(name), extent_of(axis), message({name}), where_);
    return {};
  }

  void name_size(const Expression& name, const Expression& extent, const AxisSpec& axis) {
    if (name.kind == Kind::name && !composer_.knows(name.name))
      composer_.let(name.name, extent, where_);
    else
      composer_.require_equal(name, extent, message({axis}), where_);
  }

  [[nodiscard]] std::string message(const Axes& axes) const {
    return "the result of " + applied_.name + " must have the axes " + to_text(axes);
  }

  // ---- equations ----

  Status equations() {
    OperatorDefinition& definition = composer_.definition();
    for (std::size_t i = 0; i < applied_.inputs.size(); ++i) {
      const std::string& name = applied_.inputs[i].name;
      if (applied_.variadic())
        tensors_[name] = views_;
      else
        tensors_[name] = {views_[i]};
    }
    // Before the equations: those of a recurrence read what is written later.
    for (const IntermediateSpec& spec : applied_.intermediates) TASO_RETURN_IF_ERROR(intermediate(spec));
    for (const Equation& equation : applied_.equations) {
      if (const IntermediateSpec* spec = applied_.find_intermediate(equation.target)) {
        const View view = tensors_.at(spec->name)[0];
        TASO_RETURN_IF_ERROR(this->equation(equation, view));
        continue;
      }
      if (result_spec_) {
        definition.intermediates.push_back(std::move(*result_spec_));
        result_spec_.reset();
      }
      if (!applied_.variadic()) {
        TASO_RETURN_IF_ERROR(this->equation(equation, {target_, result_, {}}));
        continue;
      }
      for (std::size_t k = 0; k < operands_.size(); ++k) {
        values_.insert_or_assign(applied_.inputs[0].piece, integer_of(static_cast<std::int64_t>(k), where_));
        TASO_RETURN_IF_ERROR(this->equation(equation, {target_, result_, {}}));
      }
    }
    return {};
  }

  Status intermediate(const IntermediateSpec& spec) {
    View view;
    view.tensor = prefix_ + spec.name;
    IntermediateSpec own{view.tensor, spec.domain, {}, spec.where};
    for (const AxisSpec& axis : spec.axes) {
      TASO_ASSIGN(Axes axes, axes_in_place(axis));
      own.axes.insert(own.axes.end(), axes.begin(), axes.end());
      view.axes.push_back(std::move(axes));
    }
    composer_.definition().intermediates.push_back(std::move(own));
    tensors_[spec.name] = {std::move(view)};
    return {};
  }

  Status equation(const Equation& equation, const View& target) {
    Equation own;
    own.target = target.tensor;
    own.where = equation.where;
    variables_.clear();
    for (const Expression::Range& range : equation.ranges) {
      TASO_ASSIGN(const std::vector<Expression::Range> opened, open(range));
      own.ranges.insert(own.ranges.end(), opened.begin(), opened.end());
    }
    // Variables first: those of later axes may occur in coordinates before them.
    const auto declares = [&](const Expression& coordinate) {
      return coordinate.kind == Kind::name && !variables_.contains(coordinate.name) && !bound(coordinate.name);
    };
    for (std::size_t i = 0; i < equation.coordinates.size(); ++i) {
      const Expression& coordinate = equation.coordinates[i];
      if (coordinate.kind == Kind::tuple)
        for (const Expression& digit : coordinate.operands) declare(digit.name, target.axes[i], false);
      else if (declares(coordinate))
        declare(coordinate.name, target.axes[i], coordinate.rest);
    }
    for (std::size_t i = 0; i < equation.coordinates.size(); ++i)
      TASO_RETURN_IF_ERROR(coordinate(equation.coordinates[i], target, i, own.coordinates));
    TASO_ASSIGN(own.value, in_place(equation.value));
    composer_.definition().equations.push_back(std::move(own));
    return {};
  }

  /// A new index variable over these axes, if it is a vector; else over one of them or a part of it.
  void declare(const std::string& name, const Axes& axes, bool vector) {
    Variable variable{vector, {}};
    if (!vector || (axes.size() == 1 && axes[0].kind == AxisKind::rest))
      variable.parts.push_back(name_of(prefix_ + name, where_, vector));
    else
      for (std::size_t i = 0; i < axes.size(); ++i)
        variable.parts.push_back(
            name_of(prefix_ + name + "." + std::to_string(i), where_, axes[i].kind == AxisKind::rest));
    variables_.insert_or_assign(name, std::move(variable));
  }

  /// The variables of a range.
  Expected<std::vector<Expression::Range>> open(const Expression::Range& range) {
    std::vector<Expression::Range> result;
    const auto known = range.rest && range.extent->kind == Kind::name ? rests_.find(range.extent->name) : rests_.end();
    if (known == rests_.end()) {
      TASO_ASSIGN(Expression extent, in_place(*range.extent));
      variables_.insert_or_assign(range.name,
                                  Variable{range.rest, {name_of(prefix_ + range.name, where_, range.rest)}});
      result.push_back({prefix_ + range.name, range.rest, std::make_shared<const Expression>(std::move(extent))});
      return result;
    }
    declare(range.name, known->second, true);
    const std::vector<Expression>& variable = variables_.at(range.name).parts;
    for (std::size_t i = 0; i < variable.size(); ++i)
      result.push_back(
          {variable[i].name, variable[i].rest, std::make_shared<const Expression>(extent_of(known->second[i]))});
    return result;
  }

  // ---- expressions ----

  /// The axes that one axis of the applied definition stands for.
  Expected<Axes> axes_in_place(const AxisSpec& axis) {
    if (axis.kind == AxisKind::rest)
      if (const auto known = rests_.find(axis.factors[0].name);
          axis.factors[0].kind == Kind::name && known != rests_.end())
        return known->second;
    AxisSpec own;
    own.kind = axis.kind;
    own.where = axis.where;
    for (const Expression& factor : axis.factors) {
      TASO_ASSIGN(Expression value, in_place(factor));
      own.factors.push_back(std::move(value));
    }
    return Axes{std::move(own)};
  }

  /// What a coordinate of the applied definition, for axis number `place`, is on the axes that it stands for.
  Status coordinate(const Expression& given, const View& view, std::size_t place, std::vector<Expression>& result) {
    const Axes& axes = view.axes[place];
    if (given.kind == Kind::tuple) {
      std::vector<Expression> digits;
      for (const Expression& digit : given.operands) {
        TASO_ASSIGN(Expression value, in_place(digit));
        digits.push_back(std::move(value));
      }
      if (place < view.digits.size() && !view.digits[place].empty()) {
        Expression position = std::move(digits[0]);
        for (std::size_t i = 1; i < digits.size(); ++i)
          position =
              make(Kind::add,
                   {make(Kind::multiply, {std::move(position), view.digits[place][i]}, where_), std::move(digits[i])},
                   where_);
        result.push_back(std::move(position));
        return {};
      }
      result.push_back(make(Kind::tuple, std::move(digits), given.where));
      return {};
    }
    if (!given.rest) {
      TASO_ASSIGN(Expression value, in_place(given));
      result.push_back(std::move(value));
      return {};
    }
    if (given.kind == Kind::name)
      if (const auto known = variables_.find(given.name);
          known != variables_.end() && ranges_over(known->second, axes)) {
        result.insert(result.end(), known->second.parts.begin(), known->second.parts.end());
        return {};
      }
    TASO_ASSIGN(Expression vector, in_place(given));
    if (axes.size() == 1 && axes[0].kind == AxisKind::rest) {
      vector.rest = true;
      result.push_back(std::move(vector));
      return {};
    }
    // Element by element, or part by part.
    Expression begin = integer_of(0, where_);
    const auto plus = [&](const Expression& a, const Expression& b) {
      return a.kind == Kind::integer && b.kind == Kind::integer ? integer_of(a.integer + b.integer, where_)
                                                                : make(Kind::add, {a, b}, where_);
    };
    for (const AxisSpec& axis : axes) {
      if (axis.kind != AxisKind::rest) {
        result.push_back(make(Kind::element, {vector, begin}, where_));
        begin = plus(begin, integer_of(1, where_));
        continue;
      }
      const Expression length = make(Kind::call, {axis.factors[0]}, where_, "length");
      begin = plus(begin, length);
      Expression part = make(Kind::call, {make(Kind::call, {vector, begin}, where_, "first"), length}, where_, "last");
      part.rest = true;
      result.push_back(std::move(part));
    }
    return {};
  }

  static bool ranges_over(const Variable& variable, const Axes& axes) {
    return std::equal(
        variable.parts.begin(), variable.parts.end(), axes.begin(), axes.end(),
        [](const Expression& part, const AxisSpec& axis) { return part.rest == (axis.kind == AxisKind::rest); });
  }

  /// An expression of the applied definition in the names of the one around it.
  Expected<Expression> in_place(const Expression& e) {
    switch (e.kind) {
      case Kind::name:
        return named(e);
      case Kind::piece: {
        TASO_ASSIGN(const Expression which, in_place(e.operands[0]));
        const auto list = values_.find(e.name);
        if (list == values_.end()) return e;
        const std::optional<std::int64_t> number = constant(which);
        if (list->second.kind == Kind::list && number && *number >= 0 &&
            *number < static_cast<std::int64_t>(list->second.operands.size()))
          return list->second.operands[static_cast<std::size_t>(*number)];
        return make(Kind::element, {list->second, which}, e.where);
      }
      case Kind::read:
        return read(e);
      case Kind::reduce:
      case Kind::all: {
        const auto outer = variables_;
        Expression result = e;
        result.ranges.clear();
        for (const Expression::Range& range : e.ranges) {
          TASO_ASSIGN(const std::vector<Expression::Range> opened, open(range));
          result.ranges.insert(result.ranges.end(), opened.begin(), opened.end());
        }
        TASO_ASSIGN(result.operands[0], in_place(e.operands[0]));
        variables_ = outer;
        return result;
      }
      default:
        break;
    }
    Expression result = e;
    if (e.kind == Kind::call) {
      if (const auto function = functions_.find(e.name); function != functions_.end()) {
        result.name = function->second.name;
        result.where = function->second.where;
      } else if (const AttributeSpec* own = composer_.definition().find_attribute(e.name);
                 own != nullptr && own->kind == AttributeKind::symbol) {
        return bad_input("attribute '" + own->name + "' has the name of a function that '" + applied_.name +
                             "' calls: give it another one",
                         own->where);
      }
    }
    for (Expression& operand : result.operands) {
      TASO_ASSIGN(operand, in_place(operand));
    }
    return result;
  }

  Expected<Expression> named(const Expression& e) {
    if (const auto variable = variables_.find(e.name); variable != variables_.end()) {
      std::vector<Expression> parts = variable->second.parts;
      for (Expression& part : parts) part.rest = false;
      if (parts.empty()) return make(Kind::list, {}, e.where);
      const bool whole = !variable->second.vector || variable->second.parts[0].rest;
      return parts.size() == 1 && whole ? parts[0] : make(Kind::call, std::move(parts), e.where, "join");
    }
    if (const auto value = values_.find(e.name); value != values_.end()) return value->second;
    if (const auto rest = rests_.find(e.name); rest != rests_.end()) return extents_of(rest->second, e.where);
    return e;
  }

  Expected<Expression> read(const Expression& e) {
    const std::vector<View>& views = tensors_.at(e.name);
    std::size_t which = 0;
    if (e.piece != nullptr) {
      TASO_ASSIGN(const Expression piece, in_place(*e.piece));
      const std::optional<std::int64_t> number = constant(piece);
      if (!number || *number < 0 || *number >= static_cast<std::int64_t>(views.size()))
        return bad_input("it cannot be told which operand is " + to_text(e) + in_application(), where_);
      which = static_cast<std::size_t>(*number);
    }
    Expression result = e;
    result.piece = nullptr;
    result.name = views[which].tensor;
    result.operands.clear();
    for (std::size_t i = 0; i < e.operands.size(); ++i) {
      if (e.flat) {
        TASO_ASSIGN(Expression position, in_place(e.operands[i]));
        result.operands.push_back(std::move(position));
      } else {
        TASO_RETURN_IF_ERROR(coordinate(e.operands[i], views[which], i, result.operands));
      }
    }
    if (e.fallback != nullptr) {
      TASO_ASSIGN(Expression fallback, in_place(*e.fallback));
      result.fallback = std::make_shared<const Expression>(std::move(fallback));
    }
    return result;
  }

  Composer& composer_;
  const Application& application_;
  const OperatorDefinition& applied_;
  const SourceLocation& where_;
  std::string prefix_;
  std::vector<Composer::Operand> operands_;
  std::vector<View> views_;                                ///< Of the operands.
  std::map<std::string, std::vector<View>> tensors_;       ///< By the applied definition's names; pieces in order.
  std::map<std::string, Expression> values_;               ///< Sizes, lets and attributes.
  std::map<std::string, Axes> rests_;                      ///< Axes of the operands that rests of inputs stand for.
  std::map<std::string, std::vector<Expression>> pieces_;  ///< Extents that differ between the pieces of an input.
  std::map<std::string, Expression> functions_;            ///< Attributes that are functions.
  std::map<std::string, std::string> names_of_lets_;       ///< Lets that get a name of the definition around them.
  std::map<std::string, Variable> variables_;              ///< Index variables in scope.
  std::vector<Axes> result_;                               ///< Per axis of the applied definition's output.
  std::optional<IntermediateSpec> result_spec_;            ///< Until it is declared.
  std::string target_;
};

Expected<std::string> Composer::apply(const Application& application) {
  const OperatorDefinition* const applied = find_(application.op);
  if (applied == nullptr) return bad_input("unknown operator '" + application.op + "'", application.where);
  return Expansion(*this, application, *applied).run();
}

}  // namespace

std::string ApplicationPrefixes::next(const Application& application) {
  const std::string& wanted =
      application.target.empty() || application.target == "out" ? application.op : application.target;
  std::string prefix = wanted;
  for (int i = 2; !given_.insert(prefix).second; ++i) prefix = wanted + std::to_string(i);
  return prefix + ".";
}

Status compose(OperatorDefinition& definition, const DefinitionLookup& find) {
  if (definition.applications.empty()) return {};
  return Composer(definition, find).run();
}

}  // namespace taso
