/// cuDNN's graph interface: descriptors as objects, and convolutions as lists of engines.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/tensor_type.h"
#include "runtime/backend.h"
#include "runtime/cuda/attention.h"
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
  /// Of y, in elements, where it lies within a wider tensor; empty: as `channels_last` says.
  std::vector<std::int64_t> y_strides;
};

/// Numbers of the graph's tensors.
enum class ConvolutionOperand : std::int64_t { x = 1, w = 2, y = 3, bias = 4, residual = 5 };

/// Which of cuDNN's engines, and how it is set. Means the same to every process with the same version of cuDNN.
struct EngineConfiguration {
  std::int64_t index = -1;                                   ///< cuDNN's number of the engine.
  std::vector<std::pair<std::int64_t, std::int64_t>> knobs;  ///< Kind (cudnnBackendKnobType_t) and value, by kind.
  bool operator==(const EngineConfiguration&) const = default;
};
/// "engine 44; knobs 2=1 14=3".
[[nodiscard]] std::string to_string(const EngineConfiguration& configuration);
/// The inverse; nothing where it is no such text.
[[nodiscard]] std::optional<EngineConfiguration> parse_configuration(std::string_view text);

/// A choice of an engine, as it is kept (EngineChoice::engine).
struct ChosenEngine {
  std::string work;  ///< What the engine computes: a division's name (division.h), "attention".
  EngineConfiguration configuration;
  std::string description;  ///< "best of 8".

  /// "conv+bias; engine 44; knobs 2=1 14=3; best of 8".
  [[nodiscard]] std::string text() const;
  /// The inverse; nothing where it is no such text.
  [[nodiscard]] static std::optional<ChosenEngine> parse(std::string_view text);
};

/// One way to compute a graph.
struct Engine {
  Descriptor plan;
  std::int64_t workspace = 0;
  EngineConfiguration configuration;
  bool tensor_core = false;
};

/// Which engines are asked for.
struct EngineLimits {
  std::size_t workspace_bytes = 0;  ///< The largest workspace.
  /// So many usable ones at most of those that cuDNN's heuristics name, the best first; with those of its list of
  /// engines that always work so many in all.
  std::size_t heuristic = 8, all = 9;
  /// Those, too, that cuDNN compiles when they are planned, which takes up to a second each.
  bool compiled = false;
};
/// All that there are.
[[nodiscard]] constexpr EngineLimits all_engines(std::size_t workspace_bytes) {
  return {workspace_bytes, static_cast<std::size_t>(-1), static_cast<std::size_t>(-1), true};
}

/// The engines for a graph, in the order of cuDNN's heuristics, none twice.
struct Engines {
  std::vector<Engine> usable;
  int other_arithmetic =
      0;                   ///< Left out: products or sums of less than the asked precision, or no fixed order of sums.
  int compiled = 0;        ///< Left out: would have to be compiled.
  int unsupported = 0;     ///< Left out: no plan, or too large a workspace.
  int unloadable = 0;      ///< Left out: compiled, but there is no device to load the code onto.
  std::string last_error;  ///< cuDNN's words on the last unsupported one; on the graph, if that was refused.
};

/// Where engines are planned for: a handle, or a descriptor of the properties of a device that is not there.
struct PlanningTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;
};

/// Engines that compute the graph in this arithmetic, within the limits.
[[nodiscard]] Engines convolution_engines(const PlanningTarget& target, const ConvolutionGraph& graph, MathMode math,
                                          const EngineLimits& limits);
/// Engines that compute softmax(scale * q k' + mask) v, all of which cuDNN compiles when they are planned; without the
/// driver's library it names none.
[[nodiscard]] Engines attention_engines(const PlanningTarget& target, const AttentionPlan& attention,
                                        cudnnDataType_t type, const EngineLimits& limits);
/// The engine of this configuration, as convolution_engines gave it once, without asking the heuristics.
/// device_unavailable if cuDNN has none, or none that computes in this arithmetic with so much workspace.
[[nodiscard]] Expected<Engine> configured_engine(const PlanningTarget& target, const ConvolutionGraph& graph,
                                                 MathMode math, std::size_t workspace_bytes,
                                                 const EngineConfiguration& configuration);
/// The same of attention_engines.
[[nodiscard]] Expected<Engine> configured_attention(const PlanningTarget& target, const AttentionPlan& attention,
                                                    cudnnDataType_t type, std::size_t workspace_bytes,
                                                    const EngineConfiguration& configuration);

/// Numbers of the tensors of attention.
enum class AttentionTensor : std::int64_t { q = 1, k = 2, v = 3, y = 4, scale = 5, mask = 6 };

/// Queues an engine on the handle's stream. Operands are numbers of the graph's tensors, with where they lie.
[[nodiscard]] Status execute(cudnnHandle_t handle, const Engine& engine,
                             std::span<const std::pair<std::int64_t, const void*>> operands, void* workspace);

/// A descriptor of a device from JSON, or of the handle's device.
[[nodiscard]] Expected<Descriptor> device_from_json(const std::string& json);
[[nodiscard]] Expected<std::string> json_of_device(int device);

}  // namespace taso::cuda
