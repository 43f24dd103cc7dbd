/// What one rank computes of a graph for several devices, as a graph of its own.
///
/// The nodes of the rank's device, and what they read of those that are on none (inputs, weights, what depends on these
/// alone). An edge between two devices is a message: what a `slice` reads from another device is cut out where the
/// tensor is and then sent, all else is sent whole. Messages are numbered in the topological order of the whole graph.
/// What is received stands as a further input and what is sent as an output, so that rules can be applied to the graph;
/// with_messages makes operators of them, which then have a place in the order of the program.
///
/// No rank waits for ever. With messages that are sent without waiting (with_messages): a program sends in the order of
/// numbers, or earlier, and waits for a message only when something needs it. Of all messages not sent yet, take the
/// one of least number: its rank has sent all of its own before, and all that it needs has a lower number, and so has
/// been sent. With messages that both ends wait for (with_exchanges): a rank takes part in its messages, sent and
/// received, in the order of numbers, several at a time where none that it sends needs one that it receives. Of all
/// messages not done, take the one of least number: at both ends all before it are done, which is all that it and what
/// goes with it need, and so both ends take part in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "support/status.h"

namespace taso {

/// One end of a message.
struct RankMessage {
  std::uint32_t number = 0;    ///< The same at both ends.
  std::int32_t peer = 0;       ///< The rank at the other end.
  std::uint32_t transfer = 0;  ///< As `transfer_of` says of the node that reads it.
  std::int64_t bytes = 0;
  /// How deep in the whole graph it is read first: what is read deeper may need what is read less deep. The same at
  /// both ends.
  std::uint32_t depth = 0;
};

struct RankGraph {
  /// Its inputs: those of the whole graph, and then, one each, what is received. Its outputs: one each, what is sent,
  /// and then, at rank 0, those of the whole graph. Nodes have no device.
  Graph graph;
  std::vector<RankMessage> received, sent;
};

/// To which transfer the message belongs that a node reads.
using TransferOf = std::function<std::uint32_t(NodeId reader)>;

/// The graph of a rank, which is the device of that number. Messages without elements are not sent. Fails (bad_input)
/// on opaque nodes, on types that are not known, and on more messages than can be numbered.
[[nodiscard]] Expected<RankGraph> rank_graph(const Graph& whole, std::int32_t rank, const TransferOf& transfer_of);

/// The payload of all messages, by transfer: what ranks send in one run.
/// `float_storage`: the type in which what is f32 in the graph is kept and sent.
[[nodiscard]] std::map<std::uint32_t, std::int64_t> message_bytes(const Graph& whole, const TransferOf& transfer_of,
                                                                  ElementType float_storage = ElementType::f32);

/// The operators of messages. No specification defines them: their kernels are those of Communication.
inline constexpr std::string_view send_op = "send";        ///< (value, start) -> a tensor without elements; to several.
inline constexpr std::string_view receive_op = "receive";  ///< (start) -> value.
/// (start, tensors of the rank...) -> value: a tensor put together from messages and boxes of other tensors
/// (MultiFetch in Wang et al. 2019, section 6).
inline constexpr std::string_view gather_op = "gather_messages";

/// Several messages that are under way at the same time: (start, values...) -> (a tensor without elements, values...),
/// what is sent and what is received, each in the order of depths and numbers. The first input is that of an exchange
/// before it.
inline constexpr std::string_view exchange_op = "exchange_messages";

/// A rank's graph with operators of messages in it. Its inputs: those of the whole graph, and one without elements,
/// which messages depend on so that they are no weights. Its outputs: one without elements for each message that is
/// sent, in the order of numbers, then those of the whole graph, then what is received for nothing. Messages that are
/// the same are sent by one operator, where the first of them is. A box that is cut out for messages alone is read by
/// them; concatenations of what is received are put together as it arrives.
[[nodiscard]] Graph with_messages(const RankGraph& rank);

/// The same for messages that both ends wait for: a chain of exchanges, in the order of depths and numbers. Messages of
/// one transfer are exchanged together where that can be. The graph's inputs are those of with_messages; its outputs:
/// that of the last exchange (or the input without elements), then those of the whole graph.
[[nodiscard]] Graph with_exchanges(const RankGraph& rank);

}  // namespace taso
