/// Handlers of the import table (onnx_io/import_table.cpp), and what they share. Private to the folder.
///
/// A handler builds the operator's meaning from operators of ours, exactly, or declines with the reason; it fails where
/// the node cannot be valid. Shapes are known and elements are f32 when a handler is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "onnx_io/import.h"

namespace taso::import_handlers {

/// begin, begin + 1, .., end - 1.
inline Shape range_of(std::int64_t begin, std::int64_t end) {
  Shape out;
  for (std::int64_t i = begin; i < end; ++i) out.push_back(i);
  return out;
}

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Element by element, matrices, normalisations, reductions.
void binary(NodeContext& c, const char* op);
void power(NodeContext& c);
void unary(NodeContext& c, const char* op);
void sum(NodeContext& c);
void mean(NodeContext& c);
void identity(NodeContext& c);
void dropout(NodeContext& c);
void clip(NodeContext& c);
void extremum(NodeContext& c, bool maximum);
void hard_sigmoid(NodeContext& c);
void reciprocal(NodeContext& c);
void matmul(NodeContext& c);
void gemm(NodeContext& c);
void batch_normalization(NodeContext& c);
void layer_normalization(NodeContext& c);
void softmax(NodeContext& c);
void log_softmax(NodeContext& c);
void instance_normalization(NodeContext& c);
void group_normalization(NodeContext& c);
void reduce(NodeContext& c, const char* op, std::int64_t axes_as_input_since);
void cumulative_sum(NodeContext& c);
void norm_along_axis(NodeContext& c);
void einsum(NodeContext& c);
/// Reductions of elements that are mapped first, or whose result is.
enum class Mapped : std::uint8_t { minimum, l1, l2, sum_of_squares, log_of_sum, log_of_sum_of_exponentials };
void reduce_mapped(NodeContext& c, Mapped kind);

// Activation functions and selections that are composed.
/// factor * (e^(x / scale) - 1) of numbers that are not above 0, without a difference of numbers near 1: with
/// t = tanh(x / (2 scale)) it is 2 factor t / (1 - t).
[[nodiscard]] Value exponential_less_one(NodeContext& c, Value x, double factor, double scale);
void leaky_relu(NodeContext& c);
void parametric_relu(NodeContext& c);
void elu(NodeContext& c);
void celu(NodeContext& c);
void selu(NodeContext& c);
void softplus(NodeContext& c);
void softsign(NodeContext& c);
void mish(NodeContext& c);
void swish(NodeContext& c);
void gelu(NodeContext& c);
void where(NodeContext& c);
void triangle(NodeContext& c);
void root_mean_square_normalization(NodeContext& c);
void thresholded_relu(NodeContext& c);
void shrink(NodeContext& c);
void arc_sine(NodeContext& c);
void arc_cosine(NodeContext& c);
void area_cosine(NodeContext& c);
void area_tangent(NodeContext& c);

// Attention (onnx_io/import_attention.cpp).
void attention(NodeContext& c);
void rotary_embedding(NodeContext& c);

// Recurrences (onnx_io/import_recurrent.cpp).
void recurrent(NodeContext& c);
void long_short_term_memory(NodeContext& c);
void gated_recurrent_unit(NodeContext& c);

// Sliding windows.
void conv(NodeContext& c);
void conv_transpose(NodeContext& c);
void max_pool(NodeContext& c);
void average_pool(NodeContext& c);
void global_max_pool(NodeContext& c);
void norm_pool(NodeContext& c);
void global_norm_pool(NodeContext& c);

// Moving elements.
void transpose(NodeContext& c);
void reshape(NodeContext& c);
void flatten(NodeContext& c);
void squeeze(NodeContext& c);
void unsqueeze(NodeContext& c);
void concat(NodeContext& c);
void split(NodeContext& c);
void slice(NodeContext& c);
void pad(NodeContext& c);
void gather(NodeContext& c);
void expand(NodeContext& c);
void depth_to_space(NodeContext& c);
void space_to_depth(NodeContext& c);
void tile(NodeContext& c);
void resize(NodeContext& c);
/// Whether a position of a slice is one that says "as far as there is". Backwards, ONNX Runtime goes to the first
/// element then, as if it were the least integer; by the standard it is behind the last one.
bool stands_for_end(std::int64_t position);
/// Every axis repeated: as a whole (`blocks`: abab), or element by element (aabb).
Value repeated(NodeContext& c, Value value, const Shape& repeats, bool blocks);

// Selecting elements by indices.
void gather_elements(NodeContext& c);
void gather_nd(NodeContext& c);
void scatter_nd(NodeContext& c);
void scatter_elements(NodeContext& c);
void one_hot(NodeContext& c);
void compress(NodeContext& c);
void reverse_sequence(NodeContext& c);
/// `before` and `after` elements of each axis of `x`, none negative: its own, as Pad's mode reflect, edge or wrap says.
Value padded_by_itself(NodeContext& c, Value x, const std::string& mode, const Shape& before, const Shape& after);

// Integers, truth values, and what makes them of reals.
void cast(NodeContext& c);
/// Where with a condition that is computed, or with elements that no product can hide.
void choose(NodeContext& c);
void infinite(NodeContext& c);
void hardmax(NodeContext& c);
void quantize_linear(NodeContext& c);
void dequantize_linear(NodeContext& c);
void eye_like(NodeContext& c);
void place_of_extremum(NodeContext& c, bool maximum);

}  // namespace taso::import_handlers
