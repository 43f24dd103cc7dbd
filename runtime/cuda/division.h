/// How a convolution with its bias, residual and activation is divided between an engine of cuDNN and our own passes
/// before and after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/functions.h"

namespace taso::cuda {

/// One way to divide.
struct Division {
  ConvolutionGraph graph;
  std::vector<std::int64_t> padding;  ///< By a pass before, if not empty: top, left, bottom, right.
  bool zero_bias = false;             ///< The graph has a bias that the request has not.
  /// What is left for the pass after.
  bool bias_left = false, residual_left = false;
  Function act_left = Function::identity;
  [[nodiscard]] bool has_rest() const { return bias_left || residual_left || act_left != Function::identity; }
  /// What the engine computes: "conv+bias+residual+relu", "pad, conv". Unlike that of a request's other divisions.
  [[nodiscard]] std::string name() const;
};

/// What of a request decides about divisions.
struct AskedConvolution {
  ConvolutionGraph plain;          ///< The convolution alone.
  std::vector<std::int64_t> pads;  ///< Top, left, bottom, right.
  bool bias = false, residual = false;
  bool residual_fits = false;  ///< Its bytes lie as the result's do.
  Function act = Function::identity;
};

/// All divisions, best first by what is read and written: as much as possible in the engine, then with less of it, then
/// with padding before.
[[nodiscard]] std::vector<Division> divisions_of(const AskedConvolution& asked);

/// Divisions, by number, in rounds: those of a round are compared by timing, and the next round is for when nothing of
/// it runs. Of convolutions in groups the fused and the plain one are compared: for the former cuDNN has few engines.
[[nodiscard]] std::vector<std::vector<std::size_t>> rounds_of(const std::vector<Division>& divisions);

}  // namespace taso::cuda
