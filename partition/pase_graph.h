/// Networks as PaSE sees them: layers with an iteration domain, and tensors between them.
///
/// Source: V. Elango, "PaSE: Parallelization Strategies for Efficient DNN Training", IPDPS 2021, section II, and the
/// prototype published with it, whose operators and networks these are. A configuration of a layer says into how many
/// equal parts each axis of its domain is split; a tensor's axis is split as the axes of the domain that index it.
/// There is no mesh of devices: all that counts is that the product of the splits is at most their number.
///
/// The model is coarse on purpose (batch normalisation is a norm along the batch, an embedding a product with a one-hot
/// matrix, the halo of a convolution is avoided by never splitting its height and width): it serves to check a solver
/// against published numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace taso {

/// Numbers of axes of an iteration domain.
using PaseAxes = std::vector<std::size_t>;

/// A tensor that a layer reads or writes.
struct PaseTensor {
  std::vector<std::int64_t> shape;
  /// Per axis: the axes of the layer's domain that index it. It is split into the product of their splits.
  std::vector<PaseAxes> axes;
};

/// A matrix product [b..., m, k] x [b..., k, n] with its two products of the backward pass, and `pointwise`
/// element-wise operations on the result. Each extent is the product of the domain's at some axes, times a factor.
struct PaseProduct {
  PaseAxes batch, m, n, k;
  std::int64_t n_factor = 1, k_factor = 1;
  int pointwise = 0;
};

/// Layers of LSTM cells in one domain (layers, steps, batch, units, inputs): a product, and the output of every cell at
/// every step becomes an input.
struct PaseRecurrence {
  PaseProduct product;
};

/// A pool of windows of `rows` x `columns` over an image [batch, channels, height, width]. Splits of height and width
/// exchange a halo.
struct PasePooling {
  std::vector<std::int64_t> image;
  std::int64_t rows = 0, columns = 0;
};

/// An element-wise operation, and `pointwise` more.
struct PaseElementwise {
  int pointwise = 0;
};

/// Normalisation along an axis with scale and bias for each of its indices.
struct PaseNorm {
  std::size_t axis = 0;
};

/// Means over axes.
struct PaseMean {
  PaseAxes axes;
};

/// Softmax along an axis.
struct PaseSoftmax {
  std::size_t axis = 0;
};

/// Softmax along the last axis, and the cross-entropy with labels.
struct PaseCrossEntropy {};

/// Moves data only, and costs nothing.
struct PaseMove {};

/// What a layer costs as a function of its configuration (pase_costs.h).
using PaseWork = std::variant<PaseProduct, PaseRecurrence, PasePooling, PaseElementwise, PaseNorm, PaseMean,
                              PaseSoftmax, PaseCrossEntropy, PaseMove>;

/// A vertex.
struct PaseLayer {
  std::string type;                  ///< As the prototype calls it: "Conv", "FC", "Einsum", ...
  std::vector<std::int64_t> domain;  ///< Extents of the iteration domain. 1 where an axis of the tensor is not split.
  PaseAxes pinned;                   ///< Axes that are never split.
  bool contiguous = false;           ///< Only splits that cut the flattened domain into contiguous pieces.
  std::size_t batch_axis = 0;        ///< Of the domain: what data parallelism splits.
  std::vector<PaseTensor> inputs, outputs;
  PaseWork work;
};

/// A tensor that one layer writes and another reads.
struct PaseEdge {
  std::uint32_t producer = 0, output = 0, consumer = 0, input = 0;
  bool operator==(const PaseEdge&) const = default;
};

/// A network. Layers stand in the order in which they compute.
struct PaseGraph {
  std::string name;
  std::int64_t cutoff = 4;  ///< Axes are not split into pieces smaller than this.
  std::vector<PaseLayer> layers;
  std::vector<PaseEdge> edges;  ///< By consumer, then by input.
};

/// The networks of PaSE's evaluation and ResNet-101, as its prototype defines them; batches of 128 images are its
/// default, and of 64 sentences its choice for the last two.
[[nodiscard]] PaseGraph pase_alexnet(std::int64_t batch = 128);
/// With another number of classes than its prototype's 1,024.
[[nodiscard]] PaseGraph pase_alexnet_with_classes(std::int64_t batch, std::int64_t classes);
[[nodiscard]] PaseGraph pase_inception_v3(std::int64_t batch = 128);
[[nodiscard]] PaseGraph pase_resnet101(std::int64_t batch = 128);
/// An embedding, two layers of LSTM cells, a projection onto 100,000 words.
[[nodiscard]] PaseGraph pase_rnnlm(std::int64_t batch = 64);
/// Six encoder and six decoder layers.
[[nodiscard]] PaseGraph pase_transformer(std::int64_t batch = 64);

}  // namespace taso
