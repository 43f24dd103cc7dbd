// Kernels of any specified operator over floats, from its definition: what no library and no loop of our own computes,
// and operators that are added as text; and of several operators, from their definitions together.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "operators/instance.h"
#include "operators/lowered_text.h"
#include "operators/registry.h"
#include "runtime/access.h"
#include "runtime/cpu/block_evaluator.h"
#include "runtime/cpu/block_tape.h"
#include "runtime/cpu/element_walk.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/row_tape.h"
#include "runtime/joined_body.h"
#include "runtime/stage_rows.h"

namespace taso::cpu {
namespace {

/// Work (StagePlan::work) that is worth a thread.
constexpr double grain_work = 16384;

std::string kernel_name() { return std::string("own definition ") + loops().instruction_set; }

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

std::int64_t grain(double work_of_one) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(grain_work / std::max(work_of_one, 1.0)));
}

/// The first failure of threads that work on ranges.
class FirstFailure {
 public:
  void note(std::int64_t begin, const Status& status) {
    if (status) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status_ && begin_ <= begin) return;
    begin_ = begin;
    status_ = status.error();
  }
  [[nodiscard]] Status status() const { return status_ ? Status(*status_) : Status(); }

 private:
  std::mutex mutex_;
  std::int64_t begin_ = 0;
  std::optional<Error> status_;
};

/// The own loops of a stage: those that are gone through element by element, outermost first, and blocks of the run,
/// which take its place among them. A *unit* is one block of one element of the others. Where rows are computed several
/// at once, the loop over rows is the run here, and a unit is as many rows.
struct Units {
  Units(const StagePlan& plan, bool by_rows) : run(by_rows ? plan.rows() : plan.run()) {
    const LoweredStage& stage = plan.stage();
    if (by_rows && plan.run()) width = stage.extents[*plan.run()];
    for (const std::uint32_t variable : stage.outer) {
      if (variable == run)
        before = loops.size();
      else if (!by_rows || variable != plan.run())
        loops.push_back(variable);
    }
    if (run) length = stage.extents[*run];
    for (const std::uint32_t variable : loops) count *= stage.extents[variable];
    divide(by_rows ? plan.rows_at_once() : plan.block());
  }
  /// Takes blocks of so many elements.
  void divide(std::int64_t elements) {
    count /= blocks;
    block = elements;
    blocks = (length + block - 1) / block;
    count *= blocks;
  }
  /// The run is this one of the stage's own loops, if there is a run.
  [[nodiscard]] bool runs_along(std::size_t position) const { return run && before == position; }
  std::vector<std::uint32_t> loops;
  std::optional<std::uint32_t> run;
  std::size_t before = 0;  ///< As many of the loops are outside of the run.
  std::int64_t length = 1, block = 1, blocks = 1, count = 1;
  std::int64_t width = 1;  ///< Elements of the stage for each of the run.
};

/// How a stage's elements are computed: by rows, by its tape, or else by the evaluator of blocks.
struct StageWays {
  explicit StageWays(const StagePlan& plan)
      : tape(BlockTape::of(plan)), rows(tape ? RowTape::of(plan, *tape) : std::nullopt) {}
  std::optional<BlockTape> tape;
  std::optional<RowTape> rows;
};

/// Computes units of a stage, one after the other.
class StageRun {
 public:
  StageRun(const StagePlan& plan, const StageWays& ways, const Units& units, const std::vector<BlockBuffer>& buffers,
           TurnedBlocks& turned_blocks, float* target, std::int64_t first)
      : plan_(&plan),
        units_(&units),
        way_(ways.rows   ? Way(std::in_place_type<RowRunner>, *ways.rows, buffers)
             : ways.tape ? Way(std::in_place_type<TapeRunner>, *ways.tape, buffers, turned_blocks)
                         : Way(std::in_place_type<BlockEvaluator>, plan, buffers)),
        target_(target),
        index_(units.loops.size()) {
    if (units.run) stride_ = plan.coefficient(plan.stage().write, *units.run);
    if (const auto turned = std::holds_alternative<TapeRunner>(way_) ? plan.written_turned() : std::nullopt) {
      turned_ =
          static_cast<std::size_t>(std::find(units.loops.begin(), units.loops.end(), *turned) - units.loops.begin());
      waiting_.resize(static_cast<std::size_t>(plan.stage().extents[*turned] * units.block));
    }
    std::int64_t rest = first;
    for (std::size_t i = index_.size(); i-- > units.before;) go_into(i, rest);
    block_ = rest % units.blocks;
    rest /= units.blocks;
    if (units.run) step(*units.run, block_ * units.block);
    for (std::size_t i = units.before; i-- > 0;) go_into(i, rest);
  }
  /// Of a recurrence: goes to a step.
  void go_to_step(std::int64_t at) { step(plan_->stage().steps_of->variable, at); }
  [[nodiscard]] Status status() const {
    const BlockEvaluator* const evaluator = std::get_if<BlockEvaluator>(&way_);
    return evaluator != nullptr ? evaluator->status() : Status();
  }

