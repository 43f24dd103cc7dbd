// Ranks over MPI. All calls of MPI return at once and are made under one mutex, so that the thread that watches the
// others can make its own in between (MPI_THREAD_SERIALIZED). Waiting is to ask again and again, at first at once,
// then after short sleeps, because MPI's own waiting keeps a core busy that other ranks could use.
//
// A message is pieces of one tag, all of piece_bytes but the last, which is shorter and perhaps empty: so a receiver
// notices where a message ends, MPI's counts (int) suffice, and no call copies for long.
#include "runtime/mpi/transport_mpi.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/mpi/liveness.h"

namespace taso {
namespace {

using Clock = Liveness::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t piece_bytes = std::size_t{64} << 20;

/// Tags of the communicator of signs of life: an empty message, or the exit code of an error as a byte and its text.
constexpr int alive_tag = 0, failed_tag = 1;
/// At most so much of the text of an error, which then arrives without the receiver's doing.
constexpr std::size_t most_text = 1000;

/// How long is asked without sleeping: where ranks share cores so long that the answer to a short message comes, where
/// each has one so long that no sleep, which lasts some ten microseconds longer than it should, comes between the
/// kernels of ranks that compute the same plan. Then how long sleeps are.
constexpr microseconds short_spinning{100}, long_spinning{5000}, first_sleep{20}, longest_sleep{1000};
/// How often the watcher looks, while something that was sent is under way, and else.
constexpr milliseconds busy_look{1}, idle_look{100};

/// A message to other ranks; MPI reads it until its requests are done.
struct Sent {
  int to = 0;  ///< The first of them.
  AlignedBuffer bytes;
  std::vector<MPI_Request> requests;
};

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

/// "Open MPI v4.1.4": what the library says of itself up to the first comma or end of line.
std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

/// To be called by all ranks.
int ranks_of_this_host() {
  MPI_Comm host = MPI_COMM_NULL;
  int ranks = std::numeric_limits<int>::max();  // Where MPI cannot tell: cores are shared.
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) != MPI_SUCCESS) return ranks;
  MPI_Comm_size(host, &ranks);
  MPI_Comm_free(&host);
  return ranks;
}

/// An error of MPI that came up with another rank (`rank` < 0: with all).
Error mpi_error(int code, int rank) {
  return Error{ErrorCode::device_unavailable,
               (rank < 0 ? "MPI" : "MPI, with rank " + std::to_string(rank)) + ": " + text_of(code),
               {}};
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(MpiOptions options, int rank, int size)
      : options_(std::move(options)),
        rank_(rank),
        size_(size),
        liveness_(size, rank, options_.lost_after, Clock::now()) {}
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;
  ~MpiTransport() override;

  [[nodiscard]] Status start(int threads_provided);
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int rank_on_host() const override { return rank_on_host_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] std::string name() const override { return "mpi"; }
  [[nodiscard]] std::string version() const override {
    return library_version() + "; messages " + std::to_string(generation);
  }
  [[nodiscard]] AlignedBuffer buffer(std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (bytes >= BufferPool::least_bytes && !pool_.has(bytes)) drop_done(under_way_);
    return pool_.take(bytes);
  }
  Status send_to(std::span<const Destination> destinations, AlignedBuffer bytes) override;
  Status receive(int from, std::uint32_t number, std::span<std::byte> into) override;
  void fail(const Error& error) override;
  [[nodiscard]] bool failed() const override {
    const std::lock_guard lock(mutex_);
    return failure_.has_value();
  }

 private:
  // What follows is called with mutex_ locked; wait() unlocks it in between.
  /// The numbers of destinations are tags.
  [[nodiscard]] Status queue(std::list<Sent>& list, MPI_Comm communicator, std::span<const Destination> destinations,
                             AlignedBuffer bytes) const;
  [[nodiscard]] static Status begin_send(Sent& sent, MPI_Comm communicator, const Destination& destination);
  /// Until `attempt` (an int& that it sets when it is done -> MPI's code) has succeeded. `rank` is that of errors.
  template <class Attempt>
  [[nodiscard]] Status wait(std::unique_lock<std::mutex>& lock, int rank, const Attempt& attempt);
  /// Bytes of the next piece of a message, which may have more than there is room for: then it is not received.
  [[nodiscard]] Expected<std::size_t> receive_piece(std::unique_lock<std::mutex>& lock, int from, std::uint32_t number,
                                                    std::span<std::byte> into);
  void drop_done(std::list<Sent>& list);
  void tell(int tag, const std::string& text);
  void read_signs();
  /// Where the run has failed and this rank is the one to say so.
  void end_if_lowest();
  void leave(std::unique_lock<std::mutex>& lock);

  void watch();

  const MpiOptions options_;
  const int rank_, size_;
  int rank_on_host_ = 0;
  mutable std::mutex mutex_;  ///< Of all calls of MPI and what follows.
  MPI_Comm data_ = MPI_COMM_NULL, signs_ = MPI_COMM_NULL;
  microseconds spinning_ = short_spinning;
  std::list<Sent> under_way_, signs_under_way_;
  BufferPool pool_;  ///< Of what was under way.
  Liveness liveness_;
  std::optional<Error> failure_;
  bool stopping_ = false;
  std::condition_variable wake_;  ///< Of the watcher.
  std::thread watcher_;
};

