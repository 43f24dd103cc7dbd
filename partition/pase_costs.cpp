#include "partition/pase_costs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "support/status.h"

namespace taso {
namespace {

using Split = PaseConfigurations::Split;
using Splits = std::span<const Split>;

/// The parts into which an axis may be split.
std::vector<Split> divisors(std::int64_t extent, std::int64_t cutoff, std::int64_t devices) {
  std::vector<Split> parts;
  for (std::int64_t part = 1; part <= std::min(extent, devices); ++part)
    if (extent % part == 0 && extent / part >= cutoff) parts.push_back(static_cast<Split>(part));
  if (parts.empty()) parts.push_back(1);
  return parts;
}

/// True if after an axis that is not split to its last index no axis is split: pieces are contiguous in memory.
bool is_contiguous(const std::vector<std::int64_t>& domain, Splits splits) {
  std::size_t axis = 0;
  while (axis < domain.size() && splits[axis] == domain[axis]) ++axis;
  return std::all_of(splits.begin() + static_cast<std::ptrdiff_t>(std::min(axis + 1, domain.size())), splits.end(),
                     [](Split split) { return split == 1; });
}

/// The costs of one layer, configuration by configuration.
class LayerCost {
 public:
  LayerCost(const PaseLayer& layer, const PaseMachine& machine)
      : domain_(layer.domain), flops_per_word_(machine.flops_per_word()) {}

  void set(Splits splits) { splits_ = splits; }

  double operator()(const PaseProduct& product) const {
    const double m = local(product.m), n = static_cast<double>(product.n_factor) * local(product.n);
    const double k = static_cast<double>(product.k_factor) * local(product.k);
    double cost = m * n * k * 3;  // once forward, twice backward
    if (product.pointwise > 0) cost += 3.0 * product.pointwise * (m * n);
    double reductions = all_reduce(m * n, parts(product.k));  // of the output
    reductions += all_reduce(m * k, parts(product.n));        // of the input's gradient
    reductions += all_reduce(n * k, parts(product.m));        // of the weights' gradient
    return local(product.batch) * (cost + reductions);
  }

  double operator()(const PaseRecurrence& recurrence) const {
    const PaseProduct& product = recurrence.product;
    const std::size_t layers = product.batch[0], steps = product.m[0], batch = product.m[1];
    const std::size_t units = product.n[0], inputs = product.k[0];
    const double written[] = {local({batch}), local({units})}, read[] = {local({batch}), local({inputs})};
    const double words = missing(written, read, parts({batch, units}), parts({batch, inputs}));
    return (*this)(product) + static_cast<double>(domain_[layers] * domain_[steps]) * (flops_per_word_ * words);
  }

  double operator()(const PasePooling& pooling) const {
    double cost = local(all_axes());
    double image[4];
    for (std::size_t axis = 0; axis < 4; ++axis) image[axis] = static_cast<double>(pooling.image[axis]) / splits_[axis];
    const double rows = image[2] + (splits_[2] > 1 ? static_cast<double>(pooling.rows) : 0);
    const double columns = image[3] + (splits_[3] > 1 ? static_cast<double>(pooling.columns) : 0);
    double halo = rows * columns - image[2] * image[3];
    halo *= image[0];
    halo *= image[1];
    return cost + flops_per_word_ * halo;
  }

  double operator()(const PaseElementwise& elementwise) const {
    return (1 + elementwise.pointwise) * local(all_axes());
  }

  double operator()(const PaseNorm& norm) const {
    const double elements = local(all_axes()), along = local({norm.axis});
    double cost = 16 * elements;                                    // eight operations forward, as many backward
    cost += 4 * all_reduce(elements / along, parts({norm.axis}));   // means and variances, and their gradients
    cost += 4 * all_reduce(along, parts(all_axes_but(norm.axis)));  // scale and bias, and their gradients
    return cost;
  }

  double operator()(const PaseMean& mean) const { return all_reduce(local(all_axes()), parts(mean.axes)); }

  double operator()(const PaseSoftmax& softmax) const {
    const double elements = local(all_axes()), others = local(all_axes_but(softmax.axis));
    const auto extent = static_cast<double>(domain_[softmax.axis]);
    const double along = parts({softmax.axis});
    double cost = exponential_and_sum * elements;
    cost += elements * extent;
    cost += all_reduce(others, along);
    cost += all_reduce(others * extent, along);
    cost += all_reduce(others, along);
    return cost;
  }

  double operator()(const PaseCrossEntropy&) const {
    const std::size_t last = domain_.size() - 1;
    const double examples = local(all_axes_but(last));
    double cost = exponential_and_sum * local(all_axes());
    cost += examples;
    cost += examples;
    if (splits_[last] > 1) cost += flops_per_word_ * (2 * examples);
    return cost;
  }

  double operator()(const PaseMove&) const { return 0; }

  /// Words of a piece that is read which are in no piece that is written, at best.
  static double missing(std::span<const double> written, std::span<const double> read, double writers, double readers) {
    double needed = 1, common = 1;
    for (std::size_t axis = 0; axis < read.size(); ++axis) {
      needed *= read[axis];
      common *= std::min(read[axis], written[axis]);
    }
    return std::max(needed - (readers > writers ? 0 : common), 0.0);
  }

 private:
  static constexpr double exponential_and_sum = 4;

