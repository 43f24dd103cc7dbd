#include "runtime/rank_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/configuration.h"
#include "runtime/storage.h"
#include "runtime/transport.h"

namespace taso {
namespace {

constexpr std::int32_t no_device = -1;

/// The device that has a value; none of what every rank can have by itself.
std::int32_t device_of(const Graph& graph, Value value) { return graph.node(value.node).device; }

/// A message of the whole graph.
struct Message {
  Value value;                    ///< What is sent, or what it is cut out of.
  std::optional<NodeId> slice;    ///< The reader that cuts it out.
  std::vector<NodeId> readers;    ///< All of them.
  std::int32_t from = 0, to = 0;  ///< Ranks.
  std::uint32_t transfer = 0, depth = 0;
  [[nodiscard]] const TensorType& type(const Graph& graph) const {
    return slice ? graph.type({*slice, 0}) : graph.type(value);
  }
};

/// Whether what a node reads is cut out on another device, and nothing.
bool reads_nothing(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return node.is_op("slice") && node.outputs[0].elements() == 0 && node.device != no_device &&
         device_of(graph, node.inputs[0]) != no_device && device_of(graph, node.inputs[0]) != node.device;
}

/// The nodes on which an output depends, in topological order.
std::vector<NodeId> needed_in_order(const Graph& graph) {
  std::vector<NodeId> order = graph.topological_order();
  std::set<NodeId> needed;
  for (const Value& output : graph.outputs()) needed.insert(output.node);
  for (auto id = order.rbegin(); id != order.rend(); ++id)
    if (needed.contains(*id) && !reads_nothing(graph, *id))
      for (const Value& input : graph.node(*id).inputs) needed.insert(input.node);
  std::erase_if(order, [&](NodeId id) { return !needed.contains(id); });
  return order;
}

/// How many nodes there are at most on a way from an input or weight to each node.
std::vector<std::uint32_t> depths_of(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<std::uint32_t> depths(graph.id_bound(), 0);
  for (const NodeId id : order)
    for (const Value& input : graph.node(id).inputs) depths[id] = std::max(depths[id], depths[input.node] + 1);
  return depths;
}

/// The messages of a graph, in topological order of what reads them; one of a whole value for all readers of a device
/// and transfer. Those of graph outputs that are not on the first device come last.
std::vector<Message> messages_of(const Graph& graph, const TransferOf& transfer_of) {
  std::vector<Message> messages;
  std::map<std::tuple<Value, std::int32_t, std::uint32_t>, std::size_t> whole;
  const std::vector<NodeId> order = needed_in_order(graph);
  const std::vector<std::uint32_t> depths = depths_of(graph, order);
  const auto whole_message = [&](Value value, std::int32_t to, std::uint32_t transfer,
                                 std::uint32_t depth) -> Message& {
    const auto [at, added] = whole.emplace(std::tuple(value, to, transfer), messages.size());
    if (added) messages.push_back({value, {}, {}, device_of(graph, value), to, transfer, depth});
    Message& message = messages[at->second];
    message.depth = std::min(message.depth, depth);
    return message;
  };
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.device == no_device) continue;
    for (const Value& input : node.inputs) {
      const std::int32_t from = device_of(graph, input);
      if (from == no_device || from == node.device) continue;
      if (node.is_op("slice"))
        messages.push_back({input, id, {id}, from, node.device, transfer_of(id), depths[id]});
      else
        whole_message(input, node.device, transfer_of(id), depths[id]).readers.push_back(id);
    }
  }
  for (const Value& output : graph.outputs())
    if (device_of(graph, output) > 0) whole_message(output, 0, transfer_of(output.node), depths[output.node] + 1);
  return messages;
}

class RankGraphBuilder {
 public:
  RankGraphBuilder(const Graph& whole, std::int32_t rank, std::vector<Message> messages)
      : whole_(whole), rank_(rank), messages_(std::move(messages)) {
    for (std::uint32_t number = 0; number < messages_.size(); ++number) {
      const Message& message = messages_[number];
      if (message.to != rank_) continue;
      if (message.slice)
        cut_[*message.slice] = number;
      else
        for (const NodeId reader : message.readers) incoming_[{reader, message.value}] = number;
      if (message.readers.empty()) incoming_output_[message.value] = number;
    }
  }

