#include "partition/cut.h"

#include <algorithm>

namespace taso {
namespace {

using Form = AttributeExpression::Kind;
using Bounds = std::pair<SizePolynomial, SizePolynomial>;

const SizePolynomial zero, one(1);

/// Cuts one variable; the first obstacle ends it.
class Cutter {
 public:
  /// `surplus`: pieces make more results than their parts.
  Cutter(const OperatorModel& model, std::size_t variable, RemainderCase remainders, bool surplus)
      : remainders_(remainders), surplus_(surplus) {
    cut_.model = model;
    cut_.variable = variable;
    index_ = model.variables[variable].index;
    cut_.point = new_given("m");
    point_ = atoms().of(variable_expression(cut_.point));
  }

  CutResult run() {
    const ModelVariable variable = model().variables[cut_.variable];
    cut_.extent = variable.extent;
    if (!variable.obstacle.empty()) return {{}, variable.obstacle, false, {}};
    // The prover takes no product over a range apart.
    if (variable.reducer == "prod") return {{}, "partial products are not put together", false, {}};
    if (variable.row) return cut_of_segment(model(), cut_.variable);
    if (variable.reducer.empty() && !is_outermost(model().outputs[0][variable.axis], variable.digit))
      return {{}, obstacle_, false, unit_};
    if (std::any_of(model().reads.begin(), model().reads.end(),
                    [](const ModelRead& read) { return read.flat.has_value(); }))
      return cut_of_position(model(), cut_.variable);
    resolve_remainders();
    require(Condition::Relation::less, zero, point_);
    require(Condition::Relation::less, point_, cut_.extent);
    if (surplus_) find_surplus();
    if (obstacle_.empty()) find_axis_cuts();
    if (obstacle_.empty()) find_attributes();
    if (obstacle_.empty()) check();
    if (!obstacle_.empty()) return {{}, obstacle_, lacks_begin_, unit_};
    return {{std::move(cut_)}, "", false, {}};
  }

 private:
  OperatorModel& model() { return cut_.model; }
  SizeAtoms& atoms() { return cut_.model.atoms; }
  bool mentions(const SizePolynomial& p) { return atoms().mentions(p, index_); }
  bool mentions_index(const SizePolynomial& p) {
    return atoms().mentions(p, [&](SizeAtomId id) {
      return atoms()[id].kind != SizeAtom::Kind::expression && atoms()[id].kind != SizeAtom::Kind::quotient;
    });
  }
  void obstruct(const std::string& reason) {
    if (obstacle_.empty()) obstacle_ = reason;
  }
  std::string text_of(const SizePolynomial& p) {
    const std::optional<AttributeExpression> e = atoms().expression(p);
    if (!e) return "an index";
    Substitution names;
    for (const ModelTensor& tensor : model().tensors) names.tensor_variables.push_back(tensor.name);
    names.attribute_variables = model().attribute_variables;
    const std::string text = to_string(Condition{Condition::Relation::less, *e, *e}, names);
    return text.substr(0, text.size() / 2 - 1);
  }

  std::uint32_t new_given(const std::string& wanted) {
    auto& names = model().attribute_variables;
    std::string name = wanted;
    const auto taken = [&] {
      return std::find(names.begin(), names.end(), name) != names.end() ||
             std::any_of(model().tensors.begin(), model().tensors.end(),
                         [&](const ModelTensor& tensor) { return tensor.name == name; });
    };
    for (int number = 2; taken(); ++number) name = wanted + std::to_string(number);
    names.push_back(name);
    return static_cast<std::uint32_t>(names.size() - 1);
  }

  void require(Condition::Relation relation, const SizePolynomial& left, const SizePolynomial& right) {
    const auto a = atoms().expression(left), b = atoms().expression(right);
    if (!a || !b) return obstruct("what must hold cannot be said in a rule");
    const Condition condition{relation, *a, *b};
    if (std::find(cut_.conditions.begin(), cut_.conditions.end(), condition) == cut_.conditions.end())
      cut_.conditions.push_back(condition);
  }

