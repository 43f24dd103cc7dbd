// Attention as one kernel: two products, and what is computed row by row of the first one's result for the second
// (scale, mask, softmax), for some rows at a time, so that the scores never leave the second-level cache. What only
// moves queries, keys, values, masks or the result is done by strides. What each part computes is what its kernel alone
// would.
//
// Representation. Matrices are told apart by the leading axes of the scores, the batch. A thread takes blocks of rows
// in order, and brings keys and values into the format of its products when it comes to others: where several matrices
// of queries have the same ones, once.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "operators/registry.h"
#include "runtime/cpu/fused_elements.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/packed_product.h"
#include "runtime/cpu/parallel.h"
#include "runtime/measure.h"
#include "runtime/moves.h"

namespace taso::cpu {
namespace {

/// Where the matrices of an operand lie, in elements.
struct Matrices {
  std::size_t input = 0;              ///< Of the request; of the result, none.
  std::vector<std::int64_t> strides;  ///< Along the batch's axes.
  std::int64_t offset = 0, row = 0, column = 0;
  [[nodiscard]] std::int64_t at(std::span<const std::int64_t> index) const {
    std::int64_t place = offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) place += index[axis] * strides[axis];
    return place;
  }
};

struct AttentionStages {
  Shape batch;
  std::int64_t queries = 0, width = 0, keys = 0, of_values = 0;
  Matrices q, k, v, y;
  std::vector<Matrices> read;  ///< By what is between the products, the scores excepted.
  ElementPlan between;         ///< Its input 0 is the scores, and its output, in their place.
  std::int64_t block = 0;      ///< Rows that are computed at a time.

  [[nodiscard]] std::int64_t blocks() const { return (queries + block - 1) / block; }
  /// Rows of the last block.
  [[nodiscard]] std::int64_t rest() const { return queries - (blocks() - 1) * block; }
  /// Rows of queries that lie apart are copied together.
  [[nodiscard]] bool gathers() const { return q.row != width; }
  [[nodiscard]] bool scatters() const { return y.row != of_values; }
};

bool is_matmul(const FusedPart& part) { return part.request.op == "matmul"; }

/// What stands between the products and what is read and made, of a fused request.
class AttentionRecognizer {
 public:
  AttentionRecognizer(const KernelRequest& request, const OperatorRegistry& registry)
      : request_(request), fused_(*request.fused), registry_(registry), moves_(request) {}

  /// Empty where it is attention, else the reason why it is none.
  std::string recognize() {
    for (std::size_t i = 0; i < fused_.parts.size(); ++i)
      if (is_matmul(fused_.parts[i])) products_.push_back(i);
    if (products_.size() != 2) return "two products are needed";
    if (std::string reason = no_parts(); !reason.empty()) return reason;
    const FusedPart &first = part(0), &second = part(1);
    scores_ = first.request.outputs[0];
    if (scores_.layout != Layout::row_major || second.request.inputs[0] != scores_)
      return "scores of two shapes or layouts";
    const Shape& shape = scores_.type.shape;
    stages_.batch.assign(shape.begin(), shape.end() - 2);
    stages_.queries = shape[shape.size() - 2];
    stages_.keys = shape.back();
    stages_.width = first.request.inputs[0].type.shape.back();
    stages_.of_values = second.request.outputs[0].type.shape.back();
    const auto q = matrices(moves_.source(first.sources[0])), k = matrices(moves_.source(first.sources[1])),
               v = matrices(moves_.source(second.sources[1])), y = matrices({0, moves_.result_of(products_[1])});
    if (!q || !k || !v || !y) return "operands that no strides describe";
    if ((q->column != 1 && stages_.width > 1) || (y->column != 1 && stages_.of_values > 1))
      return "rows whose elements lie apart";
    stages_.q = *q, stages_.k = *k, stages_.v = *v, stages_.y = *y;
    return plan_between();
  }
  AttentionStages& stages() { return stages_; }

 private:
  [[nodiscard]] const FusedPart& part(std::size_t product) const { return fused_.parts[products_[product]]; }