  /// Adds to a form.
  void shift(std::uint32_t form, std::int64_t elements) {
    std::visit([&](auto& way) { way.shift(form, elements); }, way_);
  }

  void compute(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      write(target_ + place(), std::min(units_->block, units_->length - block_ * units_->block));
      advance();
    }
  }
  /// Writes what waits for more (write_turned): before others read it.
  void finish() {
    if (row_ == nullptr) return;
    loops().transpose(waiting_.data() + begin_ * units_->block, units_->block, row_ + begin_, stride_, row_count_,
                      end_ - begin_);
    row_ = nullptr;
  }

 private:
  using Way = std::variant<RowRunner, TapeRunner, BlockEvaluator>;

  [[nodiscard]] std::int64_t extent(std::size_t loop) const { return plan_->stage().extents[units_->loops[loop]]; }

  void step(std::uint32_t variable, std::int64_t count) {
    std::visit([&](auto& way) { way.step(variable, count); }, way_);
  }
  [[nodiscard]] std::int64_t place() const {
    return std::visit([](const auto& way) { return way.place(); }, way_);
  }
  void elements(std::int64_t count, float* to) {
    std::visit([&](auto& way) { way.compute(count, to); }, way_);
  }

  void write(float* to, std::int64_t count) {
    if (stride_ == 1 || std::holds_alternative<RowRunner>(way_)) return elements(count, to);
    if (turned_) return write_turned(to, count);
    std::array<float, block_elements> some;
    elements(count, some.data());
    for (std::int64_t i = 0; i < count; ++i) to[i * stride_] = some[static_cast<std::size_t>(i)];
  }

  /// Blocks of successive steps of a loop along which the result lies together wait for each other.
  void write_turned(float* to, std::int64_t count) {
    const std::int64_t at = index_[*turned_];
    float* const row = to - at;
    if (row != row_ || count != row_count_ || at != end_) {
      finish();
      row_ = row;
      row_count_ = count;
      begin_ = at;
    }
    elements(count, waiting_.data() + at * units_->block);
    end_ = at + 1;
    if (end_ == extent(*turned_)) finish();
  }

  void go_into(std::size_t loop, std::int64_t& rest) {
    index_[loop] = rest % extent(loop);
    rest /= extent(loop);
    step(units_->loops[loop], index_[loop]);
  }
  /// Whether the loop does not begin anew.
  bool go_on(std::size_t loop) {
    const bool carry = ++index_[loop] == extent(loop);
    step(units_->loops[loop], carry ? 1 - extent(loop) : 1);
    if (carry) index_[loop] = 0;
    return !carry;
  }
  void advance() {
    for (std::size_t i = index_.size(); i-- > units_->before;)
      if (go_on(i)) return;
    if (++block_ < units_->blocks) return step(*units_->run, units_->block);
    block_ = 0;
    if (units_->run) step(*units_->run, -(units_->blocks - 1) * units_->block);
    for (std::size_t i = units_->before; i-- > 0;)
      if (go_on(i)) return;
  }

  const StagePlan* plan_;
  const Units* units_;
  Way way_;
  float* target_;
  std::vector<std::int64_t> index_;  ///< Per loop.
  std::int64_t block_ = 0, stride_ = 1;
  std::optional<std::size_t>
      turned_;  ///< The loop along which blocks are written together (StagePlan::written_turned).
  std::vector<float> waiting_;
  float* row_ = nullptr;  ///< Where the first element of the first step is written; null where nothing waits.
  std::int64_t row_count_ = 0, begin_ = 0, end_ = 0;  ///< Elements of each block, and the steps that wait.
};