  /// Whether a digit of an axis can be cut so that the pieces are contiguous: there are no digits outside of it.
  bool is_outermost(const ModelAxis& axis, std::size_t digit) {
    SizePolynomial outer = one;
    for (std::size_t d = 0; d < digit; ++d) outer = outer * axis.factors[d];
    if (outer == one) return true;
    obstruct("a range of it is " + text_of(outer) + " separate stretches of its axis");
    for (const ModelFactor& factor : model().factors)
      if (outer == atoms().of(variable_expression(factor.variable))) unit_ = factor.name;
    return false;
  }

  void resolve_remainders() {
    std::map<SizeAtomId, SizePolynomial> values;
    const auto find = [&](const SizePolynomial& p) {
      atoms().for_each_atom(p, [&](SizeAtomId id) {
        const SizeAtom atom = atoms()[id];
        if (atom.kind != SizeAtom::Kind::remainder || !mentions(atom.operands[0])) return;
        if (atom.operands[0] != SizePolynomial::atom(index_)) obstruct("a remainder of it is read");
        values[id] = remainders_ == RemainderCase::index ? atom.operands[0] : zero;
        require(Condition::Relation::equal, atom.operands[1], remainders_ == RemainderCase::index ? cut_.extent : one);
      });
    };
    for (const ModelRead& read : model().reads)
      for (const auto& digits : read.coordinates)
        for (const SizePolynomial& digit : digits) find(digit);
    if (values.empty()) return;
    for (ModelRead& read : model().reads)
      for (auto& digits : read.coordinates)
        for (SizePolynomial& digit : digits) digit = atoms().substitute(digit, values);
  }

  /// Whether a size is at least 1 (or 0), as far as is known of its atoms.
  bool has_sign(const SizePolynomial& p, bool positive) {
    if (p.is_zero()) return !positive;
    return std::all_of(p.terms().begin(), p.terms().end(), [&](const auto& term) {
      return term.second > 0 && std::all_of(term.first.begin(), term.first.end(), [&](SizeAtomId id) {
               return model().positive.contains(id) || (!positive && model().nonnegative.contains(id));
             });
    });
  }

  /// The same of differences. Atoms that are at least 1 are 1 and a number more. For a number b, a // b is at least 0
  /// where a is; and p - a // b is an integer that is at least (b p - a) / b: at least 0 where b p - a is more than -b.
  bool is_nonnegative(const SizePolynomial& p) {
    std::map<SizeAtomId, SizePolynomial> more;
    for (const SizeAtomId id : model().positive) more[id] = SizePolynomial::atom(id) + one;
    const SizePolynomial shifted = atoms().substitute(p, more);
    SizePolynomial rest;
    std::optional<SizeAtom> subtracted;
    for (const auto& [product, factor] : shifted.terms()) {
      const SizeAtom atom = product.size() == 1 ? atoms()[product[0]] : SizeAtom();
      const bool quotient = atom.kind == SizeAtom::Kind::quotient && has_sign(atom.operands[0], false) &&
                            atom.operands[1].constant().value_or(0) > 0;
      if (quotient && factor > 0) continue;
      if (quotient && factor == -1 && !subtracted)
        subtracted = atom;
      else
        rest.add(product, factor);
    }
    if (!subtracted) return has_sign(rest, false);
    const SizePolynomial& by = subtracted->operands[1];
    return has_sign(by * rest - subtracted->operands[0] + by - one, false);
  }

  /// Least and largest value over all index variables but the one that is cut; each must be linear, with a factor whose
  /// sign is known.
  std::optional<Bounds> bounds(const SizePolynomial& p) {
    std::map<SizeAtomId, SizePolynomial> least, most;
    for (const ModelVariable& other : model().variables) {
      if (!atoms().mentions(p, other.index)) continue;
      const SizePolynomial factor = p.coefficient(other.index);
      if (mentions_index(factor)) return std::nullopt;
      const bool falls = has_sign(zero - factor, false);
      if (!falls && !has_sign(factor, false)) return std::nullopt;
      (falls ? most : least)[other.index] = zero;
      (falls ? least : most)[other.index] = other.extent - one;
    }
    const Bounds result{atoms().substitute(p, least), atoms().substitute(p, most)};
    if (mentions_index(result.first) || mentions_index(result.second)) return std::nullopt;
    return result;
  }