  RankGraph run() {
    for (const NodeId id : whole_.inputs())
      here_[{id, 0}] = {made_.graph.add_input(whole_.node(id).name, whole_.node(id).outputs[0]), 0};
    for (std::uint32_t number = 0; number < messages_.size(); ++number)
      if (messages_[number].to == rank_) receive(number);
    const std::set<NodeId> needed = needed_nodes();
    for (const NodeId id : whole_.topological_order())
      if (needed.contains(id)) copy(id);
    for (std::uint32_t number = 0; number < messages_.size(); ++number)
      if (messages_[number].from == rank_) send(number);
    if (rank_ == 0)
      for (const Value& output : whole_.outputs()) {
        const auto incoming = incoming_output_.find(output);
        made_.graph.add_output(incoming == incoming_output_.end() ? here_.at(output) : received_.at(incoming->second));
      }
    return std::move(made_);
  }

 private:
  [[nodiscard]] bool is_here(NodeId id) const {
    const std::int32_t device = whole_.node(id).device;
    return device == no_device || device == rank_;
  }

  [[nodiscard]] RankMessage end_of(std::uint32_t number, std::int32_t peer) const {
    const Message& message = messages_[number];
    return {number, peer, message.transfer, message.type(whole_).bytes(), message.depth};
  }

  void receive(std::uint32_t number) {
    const TensorType& type = messages_[number].type(whole_);
    if (type.elements() == 0) {
      received_[number] = {made_.graph.add_constant(ConstantData::own(type, {})), 0};
      return;
    }
    received_[number] = {made_.graph.add_input("received " + std::to_string(number), type), 0};
    made_.received.push_back(end_of(number, messages_[number].from));
  }

  /// What the rank computes, or has by itself.
  [[nodiscard]] std::set<NodeId> needed_nodes() const {
    std::set<NodeId> needed;
    for (const Message& message : messages_)
      if (message.from == rank_ && message.type(whole_).elements() > 0) needed.insert(message.value.node);
    if (rank_ == 0)
      for (const Value& output : whole_.outputs())
        if (is_here(output.node)) needed.insert(output.node);
    const std::vector<NodeId> order = whole_.topological_order();
    for (auto id = order.rbegin(); id != order.rend(); ++id)
      if (needed.contains(*id) && !cut_.contains(*id))
        for (const Value& input : whole_.node(*id).inputs)
          if (is_here(input.node)) needed.insert(input.node);
    return needed;
  }

  void copy(NodeId id) {
    if (whole_.node(id).kind == NodeKind::input) return;
    if (const auto cut = cut_.find(id); cut != cut_.end()) {
      here_[{id, 0}] = received_.at(cut->second);
      return;
    }
    Node node = whole_.node(id);
    node.device = no_device;
    for (Value& input : node.inputs) {
      const auto incoming = incoming_.find({id, input});
      input = incoming == incoming_.end() ? here_.at(input) : received_.at(incoming->second);
    }
    const auto ports = static_cast<std::uint32_t>(node.outputs.size());
    const NodeId copied = made_.graph.add(std::move(node));
    for (std::uint32_t port = 0; port < ports; ++port) here_[{id, port}] = {copied, port};
  }

  void send(std::uint32_t number) {
    const Message& message = messages_[number];
    if (message.type(whole_).elements() == 0) return;
    Value value = here_.at(message.value);
    if (message.slice) {
      Node slice = whole_.node(*message.slice);
      slice.device = no_device;
      slice.inputs = {value};
      value = {made_.graph.add(std::move(slice)), 0};
    }
    made_.graph.add_output(value);
    made_.sent.push_back(end_of(number, message.to));
  }

