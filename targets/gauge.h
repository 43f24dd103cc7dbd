/// Whether something else slows a runtime down at the moment: another program, another virtual machine on the same
/// core. Such times last for seconds and make runs up to half as long again, all that are measured meanwhile; CPU time
/// does not tell. A small model that is run along with what is measured does.
#pragma once

#include <string>
#include <vector>

#include "support/status.h"
#include "targets/worker_protocol.h"

namespace taso {

class Gauge {
 public:
  /// Writes the model: some products of matrices, a fraction of a millisecond.
  [[nodiscard]] static Expected<Gauge> make(const std::string& file);

  [[nodiscard]] const ModelRun& model() const { return model_; }
  /// Takes what the model took just now. True if that is about the least that it ever took, or it did not run.
  bool is_calm(const ModelTimes& times);

 private:
  explicit Gauge(ModelRun model) : model_(std::move(model)) {}
  ModelRun model_;
  double least_ = 0;  ///< The least median so far; 0: none.
};

}  // namespace taso
