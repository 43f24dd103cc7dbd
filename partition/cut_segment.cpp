#include <algorithm>

#include "partition/cut.h"

namespace taso {
namespace {

/// Cuts a row of segments in one of them.
class SegmentCutter {
 public:
  SegmentCutter(const OperatorModel& model, std::size_t variable) : row_(model.rows[*model.variables[variable].row]) {
    cut_.model = model;
    cut_.variable = variable;
    while (row_.segments[here_].variable != variable) ++here_;
  }

  CutResult run() {
    cut_.point = static_cast<std::uint32_t>(cut_.model.attribute_variables.size());
    cut_.model.attribute_variables.push_back(free_name());
    point_ = cut_.model.atoms.of(variable_expression(cut_.point));
    for (const ModelSegment& segment : row_.segments) cut_.extent = cut_.extent + segment.extent;
    if (!follow_one_another()) return {{}, "its elements do not stand side by side", false, {}};
    find_conditions();
    find_axes();
    find_attributes();
    if (obstacle_.empty()) check();
    if (!obstacle_.empty()) return {{}, obstacle_, false, {}};
    return {{std::move(cut_)}, "", false, {}};
  }

 private:
  SizeAtoms& atoms() { return cut_.model.atoms; }
  void obstruct(const std::string& reason) {
    if (obstacle_.empty()) obstacle_ = reason;
  }

  [[nodiscard]] std::string free_name() const {
    const auto taken = [&](const std::string& name) {
      return std::find(cut_.model.attribute_variables.begin(), cut_.model.attribute_variables.end(), name) !=
                 cut_.model.attribute_variables.end() ||
             std::any_of(cut_.model.tensors.begin(), cut_.model.tensors.end(),
                         [&](const ModelTensor& tensor) { return tensor.name == name; });
    };
    std::string name = "m";
    for (int number = 2; taken(name); ++number) name = "m" + std::to_string(number);
    return name;
  }

  [[nodiscard]] bool follow_one_another() const {
    SizePolynomial end;
    for (const ModelSegment& segment : row_.segments) {
      if (segment.offset != end) return false;
      end = end + segment.extent;
    }
    return row_.of_outputs || end == cut_.model.outputs[0][row_.axis].extent;
  }

  /// How much of a segment is in the first piece.
  [[nodiscard]] SizePolynomial first_part(std::size_t segment) const {
    if (segment < here_) return row_.segments[segment].extent;
    return segment == here_ ? point_ - row_.segments[segment].offset : SizePolynomial();
  }
  [[nodiscard]] SizePolynomial part(std::size_t segment, bool second) const {
    return second ? row_.segments[segment].extent - first_part(segment) : first_part(segment);
  }

  void require(Condition::Relation relation, const SizePolynomial& left, const SizePolynomial& right) {
    const auto a = atoms().expression(left), b = atoms().expression(right);
    if (!a || !b) return obstruct("what must hold cannot be said in a rule");
    cut_.conditions.push_back({relation, *a, *b});
  }

  void find_conditions() {
    const ModelSegment& segment = row_.segments[here_];
    require(Condition::Relation::less, SizePolynomial(), point_);
    require(Condition::Relation::less, point_, cut_.extent);
    if (here_ > 0) require(Condition::Relation::less_equal, segment.offset, point_);
    if (here_ + 1 < row_.segments.size())
      require(Condition::Relation::less_equal, point_, segment.offset + segment.extent);
  }

  /// The segment whose variable a polynomial mentions.
  std::optional<std::size_t> segment_in(const SizePolynomial& p) {
    for (std::size_t s = 0; s < row_.segments.size(); ++s)
      if (atoms().mentions(p, cut_.model.variables[row_.segments[s].variable].index)) return s;
    return std::nullopt;
  }
  [[nodiscard]] SizePolynomial index_of(std::size_t segment) const {
    return SizePolynomial::atom(cut_.model.variables[row_.segments[segment].variable].index);
  }

  void find_axes() {
    for (std::size_t t = 0; t < cut_.model.tensors.size(); ++t)
      for (std::size_t a = 0; a < cut_.model.tensors[t].axes.size(); ++a) {
        const std::optional<SizePolynomial> place = place_of_cut(t, a);
        if (place) cut_.axes.push_back(AxisCut::at(t, a, *place, cut_.model.tensors[t].axes[a].extent));
      }
  }

  /// Where an axis of an input is cut; nothing where no segment says what is read of it.
  std::optional<SizePolynomial> place_of_cut(std::size_t tensor, std::size_t axis) {
    const SizePolynomial extent = cut_.model.tensors[tensor].axes[axis].extent;
    std::optional<SizePolynomial> place;
    bool before = false, behind = false, whole = false;
    for (const ModelRead& read : cut_.model.reads) {
      if (read.tensor != tensor) continue;
      if (read.flat) {
        obstruct("positions are read in several ways");
        return std::nullopt;
      }
      const std::vector<SizePolynomial>& digits = read.coordinates[axis];
      const auto mentioned = std::find_if(digits.begin(), digits.end(),
                                          [&](const SizePolynomial& digit) { return segment_in(digit).has_value(); });
      if (mentioned == digits.end()) {
        whole = true;
        continue;
      }
      const std::size_t segment = *segment_in(*mentioned);
      const SizePolynomial rest = *mentioned - index_of(segment);
      if (digits.size() > 1 || has_index(rest)) {
        obstruct("the place that is read is no sum of it and a size");
        return std::nullopt;
      }
      before = before || segment < here_;
      behind = behind || segment > here_;
      if (segment != here_) continue;
      const SizePolynomial here = rest + first_part(segment);
      if (place && *place != here) obstruct(cut_.model.tensors[tensor].name + " is read at different places by it");
      place = here;
    }
    if (!place && !before && !behind) return std::nullopt;
    if (whole || (!place && before && behind))
      obstruct("every piece needs all of this axis of " + cut_.model.tensors[tensor].name);
    return place ? *place : before ? extent : SizePolynomial();
  }