  const Graph& whole_;
  std::int32_t rank_;
  std::vector<Message> messages_;
  std::map<NodeId, std::uint32_t> cut_;                         ///< Slices that others make for this rank.
  std::map<std::pair<NodeId, Value>, std::uint32_t> incoming_;  ///< By reader.
  std::map<Value, std::uint32_t> incoming_output_;
  std::map<std::uint32_t, Value> received_;
  std::map<Value, Value> here_;
  RankGraph made_;
};

Status check_executable(const Graph& graph) {
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::opaque)
      return bad_input("an operator that is not understood (" + node.op + ") cannot run on several ranks");
    for (const TensorType& type : node.outputs)
      if (!type.known && node.kind == NodeKind::op)
        return bad_input("the shape of an output of " + node.op + " is not known");
  }
  return {};
}

/// A box of a tensor that is read for a part of another one.
struct GatheredPart {
  Value value;                                          ///< Of the rank's graph.
  std::vector<std::int64_t> from, to, sizes;            ///< Where it begins here, and there.
  std::optional<std::uint32_t> message = std::nullopt;  ///< In RankGraph::received: `value` is what it brings.
};

class MessageInserter {
 public:
  explicit MessageInserter(const RankGraph& rank)
      : rank_(rank), graph_(rank.graph), uses_(graph_.id_bound(), 0), sent_(graph_.id_bound(), 0) {
    for (const NodeId id : graph_.topological_order())
      for (const Value& input : graph_.node(id).inputs) ++uses_[input.node];
    for (const Value& output : graph_.outputs()) ++uses_[output.node];
    for (std::size_t i = 0; i < rank.sent.size(); ++i) ++sent_[graph_.outputs()[i].node];
    const std::size_t own = graph_.inputs().size() - rank.received.size();
    for (std::uint32_t i = 0; i < rank.received.size(); ++i) received_[graph_.inputs()[own + i]] = i;
  }

  Graph run() {
    for (const NodeId id : graph_.inputs())
      if (!received_.contains(id))
        here_[{id, 0}] = {made_.add_input(graph_.node(id).name, graph_.node(id).outputs[0]), 0};
    start_ = {made_.add_input("", token()), 0};
    for (const NodeId id : graph_.topological_order()) add(id);
    std::vector<Value> outputs;
    send_all(outputs);
    for (std::size_t i = rank_.sent.size(); i < graph_.outputs().size(); ++i)
      outputs.push_back(here_.at(graph_.outputs()[i]));
    // What rules have made useless arrives all the same.
    for (const auto& [id, place] : received_)
      if (uses_[id] == 0) outputs.push_back(here_.at({id, 0}));
    made_.set_outputs(outputs);
    made_.remove_dead(false);
    return std::move(made_);
  }

 private:
  static TensorType token() { return {ElementType::f32, {0}}; }

  static Attributes of_message(const RankMessage& message) {
    Attributes attributes;
    attributes.set("number", static_cast<std::int64_t>(message.number));
    attributes.set("peer", static_cast<std::int64_t>(message.peer));
    attributes.set("transfer", static_cast<std::int64_t>(message.transfer));
    return attributes;
  }

  Value add_message(std::string_view op, Attributes attributes, std::vector<Value> inputs, const TensorType& type) {
    Node node;
    node.op = op;
    node.attributes = std::move(attributes);
    node.inputs = std::move(inputs);
    node.outputs = {type};
    return {made_.add(std::move(node)), 0};
  }

  void add(NodeId id) {
    Node node = graph_.node(id);
    if (const auto received = received_.find(id); received != received_.end()) {
      here_[{id, 0}] = add_message(receive_op, of_message(rank_.received[received->second]), {start_}, node.outputs[0]);
      return;
    }
    if (node.kind == NodeKind::input) return;
    if (gathers(id)) {
      here_[{id, 0}] = gather(id);
      return;
    }
    for (Value& input : node.inputs) input = here_.at(input);
    const auto ports = static_cast<std::uint32_t>(node.outputs.size());
    const NodeId added = made_.add(std::move(node));
    for (std::uint32_t port = 0; port < ports; ++port) here_[{id, port}] = {added, port};
  }