/// The stages of a definition. Those that stand together and pass on to each other only elements of the same *row*, a
/// step of their outermost loops, take rows, or blocks of rows, together: a *slice*. What only they pass on to each
/// other is kept for one slice at a time, in memory of each thread's own, and so in the cache. Other stages run one
/// after the other, and intermediates between them are in the workspace.
class DefinitionKernel final : public Kernel {
 public:
  DefinitionKernel(std::string name, const KernelRequest& request, std::shared_ptr<const LoweredBody> body)
      : Kernel(std::move(name)), body_(std::move(body)), threads_(request.threads) {
    for (std::size_t i = 0; i < body_->stages.size(); ++i) {
      if (body_->stages[i].empty) continue;
      stages_.push_back(body_->stages[i]);
      parts_.push_back(body_->parts.empty() ? 0 : body_->parts[i]);
    }
    for (const Operand& input : request.inputs) wide_.push_back(input.type.element == ElementType::i64);
    // Stages that take rows at once do not go together with those that transpose them.
    if (!plan(true)) plan(false);
    make_groups();
    find_local();
    for (std::size_t i = 0; i < body_->intermediates.size(); ++i) {
      offsets_.push_back(workspace_bytes_);
      if (local_[i] == 0)
        workspace_bytes_ += aligned(static_cast<std::size_t>(volume(body_->intermediates[i])) * sizeof(float));
    }
    for (const Group& group : groups_)
      for (const Local& one : locals_of(group))
        bytes_of_slices_ = std::max(bytes_of_slices_, one.offset + bytes_of(one, group));
    slices_ = workspace_bytes_;
    std::int64_t slices = 1;
    for (const Group& group : groups_) slices = std::max(slices, group.slices());
    workspace_bytes_ += bytes_of_slices_ * static_cast<std::size_t>(std::min<std::int64_t>(threads_, slices));
  }

  /// Whether all stages go together.
  [[nodiscard]] bool is_one_group() const { return groups_.size() == 1 && !groups_[0].recurrence; }
  /// Whether a block of some stage reads elements one by one because they lie apart.
  [[nodiscard]] bool reads_apart() const {
    const auto apart = [](const StagePlan& plan) {
      for (std::uint32_t i = 0; plan.run() && i < plan.stage().accesses.size(); ++i) {
        const std::int64_t stride = plan.coefficient(plan.stage().accesses[i].offset, *plan.run());
        if (stride != 0 && stride != 1 && !plan.turned(i)) return true;
      }
      return false;
    };
    return std::any_of(plans_.begin(), plans_.end(), apart);
  }

  std::string code() const override {
    const std::vector<std::string> buffers = buffer_names(*body_);
    std::string text;
    for (const Group& group : groups_) {
      const bool together = group.recurrence || group.prefix > 0;
      if (group.recurrence)
        text += fmt::format("for {} steps:\n", group.steps);
      else if (together)
        text += fmt::format("for {} slices:\n", group.slices());
      for (std::size_t i = group.first; i < group.end; ++i)
        text += to_text(plans_[i].stage(), buffers, together ? "  " : "");
    }
    return text;
  }

  Status execute(const KernelArguments& arguments) const override {
    Memory memory{{}, std::vector<float*>(body_->inputs, nullptr), arguments.workspace + slices_};
    for (std::size_t i = 0; i < body_->inputs; ++i) memory.read.push_back({arguments.inputs[i], 1, wide_[i]});
    for (const std::size_t offset : offsets_) memory.add(reinterpret_cast<float*>(arguments.workspace + offset));
    for (std::byte* const output : arguments.outputs) memory.add(reinterpret_cast<float*>(output));
    for (const Group& group : groups_) {
      if (!group.recurrence) {
        TASO_RETURN_IF_ERROR(run(group, 0, memory));
        continue;
      }
      for (std::int64_t step = 0; step < group.steps; ++step)
        for (std::size_t i = group.first; i < group.end; ++i) {
          Group one = alone(i);
          one.recurrence = true;
          TASO_RETURN_IF_ERROR(run(one, step, memory));
        }
    }
    return {};
  }

