#include "tests/runtime/backend/socket_messages.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace taso::testing {
namespace {

/// How long others are waited for.
constexpr std::chrono::seconds patience{20};

/// A socket's address without a file.
std::pair<sockaddr_un, socklen_t> address_of(const std::string& group, int rank) {
  const std::string name = group + "-" + std::to_string(rank);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

bool send_all(int socket, const void* bytes, std::size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = ::send(socket, next, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    next += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* bytes, std::size_t count) {
  char* next = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t received = ::recv(socket, next, count, 0);
    if (received <= 0) return false;
    next += received;
    count -= static_cast<std::size_t>(received);
  }
  return true;
}

class SocketMessages final : public DeviceMessages {
 public:
  SocketMessages(int rank, int size)
      : rank_(rank), to_(static_cast<std::size_t>(size), -1), from_(static_cast<std::size_t>(size), -1) {}
  SocketMessages(const SocketMessages&) = delete;
  SocketMessages& operator=(const SocketMessages&) = delete;
  ~SocketMessages() override {
    for (const std::vector<int>* sockets : {&to_, &from_})
      for (const int socket : *sockets)
        if (socket >= 0) ::close(socket);
  }

  Status join(const std::string& group) {
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto [address, length] = address_of(group, rank_);
    const bool listens = listener >= 0 && ::bind(listener, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
                         ::listen(listener, static_cast<int>(to_.size())) == 0;
    Status status = listens ? connect_all(group) : problem("cannot listen");
    if (status) status = accept_all(listener);
    if (listener >= 0) ::close(listener);
    return status;
  }

  Status exchange(std::span<const Message> messages) override {
    // One thread for all messages of a peer in one direction, which follow each other.
    std::map<int, std::vector<Message>> ways;  // by socket
    for (const Message& message : messages)
      ways[(message.from != nullptr ? to_ : from_)[static_cast<std::size_t>(message.peer)]].push_back(message);
    std::vector<std::string> problems(ways.size());
    std::vector<std::thread> threads;
    std::size_t way = 0;
    for (const auto& [socket, of_way] : ways)
      threads.emplace_back([socket, &of_way, &said = problems[way++]] {
        for (const Message& message : of_way)
          if (said.empty()) said = message.from != nullptr ? send(socket, message) : receive(socket, message);
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& said : problems)
      if (!said.empty()) return problem(said);
    return {};
  }

  void abort() override {
    for (const std::vector<int>* sockets : {&to_, &from_})
      for (const int socket : *sockets)
        if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
  }

 private:
  static Error problem(const std::string& what) {
    return Error{ErrorCode::device_unavailable, "messages of test devices: " + what, {}};
  }

  static std::string send(int socket, const Message& message) {
    const std::uint64_t bytes = message.bytes;
    char received = 0;
    if (!send_all(socket, &bytes, sizeof(bytes)) || !send_all(socket, message.from, message.bytes) ||
        !receive_all(socket, &received, 1))
      return "rank " + std::to_string(message.peer) + " takes nothing";
    return "";
  }

  static std::string receive(int socket, const Message& message) {
    std::uint64_t bytes = 0;
    if (!receive_all(socket, &bytes, sizeof(bytes))) return "rank " + std::to_string(message.peer) + " sends nothing";
    if (bytes != message.bytes)
      return "rank " + std::to_string(message.peer) + " sends " + std::to_string(bytes) + " bytes, " +
             std::to_string(message.bytes) + " are expected";
    const char received = 1;
    if (!receive_all(socket, message.into, message.bytes) || !send_all(socket, &received, 1))
      return "rank " + std::to_string(message.peer) + " has broken off";
    return "";
  }

  Status connect_all(const std::string& group) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (int peer = 0; peer < static_cast<int>(to_.size()); ++peer) {
      if (peer == rank_) continue;
      const int socket = to_[static_cast<std::size_t>(peer)] = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const auto [address, length] = address_of(group, peer);
      while (::connect(socket, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        if (std::chrono::steady_clock::now() > until) return problem("rank " + std::to_string(peer) + " does not join");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      const std::int32_t own = rank_;
      if (!send_all(socket, &own, sizeof(own))) return problem("rank " + std::to_string(peer) + " has left");
    }
    return {};
  }

  Status accept_all(int listener) {
    for (std::size_t accepted = 1; accepted < from_.size(); ++accepted) {
      pollfd waiting{listener, POLLIN, 0};
      if (::poll(&waiting, 1, static_cast<int>(std::chrono::milliseconds(patience).count())) != 1)
        return problem("not all ranks join");
      const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      std::int32_t peer = -1;
      if (socket < 0 || !receive_all(socket, &peer, sizeof(peer))) return problem("a rank has left");
      from_[static_cast<std::size_t>(peer)] = socket;
    }
    return {};
  }

  int rank_;
  std::vector<int> to_, from_;  ///< Sockets by rank, one for each direction.
};

}  // namespace

std::string new_group() {
  static std::atomic<int> number = 0;
  return "taso-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
}

Expected<std::unique_ptr<DeviceMessages>> join_group(const std::string& group, int rank, int size) {
  auto messages = std::make_unique<SocketMessages>(rank, size);
  TASO_RETURN_IF_ERROR(messages->join(group));
  return std::unique_ptr<DeviceMessages>(std::move(messages));
}

}  // namespace taso::testing
