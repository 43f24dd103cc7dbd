#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <string>

#include "runtime/cuda/dispatch.h"
#include "runtime/cuda/launch.h"

namespace taso::cuda {
namespace {

constexpr int block_threads = 256;
constexpr int warp_threads = 32;
constexpr int rows_per_block = block_threads / warp_threads;
constexpr unsigned all_lanes = 0xffffffffU;
/// Where a thread that has no row begins: behind every count, and far enough from the end of the type that one step
/// more does not overflow.
constexpr std::int64_t nowhere = std::int64_t{1} << 62;

static_assert(block_threads == tile_edge * tile_rows, "a block is one tile's threads");

__device__ float sum_of_warp(float x) {
  for (int distance = warp_threads / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(all_lanes, x, distance);
  return x;
}
__device__ float maximum_of_warp(float x) {
  for (int distance = warp_threads / 2; distance > 0; distance /= 2)
    x = fmaxf(x, __shfl_xor_sync(all_lanes, x, distance));
  return x;
}

/// One warp for one row. All lanes of the warp call.
struct WarpTeam {
  int lane;
  bool active;
  __device__ std::int64_t begin() const { return active ? lane : nowhere; }
  __device__ std::int64_t step() const { return warp_threads; }
  __device__ bool leads() const { return active && lane == 0; }
  __device__ float sum(float x) const { return sum_of_warp(x); }
  __device__ float maximum(float x) const { return maximum_of_warp(x); }
};

/// One block for one row. All threads of the block call; `partial` is shared, one number per warp.
struct BlockTeam {
  float* partial;
  __device__ std::int64_t begin() const { return threadIdx.x; }
  __device__ std::int64_t step() const { return block_threads; }
  __device__ bool leads() const { return threadIdx.x == 0; }
  __device__ float sum(float x) const {
    exchange(sum_of_warp(x));
    float total = partial[0];
    for (int warp = 1; warp < block_threads / warp_threads; ++warp) total += partial[warp];
    return total;
  }
  __device__ float maximum(float x) const {
    exchange(maximum_of_warp(x));
    float largest = partial[0];
    for (int warp = 1; warp < block_threads / warp_threads; ++warp) largest = fmaxf(largest, partial[warp]);
    return largest;
  }

 private:
  /// Everyone has read what was exchanged before, then everyone sees what is exchanged now.
  __device__ void exchange(float x) const {
    __syncthreads();
    if (threadIdx.x % warp_threads == 0) partial[threadIdx.x / warp_threads] = x;
    __syncthreads();
  }
};

/// One block for 32 neighbouring rows, which are threadIdx.x; threadIdx.y divides a row's elements. All threads of the
/// block call; `partial` is shared, one number per thread.
struct ColumnTeam {
  float* partial;
  bool active;
  __device__ std::int64_t begin() const { return active ? static_cast<std::int64_t>(threadIdx.y) : nowhere; }
  __device__ std::int64_t step() const { return rows_per_block; }
  __device__ bool leads() const { return active && threadIdx.y == 0; }
  __device__ float sum(float x) const {
    exchange(x);
    float total = partial[threadIdx.x];
    for (int slice = 1; slice < rows_per_block; ++slice) total += partial[slice * warp_threads + threadIdx.x];
    return total;
  }
  __device__ float maximum(float x) const {
    exchange(x);
    float largest = partial[threadIdx.x];
    for (int slice = 1; slice < rows_per_block; ++slice)
      largest = fmaxf(largest, partial[slice * warp_threads + threadIdx.x]);
    return largest;
  }

 private:
  __device__ void exchange(float x) const {
    __syncthreads();
    partial[threadIdx.y * warp_threads + threadIdx.x] = x;
    __syncthreads();
  }
};

template <class F>
__global__ void __launch_bounds__(block_threads) each_kernel(const __grid_constant__ F f, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * block_threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x; i < count; i += step) f(i);
}

template <class F>
__global__ void __launch_bounds__(block_threads) warp_kernel(const __grid_constant__ F f, std::int64_t rows) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * rows_per_block;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * rows_per_block + threadIdx.y; row < rows;
       row += step) {
    WarpTeam team{static_cast<int>(threadIdx.x), true};
    f(team, row);
  }
}

template <class F>
__global__ void __launch_bounds__(block_threads) block_kernel(const __grid_constant__ F f, std::int64_t rows) {
  __shared__ float partial[block_threads / warp_threads];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    BlockTeam team{partial};
    f(team, row);
  }
}