 private:
  /// Stages that run together. Their `prefix` outermost own loops are equal, and all but the last of these are gone
  /// through step by step; of that one, of `rows` steps, a slice takes `block` at once. Or, without a prefix, one stage
  /// by itself, a slice of which is a unit. Or the stages of a recurrence, which take its steps in turn.
  struct Group {
    std::size_t first = 0, end = 0;
    std::size_t prefix = 0;
    std::int64_t outer = 1, rows = 1, block = 1;
    bool recurrence = false;
    std::int64_t steps = 1;

    [[nodiscard]] std::int64_t blocks() const { return (rows + block - 1) / block; }
    [[nodiscard]] std::int64_t slices() const { return outer * blocks(); }
    /// Of a slice: rows before it, and its own.
    [[nodiscard]] std::int64_t rows_before(std::int64_t slice) const {
      return slice / blocks() * rows + slice % blocks() * block;
    }
    [[nodiscard]] std::int64_t rows_of(std::int64_t slice) const {
      return std::min(block, rows - slice % blocks() * block);
    }
  };

  /// Per buffer of the body: as it is read, and where it is written.
  struct Memory {
    std::vector<BlockBuffer> read;
    std::vector<float*> written;
    std::byte* slices = nullptr;  ///< Of each thread bytes_of_slices_.

    void add(float* elements) {
      read.push_back({elements, 1, true});
      written.push_back(elements);
    }
    void place(std::uint32_t buffer, float* elements) {
      read[buffer].data = elements;
      written[buffer] = elements;
    }
  };

  /// An intermediate of which a thread keeps a slice, and the elements of a row.
  struct Local {
    std::uint32_t buffer = 0;
    std::int64_t row = 0;
    std::size_t offset = 0;  ///< In bytes, in what the thread has.
  };

  [[nodiscard]] Group alone(std::size_t stage) const {
    return {stage, stage + 1, 0, 1, units_[stage].count, 1, false, 1};
  }