  /// An element of an attribute that says where reads begin: a summand of the place, with factor 1 or -1.
  std::optional<std::pair<SizeAtomId, SizePolynomial>> beginning(const SizePolynomial& place) {
    for (const ModelAttribute& attribute : model().attributes)
      for (const SizePolynomial& element : attribute.list) {
        const SizeAtomId id = *element.single_atom();
        const SizePolynomial factor = place.coefficient(id);
        if (factor == one || factor == zero - one) return std::pair(id, factor);
      }
    return std::nullopt;
  }

  /// How much more pieces make, so that all that their parts read is between what they make first and last.
  void find_surplus() {
    const ModelVariable variable = model().variables[cut_.variable];
    if (!variable.reducer.empty() || model().outputs[0][variable.axis].factors.size() > 1)
      return obstruct("its pieces have no results besides their parts");
    for (const ModelRead& read : std::vector<ModelRead>(model().reads))
      for (const auto& digits : read.coordinates)
        for (const SizePolynomial& digit : digits) {
          if (!mentions(digit)) continue;
          const std::optional<Bounds> window = bounds(digit - SizePolynomial::atom(index_));
          if (digits.size() > 1 || !window || mentions(digit - SizePolynomial::atom(index_)))
            return obstruct("what is read beside it is not known to be a window");
          widen(cut_.before_second, zero - window->first);
          widen(cut_.behind_first, window->second);
        }
  }

  void widen(SizePolynomial& surplus, const SizePolynomial& needed) {
    if (is_nonnegative(surplus - needed)) return;
    if (!is_nonnegative(needed - surplus)) return obstruct("what is read beside it is not known to be a window");
    surplus = needed;
  }

  /// What a piece has of the range.
  SizePolynomial part(bool second) {
    return second ? cut_.extent - point_ + cut_.before_second : point_ + cut_.behind_first;
  }
  /// Where it begins.
  SizePolynomial begin(bool second) { return second ? point_ - cut_.before_second : zero; }

  AxisCut surplus_cut(const ModelRead& read, std::size_t axis) {
    const SizePolynomial extent = model().tensors[read.tensor].axes[axis].extent;
    if (extent != cut_.extent) obstruct(model().tensors[read.tensor].name + " has another extent along it");
    require(Condition::Relation::less_equal, zero, begin(true));
    require(Condition::Relation::less_equal, part(false), extent);
    return {read.tensor, axis, part(false), begin(true), {zero, begin(true)}, {part(false), extent}};
  }

  void find_axis_cuts() {
    for (std::size_t t = 0; t < model().tensors.size(); ++t)
      for (std::size_t a = 0; a < model().tensors[t].axes.size() && obstacle_.empty(); ++a) {
        std::optional<AxisCut> found;
        bool whole = false;
        for (const ModelRead& read : model().reads) {
          if (read.tensor != t || read.flat || read.coordinates[a].empty()) continue;
          const std::optional<AxisCut> here = axis_cut(read, a);
          if (!obstacle_.empty()) return;
          whole = whole || !here;
          if (here && found && (found->first_end != here->first_end || found->second_begin != here->second_begin))
            return obstruct(model().tensors[t].name + " is read at different places by it");
          if (here) found = here;
        }
        if (!found) continue;
        if (whole) return obstruct("every piece needs all of this axis of " + model().tensors[t].name);
        cut_.axes.push_back(*found);
      }
  }

