// What is asked of NCCL, of a library that notes it; and that the true one has what is needed, where it is installed.
#include "runtime/cuda/nccl.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/support/shipped.h"

namespace taso::cuda {
namespace {

using test::value_of;

const std::string fake = TASO_FAKE_NCCL "/libnccl.so.2";

/// What the library was asked since the last time.
std::string calls() {
  void* const library = dlopen(fake.c_str(), RTLD_NOW);
  return reinterpret_cast<const char* (*)()>(dlsym(library, "fake_nccl_calls"))();
}
void fail(const char* function) {
  void* const library = dlopen(fake.c_str(), RTLD_NOW);
  reinterpret_cast<void (*)(const char*)>(dlsym(library, "fake_nccl_fails"))(function);
}

std::unique_ptr<DeviceMessages> joined(int rank, int size) {
  return value_of(join_by_nccl(value_of(nccl_group(fake)), rank, size, nullptr, fake));
}

TEST(Nccl, MessagesAreOneGroup) {
  EXPECT_EQ(value_of(nccl_version(fake)), "2.28.9");
  std::unique_ptr<DeviceMessages> messages = joined(1, 3);
  EXPECT_EQ(calls(), "unique id; join 1 of 3");
  std::array<std::byte, 24> memory{};
  const std::vector<DeviceMessages::Message> several = {
      {0, memory.data(), nullptr, 24}, {2, memory.data(), nullptr, 8}, {2, nullptr, memory.data(), 16}};
  EXPECT_TRUE(messages->exchange(several));
  EXPECT_EQ(calls(), "begin; send 24 to 0; send 8 to 2; receive 16 from 2; end");
  messages.reset();
  EXPECT_EQ(calls(), "leave");
}

TEST(Nccl, WhatIsAbortedIsNotLeft) {
  std::unique_ptr<DeviceMessages> messages = joined(0, 2);
  EXPECT_EQ(calls(), "unique id; join 0 of 2");
  messages->abort();
  messages.reset();
  EXPECT_EQ(calls(), "abort");
}

// A group is ended in any case, and the error is the first one, on one line.
TEST(Nccl, ErrorsAreItsOwnWords) {
  const std::unique_ptr<DeviceMessages> messages = joined(0, 3);
  calls();
  std::array<std::byte, 8> memory{};
  const std::vector<DeviceMessages::Message> several = {
      {1, memory.data(), nullptr, 8}, {2, nullptr, memory.data(), 4}, {1, nullptr, memory.data(), 8}};
  const auto error_of = [&](const char* function) {
    fail(function);
    const Status status = messages->exchange(several);
    fail("");
    return status ? "" : status.error().to_string();
  };
  EXPECT_EQ(error_of("send"), "nothing can be sent to rank 1: NCCL: invalid usage (the reason)");
  EXPECT_EQ(calls(), "begin; send 8 to 1; end");
  EXPECT_EQ(error_of("receive"), "nothing can be received from rank 2: NCCL: invalid usage (the reason)");
  EXPECT_EQ(calls(), "begin; send 8 to 1; receive 4 from 2; end");
  EXPECT_EQ(error_of("begin"), "messages cannot be grouped: NCCL: invalid usage (the reason)");
  EXPECT_EQ(error_of("end"), "messages cannot be queued: NCCL: invalid usage (the reason)");
  calls();
  fail("join");
  const auto refused = join_by_nccl(value_of(nccl_group(fake)), 0, 3, nullptr, fake);
  fail("");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::device_unavailable);
  EXPECT_EQ(refused.error().message, "ranks cannot be connected: NCCL: invalid usage (the reason)");
  calls();
}

TEST(Nccl, LibrariesThatDoNotServe) {
  const auto old = nccl_version(TASO_FAKE_NCCL "/old/libnccl.so.2");
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().message, "NCCL 2.9.6 is too old; 2.13.0 is needed");
  const auto lacking = nccl_version(TASO_FAKE_NCCL "/lacking/libnccl.so.2");
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().message, TASO_FAKE_NCCL "/lacking/libnccl.so.2 has no function ncclCommInitRank");
  const auto absent = nccl_group("libabsent.so.2");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::device_unavailable);
  EXPECT_EQ(absent.error().message.rfind("NCCL cannot be loaded: libabsent.so.2: ", 0), 0U) << absent.error().message;
  const auto elsewhere = join_by_nccl("short", 0, 2, nullptr, fake);
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code, ErrorCode::internal);
}

TEST(Nccl, TheTrueOneHasAllThatIsNeeded) {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW);
  if (library == nullptr) GTEST_SKIP() << "no libnccl.so.2";
  const auto version = nccl_version();
  EXPECT_TRUE(version) << version.error().message;
}

}  // namespace
}  // namespace taso::cuda