  /// Plans all stages. Returns false where some compute rows and others transpose.
  bool plan(bool by_rows) {
    plans_.clear();
    ways_.clear();
    units_.clear();
    StagePlan::Operator of;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (i == 0 || parts_[i] != parts_[i - 1]) {
        of = {};
        for (std::size_t k = i; k < stages_.size() && parts_[k] == parts_[i]; ++k)
          of.jumps = of.jumps || has_jump(stages_[k]);
      }
      plans_.emplace_back(stages_[i], of, by_rows);
      of.computed.push_back(stages_[i].buffer);
    }
    bool rows = false, turns = false;
    for (const StagePlan& plan : plans_) {
      ways_.emplace_back(plan);
      const bool of_rows = ways_.back().rows.has_value();
      units_.emplace_back(plan, of_rows);
      rows = rows || of_rows;
      turns = turns || (ways_.back().tape && !of_rows && plan.turns());
    }
    return !rows || !turns;
  }

  void make_groups() {
    for (std::size_t first = 0, end = 0; first < plans_.size(); first = end) {
      const LoweredStage& stage = plans_[first].stage();
      end = first + 1;
      if (stage.steps_of) {
        while (end < plans_.size() && plans_[end].stage().steps_of &&
               plans_[end].stage().steps_of->recurrence == stage.steps_of->recurrence)
          ++end;
        groups_.push_back({first, end, 0, 1, 1, 1, true, stage.extents[stage.steps_of->variable]});
        continue;
      }
      Group best = alone(first);
      for (std::size_t prefix = 1; prefix <= stage.outer.size(); ++prefix) {
        const Group group = together(first, prefix);
        if (group.end - first < 2) continue;
        // Of as many stages the smallest slices that are worth a loop.
        if (group.end > best.end || (group.end == best.end && elements_of_slice(group) >= least_slice)) best = group;
      }
      end = best.end;
      for (std::size_t i = first; i < end && best.prefix > 0; ++i)
        if (units_[i].runs_along(best.prefix - 1)) units_[i].divide(best.block);
      groups_.push_back(best);
    }
  }

  /// As many stages from `first` on as can take slices together, by so many loops.
  [[nodiscard]] Group together(std::size_t first, std::size_t prefix) const {
    Group group{first, first, prefix, 1, 1, 1, false, 1};
    const LoweredStage& stage = stages_[first];
    group.outer = rows_of(stage, prefix - 1);
    group.rows = stage.extents[stage.outer[prefix - 1]];
    std::optional<std::int64_t> block;
    while (group.end < plans_.size() && joins(group, group.end)) {
      const Units& units = units_[group.end++];
      if (units.runs_along(prefix - 1)) block = std::min(block.value_or(units.block), units.block);
    }
    // A slice stays in the cache.
    std::int64_t row = 0;
    for (std::size_t i = first; i < group.end; ++i) row += row_of(i, group);
    const std::int64_t rows = group.outer * group.rows;
    group.block = std::clamp<std::int64_t>(most_of_slice / std::max<std::int64_t>(row, 1), 1,
                                           std::min(block.value_or(1), group.rows));
    // Where there is work for all threads, several slices for each.
    const bool is_much = threads_ > 1 && work_of(group) > 2 * grain_work;
    if (is_much) group.block = std::clamp<std::int64_t>((rows + 4 * threads_ - 1) / (4 * threads_), 1, group.block);
    if ((is_much && rows < threads_) || row > longest_row)
      group.end = first + std::min<std::size_t>(group.end - first, 1);
    return group;
  }

  /// Of all elements.
  [[nodiscard]] double work_of(const Group& group) const {
    double work = 0;
    for (std::size_t i = group.first; i < group.end; ++i)
      work += plans_[i].work() * static_cast<double>(units_[i].count) *
              static_cast<double>(std::min(units_[i].length, units_[i].block) * units_[i].width);
    return work;
  }

  /// Whether stage `next` can take the same slices as the group.
  [[nodiscard]] bool joins(const Group& group, std::size_t next) const {
    if (units_[next].run && units_[next].before + 1 < group.prefix) return false;
    return goes_with(stages_, group.first, next, group.prefix);
  }

  /// Elements that a stage writes of a row.
  [[nodiscard]] std::int64_t row_of(std::size_t stage, const Group& group) const {
    return *row_step(stages_[stage], stages_[stage].write, group.prefix);
  }

  [[nodiscard]] std::int64_t elements_of_slice(const Group& group) const {
    std::int64_t most = 0;
    for (std::size_t i = group.first; i < group.end; ++i) most = std::max(most, row_of(i, group) * group.block);
    return most;
  }

  /// Which intermediates only the stages of one group write and read, row by row.
  void find_local() {
    local_.assign(body_->intermediates.size(), 0);
    for (std::size_t i = 0; i < local_.size(); ++i) {
      const auto buffer = static_cast<std::uint32_t>(body_->inputs + i);
      const auto uses = [&](const LoweredStage& stage) {
        return stage.buffer == buffer ||
               std::any_of(stage.accesses.begin(), stage.accesses.end(),
                           [&](const LoweredAccess& access) { return access.buffer == buffer; });
      };
      std::size_t first = 0, end = plans_.size();
      while (first < end && !uses(plans_[first].stage())) ++first;
      while (end > first && !uses(plans_[end - 1].stage())) --end;
      for (const Group& group : groups_) {
        if (group.prefix == 0 || first == end || first < group.first || end > group.end) continue;
        std::optional<std::int64_t> row;
        bool alike = true;
        for (std::size_t stage = first; stage < end; ++stage) {
          if (plans_[stage].stage().buffer != buffer) continue;
          const std::int64_t written = row_of(stage, group);
          alike = alike && row.value_or(written) == written;
          row = written;
        }
        if (row && alike) local_[i] = *row;
      }
    }
  }

  /// The intermediates of a group of which threads keep slices.
  [[nodiscard]] std::vector<Local> locals_of(const Group& group) const {
    std::vector<Local> locals;
    for (std::size_t i = group.first; i < group.end && group.prefix > 0; ++i) {
      const std::uint32_t buffer = plans_[i].stage().buffer;
      const std::size_t written = buffer - body_->inputs;
      const auto is_this = [&](const Local& one) { return one.buffer == buffer; };
      if (written >= local_.size() || local_[written] == 0 || std::any_of(locals.begin(), locals.end(), is_this))
        continue;
      locals.push_back({buffer, local_[written], 0});
    }
    std::size_t end = 0;
    for (Local& one : locals) {
      one.offset = end;
      end += bytes_of(one, group);
    }
    return locals;
  }
  [[nodiscard]] static std::size_t bytes_of(const Local& one, const Group& group) {
    return aligned(static_cast<std::size_t>(one.row * group.block) * sizeof(float));
  }

  Status run(const Group& group, std::int64_t step, const Memory& all) const {
    const std::vector<Local> local = locals_of(group);
    FirstFailure failure;
    const std::int64_t worth = grain(work_of(group) / static_cast<double>(group.slices()));
    parallel_chunks(threads_, group.slices(), worth, [&](std::int64_t begin, std::int64_t end, std::int64_t chunk) {
      Memory memory = all;
      std::byte* const own = all.slices + static_cast<std::size_t>(chunk) * bytes_of_slices_;
      for (const Local& one : local) memory.place(one.buffer, reinterpret_cast<float*>(own + one.offset));
      TurnedBlocks turned;
      std::vector<StageRun> runs;
      std::vector<Shift> shifts;
      runs.reserve(group.end - group.first);
      for (std::size_t i = group.first; i < group.end; ++i) {
        runs.emplace_back(plans_[i], ways_[i], units_[i], memory.read, turned, memory.written[plans_[i].stage().buffer],
                          units_before(group, i, begin));
        if (group.recurrence) runs.back().go_to_step(step);
        note_shifts(plans_[i].stage(), runs.size() - 1, local, shifts);
      }
      const auto shift = [&](std::int64_t rows) {
        for (const Shift& one : shifts) runs[one.stage].shift(one.form, -rows * one.row);
        if (!shifts.empty()) turned.forget();
      };
      if (group.prefix > 0) shift(group.rows_before(begin));
      for (std::int64_t slice = begin; slice < end; ++slice) {
        for (std::size_t i = group.first; i < group.end; ++i) {
          StageRun& one = runs[i - group.first];
          one.compute(units_before(group, i, slice + 1) - units_before(group, i, slice));
          if (group.end - group.first > 1) one.finish();
        }
        if (group.prefix > 0) shift(group.rows_of(slice));
      }
      for (StageRun& one : runs) one.finish();
      for (const StageRun& one : runs) failure.note(begin, one.status());
    });
    if (Status status = failure.status(); !status) return bad_input(body_->op + ": " + status.error().message);
    return {};
  }

  /// Units of a stage before a slice.
  [[nodiscard]] std::int64_t units_before(const Group& group, std::size_t stage, std::int64_t slice) const {
    if (group.prefix == 0) return slice;
    if (units_[stage].runs_along(group.prefix - 1)) return units_[stage].count / group.slices() * slice;
    return units_[stage].count / (group.outer * group.rows) * group.rows_before(slice);
  }

  /// A form of a stage, by its place in the group, that goes through the rows of an intermediate of one slice.
  struct Shift {
    std::size_t stage = 0;
    std::uint32_t form = 0;
    std::int64_t row = 0;
  };
  static void note_shifts(const LoweredStage& stage, std::size_t place, const std::vector<Local>& local,
                          std::vector<Shift>& shifts) {
    std::vector<std::uint32_t> noted;
    const auto note = [&](std::uint32_t buffer, std::uint32_t form) {
      for (const Local& one : local)
        if (one.buffer == buffer && std::find(noted.begin(), noted.end(), form) == noted.end()) {
          shifts.push_back({place, form, one.row});
          noted.push_back(form);
        }
    };
    note(stage.buffer, stage.write);
    for (const LoweredAccess& access : stage.accesses) note(access.buffer, access.offset);
  }

  /// Elements that the stages of a group write of a slice, unless a row is longer, and of a row that is worth keeping.
  static constexpr std::int64_t most_of_slice = 16384, longest_row = 262144;
  /// Elements of a slice that are worth a loop.
  static constexpr std::int64_t least_slice = 256;

  std::shared_ptr<const LoweredBody> body_;
  std::vector<LoweredStage> stages_;  ///< Of the body, those that write something.
  std::vector<std::uint32_t> parts_;  ///< Per stage: the operator that it is of.
  std::vector<StagePlan> plans_;      ///< Per stage.
  std::vector<StageWays> ways_;       ///< Per plan.
  std::vector<Units> units_;          ///< Per plan.
  std::vector<Group> groups_;
  std::vector<std::int64_t>
      local_;               ///< Per intermediate: elements of a row, of those of which a slice is kept; else 0.
  std::vector<bool> wide_;  ///< Per input: of i64.
  std::vector<std::size_t> offsets_;  ///< Per intermediate: in the workspace, if all of it is kept.
  std::size_t slices_ = 0;            ///< Where slices are in the workspace.
  std::size_t bytes_of_slices_ = 0;   ///< Of a thread.
  int threads_;
};

