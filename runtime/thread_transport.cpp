#include "runtime/thread_transport.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace taso {
namespace {

/// What a rank has.
struct Mailbox {
  /// What has been sent to it and not been received, by sender and number; no queue is empty.
  std::map<std::pair<int, std::uint32_t>, std::deque<std::shared_ptr<AlignedBuffer>>> messages;
  std::condition_variable changed;  ///< Something came, a rank left, or one failed.
  BufferPool sent;                  ///< What the rank has sent and was received, by all to whom it went.
};

/// What the ranks share.
struct World {
  explicit World(int size)
      : mailboxes(static_cast<std::size_t>(size)),
        left(static_cast<std::size_t>(size)),
        on_failure(static_cast<std::size_t>(size)) {}
  std::mutex mutex;  ///< Of everything.
  std::vector<Mailbox> mailboxes;
  std::vector<char> left;                         ///< Ranks whose transport is gone.
  std::optional<Error> failure;                   ///< The first one.
  std::vector<std::function<void()>> on_failure;  ///< Per rank; may be null.

  void wake_all() {
    for (Mailbox& mailbox : mailboxes) mailbox.changed.notify_all();
  }
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ThreadTransport(const ThreadTransport&) = delete;
  ThreadTransport& operator=(const ThreadTransport&) = delete;
  ~ThreadTransport() override {
    const std::lock_guard lock(world_->mutex);
    world_->left[static_cast<std::size_t>(rank_)] = 1;
    world_->wake_all();
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(world_->mailboxes.size()); }
  [[nodiscard]] int rank_on_host() const override { return rank_; }
  [[nodiscard]] std::string name() const override { return "threads"; }
  [[nodiscard]] std::string version() const override { return "messages " + std::to_string(generation); }

  [[nodiscard]] AlignedBuffer buffer(std::size_t bytes) override {
    const std::lock_guard lock(world_->mutex);
    return world_->mailboxes[static_cast<std::size_t>(rank_)].sent.take(bytes);
  }

  Status send_to(std::span<const Destination> destinations, AlignedBuffer bytes) override {
    const auto message = std::make_shared<AlignedBuffer>(std::move(bytes));
    const std::lock_guard lock(world_->mutex);
    for (const auto& [to, number] : destinations) {
      check(to, number);
      if (world_->failure) return *world_->failure;
      if (world_->left[static_cast<std::size_t>(to)] != 0) return left(to);
      Mailbox& mailbox = world_->mailboxes[static_cast<std::size_t>(to)];
      mailbox.messages[{rank_, number}].push_back(message);
      mailbox.changed.notify_all();
    }
    return {};
  }

  Status receive(int from, std::uint32_t number, std::span<std::byte> into) override {
    check(from, number);
    TASO_ASSIGN(std::shared_ptr<AlignedBuffer> bytes, take(from, number));
    if (bytes->size() != into.size()) return wrong_size(from, number, std::to_string(bytes->size()), into.size());
    if (!into.empty()) std::memcpy(into.data(), bytes->data(), into.size());
    const std::lock_guard lock(world_->mutex);
    // Who sent it gets it back from the last one that had it.
    if (bytes.use_count() == 1) world_->mailboxes[static_cast<std::size_t>(from)].sent.give(std::move(*bytes));
    bytes.reset();
    return {};
  }

  void fail(const Error& error) override {
    const std::lock_guard lock(world_->mutex);
    if (world_->failure) return;
    world_->failure = error_of_rank(rank_, error);
    world_->wake_all();
    for (const std::function<void()>& action : world_->on_failure)
      if (action) action();
  }
  void on_failure(std::function<void()> action) override {
    const std::lock_guard lock(world_->mutex);
    if (action && world_->failure) action();
    world_->on_failure[static_cast<std::size_t>(rank_)] = std::move(action);
  }
  [[nodiscard]] bool failed() const override {
    const std::lock_guard lock(world_->mutex);
    return world_->failure.has_value();
  }

 private:
  void check(int other, std::uint32_t number) const {
    TASO_CHECK(other >= 0 && other < size() && other != rank_, "messages go to other ranks");
    TASO_CHECK(number <= gathering, "numbers of messages are at most largest_number");
  }

  [[nodiscard]] static Error left(int rank) {
    return internal_error("rank " + std::to_string(rank) + " has ended before the others");
  }

  [[nodiscard]] Expected<std::shared_ptr<AlignedBuffer>> take(int from, std::uint32_t number) {
    std::unique_lock lock(world_->mutex);
    Mailbox& mailbox = world_->mailboxes[static_cast<std::size_t>(rank_)];
    auto queue = mailbox.messages.end();
    mailbox.changed.wait(lock, [&] {
      queue = mailbox.messages.find({from, number});
      return world_->failure || queue != mailbox.messages.end() || world_->left[static_cast<std::size_t>(from)] != 0;
    });
    if (world_->failure) return *world_->failure;
    if (queue == mailbox.messages.end()) return left(from);
    std::shared_ptr<AlignedBuffer> bytes = std::move(queue->second.front());
    queue->second.pop_front();
    if (queue->second.empty()) mailbox.messages.erase(queue);
    return bytes;
  }

  std::shared_ptr<World> world_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_thread_transports(int size) {
  TASO_CHECK(size >= 1, "there is at least one rank");
  const auto world = std::make_shared<World>(size);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < size; ++rank) transports.push_back(std::make_unique<ThreadTransport>(world, rank));
  return transports;
}

}  // namespace taso
