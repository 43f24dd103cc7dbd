// Kernels of any specified operator over floats, from its definition: what no library and no loop of our own computes,
// and operators that are added as text.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <variant>

#include "operators/instance.h"
#include "operators/lowered_text.h"
#include "operators/registry.h"
#include "runtime/cpu/block_evaluator.h"
#include "runtime/cpu/block_tape.h"
#include "runtime/cpu/element_walk.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/row_tape.h"

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
  [[nodiscard]] bool run_is_outermost() const { return run && before == 0; }
  /// Steps of the outermost loop, or blocks of it if the run is that.
  [[nodiscard]] std::int64_t slices(const LoweredStage& stage) const {
    return run_is_outermost() ? blocks : loops.empty() ? 1 : stage.extents[loops[0]];
  }
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

/// What a form can be besides its part of one loop variable: at least `least`, at most `most`.
struct Rest {
  std::int64_t least = 0, most = 0;
};
Rest rest_of(const StagePlan& plan, std::uint32_t form, std::uint32_t variable) {
  const LoweredStage& stage = plan.stage();
  Rest rest{stage.forms[form].base, stage.forms[form].base};
  for (const auto& [other, coefficient] : stage.forms[form].terms) {
    if (other == variable) continue;
    const std::int64_t far = coefficient * (stage.extents[other] - 1);
    rest.least += std::min<std::int64_t>(far, 0);
    rest.most += std::max<std::int64_t>(far, 0);
  }
  return rest;
}

/// The stages of a definition. Those that stand together and pass on to each other only elements of the same step of
/// their outermost loops (rows, say) take these steps together, so that what they pass on stays in the cache; others
/// run one after the other. Intermediates are in the workspace.
class DefinitionKernel final : public Kernel {
 public:
  DefinitionKernel(const KernelRequest& request, OperatorInstance instance)
      : Kernel(kernel_name()), instance_(std::move(instance)), threads_(request.threads) {
    for (const Operand& input : request.inputs) wide_.push_back(input.type.element == ElementType::i64);
    // Stages that take rows at once do not go together with those that transpose them.
    if (!plan(true)) plan(false);
    divide_alike();
    make_groups();
    for (const Shape& shape : body().intermediates) {
      offsets_.push_back(workspace_bytes_);
      workspace_bytes_ += aligned(static_cast<std::size_t>(volume(shape)) * sizeof(float));
    }
  }

  std::string code() const override {
    const std::vector<std::string> buffers = buffer_names(body());
    std::string text;
    for (const Group& group : groups_) {
      const bool together = group.recurrence || group.end > group.first + 1;
      if (group.recurrence)
        text += fmt::format("for {} steps:\n", group.steps);
      else if (together)
        text += fmt::format("for {} slices:\n", group.slices);
      for (std::size_t i = group.first; i < group.end; ++i)
        text += to_text(plans_[i].stage(), buffers, together ? "  " : "");
    }
    return text;
  }

  Status execute(const KernelArguments& arguments) const override {
    Memory memory{{}, std::vector<float*>(body().inputs, nullptr)};
    for (std::size_t i = 0; i < body().inputs; ++i) memory.read.push_back({arguments.inputs[i], 1, wide_[i]});
    for (const std::size_t offset : offsets_)
      memory.written.push_back(reinterpret_cast<float*>(arguments.workspace + offset));
    for (std::byte* const output : arguments.outputs) memory.written.push_back(reinterpret_cast<float*>(output));
    for (std::size_t i = body().inputs; i < memory.written.size(); ++i)
      memory.read.push_back({memory.written[i], 1, true});
    for (const Group& group : groups_) {
      if (!group.recurrence) {
        TASO_RETURN_IF_ERROR(run(group, 0, memory));
        continue;
      }
      for (std::int64_t step = 0; step < group.steps; ++step)
        for (std::size_t i = group.first; i < group.end; ++i)
          TASO_RETURN_IF_ERROR(run({i, i + 1, units_[i].count, true, 1}, step, memory));
    }
    return {};
  }

 private:
  /// Stages that run together: `slices` times a part of the units of each. Or those of a recurrence, which take its
  /// steps in turn.
  struct Group {
    std::size_t first = 0, end = 0;
    std::int64_t slices = 1;
    bool recurrence = false;
    std::int64_t steps = 1;
  };
  /// Per buffer of the body: as it is read, and where it is written.
  struct Memory {
    std::vector<BlockBuffer> read;
    std::vector<float*> written;
  };

  [[nodiscard]] const LoweredBody& body() const { return instance_.body(); }