/// An element-wise definition in any layout, with broadcasts.
class ElementwiseDefinition final : public Kernel {
 public:
  ElementwiseDefinition(const KernelRequest& request, BlockDefinition definition)
      : Kernel(kernel_name()),
        definition_(std::move(definition)),
        walk_(element_walk(request)),
        threads_(request.threads) {}

  std::string code() const override {
    std::vector<std::string> buffers;
    for (std::size_t i = 0; i < walk_.strides.size(); ++i) buffers.push_back("x" + std::to_string(i));
    buffers.emplace_back("y0");
    return fmt::format("for blocks of {} elements:\n  y0 = {}\n", block_elements,
                       value_text(definition_.plan().stage(), buffers));
  }

  Status execute(const KernelArguments& arguments) const override {
    go_over(walk_, threads_, definition_.plan().work(), [&] { return std::make_unique<Worker>(*this, arguments); });
    return {};
  }

 private:
  class Worker {
   public:
    Worker(const ElementwiseDefinition& kernel, const KernelArguments& arguments)
        : target_(reinterpret_cast<float*>(arguments.outputs[0])), evaluator_(kernel.definition_.plan(), buffers_) {
      for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
        starts_.push_back(reinterpret_cast<const float*>(arguments.inputs[i]));
        buffers_.push_back({starts_[i], kernel.walk_.strides[i].back(), true});
      }
      rows_ = starts_;
    }
    void go_to(std::span<const std::int64_t> offsets) {
      for (std::size_t i = 0; i < offsets.size(); ++i) rows_[i] = starts_[i] + offsets[i];
    }
    void compute(std::int64_t begin, std::int64_t end, std::int64_t row) {
      for (std::int64_t done = begin; done < end; done += block_elements) {
        for (std::size_t i = 0; i < rows_.size(); ++i) buffers_[i].data = rows_[i] + done * buffers_[i].stride;
        evaluator_.compute(std::min(block_elements, end - done), target_ + row + done);
      }
    }

