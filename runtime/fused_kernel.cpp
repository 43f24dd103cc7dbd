#include "runtime/fused_kernel.h"

#include <algorithm>

namespace taso {
namespace {

/// A multiple of what kernels may want their operands aligned to.
std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

class FusedKernel final : public Kernel {
 public:
  FusedKernel(std::shared_ptr<const Fused> fused, std::vector<std::unique_ptr<Kernel>> kernels)
      : Kernel("parts one by one"), fused_(std::move(fused)), kernels_(std::move(kernels)) {
    std::size_t end = 0, scratch = 0;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      std::vector<std::size_t>& offsets = offsets_.emplace_back();
      for (const Operand& output : fused_->parts[i].request.outputs) {
        offsets.push_back(end);
        end += aligned(static_cast<std::size_t>(output.type.bytes()));
      }
      scratch = std::max(scratch, kernels_[i]->workspace_bytes());
    }
    scratch_ = end;
    workspace_bytes_ = end + scratch;
  }

  Status execute(const KernelArguments& arguments) const override {
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const FusedPart& part = fused_->parts[i];
      std::vector<const std::byte*> inputs;
      for (const FusedPart::Source& source : part.sources)
        inputs.push_back(source.is_input ? arguments.inputs[source.index]
                                         : arguments.workspace + offsets_[source.index][source.port]);
      std::vector<std::byte*> outputs;
      for (const std::size_t offset : offsets_[i]) outputs.push_back(arguments.workspace + offset);
      TASO_RETURN_IF_ERROR(kernels_[i]->execute({inputs, outputs, arguments.workspace + scratch_}));
    }
    for (std::size_t k = 0; k < fused_->results.size(); ++k) {
      const FusedPart::Source& result = fused_->results[k];
      const std::byte* made = arguments.workspace + offsets_[result.index][result.port];
      const auto bytes = fused_->parts[result.index].request.outputs[result.port].type.bytes();
      std::copy(made, made + bytes, arguments.outputs[k]);
    }
    return {};
  }

 private:
  std::shared_ptr<const Fused> fused_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::vector<std::size_t>> offsets_;  ///< Of the parts' outputs in the workspace.
  std::size_t scratch_ = 0;                        ///< Where the parts' own workspace begins.
};

}  // namespace

Expected<std::unique_ptr<Kernel>> fused_kernel(const KernelRequest& request, const KernelLibrary& library) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const FusedPart& part : request.fused->parts) {
    KernelRequest alone = part.request;
    // as they lie: nothing is packed before a run
    for (Operand& operand : alone.inputs) operand.weight = false;
    TASO_ASSIGN(std::unique_ptr<Kernel> kernel, library.create(alone));
    kernels.push_back(std::move(kernel));
  }
  return std::unique_ptr<Kernel>(std::make_unique<FusedKernel>(request.fused, std::move(kernels)));
}

}  // namespace taso