  /// A ring: each device sends its chunk of the words 2 (devices - 1) times.
  [[nodiscard]] double all_reduce(double words, double devices) const {
    return flops_per_word_ * (words / devices * (2 * (devices - 1)));
  }
  /// The number of indices along axes that one device has; exact, because parts divide extents.
  [[nodiscard]] double local(const PaseAxes& axes) const {
    std::int64_t product = 1;
    for (const std::size_t axis : axes) product *= domain_[axis] / splits_[axis];
    return static_cast<double>(product);
  }
  [[nodiscard]] double parts(const PaseAxes& axes) const {
    std::int64_t product = 1;
    for (const std::size_t axis : axes) product *= splits_[axis];
    return static_cast<double>(product);
  }
  [[nodiscard]] PaseAxes all_axes() const { return all_axes_but(domain_.size()); }
  [[nodiscard]] PaseAxes all_axes_but(std::size_t without) const {
    PaseAxes axes;
    for (std::size_t axis = 0; axis < domain_.size(); ++axis)
      if (axis != without) axes.push_back(axis);
    return axes;
  }

  const std::vector<std::int64_t>& domain_;
  double flops_per_word_;
  Splits splits_;
};

/// The different ways of a list, and which of them each member is.
std::pair<PaseConfigurations, std::vector<std::uint32_t>> distinct(const PaseConfigurations& all) {
  PaseConfigurations kept(all.rank());
  std::vector<std::uint32_t> which;
  std::map<std::vector<Split>, std::uint32_t> known;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [place, is_new] =
        known.emplace(std::vector<Split>(all[i].begin(), all[i].end()), static_cast<std::uint32_t>(kept.size()));
    if (is_new) kept.add(all[i]);
    which.push_back(place->second);
  }
  return {std::move(kept), std::move(which)};
}

/// Pieces of a tensor under each configuration, one row after the other, and how many devices hold one.
std::pair<std::vector<double>, std::vector<double>> pieces(std::span<const std::int64_t> shape,
                                                           const PaseConfigurations& splits) {
  std::vector<double> extents, devices;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    double product = 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      extents.push_back(static_cast<double>(shape[axis]) / splits[i][axis]);
      product *= splits[i][axis];
    }
    devices.push_back(product);
  }
  return {std::move(extents), std::move(devices)};
}

}  // namespace

PaseConfigurations pase_configurations(const PaseLayer& layer, std::int64_t devices, std::int64_t cutoff) {
  const std::size_t rank = layer.domain.size();
  std::vector<std::vector<Split>> parts;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const bool pinned = std::find(layer.pinned.begin(), layer.pinned.end(), axis) != layer.pinned.end();
    parts.push_back(pinned ? std::vector<Split>{1} : divisors(layer.domain[axis], cutoff, devices));
  }
  PaseConfigurations made(rank);
  std::vector<Split> splits;
  const auto extend = [&](const auto& self, std::int64_t left) -> void {
    if (splits.size() == rank) {
      if (!layer.contiguous || is_contiguous(layer.domain, splits)) made.add(splits);
      return;
    }
    for (const Split part : parts[splits.size()]) {
      if (part > left) break;
      splits.push_back(part);
      self(self, left / part);
      splits.pop_back();
    }
  };
  extend(extend, devices);
  return made;
}

PaseConfigurations pase_splits(const PaseTensor& tensor, const PaseConfigurations& configurations) {
  PaseConfigurations made(tensor.axes.size());
  std::vector<Split> splits(tensor.axes.size());
  for (std::size_t i = 0; i < configurations.size(); ++i) {
    for (std::size_t axis = 0; axis < splits.size(); ++axis) {
      splits[axis] = 1;
      for (const std::size_t domain_axis : tensor.axes[axis]) splits[axis] *= configurations[i][domain_axis];
    }
    made.add(splits);
  }
  return made;
}

std::vector<double> pase_layer_costs(const PaseLayer& layer, const PaseConfigurations& configurations,
                                     const PaseMachine& machine) {
  std::vector<double> costs;
  LayerCost cost(layer, machine);
  for (std::size_t i = 0; i < configurations.size(); ++i) {
    cost.set(configurations[i]);
    costs.push_back(std::visit(cost, layer.work));
  }
  return costs;
}

std::vector<double> pase_edge_costs(std::span<const std::int64_t> shape, const PaseConfigurations& written,
                                    const PaseConfigurations& read, const PaseMachine& machine) {
  TASO_CHECK(written.rank() == shape.size() && read.rank() == shape.size(), "splits of another tensor");
  const auto [from, which_from] = distinct(written);
  const auto [to, which_to] = distinct(read);
  const auto [from_pieces, writers] = pieces(shape, from);
  const auto [to_pieces, readers] = pieces(shape, to);
  const std::size_t rank = shape.size();
  std::vector<double> between(from.size() * to.size());
  for (std::size_t f = 0; f < from.size(); ++f)
    for (std::size_t t = 0; t < to.size(); ++t) {
      const double words = LayerCost::missing({from_pieces.data() + f * rank, rank},
                                              {to_pieces.data() + t * rank, rank}, writers[f], readers[t]);
      between[f * to.size() + t] = machine.flops_per_word() * (words * 2);
    }
  std::vector<double> costs;
  costs.reserve(written.size() * read.size());
  for (const std::uint32_t f : which_from)
    for (const std::uint32_t t : which_to) costs.push_back(between[f * to.size() + t]);
  return costs;
}

}  // namespace taso
