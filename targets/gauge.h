/// Whether something else slows a runtime down at the moment: another program, another virtual machine on the same
/// core. Such times last for seconds and make runs up to half as long again, all that are measured meanwhile; CPU time
/// does not tell. A small model that is run along with what is measured does.
#pragma once

#include <string>
#include <utility>

#include "support/status.h"
#include "targets/worker_protocol.h"

namespace taso {

class Gauge {
 public:
  /// Writes the model: some products of matrices, a fraction of a millisecond. `least_us`: what it took at least
  /// before, in other runs; 0: nothing is known.
  [[nodiscard]] static Expected<Gauge> make(const std::string& file, double least_us = 0);

  [[nodiscard]] const ModelRun& model() const { return model_; }
  /// Takes what the model took just now. True if that is about the least that it ever took, or it never ran.
  bool is_calm(const ModelTimes& times);
  /// The least median so far, in microseconds; 0: none.
  [[nodiscard]] double least_us() const { return least_us_; }
  /// Forgets what it took before this run: the processor is slower now, and stays so.
  void forget() { least_us_ = least_of_run_us_; }

 private:
  Gauge(ModelRun model, double least_us) : model_(std::move(model)), least_us_(least_us) {}
  ModelRun model_;
  double least_us_ = 0, least_of_run_us_ = 0;
};

}  // namespace taso
