/// cuDNN's graph interface: descriptors as objects, and convolutions as lists of engines.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/tensor_type.h"
#include "runtime/backend.h"
#include "support/status.h"

namespace taso::cuda {

/// Success, or an error of code device_unavailable: "what: cuDNN's words" on one line.
[[nodiscard]] Status check(cudnnStatus_t result, const char* what);

/// One backend descriptor. Setters note the first failure, which finalize() reports.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), failure_(std::move(other.failure_)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(failure_, other.failure_);
    return *this;
  }
  ~Descriptor();

  [[nodiscard]] cudnnBackendDescriptor_t get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ != nullptr; }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<const T> values) {
    return set_raw(name, type, static_cast<std::int64_t>(values.size()), values.data());
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set_raw(name, type, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::int64_t value) { return set(name, CUDNN_TYPE_INT64, value); }
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, std::span<const std::int64_t>(values));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    const cudnnBackendDescriptor_t raw = value.get();
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
  }
  [[nodiscard]] Status finalize();

 private:
  Descriptor& set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                      const void* values);
  cudnnBackendDescriptor_t descriptor_ = nullptr;
  Status failure_;
};

/// What an engine computes: y = act(conv(x, w) + residual + bias), with the parts that are asked for.
struct ConvolutionGraph {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<std::int64_t> x, w, y;  ///< Extents: n c h w, k c/g r s, n k p q. The number of groups follows.
  bool channels_last = false;         ///< Of all three.
  std::vector<std::int64_t> before, after, strides, dilations;  ///< Pads and steps: rows, columns.
  bool bias = false, residual = false, relu = false;
};

/// Numbers of the graph's tensors.
enum class ConvolutionOperand : std::int64_t { x = 1, w = 2, y = 3, bias = 4, residual = 5 };

/// One way to compute a graph.
struct Engine {
  Descriptor plan;
  std::int64_t workspace = 0;
  std::int64_t index = -1;   ///< cuDNN's number; several configurations have the same.
  std::size_t position = 0;  ///< Among all configurations that the heuristics name.
  bool tensor_core = false;
};

/// The engines for a graph, in the order of cuDNN's heuristics.
struct Engines {
  std::vector<Engine> usable;
  int other_arithmetic =
      0;                   ///< Left out: products or sums of less than the asked precision, or no fixed order of sums.
  int unsupported = 0;     ///< Left out: no plan, too large a workspace, or too many to be compiled.
  std::string last_error;  ///< cuDNN's words on the last unsupported one; on the graph, if that was refused.
};

/// Where engines are planned for: a handle, or a descriptor of the properties of a device that is not there.
struct PlanningTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;
};

/// All engines that compute the graph in this arithmetic with at most `workspace_bytes`; of those that cuDNN compiles
/// when they are planned, which takes up to a second each, the first few. With `only`, the one at this position.
[[nodiscard]] Engines convolution_engines(const PlanningTarget& target, const ConvolutionGraph& graph, MathMode math,
                                          std::size_t workspace_bytes, std::optional<std::size_t> only = {});

/// Queues an engine on the handle's stream.
[[nodiscard]] Status execute(cudnnHandle_t handle, const Engine& engine,
                             std::span<const std::pair<ConvolutionOperand, const void*>> operands, void* workspace);

/// A descriptor of a device from JSON, or of the handle's device.
[[nodiscard]] Expected<Descriptor> device_from_json(const std::string& json);
[[nodiscard]] Expected<std::string> json_of_device(int device);

}  // namespace taso::cuda