  [[nodiscard]] bool is_box(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!node.is_op("slice") || node.weight_only) return false;
    const std::vector<std::int64_t>& steps = node.attributes.integers("steps");
    return std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 1; });
  }
  [[nodiscard]] bool is_joined(NodeId id) const {
    return graph_.node(id).is_op("concat") && !graph_.node(id).weight_only;
  }
  /// A message that nothing else reads.
  [[nodiscard]] bool arrives(Value value) const { return received_.contains(value.node) && uses_[value.node] == 1; }

  /// Whether a concatenation, or one within it, has a part that arrives.
  [[nodiscard]] bool gathers(NodeId id) const {
    if (!is_joined(id)) return false;
    return std::any_of(graph_.node(id).inputs.begin(), graph_.node(id).inputs.end(), [&](const Value& input) {
      return arrives(input) || (uses_[input.node] == 1 && gathers(input.node));
    });
  }

  void find_parts(NodeId id, std::vector<std::int64_t> at, std::vector<GatheredPart>& parts) const {
    const Node& node = graph_.node(id);
    const std::size_t axis = axis_of(node.attributes.integer("axis"), at.size());
    for (const Value& input : node.inputs) {
      const Shape& shape = graph_.type(input).shape;
      if (uses_[input.node] == 1 && gathers(input.node)) {
        find_parts(input.node, at, parts);
      } else if (arrives(input)) {
        parts.push_back({input, std::vector<std::int64_t>(at.size(), 0), at, shape, received_.at(input.node)});
      } else if (is_box(input.node)) {
        const Node& slice = graph_.node(input.node);
        parts.push_back({slice.inputs[0], slice.attributes.integers("starts"), at, shape});
      } else {
        parts.push_back({input, std::vector<std::int64_t>(at.size(), 0), at, shape});
      }
      at[axis] += shape[axis];
    }
  }

  /// The concatenation as one operator that reads messages and boxes. Attributes, per part: the input or -1, where it
  /// is read and written, its sizes; and its message.
  Value gather(NodeId id) {
    const TensorType& type = graph_.type({id, 0});
    std::vector<GatheredPart> parts;
    find_parts(id, std::vector<std::int64_t>(type.shape.size(), 0), parts);
    std::vector<Value> inputs{start_};
    std::vector<std::int64_t> operands, from, to, sizes, numbers, peers, transfers;
    for (const GatheredPart& part : parts) {
      if (part.message) {
        const RankMessage& message = rank_.received[*part.message];
        operands.push_back(-1);
        numbers.push_back(message.number);
        peers.push_back(message.peer);
        transfers.push_back(message.transfer);
      } else {
        operands.push_back(static_cast<std::int64_t>(inputs.size()));
        inputs.push_back(here_.at(part.value));
      }
      from.insert(from.end(), part.from.begin(), part.from.end());
      to.insert(to.end(), part.to.begin(), part.to.end());
      sizes.insert(sizes.end(), part.sizes.begin(), part.sizes.end());
    }
    Attributes attributes;
    attributes.set("operands", operands);
    attributes.set("from", from);
    attributes.set("to", to);
    attributes.set("sizes", sizes);
    attributes.set("numbers", numbers);
    attributes.set("peers", peers);
    attributes.set("transfers", transfers);
    return add_message(gather_op, std::move(attributes), std::move(inputs), type);
  }

  /// What is sent, of a value of the rank's graph; without sizes all of it.
  struct Payload {
    Value value;
    std::vector<std::int64_t> starts, sizes;
    auto operator<=>(const Payload&) const = default;
  };
  [[nodiscard]] Payload payload_of(Value value) const {
    if (!is_box(value.node) || uses_[value.node] > sent_[value.node]) return {value, {}, {}};
    const Node& slice = graph_.node(value.node);
    return {slice.inputs[0], slice.attributes.integers("starts"), slice.attributes.integers("sizes")};
  }

  /// The operators of sending; one for all messages that are the same.
  void send_all(std::vector<Value>& outputs) {
    std::map<Payload, std::vector<std::size_t>> same;
    for (std::size_t i = 0; i < rank_.sent.size(); ++i) same[payload_of(graph_.outputs()[i])].push_back(i);
    std::map<Payload, Value> sent;
    for (std::size_t i = 0; i < rank_.sent.size(); ++i) {
      const Payload payload = payload_of(graph_.outputs()[i]);
      const auto [place, first] = sent.emplace(payload, Value{});
      if (first) place->second = send(payload, same.at(payload));
      outputs.push_back(place->second);
    }
  }

  Value send(const Payload& payload, const std::vector<std::size_t>& messages) {
    std::vector<std::int64_t> numbers, peers, transfers;
    for (const std::size_t i : messages) {
      numbers.push_back(rank_.sent[i].number);
      peers.push_back(rank_.sent[i].peer);
      transfers.push_back(rank_.sent[i].transfer);
    }
    Attributes attributes{{"numbers", numbers}, {"peers", peers}, {"transfers", transfers}};
    if (!payload.sizes.empty()) {
      attributes.set("starts", payload.starts);
      attributes.set("sizes", payload.sizes);
    }
    return add_message(send_op, std::move(attributes), {here_.at(payload.value), start_}, token());
  }

  const RankGraph& rank_;
  const Graph& graph_;
  std::vector<std::uint32_t> uses_;           ///< Per node of the rank's graph,
  std::vector<std::uint32_t> sent_;           ///< and how many of them are messages.
  std::map<NodeId, std::uint32_t> received_;  ///< Inputs that are, by their place in RankGraph::received.
  std::map<Value, Value> here_;
  Value start_;
  Graph made_;
};

