#include "optimizer/html/graph_drawing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace taso {
namespace {

constexpr int gap = 14, lane_width = 6;
constexpr int order_sweeps = 12, place_sweeps = 8;
/// Points of lanes per node, at most: longer lines are drawn straight.
constexpr std::size_t lane_points = 3;

using Index = std::size_t;
using Links = std::vector<std::vector<Index>>;

bool is_drawn(const Node& node) {
  return node.kind == NodeKind::input || (!node.weight_only && node.kind != NodeKind::constant);
}

/// The nodes that are drawn, in topological order, and which of them read which.
struct Skeleton {
  std::vector<NodeId> nodes;
  Links reads, readers;
};

Skeleton skeleton_of(const Graph& graph) {
  Skeleton skeleton;
  std::unordered_map<NodeId, Index> numbers;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (!is_drawn(node)) continue;
    const Index number = skeleton.nodes.size();
    numbers[id] = number;
    skeleton.nodes.push_back(id);
    std::vector<Index> reads;
    for (const Value& input : node.inputs)
      if (const auto producer = numbers.find(input.node); producer != numbers.end()) reads.push_back(producer->second);
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    skeleton.readers.emplace_back();
    for (const Index producer : reads) skeleton.readers[producer].push_back(number);
    skeleton.reads.push_back(std::move(reads));
  }
  return skeleton;
}

/// The layer of each node; none is empty.
std::vector<Index> layers_of(const Skeleton& skeleton) {
  const Index count = skeleton.nodes.size();
  std::vector<Index> layers(count, 0);
  for (Index i = 0; i < count; ++i)
    for (const Index producer : skeleton.reads[i]) layers[i] = std::max(layers[i], layers[producer] + 1);
  for (Index i = count; i-- > 0;) {
    // Moved down, its lines to readers get shorter, and those from what others read, too, get longer.
    const std::vector<Index>& readers = skeleton.readers[i];
    const auto longer = std::count_if(skeleton.reads[i].begin(), skeleton.reads[i].end(),
                                      [&](Index producer) { return skeleton.readers[producer].size() > 1; });
    if (readers.empty() || readers.size() < static_cast<Index>(longer)) continue;
    Index nearest = std::numeric_limits<Index>::max();
    for (const Index reader : readers) nearest = std::min(nearest, layers[reader]);
    layers[i] = nearest - 1;
  }
  std::vector<Index> numbers(count + 1, 0);  // Of the layers that are not empty.
  for (const Index layer : layers) numbers[layer] = 1;
  std::exclusive_scan(numbers.begin(), numbers.end(), numbers.begin(), Index{0});
  for (Index& layer : layers) layer = numbers[layer];
  return layers;
}

/// What stands in layers: the nodes, under their numbers, and after them the points of lanes; every link leads to the
/// next layer.
class Layering {
 public:
  explicit Layering(const Skeleton& skeleton)
      : nodes_(skeleton.nodes.size()), layer_(layers_of(skeleton)), lanes_(nodes_) {
    choose_lanes(skeleton);
    up_.resize(layer_.size());
    down_.resize(layer_.size());
    for (Index i = 0; i < nodes_; ++i) link(i, skeleton.readers[i]);
    for (Index i = 0; i < layer_.size(); ++i) {
      if (rows_.size() <= layer_[i]) rows_.resize(layer_[i] + 1);
      rows_[layer_[i]].push_back(i);
    }
    boxes_.resize(rows_.size(), 0);
    for (Index i = 0; i < nodes_; ++i) ++boxes_[layer_[i]];
    number_places();
  }

  /// Orders the layers so that few links cross.
  void order() {
    auto best = rows_;
    double fewest = crossings();
    for (int sweep = 0; sweep < order_sweeps && fewest > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (Index i = 0; i < rows_.size(); ++i) order_row(rows_[down ? i : rows_.size() - 1 - i], down ? up_ : down_);
      const double crossed = crossings();
      if (crossed >= fewest) continue;
      fewest = crossed;
      best = rows_;
    }
    rows_ = std::move(best);
    number_places();
  }

