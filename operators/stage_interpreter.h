/// One stage of a lowered definition, element by element, over any ring.
#pragma once

#include <absl/container/inlined_vector.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operators/lowered_body.h"
#include "operators/ring.h"
#include "support/status.h"

namespace taso::detail {

template <class Ring>
concept FoldsExtrema = requires {
  requires Ring::folds_extrema;
};

/// The value of a stage at the current loop variables. `values_[f]` is the value of form f there, kept up to date by
/// additions only. A reader gives the elements that are read:
///   Element read(std::uint32_t buffer, std::int64_t offset);
///   std::int64_t integer(std::uint32_t buffer, std::int64_t offset);
template <class Ring, class Reader>
class StageInterpreter {
 public:
  using Element = typename Ring::Element;
  using Node = LoweredNode::Kind;

  /// At the first element. Stage and ring are referred to.
  StageInterpreter(const LoweredStage& stage, Ring& ring, Reader reader)
      : stage_(stage), ring_(ring), reader_(std::move(reader)) {
    reset();
    slots_.assign(stage.slots, ring.number(0));
  }

  /// Back to the first element.
  void reset() {
    values_.clear();
    values_.reserve(stage_.forms.size());
    for (const Affine& form : stage_.forms) values_.push_back(form.base);
  }
  /// Advances a loop variable.
  void step(std::uint32_t variable, std::int64_t count) {
    for (const auto& [form, coefficient] : stage_.steps[variable]) values_[form] += coefficient * count;
  }
  /// The element of the output that the current loop variables stand for.
  [[nodiscard]] std::int64_t place() const { return values_[stage_.write]; }
  [[nodiscard]] Element value() { return value(stage_.root); }
  /// The first failure: an index out of range.
  [[nodiscard]] const Status& status() const { return status_; }

 protected:
  [[nodiscard]] bool inside(const LoweredAccess& access) const {
    for (const LoweredAccess::Guard& guard : access.guards)
      if (values_[guard.form] < 0 || values_[guard.form] >= guard.extent) return false;
    for (const LoweredAccess::Indirect& indirect : access.indirect) {
      if (!indirect.may_leave()) continue;
      const std::int64_t index = reader_.integer(indirect.buffer, values_[indirect.form]);
      const std::int64_t at = (index < 0 ? index + indirect.extent : index) - indirect.offset;
      // One out of range is an error, which is found where the element is loaded.
      if (index >= -indirect.extent && index < indirect.extent && (at < 0 || at >= indirect.size)) return false;
    }
    return true;
  }

  Element load(const LoweredAccess& access) {
    std::int64_t offset = values_[access.offset];
    for (const LoweredAccess::Indirect& indirect : access.indirect) {
      std::int64_t index = reader_.integer(indirect.buffer, values_[indirect.form]);
      if (index < -indirect.extent || index >= indirect.extent) {
        if (status_)
          status_ = bad_input("index " + std::to_string(index) + " is outside [" + std::to_string(-indirect.extent) +
                              ", " + std::to_string(indirect.extent) + ")");
        return ring_.number(0);
      }
      if (index < 0) index += indirect.extent;
      offset += (index - indirect.offset) * indirect.stride;
    }
    return reader_.read(access.buffer, offset);
  }

  [[nodiscard]] bool test(std::uint32_t id) const {
    const LoweredNode& node = stage_.nodes[id];
    if (node.kind == Node::test) {
      const std::int64_t form = values_[node.access];
      switch (node.comparison) {
        case LoweredNode::Comparison::equal:
          return form == 0;
        case LoweredNode::Comparison::not_equal:
          return form != 0;
        case LoweredNode::Comparison::less:
          return form < 0;
        case LoweredNode::Comparison::less_equal:
          return form <= 0;
      }
    }
    bool all = true, any = false;
    for (std::uint32_t operand : node.operands) {
      const bool holds = test(operand);
      all = all && holds;
      any = any || holds;
    }
    return node.kind == Node::all_of ? all : node.kind == Node::any_of ? any : !any;
  }

