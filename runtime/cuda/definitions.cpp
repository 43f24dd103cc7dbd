// Programs for operators by their definitions: which stages are one launch, who computes a row, and where what they
// pass on is kept.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/cuda/program.h"
#include "runtime/stage_rows.h"

namespace taso::cuda {
namespace {

using Kind = LoweredNode::Kind;

/// What a block may have besides what its teams exchange.
constexpr std::int64_t most_kept_bytes = std::int64_t{32} << 10;
/// Up to so many steps of a reduction one thread takes.
constexpr std::int64_t few_steps = 8;
/// Rows from which on there is work for all threads of a device where each takes one.
constexpr std::int64_t many_rows = 8192;
/// Fewer rows leave most of a device idle: stages with more work on a row go by themselves.
constexpr std::int64_t few_rows = 128, much_work = 4096, many_operations = 65536;
/// Steps up to which one thread adds.
constexpr std::int64_t most_steps = 4096;
/// Work on a row up to which a warp does it, and with as many rows as fill a device.
constexpr std::int64_t warp_row = 256, long_warp_row = 1024, warp_rows = 1024;

PlannedProgram not_planned(std::string reason) { return {std::nullopt, std::move(reason)}; }

/// Why no text can be written for a stage; empty if one can.
std::string no_text(const LoweredStage& stage) {
  if (stage.steps_of) return "steps that wait for each other";
  for (const LoweredAccess& access : stage.accesses)
    if (!access.indirect.empty()) return "indices that are read";
  for (const LoweredNode& node : stage.nodes)
    if (node.kind == Kind::call && !(node.operands.size() == 1 ? function_named(node.function->name).has_value()
                                                               : node.function->name == "remainder_by" ||
                                                                     binary_named(node.function->name).has_value()))
      return "no text for the function " + node.function->name;
  return "";
}

std::int64_t volume_of(const LoweredStage& stage, std::span<const std::uint32_t> loops) {
  std::int64_t volume = 1;
  for (const std::uint32_t loop : loops) volume *= stage.extents[loop];
  return volume;
}

/// Elements of a row of a stage times the steps of the longest reduction in it.
std::int64_t operations_of(const LoweredStage& stage, std::size_t prefix) {
  std::int64_t longest = 1;
  for (const LoweredNode& node : stage.nodes)
    if (node.kind == Kind::reduce) longest = std::max(longest, volume_of(stage, node.loops));
  return longest * volume_of(stage, std::span(stage.outer).subspan(prefix));
}

class DefinitionPlanner {
 public:
  DefinitionPlanner(const KernelRequest& request, std::shared_ptr<const LoweredBody> body)
      : request_(request), body_(std::move(body)), placed_(body_->inputs + body_->intermediates.size()) {}

  PlannedProgram plan() {
    for (const LoweredStage& stage : body_->stages)
      if (std::string reason = no_text(stage); !reason.empty()) return not_planned(std::move(reason));
    for (std::size_t first = 0, end = 0; first < body_->stages.size(); first = end) {
      if (body_->stages[first].empty) {
        end = first + 1;
        continue;
      }
      DefinitionStep step = group_from(first);
      end = step.end;
      choose_team(step);
      steps_.push_back(std::move(step));
    }
    for (DefinitionStep& step : steps_) keep_rows(step);
    Program program{"own definition", {}, 0};
    for (DefinitionStep& step : steps_) {
      place_buffers(step);
      program.steps.emplace_back(std::move(step));
    }
    program.workspace_bytes = static_cast<std::size_t>(end_);
    return {std::move(program), ""};
  }

 private:
  /// The stages from one on that go together, by as many own loops as can be.
  [[nodiscard]] DefinitionStep group_from(std::size_t first) const {
    const std::vector<LoweredStage>& stages = body_->stages;
    const LoweredStage& leader = stages[first];
    DefinitionStep step;
    step.element = request_.outputs[0].type.element;
    step.body = body_;
    step.first = first;
    step.end = first + 1;
    step.prefix = leader.outer.size();
    // Without a prefix all is one row.
    const auto together = [&](std::size_t stage, std::size_t prefix) {
      if (stages[stage].empty) return false;
      return prefix == 0 ? !stages[stage].steps_of.has_value() : goes_with(stages, first, stage, prefix);
    };
    for (std::size_t prefix = leader.outer.size() + 1; prefix-- > 0;) {
      if (!together(first, prefix)) continue;
      const bool is_few = rows_of(leader, prefix) < few_rows;
      const auto fits = [&](std::size_t stage) {
        return !is_few || (volume_of(stages[stage], std::span(stages[stage].outer).subspan(prefix)) <= much_work &&
                           operations_of(stages[stage], prefix) <= many_operations);
      };
      if (!fits(first)) continue;
      std::size_t end = first + 1;
      while (end < stages.size() && together(end, prefix) && fits(end)) ++end;
      if (end <= step.end) continue;
      step.end = end;
      step.prefix = prefix;
    }
    step.rows = rows_of(leader, step.prefix);
    return step;
  }

