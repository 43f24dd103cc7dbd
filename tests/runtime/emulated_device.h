/// What generated kernels (runtime/cuda/source.h) ask of a device, on the host: their text is compiled after this
/// header by the compiler of the host, and run block by block. Threads of a block are contexts of one thread of the
/// host, which change where they wait for each other; a block whose threads do not all come to the same barrier is
/// found out.
#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/scalar.h"

namespace taso::testing {

/// One block at a time.
class EmulatedDevice {
 public:
  static constexpr unsigned threads = 256, lanes = 32;

  static EmulatedDevice& instance() {
    static EmulatedDevice device;
    return device;
  }

  /// Calls `kernel` for every thread of every block.
  template <class Kernel>
  void run(std::int64_t blocks, bool has_barriers, const Kernel& kernel) {
    for (block_ = 0; block_ < blocks; ++block_) {
      if (has_barriers) {
        run_block([](void* of) { (*static_cast<const Kernel*>(of))(); }, const_cast<Kernel*>(&kernel));
        continue;
      }
      for (thread_ = 0; thread_ < threads; ++thread_) kernel();
    }
  }

  [[nodiscard]] unsigned thread() const { return thread_; }
  [[nodiscard]] unsigned block() const { return static_cast<unsigned>(block_); }
  void wait_for_block() { wait(State::at_block); }
  /// The value that another lane of the warp hands in.
  float exchange(float value, unsigned distance) {
    // Two places in turn: who hands in the next but one has waited for all to have read this one.
    const unsigned turn = turns_[thread_]++ % 2;
    exchanged_[turn][thread_] = value;
    const unsigned other = thread_ ^ distance;
    wait(State::at_warp);
    return exchanged_[turn][other];
  }

 private:
  enum class State { ready, at_warp, at_block, finished };

  EmulatedDevice() : stacks_(threads * stack_bytes), contexts_(threads), states_(threads), turns_(threads) {}

  void wait(State state) {
    const unsigned self = thread_;
    states_[self] = state;
    swapcontext(&contexts_[self], &scheduler_);
  }

  static void enter() {
    EmulatedDevice& device = instance();
    device.call_(device.argument_);
    device.states_[device.thread_] = State::finished;
  }

  void run_block(void (*call)(void*), void* argument) {
    call_ = call;
    argument_ = argument;
    for (unsigned i = 0; i < threads; ++i) {
      getcontext(&contexts_[i]);
      contexts_[i].uc_stack.ss_sp = stacks_.data() + i * stack_bytes;
      contexts_[i].uc_stack.ss_size = stack_bytes;
      contexts_[i].uc_link = &scheduler_;
      makecontext(&contexts_[i], &EmulatedDevice::enter, 0);
      turns_[i] = 0;
      states_[i] = State::ready;
    }
    while (true) {
      for (unsigned warp = 0; warp < threads; warp += lanes) run_warp(warp);
      if (all(0, threads, State::finished)) return;
      if (!all(0, threads, State::at_block)) throw std::runtime_error("threads of a block wait for others in vain");
      for (State& state : states_) state = State::ready;
    }
  }

  /// Until all its lanes wait for the block, or are finished.
  void run_warp(unsigned first) {
    while (true) {
      for (thread_ = first; thread_ < first + lanes; ++thread_)
        if (states_[thread_] == State::ready) {
          const unsigned self = thread_;
          swapcontext(&scheduler_, &contexts_[self]);
        }
      if (!all(first, lanes, State::at_warp)) break;
      for (unsigned i = first; i < first + lanes; ++i) states_[i] = State::ready;
    }
    for (unsigned i = first; i < first + lanes; ++i)
      if (states_[i] == State::at_warp) throw std::runtime_error("lanes of a warp wait for others in vain");
  }

  [[nodiscard]] bool all(unsigned first, unsigned count, State state) const {
    for (unsigned i = first; i < first + count; ++i)
      if (states_[i] != state) return false;
    return true;
  }

  static constexpr std::size_t stack_bytes = 64 * 1024;
  std::vector<char> stacks_;
  std::vector<ucontext_t> contexts_;
  std::vector<State> states_;
  std::vector<unsigned> turns_;
  float exchanged_[2][threads] = {};
  ucontext_t scheduler_{};
  void (*call_)(void*) = nullptr;
  void* argument_ = nullptr;
  unsigned thread_ = 0;
  std::int64_t block_ = 0;
};

/// A kernel of one of the cases, that takes its parameters from memory.
struct EmulatedKernel {
  std::size_t number;  ///< Of the case.
  const char* name;
  const char* hash;  ///< Of the text.
  void (*call)(void* const* arguments);
};

template <class T>
T argument_of(void* from) {
  if constexpr (std::is_pointer_v<T>)
    return static_cast<T>(from);
  else
    return *static_cast<T*>(from);
}
template <class... T, std::size_t... I>
void call_with(void (*kernel)(T...), void* const* arguments, std::index_sequence<I...>) {
  kernel(argument_of<T>(arguments[I])...);
}
/// Calls a kernel with pointers as they are and others from where the arguments point to.
template <auto kernel>
void call_kernel(void* const* arguments) {
  const auto count = []<class... T>(void (*)(T...)) { return std::index_sequence_for<T...>{}; };
  call_with(kernel, arguments, decltype(count(kernel)){});
}

}  // namespace taso::testing

// What the text uses beyond C++ and <cmath>, with the meaning that CUDA gives it.
struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define threadIdx (taso::testing::EmulatedIndex{taso::testing::EmulatedDevice::instance().thread()})
#define blockIdx (taso::testing::EmulatedIndex{taso::testing::EmulatedDevice::instance().block()})

namespace taso::testing {
struct EmulatedIndex {
  unsigned x;
};
}  // namespace taso::testing

inline void __syncwarp() { taso::testing::EmulatedDevice::instance().exchange(0, 0); }
inline void __syncthreads() { taso::testing::EmulatedDevice::instance().wait_for_block(); }
inline float __shfl_xor_sync(unsigned, float value, int distance) {
  return taso::testing::EmulatedDevice::instance().exchange(value, static_cast<unsigned>(distance));
}
inline unsigned int __float_as_uint(float value) { return taso::cuda::bits_of(value); }
inline float __uint_as_float(unsigned int bits) { return taso::cuda::float_of(bits); }
inline float float_of_half(unsigned short bits) { return taso::cuda::widen(taso::cuda::Half{bits}); }
inline unsigned short half_of_float(float value) { return taso::cuda::narrow<taso::cuda::Half>(value).bits; }
inline void atomicMin(unsigned long long* place, unsigned long long value) {
  if (value < *place) *place = value;
}