/// A message of a rank, at its end.
struct OrderedMessage {
  RankMessage message;
  bool sends = false;
  std::size_t index = 0;  ///< In RankGraph::sent or RankGraph::received.
};

/// Puts exchanges into a rank's graph.
class ExchangeInserter {
 public:
  explicit ExchangeInserter(const RankGraph& rank) : rank_(rank), graph_(rank.graph) {
    for (std::size_t i = 0; i < rank.sent.size(); ++i) ends_.push_back({rank.sent[i], true, i});
    for (std::size_t i = 0; i < rank.received.size(); ++i) ends_.push_back({rank.received[i], false, i});
    std::sort(ends_.begin(), ends_.end(), [](const OrderedMessage& a, const OrderedMessage& b) {
      return std::pair(a.message.depth, a.message.number) < std::pair(b.message.depth, b.message.number);
    });
    find_needs();
  }

  Graph run() {
    for (const NodeId id : graph_.inputs())
      if (!received_.contains(id))
        here_[{id, 0}] = {made_.add_input(graph_.node(id).name, graph_.node(id).outputs[0]), 0};
    last_ = {made_.add_input("", token()), 0};
    // What needs nothing of the messages from `end` on stands before the exchange of these.
    std::vector<std::vector<NodeId>> by_need(ends_.size() + 1);
    for (const NodeId id : graph_.topological_order())
      if (graph_.node(id).kind != NodeKind::input) by_need[needs_[id]].push_back(id);
    for (const NodeId id : by_need[0]) copy(id);
    for (std::size_t first = 0; first < ends_.size();) {
      const std::size_t end = end_of_exchange(first);
      exchange(first, end);
      for (; first < end; ++first)
        for (const NodeId id : by_need[first + 1]) copy(id);
    }
    std::vector<Value> outputs{last_};
    for (std::size_t i = rank_.sent.size(); i < graph_.outputs().size(); ++i)
      outputs.push_back(here_.at(graph_.outputs()[i]));
    made_.set_outputs(outputs);
    made_.remove_dead(false);
    return std::move(made_);
  }

 private:
  static TensorType token() { return {ElementType::f32, {0}}; }

  /// Of each node: all that it needs to have been received lies before this place in ends_.
  void find_needs() {
    needs_.assign(graph_.id_bound(), 0);
    const std::size_t own = graph_.inputs().size() - rank_.received.size();
    for (std::size_t place = 0; place < ends_.size(); ++place)
      if (!ends_[place].sends) received_[graph_.inputs()[own + ends_[place].index]] = place;
    for (const NodeId id : graph_.topological_order()) {
      if (const auto received = received_.find(id); received != received_.end()) needs_[id] = received->second + 1;
      for (const Value& input : graph_.node(id).inputs) needs_[id] = std::max(needs_[id], needs_[input.node]);
    }
  }

