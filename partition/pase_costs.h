/// PaSE's configurations of a layer and its cost functions (pase_graph.h): FLOPs of a training step per device, where a
/// word of eight bytes that is communicated counts as many FLOPs as a device performs meanwhile. In double precision,
/// in the order of operations of PaSE's prototype, so that costs are equal to its to the last bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "partition/pase_graph.h"

namespace taso {

/// Devices and the links between them, all alike.
struct PaseMachine {
  double teraflops = 10;             ///< Peak per device.
  double gigabytes_per_second = 16;  ///< Per link.
  /// FLOPs in the time of one word: r of the paper's equation (1), times eight.
  [[nodiscard]] double flops_per_word() const { return teraflops * 1000 / (gigabytes_per_second / 8); }
};

/// Ways to split a list of axes, each into equal parts.
class PaseConfigurations {
 public:
  using Split = std::int32_t;
  explicit PaseConfigurations(std::size_t rank) : rank_(rank) {}
  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<const Split> operator[](std::size_t index) const {
    return {splits_.data() + index * rank_, rank_};
  }
  void add(std::span<const Split> splits) {
    splits_.insert(splits_.end(), splits.begin(), splits.end());
    ++size_;
  }
  bool operator==(const PaseConfigurations&) const = default;

 private:
  std::size_t rank_, size_ = 0;
  std::vector<Split> splits_;
};

/// All configurations of a layer: every axis that is not pinned into a divisor of its extent with pieces of at least
/// `cutoff` (or not at all), the product at most `devices`. The first axis changes slowest, fewer parts first.
[[nodiscard]] PaseConfigurations pase_configurations(const PaseLayer& layer, std::int64_t devices, std::int64_t cutoff);

/// How a tensor of a layer is split by each configuration.
[[nodiscard]] PaseConfigurations pase_splits(const PaseTensor& tensor, const PaseConfigurations& configurations);

/// The cost of a layer by itself in each configuration: arithmetic, and communication within it.
[[nodiscard]] std::vector<double> pase_layer_costs(const PaseLayer& layer, const PaseConfigurations& configurations,
                                                   const PaseMachine& machine);

/// What it costs to bring a tensor from each split in which it is written into each in which it is read, forward, and
/// its gradient backward: [written][read]. A device has as much of what it needs as best overlap allows, and nothing if
/// more devices read than write.
[[nodiscard]] std::vector<double> pase_edge_costs(std::span<const std::int64_t> shape,
                                                  const PaseConfigurations& written, const PaseConfigurations& read,
                                                  const PaseMachine& machine);

}  // namespace taso