  bool has_index(const SizePolynomial& p) {
    return atoms().mentions(p, [&](SizeAtomId id) { return atoms()[id].kind == SizeAtom::Kind::index; });
  }

  /// Attributes that are the extent of a segment.
  void find_attributes() {
    for (const ModelAttribute& attribute : cut_.model.attributes)
      for (const SizePolynomial& element : attribute.list)
        for (std::size_t s = 0; s < row_.segments.size(); ++s)
          if (row_.segments[s].extent == element)
            cut_.attributes[*element.single_atom()] = {part(s, false), part(s, true)};
  }

  /// Compares both pieces with the whole.
  void check() {
    for (const bool second : {false, true}) {
      std::map<SizeAtomId, SizePolynomial> values;
      for (const auto& [id, value] : cut_.attributes) values[id] = second ? value.second : value.first;
      for (const AxisCut& axis : cut_.axes) {
        const SizePolynomial extent = cut_.model.tensors[axis.tensor].axes[axis.axis].extent;
        if (const auto id = extent.single_atom()) values[*id] = second ? extent - axis.second_begin : axis.first_end;
      }
      const auto local = [&](const SizePolynomial& p) { return atoms().substitute(p, values); };
      check_extents(second, local);
      check_values(local);
      for (const ModelRead& read : std::vector<ModelRead>(cut_.model.reads))
        for (std::size_t a = 0; a < read.coordinates.size(); ++a)
          for (const SizePolynomial& digit : read.coordinates[a]) check_digit(read.tensor, a, digit, second, local);
    }
  }

  template <class Local>
  void check_extents(bool second, const Local& local) {
    for (std::size_t v = 0; v < cut_.model.variables.size(); ++v) {
      const ModelVariable variable = cut_.model.variables[v];
      const auto segment = std::find_if(row_.segments.begin(), row_.segments.end(),
                                        [&](const ModelSegment& one) { return one.variable == v; });
      if (segment == row_.segments.end()) {
        if (local(variable.extent) != variable.extent)
          obstruct("one size is its extent and that of " + variable.name + ": a piece would have less of both");
      } else if (local(variable.extent) != part(static_cast<std::size_t>(segment - row_.segments.begin()), second)) {
        obstruct("nothing tells a piece the extent of its part");
      }
    }
    for (std::size_t t = 0; t < cut_.model.tensors.size(); ++t)
      for (std::size_t a = 0; a < cut_.model.tensors[t].axes.size(); ++a) {
        const SizePolynomial extent = cut_.model.tensors[t].axes[a].extent;
        const bool is_cut = std::any_of(cut_.axes.begin(), cut_.axes.end(),
                                        [&](const AxisCut& axis) { return axis.tensor == t && axis.axis == a; });
        if (!is_cut && local(extent) != extent)
          obstruct("an axis of " + cut_.model.tensors[t].name + " would have another extent");
      }
    if (row_.of_outputs) return;
    for (std::size_t s = 0; s < row_.segments.size(); ++s)
      if (!part(s, second).is_zero() && local(row_.segments[s].offset) + (second ? point_ : SizePolynomial()) !=
                                            row_.segments[s].offset + moved(s, second))
        obstruct("its elements would stand elsewhere in a piece");
  }

  template <class Local>
  void check_values(const Local& local) {
    for (const ModelSize& size : cut_.model.sizes)
      if (local(size.value) != size.value)
        obstruct(size.text + " is a number of the definition, and would be another one in a piece");
    for (const ModelSize& comparison : cut_.model.comparisons)
      if (local(comparison.value) != comparison.value || segment_in(comparison.value))
        obstruct("a piece would compare other numbers: " + comparison.text);
    for (const ModelIndirect& indirect : cut_.model.indirect)
      if (local(indirect.places) != indirect.places || local(indirect.offset) != indirect.offset)
        obstruct("a piece would read other places at " + indirect.text);
    for (const ModelStep& step : cut_.model.steps)
      for (std::size_t i = 0; i < step.made.size(); ++i)
        if ((segment_in(step.made[i]) || segment_in(step.read[i])) && step.made[i] != step.read[i])
          obstruct("elements are made of others along it");
  }

  template <class Local>
  void check_digit(std::size_t tensor, std::size_t axis, const SizePolynomial& digit, bool second, const Local& local) {
    const std::optional<std::size_t> segment = segment_in(digit);
    if (segment && part(*segment, second).is_zero()) return;
    SizePolynomial place = digit;
    if (segment) place = place + moved(*segment, second);
    for (const AxisCut& cut : cut_.axes)
      if (second && segment && cut.tensor == tensor && cut.axis == axis) place = place - cut.second_begin;
    if (local(digit) != place) obstruct("a piece would read other places of " + cut_.model.tensors[tensor].name);
  }

  /// By how much the index of a segment is less in the second piece.
  [[nodiscard]] SizePolynomial moved(std::size_t segment, bool second) const {
    return second && segment == here_ ? first_part(segment) : SizePolynomial();
  }

  VariableCut cut_;
  SegmentRow row_;
  std::size_t here_ = 0;  // The segment in which the cut is.
  SizePolynomial point_;
  std::string obstacle_;
};

}  // namespace

CutResult cut_of_segment(const OperatorModel& model, std::size_t variable) {
  return SegmentCutter(model, variable).run();
}

}  // namespace taso
