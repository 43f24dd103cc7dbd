// Ranks as threads: what is sent arrives, in order; what is wrong is said by all; nobody waits for who is gone.
#include "runtime/thread_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <thread>

namespace taso {
namespace {

using ::testing::ElementsAre;

AlignedBuffer bytes_of(const std::string& text) {
  AlignedBuffer bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

Expected<std::string> receive(Transport& transport, int from, std::uint32_t number, std::size_t size) {
  std::string text(size, '?');
  TASO_RETURN_IF_ERROR(transport.receive(from, number, std::as_writable_bytes(std::span(text))));
  return text;
}

std::string said(const Status& status) { return status ? "good" : status.error().to_string(); }

template <class T>
std::string said(const Expected<T>& expected) {
  return expected ? "good" : expected.error().to_string();
}

/// What each of `size` ranks says that runs `work`; its transport is gone as soon as it has said it.
std::vector<std::string> on_ranks(int size, const std::function<std::string(Transport&)>& work) {
  std::vector<std::unique_ptr<Transport>> transports = make_thread_transports(size);
  std::vector<std::string> results(transports.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < transports.size(); ++rank)
    threads.emplace_back([&, rank] {
      results[rank] = work(*transports[rank]);
      transports[rank].reset();
    });
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(ThreadTransport, MessagesOfANumberArriveInOrderAndNumbersDoNotMix) {
  const auto results = on_ranks(3, [](Transport& transport) -> std::string {
    if (transport.rank() > 0) {
      for (int i = 0; i < 1000; ++i)
        if (!transport.send(0, static_cast<std::uint32_t>(i % 2), bytes_of(std::to_string(1000 + i))))
          return "not sent";
      return "sent";
    }
    std::string wrong;
    for (const int number : {1, 0})
      for (int i = number; i < 1000; i += 2)
        for (const int from : {2, 1})
          if (receive(transport, from, static_cast<std::uint32_t>(number), 4).value() != std::to_string(1000 + i))
            wrong += std::to_string(i) + " ";
    return wrong;
  });
  EXPECT_THAT(results, ElementsAre("", "sent", "sent"));
}

TEST(ThreadTransport, MessagesMayBeEmptyAndLarge) {
  const std::string large(std::size_t{20} << 20, 'x');
  const auto results = on_ranks(2, [&](Transport& transport) -> std::string {
    const int other = 1 - transport.rank();
    if (!transport.send(other, Transport::largest_number, bytes_of(""))) return "not sent";
    if (!transport.send(other, 7, bytes_of(large))) return "not sent";
    if (receive(transport, other, 7, large.size()).value() != large) return "another text";
    return receive(transport, other, Transport::largest_number, 0).value();
  });
  EXPECT_THAT(results, ElementsAre("", ""));
}

TEST(ThreadTransport, AMessageOfAnotherSizeIsAnError) {
  const auto results = on_ranks(2, [](Transport& transport) -> std::string {
    if (transport.rank() == 1) return said(transport.send(0, 3, bytes_of("four")));
    return said(receive(transport, 1, 3, 5));
  });
  EXPECT_THAT(results, ElementsAre("message 3 of rank 1 has 4 bytes, not 5", "good"));
}

TEST(ThreadTransport, EverybodyGetsWhatAllGive) {
  for (const int size : {1, 2, 5}) {
    const auto results = on_ranks(size, [](Transport& transport) {
      std::string all;
      for (int round = 0; round < 3; ++round) {
        const std::string own(static_cast<std::size_t>(transport.rank() * round), static_cast<char>('a' + round));
        const auto gathered = transport.all_gather(own);
        for (const std::string& text : gathered.value()) all += text + ".";
      }
      return all;
    });
    std::string expected;
    for (int round = 0; round < 3; ++round)
      for (int rank = 0; rank < size; ++rank)
        expected += std::string(static_cast<std::size_t>(rank * round), static_cast<char>('a' + round)) + ".";
    EXPECT_THAT(results, ::testing::Each(expected)) << size;
  }
}

TEST(ThreadTransport, AllAgreeOnTheErrorOfTheFirstRankThatHasOne) {
  const auto results = on_ranks(4, [](Transport& transport) -> std::string {
    if (!agree(transport, {})) return "an error where there is none";
    if (transport.rank() < 2) return said(agree(transport, {}));
    const Status agreed = agree(transport, bad_input("no " + std::to_string(transport.rank()), {"m.onnx", 3, 0}));
    return said(agreed) + " " + std::to_string(agreed.error().exit_code());
  });
  EXPECT_THAT(results, ElementsAre("rank 2: m.onnx:3: no 2", "rank 2: m.onnx:3: no 2", "rank 2: m.onnx:3: no 2 3",
                                   "rank 2: m.onnx:3: no 2 3"));
}

TEST(ThreadTransport, WhatAllRanksSayIsOfNoRank) {
  const auto results =
      on_ranks(3, [](Transport& transport) { return said(agree(transport, bad_input("cannot open", {"m.onnx"}))); });
  EXPECT_THAT(results, ::testing::Each("m.onnx: cannot open"));
}

TEST(ThreadTransport, ARankAloneSaysItsOwnError) {
  EXPECT_THAT(on_ranks(1, [](Transport& transport) { return said(agree(transport, bad_input("wrong"))); }),
              ElementsAre("wrong"));
}

TEST(ThreadTransport, WhatMustBeTheSameIsCompared) {
  const auto results = on_ranks(3, [](Transport& transport) {
    return said(agree_on(transport, "the version", "1")) + "; " +
           said(agree_on(transport, "the hash of m.onnx", transport.rank() == 2 ? "77" : "5"));
  });
  EXPECT_THAT(results, ::testing::Each(
                           "good; the hash of m.onnx must be the same on all ranks: it is 77 on rank 2, 5 on rank 0"));
}

TEST(ThreadTransport, WhoWaitsForARankThatIsGoneIsTold) {
  const auto results = on_ranks(3, [](Transport& transport) -> std::string {
    if (transport.rank() == 1) return said(transport.send(0, 1, bytes_of("last")));
    std::string first = "-";
    if (transport.rank() == 0) first = receive(transport, 1, 1, 4).value();
    return first + ", " + said(receive(transport, 1, 1, 4));
  });
  EXPECT_THAT(results,
              ElementsAre("last, rank 1 has ended before the others", "good", "-, rank 1 has ended before the others"));
}

TEST(ThreadTransport, NothingCanBeSentToARankThatIsGone) {
  auto transports = make_thread_transports(2);
  transports[1].reset();
  EXPECT_EQ(said(transports[0]->send(1, 1, bytes_of("x"))), "rank 1 has ended before the others");
}

TEST(ThreadTransport, ARankThatFailsEndsAllWaiting) {
  const auto results = on_ranks(4, [](Transport& transport) -> std::string {
    if (transport.rank() == 2) {
      if (transport.failed()) return "failed already";
      transport.fail(Error{ErrorCode::check_failed, "no kernel", {}});
      transport.fail(internal_error("later"));
    }
    const auto received = receive(transport, transport.rank() == 3 ? 0 : 3, 1, 4);
    return said(received) + " " + std::to_string(received.error().exit_code()) + "; " + said(transport.all_gather(""));
  });
  EXPECT_THAT(results, ::testing::Each("rank 2: no kernel 4; rank 2: no kernel"));
}

TEST(ThreadTransport, TheMemoryOfAMessageThatHasArrivedIsUsedAgain) {
  auto transports = make_thread_transports(2);
  std::string text(BufferPool::least_bytes, '?');
  const auto pass = [&] {
    AlignedBuffer message = transports[0]->buffer(text.size());
    const std::byte* const memory = message.data();
    EXPECT_TRUE(transports[0]->send(1, 1, std::move(message)).ok());
    EXPECT_TRUE(transports[1]->receive(0, 1, std::as_writable_bytes(std::span(text))).ok());
    return memory;
  };
  const std::byte* const first = pass();
  const AlignedBuffer other = transports[0]->buffer(text.size() / 8),
                      of_other_rank = transports[1]->buffer(text.size());
  EXPECT_EQ(pass(), first);
}

TEST(BufferPool, KeepsWhatIsLargeUpToABound) {
  BufferPool pool;
  AlignedBuffer small(BufferPool::least_bytes - 1);
  small.data()[0] = std::byte{1};
  pool.give(std::move(small));
  constexpr std::size_t half = BufferPool::most_bytes / 2;
  std::vector<const std::byte*> given;
  for (int i = 0; i < 3; ++i) {
    AlignedBuffer buffer(half);
    given.push_back(buffer.data());
    pool.give(std::move(buffer));
  }
  EXPECT_EQ(pool.take(half).data(), given[2]);
  EXPECT_EQ(pool.take(half).data(), given[1]);
}

TEST(BufferPool, GivesTheSmallestThatHasRoomUnlessMostOfItWouldBeIdle) {
  constexpr std::size_t bytes = BufferPool::least_bytes;
  BufferPool pool;
  std::map<std::size_t, const std::byte*> given;  // by capacity
  for (const std::size_t capacity : {4 * bytes, bytes, 2 * bytes, 5 * bytes}) {
    AlignedBuffer buffer(capacity);
    given[capacity] = buffer.data();
    pool.give(std::move(buffer));
  }
  AlignedBuffer taken = pool.take(bytes + 1);
  EXPECT_EQ(taken.data(), given[2 * bytes]);
  EXPECT_EQ(taken.size(), bytes + 1);
  EXPECT_EQ(taken.capacity(), 2 * bytes);
  pool.give(std::move(taken));
  EXPECT_EQ(pool.take(2 * bytes).data(), given[2 * bytes]);
  EXPECT_EQ(pool.take(bytes).data(), given[bytes]);
  EXPECT_EQ(pool.take(bytes).data(), given[4 * bytes]);
  EXPECT_FALSE(pool.has(bytes));
  EXPECT_TRUE(pool.has(bytes + bytes / 4));
}

TEST(BufferPool, ANewBufferReplacesSmallerOnesThatTakeNoMoreMemory) {
  constexpr std::size_t bytes = BufferPool::least_bytes;
  BufferPool pool;
  for (const std::size_t capacity : {bytes, 2 * bytes, 3 * bytes, 9 * bytes}) pool.give(AlignedBuffer(capacity));
  EXPECT_EQ(pool.take(10 * bytes).capacity(), 10 * bytes);  // instead of 9 and 1
  EXPECT_FALSE(pool.has(9 * bytes));
  EXPECT_TRUE(pool.has(3 * bytes));
  EXPECT_EQ(pool.take(bytes).capacity(), 2 * bytes);
}

}  // namespace
}  // namespace taso