  /// What the pieces read of an axis; nothing if the variable does not say where.
  std::optional<AxisCut> axis_cut(const ModelRead& read, std::size_t axis) {
    const ModelAxis tensor_axis = model().tensors[read.tensor].axes[axis];
    const std::vector<SizePolynomial> digits = read.coordinates[axis];
    for (std::size_t d = 0; d < digits.size(); ++d) {
      if (!mentions(digits[d])) continue;
      if (digits.size() > 1) {
        if (digits[d] != SizePolynomial::atom(index_) || digits.size() != tensor_axis.factors.size()) {
          obstruct("a digit of an axis is computed from it");
          return std::nullopt;
        }
        if (!is_outermost(tensor_axis, d)) return std::nullopt;
        SizePolynomial inner = one;
        for (std::size_t i = d + 1; i < digits.size(); ++i) inner = inner * tensor_axis.factors[i];
        return AxisCut::at(read.tensor, axis, point_ * inner, tensor_axis.extent);
      }
      return surplus_ ? surplus_cut(read, axis) : window_cut(read, axis, digits[d]);
    }
    return std::nullopt;
  }

  std::optional<AxisCut> window_cut(const ModelRead& read, std::size_t axis, const SizePolynomial& place) {
    const SizePolynomial factor = place.coefficient(index_);
    const SizePolynomial rest = place - factor * SizePolynomial::atom(index_);
    if (mentions(rest) || mentions_index(factor)) {
      obstruct("the place that is read is no linear function of it");
      return std::nullopt;
    }
    if (!has_sign(factor, true)) {
      if (const auto number = factor.constant()) {
        obstruct("it is read backwards");
        return std::nullopt;
      }
      require(Condition::Relation::less, zero, factor);
    }
    const std::optional<Bounds> window = bounds(rest);
    if (!window) {
      obstruct("what is read beside it is not known to be a window");
      return std::nullopt;
    }
    const auto begin = beginning(window->first);
    SizePolynomial start = factor * point_, offset = window->first;
    if (begin) {
      start = start + begin->second * SizePolynomial::atom(begin->first);
      offset = offset - begin->second * SizePolynomial::atom(begin->first);
      cut_.attributes[begin->first] = {SizePolynomial::atom(begin->first), zero};
    }
    if (!has_sign(offset, false)) {
      lacks_begin_ = obstacle_.empty();
      obstruct("a piece would need what lies before its own part, and no attribute says where reads begin");
      return std::nullopt;
    }
    const SizePolynomial end = factor * (point_ - one) + window->second + one;
    const AxisCut result{read.tensor,
                         axis,
                         end,
                         start,
                         {window->first, start + offset},
                         {end, factor * (cut_.extent - one) + window->second + one}};
    const SizePolynomial extent = model().tensors[read.tensor].axes[axis].extent;
    if (result.first_end == point_ && start == point_ && (!read.may_leave || extent == cut_.extent)) return result;
    windows_.insert({read.tensor, axis});
    require(Condition::Relation::less_equal, zero, result.first_end);
    require(Condition::Relation::less_equal, result.first_end, extent);
    require(Condition::Relation::less_equal, zero, start);
    require(Condition::Relation::less_equal, start, extent);
    return result;
  }

  /// Attributes that say which part of the places of an indirect axis a piece has: where it begins, and what is behind.
  void find_parts() {
    for (const ModelIndirect& indirect : model().indirect) {
      if (indirect.variable != cut_.variable) continue;
      std::optional<SizeAtomId> begin;
      for_each_element([&](SizeAtomId id) {
        const SizePolynomial element = SizePolynomial::atom(id);
        if (!begin && indirect.offset.coefficient(id) == one) {
          begin = id;
          cut_.attributes[id] = {element, element + point_};
        } else if (indirect.offset.coefficient(id) == zero && indirect.places.coefficient(id) == one) {
          cut_.attributes[id] = {element + cut_.extent - point_, element};
        }
      });
    }
  }

  template <class Visit>
  void for_each_element(const Visit& visit) {
    for (const ModelAttribute& attribute : model().attributes)
      for (const SizePolynomial& element : attribute.list) visit(*element.single_atom());
  }

  /// Attributes that are the extent of the variable, and those that say how much stands behind the last read.
  void find_attributes() {
    find_parts();
    for (const ModelAttribute& attribute : model().attributes)
      for (const SizePolynomial& element : attribute.list) {
        const SizeAtomId id = *element.single_atom();
        if (element == cut_.extent) {
          cut_.attributes[id] = {part(false), part(true)};
          continue;
        }
        if (is_read(id)) continue;
        for (const ModelAxis& axis : model().outputs[0])
          for (const SizePolynomial& digit : axis.factors)
            if (is_end(digit, id)) cut_.attributes[id] = {zero, SizePolynomial::atom(id)};
      }
    const std::string& reducer = model().variables[cut_.variable].reducer;
    if (!reducer.empty() && reducer != "sum") exclude_edges();
  }