  [[nodiscard]] bool follows(const FusedPart::Source& source) const {
    return !source.is_input && follows_[source.index] != 0;
  }

  /// Finds the parts between the products.
  std::string no_parts() {
    const std::size_t first = products_[0], second = products_[1];
    follows_.assign(fused_.parts.size(), 0);
    for (std::size_t i = 0; i < fused_.parts.size(); ++i) {
      const FusedPart& one = fused_.parts[i];
      follows_[i] = static_cast<char>(i == first || std::any_of(one.sources.begin(), one.sources.end(),
                                                                [&](const auto& source) { return follows(source); }));
      if (i == first || i == second) continue;
      if (follows_[i] == 0 || i > second) {
        if (!only_moves(one.request)) return "more than attention";
      } else {
        between_.push_back(i);
      }
    }
    if (between_.empty()) return "nothing is between the products";
    if (!(part(1).sources[0] == FusedPart::Source{false, static_cast<std::uint32_t>(between_.back()), 0}) ||
        follows(part(1).sources[1]))
      return "the second product is of something else";
    return "";
  }

  /// Of an operand, or the result, with the batch's axes in front, or the innermost of them.
  [[nodiscard]] std::optional<Matrices> matrices(const MovedInput& moved) const {
    if (!moved.access || moved.access->shape.size() < 2 || moved.access->shape.size() - 2 > stages_.batch.size())
      return std::nullopt;
    return broadcast(moved, moved.access->shape);
  }

  /// `shape`: of the operand; its leading axes are the innermost ones of the batch, or of extent 1.
  [[nodiscard]] std::optional<Matrices> broadcast(const MovedInput& moved, const Shape& shape) const {
    const std::size_t rank = stages_.batch.size() + 2;
    Matrices made;
    made.input = moved.input;
    made.offset = moved.access->offset;
    made.strides.assign(stages_.batch.size(), 0);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::int64_t stride = shape[axis] == 1 ? 0 : moved.access->strides[axis];
      const std::size_t place = rank - shape.size() + axis;
      if (place + 2 < rank)
        made.strides[place] = stride;
      else if (place + 2 == rank)
        made.row = stride;
      else
        made.column = stride;
    }
    return made;
  }

  /// What is between the products, as a fused request of the scores and of what is read besides.
  std::string plan_between() {
    KernelRequest request;
    request.inputs = {scores_};
    request.outputs = {scores_};
    Fused between;
    std::vector<std::uint32_t> number(fused_.parts.size(), 0);
    for (const std::size_t i : between_) {
      FusedPart one = fused_.parts[i];
      for (std::size_t k = 0; k < one.sources.size(); ++k) {
        FusedPart::Source& source = one.sources[k];
        if (follows(source)) {
          source = source.index == products_[0] ? FusedPart::Source{true, 0, 0}
                                                : FusedPart::Source{false, number[source.index], 0};
          continue;
        }
        const MovedInput moved = moves_.source(source);
        if (!moved.access || moved.access->shape.size() > scores_.type.shape.size())
          return "a mask that no strides describe";
        stages_.read.push_back(*broadcast(moved, moved.access->shape));
        source = {true, static_cast<std::uint32_t>(request.inputs.size()), 0};
        request.inputs.push_back(one.request.inputs[k]);
      }
      number[i] = static_cast<std::uint32_t>(between.parts.size());
      between.parts.push_back(std::move(one));
    }
    between.results = {{false, number[between_.back()], 0}};
    request.fused = std::make_shared<const Fused>(std::move(between));
    PlannedElements planned = plan_elements(request, registry_);
    if (!planned.plan) return std::move(planned.reason);
    ElementPlan& plan = *planned.plan;
    if (plan.row != 1 && plan.row != stages_.keys) return "rows that are not of the keys";
    if (plan.parts.back().definition) return "what comes last has no loop";
    plan.steps = {1};
    for (const Matrices& one : stages_.read) plan.steps.push_back(one.column);
    stages_.between = std::move(plan);
    return "";
  }

