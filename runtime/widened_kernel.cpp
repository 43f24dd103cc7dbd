#include "runtime/widened_kernel.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "graph/reals.h"
#include "runtime/aligned_buffer.h"
#include "runtime/cpu/parallel.h"
#include "runtime/storage.h"

namespace taso {
namespace {

constexpr std::size_t alignment = 64;

bool is_half(const Operand& operand) {
  return operand.type.element == ElementType::f16 || operand.type.element == ElementType::bf16;
}

void convert(const std::byte* from, ElementType from_type, std::byte* to, ElementType to_type, std::int64_t count,
             int threads) {
  constexpr std::int64_t grain = 1 << 14;
  cpu::parallel_chunks(threads, count, grain, [&](std::int64_t begin, std::int64_t end) {
    convert_reals(from + begin * static_cast<std::int64_t>(size_of(from_type)), from_type,
                  to + begin * static_cast<std::int64_t>(size_of(to_type)), to_type,
                  static_cast<std::size_t>(end - begin));
  });
}

class Widened final : public Kernel {
 public:
  Widened(const KernelRequest& request, std::unique_ptr<Kernel> wide)
      : Kernel(wide->implementation() + " in f32"),
        inputs_(request.inputs),
        outputs_(request.outputs),
        threads_(request.threads),
        wide_(std::move(wide)) {
    workspace_bytes_ = wide_->workspace_bytes();
    for (const Operand& input : inputs_)
      input_places_.push_back(is_half(input) && !input.weight ? reserve(input) : std::nullopt);
    for (const Operand& output : outputs_) output_places_.push_back(is_half(output) ? reserve(output) : std::nullopt);
  }

  std::string packed_format(std::size_t index) const override {
    const std::string format = wide_->packed_format(index);
    if (!is_half_weight(index)) return format;
    return format.empty() ? "f32" : format + " of f32";
  }
  std::size_t packed_bytes(std::size_t index) const override {
    return is_plain(index) ? elements(index) * sizeof(float) : wide_->packed_bytes(index);
  }
  void pack(std::size_t index, const std::byte* plain, std::byte* packed) const override {
    if (!is_half_weight(index)) return wide_->pack(index, plain, packed);
    if (is_plain(index)) return widen(index, plain, elements(index), packed);
    AlignedBuffer wide(elements(index) * sizeof(float));
    widen(index, plain, elements(index), wide.data());
    wide_->pack(index, wide.data(), packed);
  }
  std::int64_t rows_of_part(std::size_t index) const override {
    return is_plain(index) ? 0 : wide_->rows_of_part(index);
  }
  void pack_part(std::size_t index, std::int64_t first, std::int64_t count, const std::byte* rows,
                 std::byte* packed) const override {
    if (!is_half_weight(index)) return wide_->pack_part(index, first, count, rows, packed);
    const Shape& shape = inputs_[index].type.shape;
    const std::size_t part = elements(index) / static_cast<std::size_t>(shape[0]) * static_cast<std::size_t>(count);
    AlignedBuffer wide(part * sizeof(float));
    widen(index, rows, part, wide.data());
    wide_->pack_part(index, first, count, wide.data(), packed);
  }

  Status execute(const KernelArguments& arguments) const override {
    std::vector<const std::byte*> inputs(arguments.inputs.begin(), arguments.inputs.end());
    std::vector<std::byte*> outputs(arguments.outputs.begin(), arguments.outputs.end());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!input_places_[i]) continue;
      std::byte* const place = arguments.workspace + *input_places_[i];
      convert(inputs[i], inputs_[i].type.element, place, ElementType::f32, inputs_[i].type.elements(), threads_);
      inputs[i] = place;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (output_places_[i]) outputs[i] = arguments.workspace + *output_places_[i];
    TASO_RETURN_IF_ERROR(wide_->execute({inputs, outputs, arguments.workspace}));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (output_places_[i])
        convert(outputs[i], ElementType::f32, arguments.outputs[i], outputs_[i].type.element,
                outputs_[i].type.elements(), threads_);
    return {};
  }

 private:
  [[nodiscard]] bool is_half_weight(std::size_t index) const {
    return inputs_[index].weight && is_half(inputs_[index]);
  }
  /// Packed as plain f32.
  [[nodiscard]] bool is_plain(std::size_t index) const {
    return is_half_weight(index) && wide_->packed_format(index).empty();
  }
  [[nodiscard]] std::size_t elements(std::size_t index) const {
    return static_cast<std::size_t>(inputs_[index].type.elements());
  }
  void widen(std::size_t index, const std::byte* from, std::size_t count, std::byte* to) const {
    convert(from, inputs_[index].type.element, to, ElementType::f32, static_cast<std::int64_t>(count), threads_);
  }
  /// Room for an operand in f32, behind what the workspace has already.
  std::optional<std::size_t> reserve(const Operand& operand) {
    const std::size_t place = (workspace_bytes_ + alignment - 1) / alignment * alignment;
    workspace_bytes_ = place + static_cast<std::size_t>(operand.type.elements()) * sizeof(float);
    return place;
  }

  std::vector<Operand> inputs_, outputs_;
  int threads_;
  std::unique_ptr<Kernel> wide_;
  std::vector<std::optional<std::size_t>> input_places_, output_places_;  // Within the workspace.
};

}  // namespace

bool reads_or_makes_halves(const KernelRequest& request) {
  return std::any_of(request.inputs.begin(), request.inputs.end(), is_half) ||
         std::any_of(request.outputs.begin(), request.outputs.end(), is_half);
}

Expected<std::unique_ptr<Kernel>> widened_kernel(const KernelRequest& request, const KernelLibrary& library) {
  KernelRequest wide = request;
  replace_floats(wide, ElementType::f16, ElementType::f32);
  replace_floats(wide, ElementType::bf16, ElementType::f32);
  TASO_ASSIGN(std::unique_ptr<Kernel> kernel, library.create(wide));
  return std::unique_ptr<Kernel>(std::make_unique<Widened>(request, std::move(kernel)));
}

}  // namespace taso
