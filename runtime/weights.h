/// Values of weight-only subgraphs, and the store in which executors share pre-laid-out weights.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "runtime/kernel.h"
#include "runtime/tensor.h"
#include "support/hash.h"
#include "support/status.h"

namespace taso {

class DeviceBuffer;  // runtime/backend.h

/// Evaluates weight-only values of a graph with the library's kernels of the host; results in the order of `values`.
/// Constants come back as they are (no copy), and so do reshapes of them. Equal runs give equal bytes. What is kept in
/// 16 bits is computed in f32 and rounded once.
[[nodiscard]] Expected<std::vector<std::shared_ptr<const ConstantData>>> evaluate_weights(const Graph& graph,
                                                                                          std::span<const Value> values,
                                                                                          const KernelLibrary& library,
                                                                                          int threads = 1);

/// A weight that is a constant with elements, a box of one, or either transposed: to be read part by part.
class ConstantPart {
 public:
  /// Nothing where the value has to be computed.
  [[nodiscard]] static std::optional<ConstantPart> of(const Graph& graph, Value value);
  /// Copies `count` indices of its first axis, from `first` on, row-major. Pages of a mapped file that it has read are
  /// released.
  void copy_rows(std::int64_t first, std::int64_t count, std::byte* to) const;

 private:
  std::shared_ptr<const ConstantData> constant_;
  Shape starts_, sizes_;            ///< The box of the constant,
  std::vector<std::size_t> order_;  ///< and which of its axes each axis of the weight is.
};

/// Structural hashes of weight-only values: equal hashes mean equal values, in any graph. Indexed by node id; other
/// nodes have the zero hash.
[[nodiscard]] std::vector<Hash128> weight_hashes(const Graph& graph);

/// Bytes that several executors may share: in device memory if `device` is set, else those of `constant` if that is,
/// else of `buffer`.
struct PackedWeight {
  AlignedBuffer buffer;
  std::shared_ptr<const ConstantData> constant;
  std::shared_ptr<const DeviceBuffer> device;
  [[nodiscard]] const std::byte* data() const;
  [[nodiscard]] std::size_t bytes() const;
};

/// Remembers pre-laid-out weights by (value, format) as long as someone uses them. Thread-safe.
class WeightStore {
 public:
  /// The remembered weight, or what `make` returns.
  [[nodiscard]] Expected<std::shared_ptr<const PackedWeight>> get(
      const Hash128& key, const std::function<Expected<std::shared_ptr<const PackedWeight>>()>& make);

 private:
  std::mutex mutex_;
  std::unordered_map<Hash128, std::weak_ptr<const PackedWeight>> weights_;
};

}  // namespace taso