  const KernelRequest& request_;
  const Fused& fused_;
  const OperatorRegistry& registry_;
  const Moves moves_;
  Operand scores_;
  AttentionStages stages_;
  std::vector<std::size_t> products_, between_;
  std::vector<char> follows_;  ///< Per part: whether it is the first product, or computed from it.
};

std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

class Attention final : public Kernel {
 public:
  using Product = std::unique_ptr<PackedProduct>;
  /// `scores` has two numbers of rows: of a block, and of the last one; and so has `values`.
  Attention(AttentionStages stages, Product scores, Product values, int threads)
      : Kernel("own attention, " + scores->implementation() +
               (values->implementation() == scores->implementation() ? "" : ", " + values->implementation())),
        stages_(std::move(stages)),
        scores_(std::move(scores)),
        values_(std::move(values)),
        threads_(std::max(threads, 1)) {
    const auto reserve = [&](std::size_t bytes) {
      const std::size_t offset = of_thread_;
      of_thread_ += whole_lines(bytes);
      return offset;
    };
    const auto floats_of = [&](std::int64_t columns) {
      return static_cast<std::size_t>(stages_.block * columns) * sizeof(float);
    };
    places_.keys = reserve(scores_->takes_plain() ? 0 : scores_->packed_bytes());
    places_.values = reserve(values_->takes_plain() ? 0 : values_->packed_bytes());
    places_.scores = reserve(floats_of(stages_.keys));
    places_.rows = reserve(stages_.gathers() ? floats_of(stages_.width) : 0);
    places_.result = reserve(stages_.scatters() ? floats_of(stages_.of_values) : 0);
    places_.scratch = reserve(std::max(scores_->scratch_bytes(), values_->scratch_bytes()));
    workspace_bytes_ = of_thread_ * static_cast<std::size_t>(threads_);
    for (int i = 0; i < threads_; ++i) runners_.push_back({scores_->runner(), values_->runner()});
  }

  std::string code() const override {
    return fmt::format("for {} matrices, blocks of {} rows:\n  x0 = product(i{}, i{})\n{}  product({}, i{})\n",
                       volume(stages_.batch), stages_.block, stages_.q.input, stages_.k.input, stages_.between.text(),
                       stages_.between.name_of(stages_.between.parts.size() - 1), stages_.v.input);
  }

  Status execute(const KernelArguments& arguments) const override {
    const std::int64_t blocks = volume(stages_.batch) * stages_.blocks();
    std::vector<Status> done(static_cast<std::size_t>(threads_));
    parallel_chunks(threads_, threads_, 1, [&](std::int64_t begin, std::int64_t end) {
      const ThreadScope scope(1);
      for (std::int64_t thread = begin; thread < end; ++thread) {
        const std::int64_t first = blocks * thread / threads_, last = blocks * (thread + 1) / threads_;
        if (first == last) continue;
        const auto number = static_cast<std::size_t>(thread);
        Worker worker(*this, runners_[number], arguments, arguments.workspace + number * of_thread_);
        done[number] = worker.compute(first, last);
      }
    });
    for (const Status& status : done) TASO_RETURN_IF_ERROR(status);
    return {};
  }

 private:
  struct Runners {
    std::unique_ptr<ProductRunner> scores, values;
  };
  /// In a thread's workspace.
  struct Places {
    std::size_t keys = 0, values = 0, scores = 0, rows = 0, result = 0, scratch = 0;
  };

  class Worker {
   public:
    Worker(const Attention& kernel, const Runners& runners, const KernelArguments& arguments, std::byte* workspace)
        : stages_(&kernel.stages_),
          scores_(runners.scores.get()),
          values_(runners.values.get()),
          index_(kernel.stages_.batch.size(), 0),
          offsets_(kernel.stages_.read.size() + 1) {
      const auto floats = [&](std::size_t place) { return reinterpret_cast<float*>(workspace + place); };
      const auto input = [&](const Matrices& operand) {
        return reinterpret_cast<const float*>(arguments.inputs[operand.input]);
      };
      for (ProductRunner* const runner : {scores_, values_}) runner->use(workspace + kernel.places_.scratch);
      block_ = floats(kernel.places_.scores);
      rows_ = floats(kernel.places_.rows);
      result_ = floats(kernel.places_.result);
      q_ = input(stages_->q);
      k_ = {input(stages_->k), kernel.scores_->takes_plain() ? nullptr : floats(kernel.places_.keys), {}};
      v_ = {input(stages_->v), kernel.values_->takes_plain() ? nullptr : floats(kernel.places_.values), {}};
      y_ = reinterpret_cast<float*>(arguments.outputs[0]);
      std::vector<const float*> read = {block_};
      for (const Matrices& one : stages_->read) read.push_back(input(one));
      between_.emplace(stages_->between, read, std::span(&block_, 1));
    }

