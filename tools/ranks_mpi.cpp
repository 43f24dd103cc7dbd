// A message is a header (what it is, how long) and pieces of at most 1 GiB, since MPI counts by int. Waiting sleeps:
// MPI's own waiting keeps a core busy that other ranks could use.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <thread>
#include <vector>

#include "tools/ranks.h"

namespace taso::tools {
namespace {

constexpr int header_tag = 1, piece_tag = 2;
constexpr std::size_t piece = std::size_t{1} << 30;

/// Error code (0: none), number of bytes.
using Header = std::array<std::uint64_t, 2>;

/// What the starters of MPI programs leave in the environment of a process (Open MPI, MPICH and Intel, Slurm).
bool started_by_mpi() {
  const char* const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
  return std::any_of(std::begin(names), std::end(names), [](const char* name) { return std::getenv(name) != nullptr; });
}

void wait(MPI_Request& request) {
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

/// What was sent and may not have arrived; nothing in it moves.
struct Ranks::Messages {
  struct Message {
    Header header{};
    std::string bytes;
    std::vector<MPI_Request> requests;
  };
  std::list<Message> under_way;

  void drop_arrived() {
    std::erase_if(under_way, [](Message& message) {
      int done = 0;
      MPI_Testall(static_cast<int>(message.requests.size()), message.requests.data(), &done, MPI_STATUSES_IGNORE);
      return done != 0;
    });
  }
  void send(std::uint64_t code, std::string bytes) {
    Message& message = under_way.emplace_back();
    message.header = {code, bytes.size()};
    message.bytes = std::move(bytes);
    MPI_Isend(message.header.data(), 2, MPI_UINT64_T, 0, header_tag, MPI_COMM_WORLD, &message.requests.emplace_back());
    for (std::size_t at = 0; at < message.bytes.size(); at += piece)
      MPI_Isend(message.bytes.data() + at, static_cast<int>(std::min(piece, message.bytes.size() - at)), MPI_BYTE, 0,
                piece_tag, MPI_COMM_WORLD, &message.requests.emplace_back());
  }
};

Ranks::Ranks(int& argc, char**& argv) {
  if (!started_by_mpi()) return;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  messages_ = std::make_unique<Messages>();
  if (size_ > 1 && provided < MPI_THREAD_SERIALIZED) {
    if (rank_ == 0) std::fputs("this MPI cannot be used by programs with threads\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ErrorCode::device_unavailable));
  }
}

Ranks::~Ranks() {
  if (messages_ == nullptr) return;
  for (; !messages_->under_way.empty(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    messages_->drop_arrived();
  MPI_Request all = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  wait(all);
  // Nothing is left to interrupt. A starter that sees one rank leave with an exit code other than 0 ends the rest by
  // SIGTERM; no rank leaves MPI_Finalize before all are in it.
  std::signal(SIGTERM, SIG_IGN);
  MPI_Finalize();
}

Status Ranks::agree(const Status& own) const {
  if (messages_ == nullptr || size_ == 1) return own;
  const int none = size_;
  int mine = own ? none : rank_, first = none;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == none) return {};
  std::string text = own ? "" : own.error().to_string();
  if (first > 0) text.insert(0, "rank " + std::to_string(first) + ": ");
  std::array<int, 2> size_and_code{static_cast<int>(text.size()), own ? 0 : own.error().exit_code()};
  MPI_Bcast(size_and_code.data(), 2, MPI_INT, first, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(size_and_code[0]));
  MPI_Bcast(text.data(), size_and_code[0], MPI_CHAR, first, MPI_COMM_WORLD);
  return Error{static_cast<ErrorCode>(size_and_code[1]), text, {}};
}

void Ranks::send(std::string bytes) {
  if (messages_ != nullptr) messages_->send(0, std::move(bytes));
}

void Ranks::send(const Error& error) {
  if (messages_ != nullptr) messages_->send(static_cast<std::uint64_t>(error.exit_code()), error.to_string());
}

void Ranks::advance() {
  if (messages_ != nullptr && !messages_->under_way.empty()) messages_->drop_arrived();
}

Expected<std::string> Ranks::receive(int rank) const {
  Header header{};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(header.data(), 2, MPI_UINT64_T, rank, header_tag, MPI_COMM_WORLD, &request);
  wait(request);
  std::string bytes(header[1], '\0');
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    MPI_Irecv(bytes.data() + at, static_cast<int>(std::min(piece, bytes.size() - at)), MPI_BYTE, rank, piece_tag,
              MPI_COMM_WORLD, &request);
    wait(request);
  }
  if (header[0] != 0)
    return Error{static_cast<ErrorCode>(header[0]), "rank " + std::to_string(rank) + ": " + bytes, {}};
  return bytes;
}

void Ranks::end_all(int exit_code) const {
  if (messages_ != nullptr && size_ > 1) MPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace taso::tools