   private:
    float* target_;
    std::vector<const float*> starts_, rows_;  ///< Of the operands, and of the row in them.
    std::vector<BlockBuffer> buffers_;
    BlockEvaluator evaluator_;
  };

  BlockDefinition definition_;
  ElementWalk walk_;
  int threads_;
};

KernelOffer elementwise_definition(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!is_all_floats(request)) return decline("only f32");
  if (std::string reason = no_element_walk(request); !reason.empty()) return decline(std::move(reason));
  auto definition = BlockDefinition::create(request, registry);
  if (!definition) return decline(definition.error().message);
  return {std::make_unique<ElementwiseDefinition>(request, std::move(*definition)), ""};
}

}  // namespace

bool is_joinable(const KernelRequest& part, const OperatorRegistry& registry) {
  constexpr std::string_view reductions[] = {"reduce_sum", "reduce_mean", "reduce_max"};
  const OperatorDefinition* const defined = registry.find(part.op);
  if (defined == nullptr || !defined->over_reals || !is_all_floats(part) || part.outputs.empty()) return false;
  return only_moves(part) || defined->elementwise || !has_own_kernel(part.op) ||
         std::find(std::begin(reductions), std::end(reductions), part.op) != std::end(reductions);
}

namespace {

/// Whether enough of what the parts by themselves read and write stays in the kernel: loops of definitions are slower
/// than those written by hand.
bool spares_memory(const KernelRequest& request) {
  constexpr double worth = 0.3, fewest_bytes = 65536;
  const auto bytes_of = [](const KernelRequest& one) {
    double bytes = 0;
    for (const std::vector<Operand>* const operands : {&one.inputs, &one.outputs})
      for (const Operand& operand : *operands) bytes += static_cast<double>(operand.type.bytes());
    return bytes;
  };
  double apart = 0;
  for (const FusedPart& part : request.fused->parts)
    if (part.request.op != "broadcast" && part.request.op != "reshape") apart += bytes_of(part.request);
  const double spared = apart - bytes_of(request);
  return spared >= worth * apart && spared >= fewest_bytes;
}

/// The kernel for what goes together, or the reason why there is none.
struct JoinedKernel {
  std::unique_ptr<DefinitionKernel> kernel;
  std::string reason;
};
JoinedKernel join(const KernelRequest& request, const OperatorRegistry& registry) {
  Expected<LoweredBody> body = joined_body(request, registry);
  if (!body) return {nullptr, body.error().message};
  auto kernel = std::make_unique<DefinitionKernel>(std::string("own joined definitions ") + loops().instruction_set,
                                                   request, std::make_shared<const LoweredBody>(*std::move(body)));
  if (!kernel->is_one_group()) return {nullptr, "what is computed first is needed as a whole"};
  return {std::move(kernel), ""};
}

}  // namespace

