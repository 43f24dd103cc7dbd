/// The kernels of messages between ranks, and what they have moved.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

/// Kernels of the operators that with_messages (runtime/rank_graph.h) makes. Boxes are cut out into the message and
/// messages arrive in their place without a copy between, where their place is a range of bytes. Not thread-safe.
class Communication final : public KernelSource {
 public:
  /// The transport must outlive the object and its kernels.
  explicit Communication(Transport& transport) : transport_(transport) {}
  [[nodiscard]] std::unique_ptr<Kernel> create(const KernelRequest& request) override;
  /// Since the last reset, of the transfers of all kernels.
  [[nodiscard]] const MovedPayload& moved() const { return moved_; }
  void reset() { std::fill(moved_.begin(), moved_.end(), MovedBytes{}); }

  /// Memory for a message (Transport::buffer).
  [[nodiscard]] AlignedBuffer buffer(std::size_t bytes) { return transport_.buffer(bytes); }
  /// For each destination a transfer, that a kernel was made for.
  [[nodiscard]] Status send(std::span<const Transport::Destination> destinations,
                            std::span<const std::uint32_t> transfers, AlignedBuffer bytes);
  [[nodiscard]] Status receive(int from, std::uint32_t number, std::uint32_t transfer, std::span<std::byte> into);

  /// To be called by kernels when they are made: that they move something for a transfer.
  void expect(std::uint32_t transfer) {
    if (transfer >= moved_.size()) moved_.resize(transfer + 1);
  }

 private:
  Transport& transport_;
  MovedPayload moved_;  ///< As long as the kernels' transfers need it.
};

}  // namespace taso