Status MpiTransport::start(int threads_provided) {
  if (size_ > 1 && threads_provided < MPI_THREAD_SERIALIZED)
    return Error{ErrorCode::device_unavailable, "this MPI cannot be used by programs with threads", {}};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int* most = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&most), &known);
  if (known == 0 || static_cast<std::uint32_t>(*most) < gathering)
    return Error{ErrorCode::device_unavailable,
                 "this MPI tells too few messages apart (MPI_TAG_UB below " + std::to_string(gathering) + ")",
                 {}};
  for (MPI_Comm* const communicator : {&data_, &signs_}) {
    if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, communicator); code != MPI_SUCCESS) return mpi_error(code, -1);
    MPI_Comm_set_errhandler(*communicator, MPI_ERRORS_RETURN);
  }
  MPI_Comm host = MPI_COMM_NULL;
  if (const int code = MPI_Comm_split_type(data_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
      code != MPI_SUCCESS)
    return mpi_error(code, -1);
  MPI_Comm_rank(host, &rank_on_host_);
  MPI_Comm_free(&host);
  if (size_ == 1) return {};
  if (ranks_of_this_host() <= static_cast<int>(std::thread::hardware_concurrency())) spinning_ = long_spinning;
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  watcher_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

Status MpiTransport::queue(std::list<Sent>& list, MPI_Comm communicator, std::span<const Destination> destinations,
                           AlignedBuffer bytes) const {
  Sent& sent = list.emplace_back();
  sent.to = destinations.front().to;
  sent.bytes = std::move(bytes);
  for (const Destination& destination : destinations) TASO_RETURN_IF_ERROR(begin_send(sent, communicator, destination));
  return {};
}

Status MpiTransport::begin_send(Sent& sent, MPI_Comm communicator, const Destination& destination) {
  for (std::size_t at = 0;; at += piece_bytes) {
    const std::size_t size = std::min(piece_bytes, sent.bytes.size() - at);
    const int code =
        MPI_Isend(sent.bytes.data() + at, static_cast<int>(size), MPI_BYTE, destination.to,
                  static_cast<int>(destination.number), communicator, &sent.requests.emplace_back(MPI_REQUEST_NULL));
    if (code != MPI_SUCCESS) return mpi_error(code, destination.to);
    if (size < piece_bytes) return {};
  }
}

void MpiTransport::drop_done(std::list<Sent>& list) {
  std::erase_if(list, [this](Sent& sent) {
    int done = 0;
    MPI_Testall(static_cast<int>(sent.requests.size()), sent.requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done != 0) pool_.give(std::move(sent.bytes));
    return done != 0;
  });
}

Status MpiTransport::send_to(std::span<const Destination> destinations, AlignedBuffer bytes) {
  TASO_CHECK(!destinations.empty(), "a message goes to someone");
  for (const auto& [to, number] : destinations) {
    TASO_CHECK(to >= 0 && to < size_ && to != rank_, "messages go to other ranks");
    TASO_CHECK(number <= gathering, "numbers of messages are at most largest_number");
  }
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  const bool first = under_way_.empty();
  TASO_RETURN_IF_ERROR(queue(under_way_, data_, destinations, std::move(bytes)));
  drop_done(under_way_);
  if (first && !under_way_.empty()) wake_.notify_one();  // it looks more often from now on
  return {};
}

template <class Attempt>
Status MpiTransport::wait(std::unique_lock<std::mutex>& lock, int rank, const Attempt& attempt) {
  const auto begin = Clock::now();
  auto sleep = first_sleep;
  while (!failure_) {
    int done = 0;
    if (const int code = attempt(done); code != MPI_SUCCESS) return mpi_error(code, rank);
    if (done != 0) return {};
    const bool asks_at_once = Clock::now() - begin < spinning_;
    if (!asks_at_once) drop_done(under_way_);
    lock.unlock();
    if (asks_at_once) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(sleep);
      sleep = std::min(sleep * 5 / 4, longest_sleep);
    }
    lock.lock();
  }
  return *failure_;
}

