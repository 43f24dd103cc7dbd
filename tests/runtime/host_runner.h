/// Runs the programs of the CUDA backend's own kernels in loops on the host.
#pragma once

#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/cuda/dispatch.h"

namespace taso::testing {

/// Threads of the host in the place of a device's. Teams are four threads, as four slices of one row or as two
/// neighbouring rows of two slices each, that wait for each other as a block's threads do.
class HostRunner {
 public:
  template <class F>
  void each(const F& f, std::int64_t count) {
    calls += count;
    for (std::int64_t i = 0; i < count; ++i) f(i);
  }

  template <class F>
  void team(const F& f, std::int64_t rows, cuda::TeamShape shape) {
    if (rows == 0) return;
    const int columns = shape == cuda::TeamShape::columns ? 2 : 1;
    Shared shared;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < team_threads; ++thread)
      threads.emplace_back([&, thread] {
        for (std::int64_t first = 0; first < rows; first += columns) {
          const std::int64_t row = first + thread % columns;
          Team team{&shared, thread % columns, thread / columns, columns, row < rows};
          f(team, row < rows ? row : rows - 1);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }

  template <class F>
  void tiles(const F& f, std::int64_t count) {
    ++tiled;
    typename F::Tile tile;
    for (std::int64_t block = 0; block < count; ++block) {
      std::memset(&tile, 0xee, sizeof(tile));
      for (int thread = 0; thread < cuda::tile_edge * cuda::tile_rows; ++thread) f.load(tile, block, thread);
      for (int thread = 0; thread < cuda::tile_edge * cuda::tile_rows; ++thread) f.store(tile, block, thread);
    }
  }

  int tiled = 0;
  std::int64_t calls = 0;  ///< Of functions that compute an element, or several at a time.

 private:
  static constexpr int team_threads = 4;
  struct Shared {
    std::barrier<> barrier{team_threads};
    float partial[team_threads] = {};
  };
  struct Team {
    Shared* shared;
    int column, slice, columns;
    bool active;
    [[nodiscard]] std::int64_t begin() const { return active ? slice : std::int64_t{1} << 62; }
    [[nodiscard]] std::int64_t step() const { return team_threads / columns; }
    [[nodiscard]] bool leads() const { return active && slice == 0; }
    template <class Combine>
    float combined(float x, Combine combine) const {
      shared->barrier.arrive_and_wait();
      shared->partial[slice * columns + column] = x;
      shared->barrier.arrive_and_wait();
      float result = shared->partial[column];
      for (int other = 1; other < team_threads / columns; ++other)
        result = combine(result, shared->partial[other * columns + column]);
      return result;
    }
    [[nodiscard]] float sum(float x) const {
      return combined(x, [](float a, float b) { return a + b; });
    }
    [[nodiscard]] float maximum(float x) const {
      return combined(x, [](float a, float b) { return std::fmax(a, b); });
    }
  };
};

}  // namespace taso::testing
