/// The kernels of messages between ranks, and what they have moved.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "runtime/kernel.h"
#include "runtime/transport.h"

namespace taso {

/// Payload that a rank has sent and received for one transfer.
struct MovedBytes {
  std::int64_t sent = 0, received = 0;
  bool operator==(const MovedBytes&) const = default;
};

/// Kernels of the operators that with_messages (runtime/rank_graph.h) makes. Boxes are cut out into the message and
/// messages arrive in their place without a copy between, where their place is a range of bytes. Not thread-safe.
class Communication final : public KernelSource {
 public:
  /// The transport must outlive the object and its kernels.
  explicit Communication(Transport& transport) : transport_(transport) {}
  [[nodiscard]] std::unique_ptr<Kernel> create(const KernelRequest& request) override;
  /// Since the last reset, by RankMessage::transfer.
  [[nodiscard]] const std::map<std::uint32_t, MovedBytes>& moved() const { return moved_; }
  void reset() { moved_.clear(); }

  /// Memory for a message (Transport::buffer).
  [[nodiscard]] AlignedBuffer buffer(std::size_t bytes) { return transport_.buffer(bytes); }
  [[nodiscard]] Status send(int to, std::uint32_t number, std::uint32_t transfer, AlignedBuffer bytes);
  [[nodiscard]] Status receive(int from, std::uint32_t number, std::uint32_t transfer, std::span<std::byte> into);

 private:
  Transport& transport_;
  std::map<std::uint32_t, MovedBytes> moved_;
};

}  // namespace taso
