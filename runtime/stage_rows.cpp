#include "runtime/stage_rows.h"

#include <algorithm>

namespace taso {
namespace {

/// Whether what a form goes through besides the rows are elements of one row.
bool stays_in_row(const LoweredStage& stage, std::uint32_t form, std::size_t prefix, std::int64_t row) {
  const auto rows = std::span(stage.outer).first(prefix);
  std::int64_t least = stage.forms[form].base, most = least;
  for (const auto& [variable, coefficient] : stage.forms[form].terms) {
    if (std::find(rows.begin(), rows.end(), variable) != rows.end()) continue;
    const std::int64_t far = coefficient * (stage.extents[variable] - 1);
    least += std::min<std::int64_t>(far, 0);
    most += std::max<std::int64_t>(far, 0);
  }
  return least >= 0 && most < row;
}

}  // namespace

std::int64_t coefficient_of(const Affine& form, std::uint32_t variable) {
  for (const auto& [of, coefficient] : form.terms)
    if (of == variable) return coefficient;
  return 0;
}

std::optional<std::int64_t> row_step(const LoweredStage& stage, std::uint32_t form, std::size_t prefix) {
  const std::int64_t row = coefficient_of(stage.forms[form], stage.outer[prefix - 1]);
  std::int64_t step = row;
  for (std::size_t i = prefix; i-- > 0;) {
    if (coefficient_of(stage.forms[form], stage.outer[i]) != step) return std::nullopt;
    step *= stage.extents[stage.outer[i]];
  }
  return row;
}

std::int64_t rows_of(const LoweredStage& stage, std::size_t prefix) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < prefix; ++i) rows *= stage.extents[stage.outer[i]];
  return rows;
}

bool goes_with(std::span<const LoweredStage> stages, std::size_t first, std::size_t next, std::size_t prefix) {
  const LoweredStage &stage = stages[next], &leader = stages[first];
  if (stage.steps_of || stage.outer.size() < prefix) return false;
  for (std::size_t i = 0; i < prefix; ++i)
    if (stage.extents[stage.outer[i]] != leader.extents[leader.outer[i]]) return false;
  for (std::size_t i = first; i < next; ++i) {
    const std::int64_t row = *row_step(stages[i], stages[i].write, prefix);
    for (const LoweredAccess& access : stage.accesses) {
      if (access.buffer != stages[i].buffer) continue;
      if (!access.indirect.empty() || row_step(stage, access.offset, prefix) != row ||
          !stays_in_row(stage, access.offset, prefix, row))
        return false;
    }
  }
  const std::optional<std::int64_t> row = row_step(stage, stage.write, prefix);
  return row && stays_in_row(stage, stage.write, prefix, *row);
}

}  // namespace taso