  void choose_team(DefinitionStep& step) const {
    std::int64_t work = 1, longest = 1;
    bool in_order = true;  // neighbouring rows, rather than steps of a reduction, read neighbours
    for (std::size_t i = step.first; i < step.end; ++i) {
      const LoweredStage& stage = body_->stages[i];
      const std::int64_t inner = volume_of(stage, std::span(stage.outer).subspan(step.prefix));
      work = std::max(work, inner);
      for (const LoweredNode& node : stage.nodes) {
        if (node.kind != Kind::reduce || node.loops.empty()) continue;
        if (inner == 1) longest = std::max(longest, volume_of(stage, node.loops));
        for (const LoweredAccess& access : stage.accesses)
          in_order = in_order && coefficient_of(stage.forms[access.offset], node.loops.back()) != 1;
      }
    }
    if (work == 1 && (longest <= few_steps || (in_order && longest <= most_steps && step.rows >= many_rows))) return;
    work = std::max(work, longest);
    step.team =
        work <= warp_row || (work <= long_warp_row && step.rows >= warp_rows) ? TeamShape::warp : TeamShape::block;
  }

  [[nodiscard]] bool uses(std::size_t stage, std::uint32_t buffer) const {
    const LoweredStage& of = body_->stages[stage];
    return of.buffer == buffer || std::any_of(of.accesses.begin(), of.accesses.end(),
                                              [&](const LoweredAccess& access) { return access.buffer == buffer; });
  }

  /// Intermediates that no other step uses, as far as there is room for a row of each.
  void keep_rows(DefinitionStep& step) {
    step.kept.assign(body_->inputs + body_->intermediates.size() + body_->outputs.size(), 0);
    std::int64_t shared = 0;
    for (std::size_t i = 0; i < body_->intermediates.size(); ++i) {
      const auto buffer = static_cast<std::uint32_t>(body_->inputs + i);
      std::optional<std::int64_t> row;
      bool is_own = true, alike = true;
      std::size_t writers = 0;
      for (std::size_t stage = 0; stage < body_->stages.size(); ++stage) {
        if (!uses(stage, buffer)) continue;
        is_own = is_own && stage >= step.first && stage < step.end;
        if (!is_own || body_->stages[stage].buffer != buffer) continue;
        ++writers;
        const LoweredStage& writer = body_->stages[stage];
        const std::optional<std::int64_t> written = step.prefix == 0 ? std::optional(volume(body_->intermediates[i]))
                                                                     : row_step(writer, writer.write, step.prefix);
        alike = alike && written.value_or(0) > 0 && row.value_or(*written) == *written;
        row = written;
      }
      if (!is_own || !row || !alike) continue;
      if (*row == 1 && writers == 1) {
        step.kept[buffer] = 1;
        continue;
      }
      const std::int64_t teams = step.team == TeamShape::warp ? 8 : 1;
      const std::int64_t bytes = *row * teams * static_cast<std::int64_t>(sizeof(float));
      if (!step.team || *row == 1 || shared + bytes > most_kept_bytes) continue;
      shared += bytes;
      step.kept[buffer] = *row;
    }
  }

  void place_buffers(DefinitionStep& step) {
    const std::size_t count = step.kept.size(), outputs = body_->inputs + body_->intermediates.size();
    step.buffers.resize(count);
    for (std::uint32_t buffer = 0; buffer < count; ++buffer) {
      bool is_used = false;
      for (std::size_t stage = step.first; stage < step.end; ++stage) is_used = is_used || uses(stage, buffer);
      if (!is_used || step.kept[buffer] != 0) continue;
      step.buffers[buffer] = buffer < body_->inputs ? input(buffer)
                             : buffer >= outputs    ? output(buffer - outputs)
                                                    : workspace(in_workspace(buffer));
    }
  }
  [[nodiscard]] std::int64_t in_workspace(std::uint32_t buffer) {
    if (!placed_[buffer]) {
      placed_[buffer] = end_;
      const std::int64_t bytes =
          volume(body_->intermediates[buffer - body_->inputs]) * static_cast<std::int64_t>(sizeof(float));
      end_ += (bytes + 255) / 256 * 256;
    }
    return *placed_[buffer];
  }

  const KernelRequest& request_;
  std::shared_ptr<const LoweredBody> body_;
  std::vector<DefinitionStep> steps_;
  std::vector<std::optional<std::int64_t>> placed_;  ///< Per buffer: its offset in the workspace.
  std::int64_t end_ = 0;
};

}  // namespace

PlannedProgram plan_definition(const KernelRequest& request, std::shared_ptr<const LoweredBody> body) {
  return DefinitionPlanner(request, std::move(body)).plan();
}

}  // namespace taso::cuda
