/// Ranks: processes, or threads of one, that compute the parts of one plan together and send each other tensors.
///
/// Every rank has one Transport. Messages are not waited for when they are sent; those between two ranks are told apart
/// by a number, and those of one number arrive in the order in which they were sent. A rank that is gone, or that has
/// not been heard of for too long, makes every call of the others fail with an error that names it, so that nobody
/// waits for ever. One thread of a rank calls its transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/aligned_buffer.h"
#include "support/status.h"

namespace taso {

class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Its number among the ranks of its machine.
  [[nodiscard]] virtual int rank_on_host() const = 0;
  /// "mpi", "threads".
  [[nodiscard]] virtual std::string name() const = 0;
  /// What times of messages depend on besides the machine: the version of a library, and `generation`.
  [[nodiscard]] virtual std::string version() const = 0;

  /// Memory for a message, its contents unspecified: that of one that has arrived, where there is one of the size.
  [[nodiscard]] virtual AlignedBuffer buffer(std::size_t bytes) = 0;
  /// Where a message goes: 0 <= number <= largest_number.
  struct Destination {
    int to = 0;
    std::uint32_t number = 0;
  };
  /// Queues a message for other ranks, each of which gets all of it, and returns at once. Its memory is there once.
  [[nodiscard]] virtual Status send_to(std::span<const Destination> destinations, AlignedBuffer bytes) = 0;
  [[nodiscard]] Status send(int to, std::uint32_t number, AlignedBuffer bytes) {
    const Destination only{to, number};
    return send_to({&only, 1}, std::move(bytes));
  }
  /// Waits for the next message of this number from another rank. Fails where it is not of the size of `into`.
  [[nodiscard]] virtual Status receive(int from, std::uint32_t number, std::span<std::byte> into) = 0;
  /// To be called by all ranks at the same place, which makes it a barrier: everybody gets what all give, by rank.
  [[nodiscard]] Expected<std::vector<std::string>> all_gather(std::string bytes);

  /// This rank goes no further: from now on all calls of all ranks fail with this error, whose message then begins with
  /// the rank. For errors in the middle of a run, of which the others do not know; where a call has failed already, it
  /// changes nothing. A transport of processes ends them all (runtime/mpi/transport_mpi.h).
  virtual void fail(const Error& error) = 0;
  /// Whether calls fail now because a rank did, or is lost. Transports of processes say such an error themselves; any
  /// other one that all ranks have is for rank 0 to say.
  [[nodiscard]] virtual bool failed() const = 0;

  /// What else is to be done, at once and from any thread, when calls begin to fail: to let go who waits elsewhere for
  /// another rank. Replaces what was said before; with null there is nothing to do, and nothing under way when the call
  /// returns. Transports of processes end these instead.
  virtual void on_failure(std::function<void()> action) { (void)action; }

  /// Raised with every change that makes messages of ranks faster or slower: what was measured before does not count.
  static constexpr int generation = 1;
  static constexpr std::uint32_t largest_number = (1U << 20) - 1;

 protected:
  /// The number of the messages of all_gather.
  static constexpr std::uint32_t gathering = largest_number + 1;
  /// The error of a message of `has` bytes ("8", "at least 9") where others are expected.
  [[nodiscard]] static Error wrong_size(int from, std::uint32_t number, const std::string& has, std::size_t expected);
};

/// On every rank, at the same place: whether it is good on all of them. Of several errors that of the first rank is
/// returned, everywhere; the message begins with the rank, unless all ranks say the same.
[[nodiscard]] Status agree(Transport& transport, const Status& own);

/// On every rank, at the same place: whether all say the same (the hash of a model, a version). `what` is called that
/// in the message, which names the first rank that differs from rank 0, with both.
[[nodiscard]] Status agree_on(Transport& transport, const std::string& what, const std::string& own);

/// `error` of a rank, as the others know it.
[[nodiscard]] Error error_of_rank(int rank, const Error& error);

}  // namespace taso