// A message is looked at before it is received: so its size is known, which is not left to MPI to refuse, and nothing
// that fails meanwhile leaves memory to MPI that the caller gives back.
Expected<std::size_t> MpiTransport::receive_piece(std::unique_lock<std::mutex>& lock, int from, std::uint32_t number,
                                                  std::span<std::byte> into) {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  TASO_RETURN_IF_ERROR(wait(lock, from, [&](int& done) {
    return MPI_Improbe(from, static_cast<int>(number), data_, &done, &message, &status);
  }));
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  const auto size = static_cast<std::size_t>(count);
  if (size > into.size()) return size;
  MPI_Request request = MPI_REQUEST_NULL;
  if (const int code = MPI_Imrecv(into.data(), count, MPI_BYTE, &message, &request); code != MPI_SUCCESS)
    return mpi_error(code, from);
  TASO_RETURN_IF_ERROR(wait(lock, from, [&](int& done) { return MPI_Test(&request, &done, MPI_STATUS_IGNORE); }));
  return size;
}

Status MpiTransport::receive(int from, std::uint32_t number, std::span<std::byte> into) {
  TASO_CHECK(from >= 0 && from < size_ && from != rank_, "messages come from other ranks");
  TASO_CHECK(number <= gathering, "numbers of messages are at most largest_number");
  std::unique_lock lock(mutex_);
  for (std::size_t at = 0;;) {
    const std::size_t expected = std::min(piece_bytes, into.size() - at);
    TASO_ASSIGN(const std::size_t size, receive_piece(lock, from, number, into.subspan(at, expected)));
    if (size == piece_bytes && size > expected)
      return wrong_size(from, number, "at least " + std::to_string(at + size), into.size());
    at += size;
    if (size != expected) return wrong_size(from, number, std::to_string(at), into.size());
    if (size < piece_bytes) return {};
  }
}

void MpiTransport::tell(int tag, const std::string& text) {
  for (int to = 0; to < size_; ++to) {
    // Who takes nothing gets no more signs of life, so that they do not pile up.
    const auto takes_nothing = [&](const Sent& sent) { return sent.to == to; };
    if (to == rank_ ||
        (tag == alive_tag && std::any_of(signs_under_way_.begin(), signs_under_way_.end(), takes_nothing)))
      continue;
    AlignedBuffer bytes(text.size());
    std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(), bytes.data());
    // An error here is that the other is gone, which the missing signs of its life will say.
    const Destination other{to, static_cast<std::uint32_t>(tag)};
    (void)queue(signs_under_way_, signs_, {&other, 1}, std::move(bytes));
  }
  drop_done(signs_under_way_);
}

