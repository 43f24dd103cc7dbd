/// What the backend's kernels have in common, and their creators.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/backend.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/program.h"
#include "runtime/kernel.h"

namespace taso::cuda {

/// A kernel on a device: queues on one of the context's streams.
class DeviceKernel : public Kernel {
 public:
  Status execute(const KernelArguments& arguments) const final;

 protected:
  DeviceKernel(std::shared_ptr<Context> context, const KernelRequest& request, std::string implementation);

  /// Queues the kernel. The context's device is the thread's.
  [[nodiscard]] virtual Status queue(const Buffers& buffers, cudaStream_t stream) const = 0;

  /// Operands that do not begin at a multiple of operand_alignment (pieces of other tensors do) are copied to where
  /// they do before queue(), and outputs back after it.
  void align_operands() { aligns_ = true; }
  /// Takes workspace behind what is taken; its offset. The workspace is aligned as device memory is.
  std::int64_t reserve(std::size_t bytes);

  std::shared_ptr<Context> context_;

 private:
  struct Stage {
    std::size_t bytes = 0;
    bool is_within = false;       ///< A wider tensor: an output that is not copied.
    mutable DeviceMemory memory;  ///< Allocated when first needed.
  };
  [[nodiscard]] Status queue_aligned(const Buffers& buffers, cudaStream_t stream) const;
  bool aligns_ = false;
  std::size_t reserved_ = 0;
  std::vector<Stage> inputs_, outputs_;
  mutable std::mutex staging_mutex_;
};

/// A declined offer.
[[nodiscard]] inline KernelOffer decline(std::string reason) { return {nullptr, std::move(reason)}; }

/// Own kernels for everything that is no convolution or product: generated where there is a compiler, else precompiled;
/// of other operators their definitions, generated.
[[nodiscard]] KernelOffer own_kernel(const std::shared_ptr<Context>& context, const KernelRequest& request,
                                     const Operators& operators);
/// Whether a fused request is one launch by its definitions, of which some part has no other kernel.
[[nodiscard]] bool fuses_definitions(const Context& context, const KernelRequest& request, const Operators& operators);
/// Any of conv2d, conv2d_bias_act and conv2d_bias_add_act, by cuDNN.
[[nodiscard]] KernelOffer convolution(const std::shared_ptr<Context>& context, const KernelRequest& request);
/// Whether it would be offered; found out once.
[[nodiscard]] bool plans_convolution(const std::shared_ptr<Context>& context, const KernelRequest& request);
/// matmul and matmul_bias_act, by cuBLASLt.
[[nodiscard]] KernelOffer product(const std::shared_ptr<Context>& context, const KernelRequest& request);

/// softmax(scale * q k' + mask) v, by cuDNN.
[[nodiscard]] KernelOffer attention(const std::shared_ptr<Context>& context, const KernelRequest& request);
/// Whether it would be offered.
[[nodiscard]] bool plans_attention(Context& context, const KernelRequest& request);

/// The key under which the choice of an engine is remembered: the request's, without what does not matter to it.
[[nodiscard]] std::string tuning_key(KernelRequest request);

/// Device memory filled with random numbers, for timing.
[[nodiscard]] Expected<DeviceMemory> random_operand(ElementType element, std::int64_t count, std::uint64_t seed,
                                                    cudaStream_t stream);

}  // namespace taso::cuda