  Element value(std::uint32_t id) {
    const LoweredNode& node = stage_.nodes[id];
    switch (node.kind) {
      case Node::number:
        return ring_.number(node.number);
      case Node::read: {
        const LoweredAccess& access = stage_.accesses[node.access];
        if (!node.operands.empty() && !inside(access)) return value(node.operands[0]);
        return load(access);
      }
      case Node::valid:
        return ring_.number(inside(stage_.accesses[node.access]) ? 1 : 0);
      case Node::slot:
        return slots_[node.slot];
      case Node::bind: {
        Element bound = value(node.operands[0]);
        slots_[node.slot] = std::move(bound);
        return value(node.operands[1]);
      }
      case Node::add: {
        const Element left = value(node.operands[0]);
        return ring_.add(left, value(node.operands[1]));
      }
      case Node::subtract: {
        const Element left = value(node.operands[0]);
        return ring_.subtract(left, value(node.operands[1]));
      }
      case Node::multiply: {
        const Element left = value(node.operands[0]);
        return ring_.multiply(left, value(node.operands[1]));
      }
      case Node::divide: {
        const Element left = value(node.operands[0]);
        return ring_.divide(left, value(node.operands[1]));
      }
      case Node::negate:
        return ring_.subtract(ring_.number(0), value(node.operands[0]));
      case Node::call: {
        if constexpr (requires(std::span<const Element> all) { ring_.call(*node.function, all); }) {
          std::array<Element, 3> arguments{};
          const std::size_t count = node.operands.size();
          for (std::size_t i = 0; i < count; ++i) arguments.at(i) = value(node.operands[i]);
          return ring_.call(*node.function, std::span<const Element>(arguments).first(count));
        }
        const Element left = value(node.operands[0]);
        if (node.operands.size() == 1) return ring_.call(*node.function, left);
        return ring_.call(*node.function, left, value(node.operands[1]));
      }
      case Node::maximum:
      case Node::minimum: {
        const std::size_t begin = sets_.size();
        for (std::uint32_t operand : node.operands) {
          Element element = value(operand);
          sets_.push_back(std::move(element));
        }
        return extremum_from(begin, node.kind == Node::maximum);
      }
      case Node::infinity:
        return ring_.infinity(node.number < 0);
      case Node::conditional:
        return value(node.operands[test(node.operands[0]) ? 1 : 2]);
      case Node::reduce: {
        if (!row_of_node_.empty() && row_of_node_[id] >= 0)
          return rows_[static_cast<std::size_t>(row_of_node_[id] * run_length_ + position_)];
        return reduce(node);
      }
      case Node::test:
      case Node::all_of:
      case Node::any_of:
      case Node::none_of:
        break;
    }
    TASO_CHECK(false, "a condition where a value is needed");
    return ring_.number(0);
  }

  Element reduce(const LoweredNode& node) {
    using Reduction = LoweredNode::Reduction;
    if (node.reduction == Reduction::sum || node.reduction == Reduction::product) {
      Element total = ring_.number(node.reduction == Reduction::sum ? 0 : 1);
      for_each(node, 0, [&] {
        const Element element = value(node.operands[0]);
        total = node.reduction == Reduction::sum ? ring_.add(total, element) : ring_.multiply(total, element);
      });
      return total;
    }
    const bool maximum = node.reduction == Reduction::maximum;
    const std::size_t begin = sets_.size();
    for_each(node, 0, [&] {
      if (node.leave_out && !inside(stage_.accesses[stage_.nodes[node.operands[0]].access])) return;
      Element element =
          node.leave_out ? load(stage_.accesses[stage_.nodes[node.operands[0]].access]) : value(node.operands[0]);
      sets_.push_back(std::move(element));
      if constexpr (FoldsExtrema<Ring>) {
        if (sets_.size() == begin + 2) {
          Element best = extremum_from(begin, maximum);
          sets_.push_back(std::move(best));
        }
      }
    });
    if (sets_.size() == begin) return ring_.infinity(maximum);
    return extremum_from(begin, maximum);
  }

  /// The extremum of the elements of sets_ from `begin` on, which are taken away.
  Element extremum_from(std::size_t begin, bool maximum) {
    Element result = ring_.extremum(maximum, std::span<const Element>(sets_).subspan(begin));
    sets_.erase(sets_.begin() + static_cast<std::ptrdiff_t>(begin), sets_.end());
    return result;
  }

  template <class Body>
  void for_each(const LoweredNode& node, std::size_t level, const Body& body) {
    if (level == node.loops.size()) return body();
    const std::uint32_t variable = node.loops[level];
    const std::int64_t extent = stage_.extents[variable];
    for (std::int64_t i = 0; i < extent; ++i) {
      for_each(node, level + 1, body);
      step(variable, 1);
    }
    step(variable, -extent);
  }

  const LoweredStage& stage_;
  Ring& ring_;
  Reader reader_;
  absl::InlinedVector<std::int64_t, 16> values_;
  absl::InlinedVector<Element, 4> slots_;
  std::vector<Element> sets_;  ///< Arguments of extrema that are being evaluated; those of inner ones are at the end.
  Status status_;
  /// Sums that were computed for a run of elements at once (LoweredStage::rows): of each, run_length_ elements, and at
  /// which one of the run this element is. Empty: there are none.
  std::int64_t run_length_ = 1;
  std::int64_t position_ = 0;
  absl::InlinedVector<Element, 16> rows_;
  absl::InlinedVector<int, 16> row_of_node_;
};

}  // namespace taso::detail
