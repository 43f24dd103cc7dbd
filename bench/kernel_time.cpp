#include "bench/kernel_time.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "runtime/aligned_buffer.h"
#include "support/random.h"

namespace taso {

double kernel_microseconds(const Kernel& kernel, const KernelRequest& request) {
  Random random(1, "operands");
  std::vector<AlignedBuffer> buffers;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    AlignedBuffer plain(static_cast<std::size_t>(request.inputs[i].type.bytes()));
    for (std::int64_t k = 0; k < request.inputs[i].type.elements(); ++k) {
      const auto value = static_cast<float>(request.inputs[i].weight ? random.uniform() : 2 * random.uniform() - 1);
      std::memcpy(plain.data() + static_cast<std::size_t>(k) * sizeof value, &value, sizeof value);
    }
    if (request.inputs[i].weight && !kernel.packed_format(i).empty()) {
      AlignedBuffer packed(kernel.packed_bytes(i));
      kernel.pack(i, plain.data(), packed.data());
      buffers.push_back(std::move(packed));
    } else {
      buffers.push_back(std::move(plain));
    }
  }
  for (const AlignedBuffer& buffer : buffers) inputs.push_back(buffer.data());
  std::vector<AlignedBuffer> results;
  for (const Operand& output : request.outputs) results.emplace_back(static_cast<std::size_t>(output.type.bytes()));
  for (AlignedBuffer& result : results) outputs.push_back(result.data());
  AlignedBuffer workspace(kernel.workspace_bytes());
  std::vector<double> times;
  constexpr int samples = 7;
  for (int sample = 0; sample <= samples; ++sample) {
    const auto start = std::chrono::steady_clock::now();
    if (const Status done = kernel.execute({inputs, outputs, workspace.data()}); !done) return -1;
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (sample > 0) times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + samples / 2, times.end());
  return times[samples / 2];
}

}  // namespace taso