  /// The middle of everything, near the mean of what it is linked to.
  [[nodiscard]] std::vector<double> middles() const {
    std::vector<double> middles(layer_.size(), 0);
    for (const auto& row : rows_) place_row(row, middles, {});
    for (int sweep = 0; sweep < place_sweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (Index i = 0; i < rows_.size(); ++i) {
        const auto& row = rows_[down ? i : rows_.size() - 1 - i];
        std::vector<double> wanted;
        for (const Index element : row) wanted.push_back(wanted_middle(element, middles, sweep, down));
        place_row(row, middles, wanted);
      }
    }
    return middles;
  }

  [[nodiscard]] const Links& rows() const { return rows_; }
  [[nodiscard]] const std::vector<Index>& lane(Index node) const { return lanes_[node]; }
  [[nodiscard]] Index nodes() const { return nodes_; }
  [[nodiscard]] double width(Index element) const {
    return element < nodes_ ? GraphDrawing::box_width : static_cast<double>(lane_width);
  }

 private:
  /// Short lanes first, as far as there may be points.
  void choose_lanes(const Skeleton& skeleton) {
    std::vector<std::pair<Index, Index>> lengths;
    for (Index i = 0; i < nodes_; ++i) {
      Index farthest = layer_[i] + 1;
      for (const Index reader : skeleton.readers[i]) farthest = std::max(farthest, layer_[reader]);
      if (farthest > layer_[i] + 1) lengths.emplace_back(farthest - layer_[i] - 1, i);
    }
    std::sort(lengths.begin(), lengths.end());
    for (const auto& [length, node] : lengths) {
      if (layer_.size() + length > nodes_ * (1 + lane_points)) break;
      for (Index k = 1; k <= length; ++k) {
        lanes_[node].push_back(layer_.size());
        layer_.push_back(layer_[node] + k);
      }
    }
  }

  void link(Index node, const std::vector<Index>& readers) {
    const std::vector<Index>& lane = lanes_[node];
    for (Index k = 0; k < lane.size(); ++k) connect(k == 0 ? node : lane[k - 1], lane[k]);
    for (const Index reader : readers) {
      const Index span = layer_[reader] - layer_[node];
      if (span == 1)
        connect(node, reader);
      else if (span - 2 < lane.size())
        connect(lane[span - 2], reader);
    }
  }

  void connect(Index above, Index below) {
    up_[below].push_back(above);
    down_[above].push_back(below);
  }

  void number_places() {
    place_.resize(layer_.size());
    for (const auto& row : rows_)
      for (Index i = 0; i < row.size(); ++i) place_[row[i]] = i;
  }