  /// A piece of a sum may be a sum of nothing, a piece of a maximum may not: nothing may stand at the edges of what is
  /// read.
  void exclude_edges() {
    for (const ModelRead& read : std::vector<ModelRead>(model().reads))
      for (std::size_t a = 0; read.may_leave && a < read.coordinates.size(); ++a) {
        for (const SizePolynomial& place : read.coordinates[a])
          if (const auto begin = beginning(place))
            require(Condition::Relation::equal, SizePolynomial::atom(begin->first), zero);
        windows_.insert({read.tensor, a});
      }
    for (const ModelAttribute& attribute : std::vector<ModelAttribute>(model().attributes))
      for (const SizePolynomial& element : attribute.list)
        for (const ModelAxis& axis : model().outputs[0])
          if (!is_read(*element.single_atom()) && is_end(axis.extent, *element.single_atom()))
            require(Condition::Relation::equal, element, zero);
  }

  bool is_read(SizeAtomId id) {
    return std::any_of(model().reads.begin(), model().reads.end(), [&](const ModelRead& read) {
      return std::any_of(read.coordinates.begin(), read.coordinates.end(), [&](const auto& digits) {
        return std::any_of(digits.begin(), digits.end(),
                           [&](const SizePolynomial& digit) { return atoms().mentions(digit, id); });
      });
    });
  }

  /// Whether an extent is that of an axis in which a window is cut, plus the attribute.
  bool is_end(const SizePolynomial& extent, SizeAtomId id) {
    const auto added = [&](const SizePolynomial& p) {
      return p.coefficient(id) == one && std::any_of(windows_.begin(), windows_.end(), [&](const auto& window) {
               return p.coefficient(
                          model().tensors[window.first].axes[window.second].extent.single_atom().value_or(id)) == one;
             });
    };
    if (added(extent)) return true;
    for (const auto& [product, coefficient] : extent.terms())
      for (const SizeAtomId part : product)
        if (atoms()[part].kind == SizeAtom::Kind::quotient && added(atoms()[part].operands[0])) return true;
    return false;
  }

  /// What extents and attributes are in a piece.
  std::map<SizeAtomId, SizePolynomial> local_values(bool second) {
    std::map<SizeAtomId, SizePolynomial> values;
    for (const auto& [id, value] : cut_.attributes) values[id] = second ? value.second : value.first;
    for (const AxisCut& axis : cut_.axes) {
      const ModelAxis& whole = model().tensors[axis.tensor].axes[axis.axis];
      // An outermost digit has its share; an axis of one digit is what is left.
      const auto id = whole.factors.size() > 1 ? digit_atom(whole) : whole.extent.single_atom();
      if (!id) continue;
      values[*id] = whole.factors.size() > 1 ? (second ? cut_.extent - point_ : point_)
                                             : (second ? whole.extent - axis.second_begin : axis.first_end);
    }
    return values;
  }

  std::optional<SizeAtomId> digit_atom(const ModelAxis& axis) {
    for (const SizePolynomial& factor : axis.factors)
      if (factor == cut_.extent) return factor.single_atom();
    return std::nullopt;
  }