  /// Plans all stages. Returns false where some compute rows and others transpose.
  bool plan(bool by_rows) {
    plans_.clear();
    ways_.clear();
    units_.clear();
    for (const LoweredStage& stage : body().stages)
      if (!stage.empty) plans_.emplace_back(stage, body().inputs, by_rows);
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

  /// Stages one after the other whose outermost loops are runs of the same length take the same blocks of these.
  void divide_alike() {
    for (std::size_t first = 0, end = 0; first < units_.size(); first = end) {
      std::int64_t block = units_[first].block;
      const auto is_alike = [&](const Units& units) {
        return units.run_is_outermost() && units_[first].run_is_outermost() && units.length == units_[first].length;
      };
      for (end = first + 1; end < units_.size() && is_alike(units_[end]); ++end)
        block = std::min(block, units_[end].block);
      for (std::size_t i = first; i < end; ++i) units_[i].divide(block);
    }
  }

  void make_groups() {
    for (std::size_t first = 0, end = 0; first < plans_.size(); first = end) {
      const LoweredStage& stage = plans_[first].stage();
      end = first + 1;
      if (stage.steps_of) {
        while (end < plans_.size() && plans_[end].stage().steps_of &&
               plans_[end].stage().steps_of->recurrence == stage.steps_of->recurrence)
          ++end;
        groups_.push_back({first, end, 1, true, stage.extents[stage.steps_of->variable]});
        continue;
      }
      const std::int64_t slices = units_[first].slices(stage);
      const bool enough = slices > (units_[first].run_is_outermost() && threads_ > 1 ? 4 * threads_ : 1);
      if (enough)
        while (end < plans_.size() && joins(first, end, slices)) ++end;
      // One alone can be divided further.
      groups_.push_back({first, end, end == first + 1 ? units_[first].count : slices, false, 1});
    }
  }

  /// Whether stage `next` can take the same steps of its outermost loop as the stages from `first` on: each step reads
  /// of what they write no more than they wrote in that step.
  [[nodiscard]] bool joins(std::size_t first, std::size_t next, std::int64_t slices) const {
    const LoweredStage& stage = plans_[next].stage();
    if (stage.steps_of || units_[next].slices(stage) != slices) return false;
    if (units_[next].run_is_outermost() != units_[first].run_is_outermost() ||
        (units_[first].run_is_outermost() && units_[next].length != units_[first].length))
      return false;
    for (std::size_t i = first; i < next; ++i) {
      const LoweredStage& writer = plans_[i].stage();
      const std::int64_t slice = plans_[i].coefficient(writer.write, writer.outer[0]);
      const Rest written = rest_of(plans_[i], writer.write, writer.outer[0]);
      if (written.least < 0 || written.most >= slice) return false;
      for (const LoweredAccess& access : stage.accesses) {
        if (access.buffer != writer.buffer) continue;
        const Rest read = rest_of(plans_[next], access.offset, stage.outer[0]);
        if (!access.indirect.empty() || plans_[next].coefficient(access.offset, stage.outer[0]) != slice ||
            read.least < 0 || read.most >= slice)
          return false;
      }
    }
    return true;
  }

  Status run(const Group& group, std::int64_t step, const Memory& memory) const {
    double work = 0;
    for (std::size_t i = group.first; i < group.end; ++i)
      work += plans_[i].work() * static_cast<double>(units_[i].count / group.slices) *
              static_cast<double>(std::min(units_[i].length, units_[i].block) * units_[i].width);
    FirstFailure failure;
    parallel_chunks(threads_, group.slices, grain(work), [&](std::int64_t begin, std::int64_t end) {
      TurnedBlocks turned;
      std::vector<StageRun> runs;
      for (std::size_t i = group.first; i < group.end; ++i) {
        runs.emplace_back(plans_[i], ways_[i], units_[i], memory.read, turned, memory.written[plans_[i].stage().buffer],
                          begin * (units_[i].count / group.slices));
        if (group.recurrence) runs.back().go_to_step(step);
      }
      for (std::int64_t slice = begin; slice < end; ++slice)
        for (std::size_t i = group.first; i < group.end; ++i) {
          runs[i - group.first].compute(units_[i].count / group.slices);
          if (group.end - group.first > 1) runs[i - group.first].finish();
        }
      for (StageRun& one : runs) one.finish();
      for (const StageRun& one : runs) failure.note(begin, one.status());
    });
    if (Status status = failure.status(); !status) return bad_input(body().op + ": " + status.error().message);
    return {};
  }

  OperatorInstance instance_;
  std::vector<StagePlan> plans_;
  std::vector<StageWays> ways_;  ///< Per plan.
  std::vector<Units> units_;     ///< Per plan.
  std::vector<Group> groups_;
  std::vector<bool> wide_;  ///< Per input: of i64.
  std::vector<std::size_t> offsets_;
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
  return {std::make_unique<DefinitionKernel>(request, std::move(*instance)), ""};
}

}  // namespace taso::cpu