  void order_row(std::vector<Index>& row, const Links& neighbours) {
    std::vector<std::pair<double, Index>> means;
    for (const Index element : row) {
      const std::vector<Index>& near = neighbours[element];
      double sum = 0;
      for (const Index other : near)
        sum += (static_cast<double>(place_[other]) + 0.5) / static_cast<double>(rows_[layer_[other]].size());
      const double own = (static_cast<double>(place_[element]) + 0.5) / static_cast<double>(row.size());
      means.emplace_back(near.empty() ? own : sum / static_cast<double>(near.size()), element);
    }
    std::stable_sort(means.begin(), means.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (Index i = 0; i < row.size(); ++i) {
      row[i] = means[i].second;
      place_[row[i]] = i;
    }
  }

  /// Pairs of links between two layers that cross, over all layers: inversions, counted in a Fenwick tree.
  [[nodiscard]] double crossings() const {
    double crossed = 0;
    for (Index layer = 0; layer + 1 < rows_.size(); ++layer) {
      std::vector<Index> tree(rows_[layer + 1].size() + 1, 0);
      Index total = 0;
      for (const Index above : rows_[layer]) {
        for (const Index below : down_[above]) {
          Index no_farther = 0;
          for (Index i = place_[below] + 1; i > 0; i &= i - 1) no_farther += tree[i];
          crossed += static_cast<double>(total - no_farther);
        }
        for (const Index below : down_[above]) {
          for (Index i = place_[below] + 1; i < tree.size(); i += i & (~i + 1)) ++tree[i];
          ++total;
        }
      }
    }
    return crossed;
  }

  [[nodiscard]] bool is_alone(Index element) const { return element < nodes_ && boxes_[layer_[element]] == 1; }

  /// A box that is alone in its layer is wanted in the middle, so that deep graphs do not drift to a side. The last
  /// sweeps look both ways.
  [[nodiscard]] double wanted_middle(Index element, const std::vector<double>& middles, int sweep, bool down) const {
    if (is_alone(element)) return 0;
    const bool both = sweep + 2 >= place_sweeps;
    double sum = 0;
    Index count = 0;
    for (const Links* links : {&up_, &down_}) {
      if (!both && (links == &up_) != down) continue;
      for (const Index other : (*links)[element]) sum += middles[other];
      count += (*links)[element].size();
    }
    return count == 0 ? middles[element] : sum / static_cast<double>(count);
  }

  /// Places a row as near to what is wanted as its order and the widths allow, by least squares: isotonic regression of
  /// the places less what stands to the left, by pooling neighbours. Without wishes: side by side, around 0.
  void place_row(const std::vector<Index>& row, std::vector<double>& middles, const std::vector<double>& wanted) const {
    std::vector<double> offsets;
    double right = 0;
    for (const Index element : row) {
      offsets.push_back(right + width(element) / 2);
      right += width(element) + gap;
    }
    struct Pool {
      double sum = 0, weight = 0;
      Index count = 0;
      [[nodiscard]] double mean() const { return sum / weight; }
    };
    std::vector<Pool> pools;
    for (Index i = 0; i < row.size(); ++i) {
      const double weight = is_alone(row[i])  ? 8
                            : row[i] < nodes_ ? 1
                                              : 2;  // Trunks and long lines are to be straight.
      const double place = wanted.empty() ? -right / 2 : wanted[i] - offsets[i];
      pools.push_back({place * weight, weight, 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
        const Pool last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().weight += last.weight;
        pools.back().count += last.count;
      }
    }
    Index i = 0;
    for (const Pool& pool : pools)
      for (Index k = 0; k < pool.count; ++k, ++i) middles[row[i]] = pool.mean() + offsets[i];
  }

  Index nodes_;
  std::vector<Index> layer_;  ///< Of nodes, then of points.
  Links lanes_;               ///< Points, per node.
  Links up_, down_;
  Links rows_;                ///< What stands in each layer, from left to right.
  std::vector<Index> boxes_;  ///< Number of nodes in each layer.
  std::vector<Index> place_;  ///< In its row.
};

}  // namespace

GraphDrawing draw_graph(const Graph& graph) {
  const Skeleton skeleton = skeleton_of(graph);
  Layering layering(skeleton);
  layering.order();
  const std::vector<double> middles = layering.middles();
  double leftmost = std::numeric_limits<double>::max();
  for (Index i = 0; i < middles.size(); ++i) leftmost = std::min(leftmost, middles[i] - layering.width(i) / 2);
  const auto from_left = [&](double x) { return static_cast<int>(std::lround(x - leftmost)); };

  GraphDrawing drawing;
  drawing.layers = layering.rows().size();
  std::vector<Index> boxes(layering.nodes());
  for (Index layer = 0; layer < layering.rows().size(); ++layer)
    for (const Index element : layering.rows()[layer]) {
      drawing.width = std::max(drawing.width, from_left(middles[element] + layering.width(element) / 2));
      if (element >= layering.nodes()) continue;
      boxes[element] = drawing.boxes.size();
      GraphDrawing::Box box{
          skeleton.nodes[element], layer, from_left(middles[element] - GraphDrawing::box_width / 2.0), {}, {}};
      for (const Index read : skeleton.reads[element]) box.reads.push_back(boxes[read]);
      std::sort(box.reads.begin(), box.reads.end());
      for (const Index point : layering.lane(element)) box.lane.push_back(from_left(middles[point]));
      drawing.boxes.push_back(std::move(box));
    }
  return drawing;
}

}  // namespace taso
