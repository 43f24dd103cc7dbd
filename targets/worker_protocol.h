/// The lines that taso-opt and a worker exchange, as values (docs/adding-a-target.md). What a worker says is believed
/// only as far as it can be true.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/tensor_type.h"
#include "support/status.h"

namespace taso {

/// The version of the protocol that hello states.
inline constexpr int worker_protocol = 1;

/// A worker's first line.
struct WorkerHello {
  std::string runtime, version;        ///< "ONNX Runtime", "1.32.0".
  std::vector<std::string> providers;  ///< What can be asked for; the first one is the default.
};

/// The answer to a configuration.
struct WorkerSetting {
  std::string provider;  ///< What runs.
  std::string device;    ///< What it runs on, where that is not this machine's processor; may be empty.
};

/// An input of a model: random, integers (and booleans) from `low` up to, but not, `high`.
struct ModelInput {
  std::string name;
  TensorType type;
  std::int64_t low = 0, high = 2;
};

/// A model file with what it is run on.
struct ModelRun {
  std::string file;
  std::vector<ModelInput> inputs;
  /// When it is measured: before each run, so many bytes are read that caches hold nothing else, and then the inputs.
  std::int64_t evict = 0;
};

/// How models are run one after the other, each `runs` times.
struct MeasureRequest {
  int runs = 11, warm_up = 2;
};

/// How models are run in turn: in each round one sample of each, the mean of `block` runs.
struct InterleaveRequest {
  int rounds = 1, warm_up = 0;
  int block = 1;
};

/// What a worker says of one model: seconds of samples, or why it did not run it.
struct ModelTimes {
  std::vector<double> seconds;
  std::string refusal;
};

[[nodiscard]] std::string configure_line(int id, int threads, const std::string& provider);
[[nodiscard]] std::string measure_line(int id, std::span<const ModelRun> models, const MeasureRequest& request);
[[nodiscard]] std::string interleave_line(int id, std::span<const ModelRun> models, const InterleaveRequest& request);
[[nodiscard]] std::string stop_line();

/// The protocol's name of an element type, as numpy has it; empty where a worker cannot make such inputs.
[[nodiscard]] std::string type_name(ElementType element);

/// What a line says. Errors, of code device_unavailable, say what is wrong with it, of the worker as "it".
[[nodiscard]] Expected<WorkerHello> parse_hello(const std::string& line);
[[nodiscard]] Expected<WorkerSetting> parse_setting(const std::string& line, int id);
/// `samples`: of each model. All times together are no longer than the `wall` seconds that the worker took.
[[nodiscard]] Expected<std::vector<ModelTimes>> parse_times(const std::string& line, int id, std::size_t models,
                                                            std::size_t samples, double wall);

}  // namespace taso