  [[nodiscard]] std::size_t needs(const OrderedMessage& end) const {
    return end.sends ? needs_[graph_.outputs()[end.index].node] : 0;
  }

  /// The messages from `first` on that can be under way together: none that is sent needs one that is received.
  [[nodiscard]] std::size_t end_of_exchange(std::size_t first) const {
    std::size_t end = first;
    while (end < ends_.size() && ends_[end].message.transfer == ends_[first].message.transfer &&
           needs(ends_[end]) <= first)
      ++end;
    TASO_CHECK(end > first, "a message that is sent needs one of a higher number");
    return end;
  }

  void exchange(std::size_t first, std::size_t end) {
    Node node;
    node.op = exchange_op;
    node.inputs = {last_};
    node.outputs = {token()};
    std::vector<std::int64_t> to, from;
    for (std::size_t i = first; i < end; ++i) {
      const OrderedMessage& one = ends_[i];
      if (one.sends) {
        node.inputs.push_back(here_.at(graph_.outputs()[one.index]));
        to.push_back(one.message.peer);
      } else {
        node.outputs.push_back(graph_.node(input_of(one)).outputs[0]);
        from.push_back(one.message.peer);
      }
    }
    node.attributes = {{"from", from}, {"to", to}, {"transfer", std::int64_t{ends_[first].message.transfer}}};
    const NodeId id = made_.add(std::move(node));
    last_ = {id, 0};
    std::uint32_t port = 0;
    for (std::size_t i = first; i < end; ++i)
      if (!ends_[i].sends) here_[{input_of(ends_[i]), 0}] = {id, ++port};
  }

  [[nodiscard]] NodeId input_of(const OrderedMessage& received) const {
    return graph_.inputs()[graph_.inputs().size() - rank_.received.size() + received.index];
  }

  void copy(NodeId id) {
    Node node = graph_.node(id);
    for (Value& input : node.inputs) input = here_.at(input);
    const auto ports = static_cast<std::uint32_t>(node.outputs.size());
    const NodeId added = made_.add(std::move(node));
    for (std::uint32_t port = 0; port < ports; ++port) here_[{id, port}] = {added, port};
  }

  const RankGraph& rank_;
  const Graph& graph_;
  std::vector<OrderedMessage> ends_;        ///< In their order.
  std::map<NodeId, std::size_t> received_;  ///< Inputs that are, by their place in ends_.
  std::vector<std::size_t> needs_;          ///< Per node of the rank's graph.
  std::map<Value, Value> here_;
  Value last_;  ///< Of the last exchange.
  Graph made_;
};

}  // namespace

Expected<RankGraph> rank_graph(const Graph& whole, std::int32_t rank, const TransferOf& transfer_of) {
  TASO_RETURN_IF_ERROR(check_executable(whole));
  std::vector<Message> messages = messages_of(whole, transfer_of);
  if (messages.size() > Transport::largest_number)
    return bad_input("the plan has " + std::to_string(messages.size()) + " messages; " +
                     std::to_string(Transport::largest_number) + " can be numbered");
  return RankGraphBuilder(whole, rank, std::move(messages)).run();
}

std::map<std::uint32_t, std::int64_t> message_bytes(const Graph& whole, const TransferOf& transfer_of,
                                                    ElementType float_storage) {
  std::map<std::uint32_t, std::int64_t> bytes;
  for (const Message& message : messages_of(whole, transfer_of))
    bytes[message.transfer] += stored_bytes(message.type(whole), float_storage);
  return bytes;
}

Graph with_messages(const RankGraph& rank) { return MessageInserter(rank).run(); }
Graph with_exchanges(const RankGraph& rank) { return ExchangeInserter(rank).run(); }

}  // namespace taso