  /// Compares both pieces with the whole.
  void check() {
    for (const bool second : {false, true}) {
      const std::map<SizeAtomId, SizePolynomial> values = local_values(second);
      const auto local = [&](const SizePolynomial& p) { return atoms().substitute(p, values); };
      const std::map<SizeAtomId, SizePolynomial> shift = {{index_, SizePolynomial::atom(index_) + begin(second)}};
      const auto global = [&](const SizePolynomial& p) { return atoms().substitute(p, shift); };
      for (std::size_t v = 0; v < model().variables.size(); ++v) {
        const ModelVariable variable = model().variables[v];
        if (local(variable.extent) != (v == cut_.variable ? part(second) : variable.extent))
          return obstruct(v == cut_.variable ? "nothing tells a piece the extent of its part"
                                             : "one size is its extent and that of " + variable.name +
                                                   ": a piece would have less of both");
      }
      check_tensors(second, local);
      for (const ModelSize& size : model().sizes)
        if (local(size.value) != size.value)
          return obstruct(size.text + " is a number of the definition, and would be another one in a piece");
      for (const ModelSize& comparison : model().comparisons)
        if (local(comparison.value) != global(comparison.value))
          return obstruct("a piece would compare other numbers: " + comparison.text);
      for (const ModelStep& step : model().steps)
        for (std::size_t i = 0; i < step.made.size(); ++i)
          if (mentions(step.made[i]) && step.made[i] != step.read[i])
            return obstruct("elements are made of others along it");
      check_indirect(second, local);
      check_reads(second, local, global);
    }
  }

  /// An index must name the same place of the whole in both pieces.
  template <class Local>
  void check_indirect(bool second, const Local& local) {
    for (const ModelIndirect& indirect : model().indirect) {
      const SizePolynomial moved = second && indirect.variable == cut_.variable ? point_ : zero;
      if (local(indirect.places) != indirect.places || local(indirect.offset) != indirect.offset + moved)
        obstruct("a piece would read other places at " + indirect.text);
    }
  }

  template <class Local>
  void check_tensors(bool second, const Local& local) {
    for (std::size_t t = 0; t < model().tensors.size(); ++t)
      for (std::size_t a = 0; a < model().tensors[t].axes.size(); ++a) {
        const SizePolynomial extent = model().tensors[t].axes[a].extent;
        SizePolynomial expected = extent;
        for (const AxisCut& axis : cut_.axes)
          if (axis.tensor == t && axis.axis == a) expected = second ? extent - axis.second_begin : axis.first_end;
        if (local(extent) != expected) obstruct("an axis of " + model().tensors[t].name + " would have another extent");
      }
  }

  template <class Local, class Global>
  void check_reads(bool second, const Local& local, const Global& global) {
    for (const ModelRead& read : std::vector<ModelRead>(model().reads))
      for (std::size_t a = 0; a < read.coordinates.size(); ++a) {
        const ModelAxis whole = model().tensors[read.tensor].axes[a];
        for (const SizePolynomial& digit : read.coordinates[a]) {
          SizePolynomial shift;
          for (const AxisCut& axis : cut_.axes)
            if (second && axis.tensor == read.tensor && axis.axis == a && mentions(digit))
              shift = whole.factors.size() > 1 ? point_ : axis.second_begin;
          if (global(digit) - shift != local(digit))
            return obstruct("a piece would read other places of " + model().tensors[read.tensor].name);
        }
      }
  }

  VariableCut cut_;
  RemainderCase remainders_;
  SizeAtomId index_ = 0;
  SizePolynomial point_;
  std::set<std::pair<std::size_t, std::size_t>> windows_;
  bool surplus_;
  std::string obstacle_;
  bool lacks_begin_ = false;
  std::optional<std::string> unit_;
};

}  // namespace

bool has_remainder(const OperatorModel& model, std::size_t variable) {
  bool found = false;
  for (const ModelRead& read : model.reads)
    for (const auto& digits : read.coordinates)
      for (const SizePolynomial& digit : digits)
        model.atoms.for_each_atom(digit, [&](SizeAtomId id) {
          const SizeAtom& atom = model.atoms[id];
          found = found || (atom.kind == SizeAtom::Kind::remainder &&
                            model.atoms.mentions(atom.operands[0], model.variables[variable].index));
        });
  return found;
}

CutResult cut_variable(const OperatorModel& model, std::size_t variable, RemainderCase remainders) {
  CutResult plain = Cutter(model, variable, remainders, false).run();
  if (!plain.lacks_begin) return plain;
  CutResult more = Cutter(model, variable, remainders, true).run();
  return more.cuts.empty() ? plain : more;
}

}  // namespace taso