KernelOffer joined_definitions(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!request.fused || request.outputs.empty()) return decline("nothing is fused");
  for (const FusedPart& part : request.fused->parts)
    if (!is_joinable(part.request, registry)) return decline(part.request.op + " has kernels that are faster");
  if (!spares_memory(request)) return decline("little is passed on");
  JoinedKernel joined = join(request, registry);
  if (joined.kernel && joined.kernel->reads_apart()) return decline("elements that lie apart");
  return {std::move(joined.kernel), std::move(joined.reason)};
}

KernelOffer any_joined_definitions(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!request.fused || request.outputs.empty()) return decline("nothing is fused");
  for (const FusedPart& part : request.fused->parts)
    if (!is_all_floats(part.request)) return decline("only f32");
  JoinedKernel joined = join(request, registry);
  return {std::move(joined.kernel), std::move(joined.reason)};
}

KernelOffer definition(const KernelRequest& request, const OperatorRegistry& registry) {
  const OperatorDefinition* const defined = registry.find(request.op);
  if (defined == nullptr) return decline("no definition");
  if (!defined->over_reals) return decline("only what computes with reals");
  if (defined->elementwise) return elementwise_definition(request, registry);
  const auto is_row_major = [](const Operand& operand) { return operand.layout == Layout::row_major; };
  if (!std::all_of(request.inputs.begin(), request.inputs.end(), is_row_major) ||
      !std::all_of(request.outputs.begin(), request.outputs.end(), is_row_major))
    return decline("only row-major");
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const TensorType& type = request.inputs[i].type;
    const bool index = !defined->variadic() && i < defined->inputs.size() && defined->inputs[i].integers();
    if (index ? type.element != ElementType::i32 && type.element != ElementType::i64 : type.element != ElementType::f32)
      return decline("only f32 and, where the definition reads them, indices");
    types.push_back(type);
  }
  auto instance = OperatorInstance::create(registry, request.op, request.attributes, types);
  if (!instance) return decline(instance.error().message);
  if (instance->output_types().size() != request.outputs.size()) return decline("the outputs are not all wanted");
  for (std::size_t i = 0; i < request.outputs.size(); ++i)
    if (instance->output_types()[i] != request.outputs[i].type)
      return decline("the outputs are not those of the definition");
  return {std::make_unique<DefinitionKernel>(kernel_name(), request, instance->shared_body()), ""};
}

}  // namespace taso::cpu