    /// Blocks of rows, numbered through all matrices.
    Status compute(std::int64_t first, std::int64_t last) {
      const std::int64_t blocks = stages_->blocks();
      for (std::int64_t at = first; at < last; ++at) {
        if (at == first || at % blocks == 0) TASO_RETURN_IF_ERROR(go_to(at / blocks));
        const bool is_last = at % blocks == blocks - 1;
        TASO_RETURN_IF_ERROR(
            block(at % blocks * stages_->block, is_last ? 1 : 0, is_last ? stages_->rest() : stages_->block));
      }
      return {};
    }

   private:
    /// A matrix that is packed, unless it is used as it lies.
    struct Packed {
      const float* operand = nullptr;
      float* packed = nullptr;
      std::optional<std::int64_t> at;  ///< Where the matrix lies that is packed.
      const float* used = nullptr;
    };

    Status go_to(std::int64_t matrix) {
      for (std::size_t axis = index_.size(); axis-- > 0;) {
        index_[axis] = matrix % stages_->batch[axis];
        matrix /= stages_->batch[axis];
      }
      TASO_RETURN_IF_ERROR(bring(*scores_, stages_->k.at(index_), k_));
      return bring(*values_, stages_->v.at(index_), v_);
    }
    static Status bring(ProductRunner& product, std::int64_t at, Packed& matrix) {
      matrix.used = matrix.packed != nullptr ? matrix.packed : matrix.operand + at;
      if (matrix.packed == nullptr || matrix.at == at) return {};
      matrix.at = at;
      return product.pack(matrix.operand + at, matrix.packed);
    }

    /// `which`: of the products' numbers of rows.
    Status block(std::int64_t first, std::size_t which, std::int64_t rows) {
      const auto& [batch, queries, width, keys, of_values, q, k, v, y, read, between, whole] = *stages_;
      const float* from = q_ + q.at(index_) + first * q.row;
      if (stages_->gathers()) {
        for (std::int64_t i = 0; i < rows; ++i) std::copy_n(from + i * q.row, width, rows_ + i * width);
        from = rows_;
      }
      TASO_RETURN_IF_ERROR(scores_->multiply(which, from, k_.used, block_));
      weigh(first, rows);
      float* const to = y_ + y.at(index_) + first * y.row;
      if (!stages_->scatters()) return values_->multiply(which, block_, v_.used, to);
      TASO_RETURN_IF_ERROR(values_->multiply(which, block_, v_.used, result_));
      for (std::int64_t i = 0; i < rows; ++i) std::copy_n(result_ + i * of_values, of_values, to + i * y.row);
      return {};
    }

    /// What is between the products, of rows from `first` on: at once where all that is read goes on regularly.
    void weigh(std::int64_t first, std::int64_t rows) {
      const std::int64_t keys = stages_->keys;
      bool is_regular = true;
      offsets_[0] = 0;
      for (std::size_t i = 0; i < stages_->read.size(); ++i) {
        const Matrices& one = stages_->read[i];
        offsets_[i + 1] = one.at(index_) + first * one.row;
        is_regular = is_regular && one.row == keys * one.column;
      }
      if (is_regular || rows == 1) {
        between_->go_to(offsets_);
        return between_->compute(0, rows * keys, 0);
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        between_->go_to(offsets_);
        between_->compute(0, keys, i * keys);
        offsets_[0] += keys;
        for (std::size_t k = 0; k < stages_->read.size(); ++k) offsets_[k + 1] += stages_->read[k].row;
      }
    }

