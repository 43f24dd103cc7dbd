// A program for mpirun: ranks that do what the argument says. What they find is one line of rank 0 on stdout, or the
// one line on stderr that its transport reports.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "runtime/mpi/transport_mpi.h"

namespace taso {
namespace {

AlignedBuffer pattern(std::size_t size, int seed) {
  AlignedBuffer bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes.data()[i] = static_cast<std::byte>((i * 31 + (i >> 16)) ^ static_cast<unsigned>(seed));
  return bytes;
}

/// Receives a message and compares it with the pattern.
Status expect(Transport& transport, int from, std::uint32_t number, std::size_t size, int seed) {
  AlignedBuffer bytes(size);
  TASO_RETURN_IF_ERROR(transport.receive(from, number, std::span(bytes.data(), size)));
  const AlignedBuffer expected = pattern(size, seed);
  if (std::memcmp(bytes.data(), expected.data(), size) == 0) return {};
  return internal_error("another message of " + std::to_string(size) + " bytes than was sent");
}

/// Everybody sends to everybody at once, and takes what came in another order.
Status exchange(Transport& transport, std::span<const std::size_t> sizes) {
  const int size = transport.size(), rank = transport.rank();
  for (const std::size_t bytes : sizes) {
    for (int to = 0; to < size; ++to)
      for (int twice = 0; twice < 2 && to != rank; ++twice)
        for (const std::uint32_t number : {Transport::largest_number, 5U})
          TASO_RETURN_IF_ERROR(
              transport.send(to, number, pattern(bytes, rank * 10 + twice + static_cast<int>(number))));
    for (int from = size - 1; from >= 0; --from)
      for (const std::uint32_t number : {5U, Transport::largest_number})
        for (int twice = 0; twice < 2 && from != rank; ++twice)
          TASO_RETURN_IF_ERROR(expect(transport, from, number, bytes, from * 10 + twice + static_cast<int>(number)));
  }
  return {};
}

Status small(Transport& transport) {
  const std::size_t sizes[] = {0, 1, 4, 1000, 65536, std::size_t{1} << 20};
  for (int round = 0; round < 20; ++round) TASO_RETURN_IF_ERROR(exchange(transport, sizes));
  return {};
}

/// Messages of several pieces, and where the last piece is empty.
Status large(Transport& transport) {
  const std::size_t piece = std::size_t{64} << 20;
  const std::size_t sizes[] = {piece - 1, piece, piece + 1, 2 * piece + 12345};
  for (const std::size_t size : sizes) {
    if (transport.rank() == 0) TASO_RETURN_IF_ERROR(transport.send(1, 1, pattern(size, 1)));
    if (transport.rank() == 1) TASO_RETURN_IF_ERROR(expect(transport, 0, 1, size, 1));
  }
  return {};
}

/// What rank 0 sends while it does not call its transport arrives all the same.
Status computing(Transport& transport) {
  if (transport.rank() == 0) TASO_RETURN_IF_ERROR(transport.send(1, 1, pattern(std::size_t{30} << 20, 1)));
  if (transport.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(7));  // longer than a rank may be silent
  return transport.rank() == 1 ? expect(transport, 0, 1, std::size_t{30} << 20, 1) : Status();
}

Status gather(Transport& transport) {
  for (int round = 0; round < 100; ++round) {
    TASO_ASSIGN(const auto all,
                transport.all_gather(std::string(static_cast<std::size_t>(transport.rank() * round), 'x')));
    for (int rank = 0; rank < transport.size(); ++rank)
      if (all[static_cast<std::size_t>(rank)] != std::string(static_cast<std::size_t>(rank * round), 'x'))
        return internal_error("something else was gathered");
  }
  return {};
}

Status wrong_size(Transport& transport, std::size_t sent, std::size_t expected) {
  if (transport.rank() == 1) TASO_RETURN_IF_ERROR(transport.send(0, 9, pattern(sent, 1)));
  return transport.rank() == 0 ? expect(transport, 1, 9, expected, 1) : Status();
}

/// A rank sends itself a signal; the others wait for it, or rank 0 computes, without end.
Status with_signal(Transport& transport, int rank, int signal, bool computing) {
  TASO_RETURN_IF_ERROR(agree(transport, {}));
  if (transport.rank() == rank) kill(getpid(), signal);
  if (computing && transport.rank() == 0) std::this_thread::sleep_for(std::chrono::minutes(5));
  AlignedBuffer nothing(1);
  return transport.receive(rank, 1, std::span(nothing.data(), 1));
}

/// Rank 1 has an error of which the others, who wait for it, know nothing.
Status middle(Transport& transport) {
  if (transport.rank() == 1) return Error{ErrorCode::check_failed, "the kernel fails", {}};
  AlignedBuffer nothing(1);
  return transport.receive(1, 1, std::span(nothing.data(), 1));
}

/// Median time of a message, there and back by two.
Status ping_pong(Transport& transport) {
  for (const auto& [size, rounds] :
       {std::pair<std::size_t, int>{4, 20000}, {65536, 4000}, {std::size_t{16} << 20, 60}}) {
    std::vector<double> times;
    AlignedBuffer message(size);
    std::memset(message.data(), 1, size);
    TASO_RETURN_IF_ERROR(agree(transport, {}));
    for (int round = 0; round < rounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int sender = 0; sender < 2; ++sender) {
        if (transport.rank() > 1) continue;
        if (transport.rank() == sender) {
          TASO_RETURN_IF_ERROR(transport.send(1 - sender, 1, std::move(message)));
          message = transport.buffer(size);
        } else {
          TASO_RETURN_IF_ERROR(transport.receive(sender, 1, std::span(message.data(), size)));
        }
      }
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 2);
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    if (transport.rank() == 0)
      std::printf("%zu bytes: %.2f us, %.3f GB/s\n", size, median, static_cast<double>(size) / median * 1e-3);
  }
  return {};
}

using Work = std::function<Status(Transport&)>;

const std::map<std::string, Work>& works() {
  static const std::map<std::string, Work> all = {
      {"small", small},
      {"large", large},
      {"computing", computing},
      {"gather", gather},
      {"shorter", [](Transport& t) { return wrong_size(t, 7, 8); }},
      {"longer", [](Transport& t) { return wrong_size(t, 9, 8); }},
      {"shorter_pieces", [](Transport& t) { return wrong_size(t, std::size_t{64} << 20, std::size_t{65} << 20); }},
      {"longer_by_pieces", [](Transport& t) { return wrong_size(t, std::size_t{65} << 20, 8); }},
      {"longer_pieces", [](Transport& t) { return wrong_size(t, std::size_t{65} << 20, std::size_t{64} << 20); }},
      {"killed", [](Transport& t) { return with_signal(t, 1, SIGKILL, false); }},
      {"stopped", [](Transport& t) { return with_signal(t, 1, SIGSTOP, false); }},
      {"stopped_first", [](Transport& t) { return with_signal(t, 0, SIGSTOP, false); }},
      {"stopped_computing", [](Transport& t) { return with_signal(t, 1, SIGSTOP, true); }},
      {"middle", middle},
      {"ping_pong", ping_pong}};
  return all;
}

int say(const Error& error) {
  std::fprintf(stderr, "ranks: %s\n", error.to_string().c_str());
  return error.exit_code();
}

/// All ranks know the error: rank 0 says it.
int say_agreed(const Transport& transport, const Error& error) {
  return transport.rank() == 0 ? say(error) : error.exit_code();
}

int run(int argc, char** argv) {
  MpiOptions options;
  options.report = [](const Error& error) { (void)say(error); };
  auto opened = open_mpi_transport(argc, argv, options);
  if (!opened) return say(opened.error());
  Transport& transport = **opened;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "agree") {
    const Status agreed = agree(transport, transport.rank() == 1 ? bad_input("no", {"model.onnx", 2, 0}) : Status());
    return agreed ? 0 : say_agreed(transport, agreed.error());
  }
  if (mode == "agree_on") {
    const Status agreed = agree_on(transport, "the hash of the plan", transport.rank() == 1 ? "1f" : "2e");
    return agreed ? 0 : say_agreed(transport, agreed.error());
  }
  if (mode == "stopped_leaving") {  // the others are done, and wait for it
    if (transport.rank() == 1) kill(getpid(), SIGSTOP);
    return 0;
  }
  const auto work = works().find(mode);
  if (work == works().end()) return say_agreed(transport, Error{ErrorCode::usage, "no such work", {}});
  Status status = work->second(transport);
  if (!status) {
    transport.fail(status.error());
    return status.error().exit_code();
  }
  if (status = agree(transport, {}); !status) return status.error().exit_code();
  if (transport.rank() == 0) std::puts("good");
  return 0;
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) { return taso::run(argc, argv); }