template <class F>
__global__ void __launch_bounds__(block_threads) column_kernel(const __grid_constant__ F f, std::int64_t rows) {
  __shared__ float partial[block_threads];
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * warp_threads;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * warp_threads; first < rows; first += step) {
    const std::int64_t row = first + threadIdx.x;
    ColumnTeam team{partial, row < rows};
    f(team, row < rows ? row : rows - 1);
  }
}

template <class F>
__global__ void __launch_bounds__(block_threads) tile_kernel(const __grid_constant__ F f) {
  __shared__ typename F::Tile tile;
  f.load(tile, blockIdx.x, static_cast<int>(threadIdx.x));
  __syncthreads();
  f.store(tile, blockIdx.x, static_cast<int>(threadIdx.x));
}

/// Numbers between 0.1 and 1.1 from a hash of the place (SplitMix64's finalizer).
template <class T>
struct RandomNumbers {
  T* to;
  std::uint64_t seed;
  TASO_BOTH void operator()(std::int64_t i) const {
    std::uint64_t z = seed + (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    to[i] = narrow<T>(0.1F + static_cast<float>(z >> 40) * 0x1.0p-24F);
  }
};

/// Queues kernels; keeps the first error.
class DeviceRunner {
 public:
  explicit DeviceRunner(cudaStream_t stream) : stream_(stream) {}

  template <class F>
  void each(const F& f, std::int64_t count) {
    if (count <= 0 || failure_ != cudaSuccess) return;
    each_kernel<<<blocks(count, block_threads), block_threads, 0, stream_>>>(f, count);
    note();
  }

  template <class F>
  void team(const F& f, std::int64_t rows, TeamShape shape) {
    if (rows <= 0 || failure_ != cudaSuccess) return;
    const dim3 threads(warp_threads, rows_per_block);
    switch (shape) {
      case TeamShape::warp:
        warp_kernel<<<blocks(rows, rows_per_block), threads, 0, stream_>>>(f, rows);
        break;
      case TeamShape::block:
        block_kernel<<<blocks(rows, 1), block_threads, 0, stream_>>>(f, rows);
        break;
      case TeamShape::columns:
        column_kernel<<<blocks(rows, warp_threads), threads, 0, stream_>>>(f, rows);
        break;
    }
    note();
  }

  template <class F>
  void tiles(const F& f, std::int64_t count) {
    if (count <= 0 || failure_ != cudaSuccess) return;
    // as_tiles has made sure that the number of tiles is one of blocks
    tile_kernel<<<static_cast<unsigned>(count), block_threads, 0, stream_>>>(f);
    note();
  }

  [[nodiscard]] Status status() const {
    if (failure_ == cudaSuccess) return {};
    return Error{ErrorCode::device_unavailable,
                 std::string("CUDA could not launch a kernel: ") + cudaGetErrorString(failure_),
                 {}};
  }

 private:
  /// Enough blocks for one element per thread; kernels loop where a grid cannot have so many.
  [[nodiscard]] static unsigned blocks(std::int64_t count, int per_block) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    return static_cast<unsigned>(std::min((count + per_block - 1) / per_block, most));
  }
  void note() {
    const cudaError_t launched = cudaGetLastError();
    if (failure_ == cudaSuccess) failure_ = launched;
  }

  cudaStream_t stream_;
  cudaError_t failure_ = cudaSuccess;
};

__global__ void wait_kernel(std::int64_t cycles) {
  const std::int64_t start = clock64();
  while (clock64() - start < cycles) continue;
}

}  // namespace

Status launch(const Step& step, const Buffers& buffers, CUstream_st* stream) {
  DeviceRunner runner(stream);
  run_step(step, buffers, runner);
  return runner.status();
}

Status launch_random(ElementType element, std::byte* to, std::int64_t count, std::uint64_t seed, CUstream_st* stream) {
  DeviceRunner runner(stream);
  dispatch::with_float(element, [&]<class T>(T*) {
    runner.each(RandomNumbers<T>{reinterpret_cast<T*>(to), seed}, count);
  });
  return runner.status();
}

Status launch_wait(std::int64_t cycles, CUstream_st* stream) {
  wait_kernel<<<1, 1, 0, stream>>>(cycles);
  const cudaError_t launched = cudaGetLastError();
  if (launched == cudaSuccess) return {};
  return Error{ErrorCode::device_unavailable,
               std::string("CUDA could not launch a kernel: ") + cudaGetErrorString(launched),
               {}};
}

}  // namespace taso::cuda