void MpiTransport::read_signs() {
  for (;;) {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, signs_, &there, &message, &status) != MPI_SUCCESS || there == 0)
      return;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    std::string text(static_cast<std::size_t>(size), '\0');
    MPI_Mrecv(text.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);  // so short that it is here already
    liveness_.heard_of(status.MPI_SOURCE, Clock::now());
    if (status.MPI_TAG != failed_tag || text.empty()) continue;
    const auto code = static_cast<ErrorCode>(static_cast<unsigned char>(text[0]));
    if (!failure_) failure_ = Error{code, text.substr(1), {}};
  }
}

void MpiTransport::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  if (size_ == 1) {
    failure_ = error;
    options_.report(error);
    return;
  }
  failure_ = error_of_rank(rank_, error);
  tell(failed_tag, static_cast<char>(error.exit_code()) + failure_->message.substr(0, most_text));
  wake_.notify_one();
}

void MpiTransport::end_if_lowest() {
  if (!failure_ || liveness_.lowest_living() != rank_) return;
  options_.report(*failure_);
  MPI_Abort(MPI_COMM_WORLD, failure_->exit_code());
}

void MpiTransport::watch() {
  std::unique_lock lock(mutex_);
  for (auto next_sign = Clock::now(); !stopping_;) {
    const auto now = Clock::now();
    if (now >= next_sign) {
      tell(alive_tag, "");
      next_sign = now + options_.pulse;
    }
    read_signs();
    drop_done(under_way_);
    const std::optional<int> lost = liveness_.newly_lost(now);
    if (lost && !failure_) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.lost_after).count();
      failure_ = Error{ErrorCode::device_unavailable,
                       "rank " + std::to_string(*lost) + " has not been heard of for " + std::to_string(seconds) +
                           " s: it was stopped, killed or cut off",
                       {}};
    }
    end_if_lowest();
    wake_.wait_for(lock, under_way_.empty() ? idle_look : busy_look);
  }
}

/// Until all ranks are here, and what this one has sent is received.
void MpiTransport::leave(std::unique_lock<std::mutex>& lock) {
  MPI_Request all = MPI_REQUEST_NULL;
  if (!failure_ && MPI_Ibarrier(data_, &all) == MPI_SUCCESS)
    (void)wait(lock, -1, [&](int& done) { return MPI_Test(&all, &done, MPI_STATUS_IGNORE); });
  // The lowest living rank ends all; should that fail, this one does.
  for (auto since = Clock::now(); failure_;) {
    wake_.notify_one();
    lock.unlock();
    std::this_thread::sleep_for(longest_sleep);
    lock.lock();
    if (Clock::now() - since > 2 * options_.lost_after) MPI_Abort(MPI_COMM_WORLD, failure_->exit_code());
  }
  // What nobody has received until now, nobody will: it is given up after a moment.
  for (const auto since = Clock::now(); Clock::now() - since < options_.pulse;) {
    drop_done(under_way_);
    drop_done(signs_under_way_);
    if (under_way_.empty() && signs_under_way_.empty()) break;
    lock.unlock();
    std::this_thread::sleep_for(longest_sleep);
    lock.lock();
  }
}

MpiTransport::~MpiTransport() {
  if (watcher_.joinable()) {
    std::unique_lock lock(mutex_);
    leave(lock);
    stopping_ = true;
    wake_.notify_one();
    lock.unlock();
    watcher_.join();
  }
  // Nothing is left to interrupt. A starter that sees one rank leave with an exit code other than 0 ends the rest by
  // SIGTERM; no rank leaves MPI_Finalize before all are in it.
  std::signal(SIGTERM, SIG_IGN);
  MPI_Finalize();
}

}  // namespace

Expected<std::unique_ptr<Transport>> open_mpi_transport(int& argc, char**& argv, MpiOptions options) {
  int provided = 0, rank = 0, size = 1;
  if (const int code = MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided); code != MPI_SUCCESS)
    return mpi_error(code, -1);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto transport = std::make_unique<MpiTransport>(std::move(options), rank, size);
  TASO_RETURN_IF_ERROR(transport->start(provided));
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace taso
