/// Element-wise operators and those that compute row by row, all of them on a block of elements before the next: what
/// runs where they are a kernel (fused_elements.cpp), and between the products of attention (attention.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/cpu/block.h"
#include "runtime/cpu/element_walk.h"
#include "runtime/cpu/row_loop.h"
#include "runtime/kernel.h"

namespace taso::cpu {

/// One operator: a loop over elements or rows, or its definition on blocks.
struct ElementPart {
  std::string name;  ///< With its attributes.
  std::vector<FusedPart::Source> sources;
  ElementLoop loop;
  std::optional<RowLoop> rows;
  std::optional<BlockDefinition> definition;
  std::optional<std::size_t> output;  ///< Of the whole.
  std::size_t place = 0;              ///< Of the block in which its result is kept, where it is no output.
};

struct ElementPlan {
  std::vector<ElementPart> parts;
  std::vector<std::int64_t> steps;  ///< Per input, in elements: from one element to the next, along what is computed.
  std::size_t blocks = 0;           ///< As many are kept at a time.
  std::int64_t row = 1;             ///< Elements of a row; 1 where no part is computed row by row.
  double work = 0;                  ///< Of an element, in additions.

  [[nodiscard]] std::int64_t block() const { return std::max(block_elements / row, std::int64_t{1}) * row; }
  /// What an output is called, or what is passed on.
  [[nodiscard]] std::string name_of(std::size_t part) const;
  /// A line for each part.
  [[nodiscard]] std::string text() const;
};

/// A plan, or the reason why there is none.
struct PlannedElements {
  std::optional<ElementPlan> plan;
  std::string reason;
};

/// Of a fused request whose parts are computed on elements of one shape; inputs may broadcast to it. Without `steps`,
/// which depend on how inputs are gone over.
[[nodiscard]] PlannedElements plan_elements(const KernelRequest& request, const OperatorRegistry& registry);

/// Computes elements by a plan, which must outlive it; for one thread.
class ElementWorker {
 public:
  ElementWorker(const ElementPlan& plan, std::span<const float* const> inputs, std::span<float* const> outputs);

  /// Goes to where elements begin in each input.
  void go_to(std::span<const std::int64_t> offsets) {
    for (std::size_t i = 0; i < offsets.size(); ++i) rows_[i] = starts_[i] + offsets[i];
  }
  /// The elements from `begin` to `end` from there on, to `first + begin` and so on in the outputs. An output may be an
  /// input of step 1 that is read from the same place on, if its part has no definition.
  void compute(std::int64_t begin, std::int64_t end, std::int64_t first) {
    const std::int64_t whole = plan_->block();
    for (std::int64_t done = begin; done < end; done += whole) block(done, std::min(whole, end - done), first + done);
  }

 private:
  void block(std::int64_t at, std::int64_t count, std::int64_t target);
  Block input(std::size_t i, std::int64_t at, std::int64_t count);
  Block value(std::size_t i, const ElementPart& part, float* y, std::int64_t count);
  template <class Source>
  Block rows(const RowLoop& loop, std::size_t operands, const Source& source, float* y, std::int64_t count);

  const ElementPlan* plan_;
  std::vector<std::vector<float>> blocks_;
  std::vector<std::vector<float>> gathered_;  ///< Per input, where it is needed.
  std::vector<std::vector<float>> repeated_;  ///< Per operand of rows that is the same number everywhere.
  std::vector<const float*> rows_of_;         ///< Per operand of rows.
  std::vector<const float*> starts_, rows_;   ///< Of the inputs, and of where elements begin in them.
  std::vector<float*> targets_;
  std::vector<Block> inputs_, results_;
  std::vector<std::vector<BlockBuffer>> buffers_;  ///< Per part that is computed from its definition.
  std::vector<std::optional<BlockEvaluator>> evaluators_;
};

}  // namespace taso::cpu
