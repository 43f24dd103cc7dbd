/// The kernels of messages between ranks, and what they have moved.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/backend.h"
#include "runtime/kernel.h"
#include "runtime/transport.h"

namespace taso {

/// Payload that a rank has sent and received for one transfer.
struct MovedBytes {
  std::int64_t sent = 0, received = 0;
  bool operator==(const MovedBytes&) const = default;
};
/// By RankMessage::transfer.
using MovedPayload = std::vector<MovedBytes>;

/// Whether all ranks together have sent and received what was predicted of each transfer. Else an internal error that
/// names the first one of which that is not so.
[[nodiscard]] Status check_moved(std::span<const std::int64_t> predicted, std::span<const MovedPayload> ranks);

/// Kernels of the operators of messages (runtime/rank_graph.h): on the host those that with_messages makes, where boxes
/// are cut out into the message and messages arrive in their place without a copy between, if their place is a range of
/// bytes; on a device those that with_exchanges makes. Not thread-safe.
class Communication final : public KernelSource {
 public:
  /// Both must outlive the object and its kernels; without `device` there are kernels of the host only.
  explicit Communication(Transport& transport, DeviceMessages* device = nullptr)
      : transport_(transport), device_(device) {}
  [[nodiscard]] bool knows(std::string_view op) const override;
  [[nodiscard]] std::unique_ptr<Kernel> create(const KernelRequest& request) override;
  [[nodiscard]] std::unique_ptr<Kernel> create_on_device(const KernelRequest& request) override;
  /// Since the last reset, of the transfers of all kernels.
  [[nodiscard]] const MovedPayload& moved() const { return moved_; }
  void reset() { std::fill(moved_.begin(), moved_.end(), MovedBytes{}); }

  /// Memory for a message (Transport::buffer).
  [[nodiscard]] AlignedBuffer buffer(std::size_t bytes) { return transport_.buffer(bytes); }
  /// For each destination a transfer, that a kernel was made for.
  [[nodiscard]] Status send(std::span<const Transport::Destination> destinations,
                            std::span<const std::uint32_t> transfers, AlignedBuffer bytes);
  [[nodiscard]] Status receive(int from, std::uint32_t number, std::uint32_t transfer, std::span<std::byte> into);

  /// For kernels of the device: what has been moved for a transfer.
  void count(std::uint32_t transfer, const MovedBytes& moved) {
    moved_[transfer].sent += moved.sent;
    moved_[transfer].received += moved.received;
  }

  /// To be called by kernels when they are made: that they move something for a transfer.
  void expect(std::uint32_t transfer) {
    if (transfer >= moved_.size()) moved_.resize(transfer + 1);
  }

 private:
  Transport& transport_;
  DeviceMessages* device_;
  MovedPayload moved_;  ///< As long as the kernels' transfers need it.
};

}  // namespace taso