    const AttentionStages* stages_;
    ProductRunner *scores_, *values_;
    std::optional<ElementWorker> between_;
    const float* q_ = nullptr;
    Packed k_, v_;
    float *block_ = nullptr, *rows_ = nullptr, *result_ = nullptr, *y_ = nullptr;
    std::vector<std::int64_t> index_;    ///< Of the matrix in the batch.
    std::vector<std::int64_t> offsets_;  ///< Where rows begin: of the scores, and of what is read.
  };

  AttentionStages stages_;
  Product scores_, values_;
  int threads_;
  std::vector<Runners> runners_;  ///< Per thread: one execution at a time.
  std::size_t of_thread_ = 0;
  Places places_;
};

std::int64_t second_level_cache() {
  constexpr std::int64_t usual = std::int64_t{1} << 19;
  const auto known = static_cast<std::int64_t>(second_level_cache_bytes());
  return known > 0 ? known : usual;
}

/// Rows of the scores that half of a second-level cache holds, in blocks of about equal size.
std::int64_t rows_of_block(std::int64_t queries, std::int64_t keys) {
  constexpr std::int64_t unit = 16, most = 256;
  const std::int64_t fit = second_level_cache() / 2 / (keys * static_cast<std::int64_t>(sizeof(float)));
  const std::int64_t rows = std::clamp(fit / unit * unit, unit, most), blocks = (queries + rows - 1) / rows;
  return std::min(queries, ((queries + blocks - 1) / blocks + unit - 1) / unit * unit);
}

/// Whether to compute the scores by blocks pays. Those that half of a second-level cache holds are read from there by
/// kernels of their own, too, and small matrices cost more to begin with than to compute.
bool pays(const AttentionStages& stages) {
  constexpr std::int64_t small_matrix = 128 * 128;
  const std::int64_t matrix = stages.queries * stages.keys;
  return matrix >= small_matrix &&
         volume(stages.batch) * matrix * static_cast<std::int64_t>(sizeof(float)) > second_level_cache() / 2;
}

}  // namespace

bool is_fusable_product(const KernelRequest& part) {
  return part.op == "matmul" && is_all_floats(part) && !part.inputs[0].weight && !part.inputs[1].weight &&
         part.outputs[0].type.shape.size() >= 2;
}

KernelOffer attention(const KernelRequest& request, const OperatorRegistry& registry) {
  return attention_by_blocks(request, registry, 0);
}

KernelOffer attention_by_blocks(const KernelRequest& request, const OperatorRegistry& registry, std::int64_t rows) {
  if (!request.fused || request.outputs.size() != 1) return decline("one result is needed");
  if (!is_all_floats(request)) return decline("only f32");
  for (const FusedPart& part : request.fused->parts)
    if (is_matmul(part) && !is_fusable_product(part.request)) return decline("products of weights");
  for (const std::vector<Operand>* const operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands) {
      if (block_of(operand.layout) != 0) return decline("no blocks of channels");
      if (operand.type.elements() == 0) return decline("an operand is empty");
    }
  AttentionRecognizer recognizer(request, registry);
  if (std::string reason = recognizer.recognize(); !reason.empty()) return decline(std::move(reason));
  AttentionStages& stages = recognizer.stages();
  if (rows == 0 && !pays(stages)) return decline("scores that stay in the cache");
  stages.block = rows == 0 ? rows_of_block(stages.queries, stages.keys) : std::min(rows, stages.queries);
  const std::vector<std::int64_t> counts = {stages.block, stages.rest()};
  const bool once = stages.blocks() == 1;
  OfferedProduct scores =
      onednn_packed_product({counts, stages.width, stages.keys, stages.k.row, stages.k.column, once});
  if (!scores.product) return decline(std::move(scores.reason));
  OfferedProduct values =
      onednn_packed_product({counts, stages.keys, stages.of_values, stages.v.row, stages.v.column, once});
  if (!values.product) return decline(std::move(values.reason));
  return {std::make_unique<Attention>(std::move(stages), std::move(scores.product), std::move(values.product),
                                      request.threads),
          ""};
}

}  // namespace taso::cpu
