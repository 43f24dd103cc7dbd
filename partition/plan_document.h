/// The file of a plan for several devices (docs/partitioning.md, "The file") as data: what it states, not yet compared
/// with any graph. partition/restore_plan.h makes a plan of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "partition/mesh.h"
#include "partition/node_configurations.h"
#include "partition/piece_costs.h"
#include "partition/planner.h"
#include "support/file_identity.h"
#include "support/status.h"

namespace taso {

/// How a plan is found.
enum class PlanMethod : std::uint8_t {
  exact,      ///< All mesh axes at once.
  recursive,  ///< Axis by axis (partition/recursive.h).
};

/// What a plan costs in all, and takes.
struct StatedSums {
  double cost = 0, compute = 0, transfer = 0;  ///< In the unit of PlanDocument::cost.
  double transfer_bytes = 0;                   ///< Received, by all devices together.
  double weight_bytes = 0, memory = 0;         ///< Of the devices that hold most.
  /// Seconds of a step of ranks that run it, by recorded times of their programs; nothing: they are not known.
  std::optional<double> step = {};
};

/// Another plan of the same graph; no sums: why there is none.
struct StatedAlternative {
  std::optional<StatedSums> sums;
  std::string missing;
};

struct StatedNode {
  std::string name, op;
  std::vector<AxisUse> axes;    ///< Per mesh axis.
  std::vector<CutPoints> cuts;  ///< Of every variable that is cut, by name.
  double cost = 0;
  double bytes_in = 0, bytes_out = 0;  ///< What moves to what it reads, and from where it makes its results.
  double memory = 0;                   ///< Bytes that the device with most holds while it runs.
  int line = 0;                        ///< In the file.
};

/// Where a value is kept that several read, or that is an output.
struct StatedKept {
  std::size_t node = 0;  ///< That makes it: a place in PlanDocument::nodes.
  std::uint32_t output = 0;
  KeptAs::Kind as = KeptAs::Kind::made;
  std::size_t reader = 0;  ///< Of read: a place in PlanDocument::nodes.
  std::size_t operand = 0;
  std::optional<std::vector<AxisUse>> axes;  ///< As KeptAs::axes.
  int line = 0;
};

struct StatedTransfer {
  std::size_t from = 0;  ///< A place in PlanDocument::nodes.
  std::string from_name;
  std::uint32_t output = 0;
  std::optional<std::size_t> to;  ///< Nothing: to where it is kept.
  std::string to_name;
  double bytes = 0, cost = 0;
  int line = 0;
};

struct PlanDocument {
  std::string file;  ///< From where it was read, for errors.
  FileIdentity model;
  std::map<std::string, Shape> input_shapes;    ///< With which the model was read (ImportOptions::input_shapes),
  std::map<std::string, std::int64_t> symbols;  ///< and at which sizes of symbolic extents.
  std::string topology;                         ///< Its name.
  Mesh mesh;
  PlanCost cost = PlanCost::roofline;
  PlanMethod method = PlanMethod::exact;
  std::optional<double> memory_per_device;  ///< To which the plan keeps, in bytes.
  StatedSums sums;
  double lower_bound = 0;  ///< No plan takes less; 0: nothing is known.
  bool exact = false, complete = false, stopped = false;
  std::map<std::string, StatedAlternative> others;
  std::vector<StatedNode> nodes;
  std::vector<StatedKept> kept;
  std::vector<StatedTransfer> transfers;
};

/// Largest file of a plan that is read, in bytes.
inline constexpr std::size_t most_plan_bytes = std::size_t{1} << 30;

/// A document from the text of a file. Every member is checked by itself; bad_input with the line and the place, as
/// "nodes[3].cuts[0].points", where the text is no JSON, of another version, or not as docs/partitioning.md says.
[[nodiscard]] Expected<PlanDocument> parse_plan_document(const std::string& text, const std::string& file);

/// The same from a file; bad_input also if it cannot be read.
[[nodiscard]] Expected<PlanDocument> load_plan_document(const std::string& path);

/// The text of a document. Equal documents give equal bytes; parse_plan_document gives the document again. Bytes of
/// names that are not UTF-8 are replaced (json_spelling).
[[nodiscard]] std::string to_json(const PlanDocument& document);

/// What is left of a text in a JSON file, which holds UTF-8 alone.
[[nodiscard]] std::string json_spelling(const std::string& text);

/// The operators of a graph that a plan speaks of, in topological order: operators and carried nodes that do not
/// depend on constants alone.
[[nodiscard]] std::vector<NodeId> planned_nodes(const Graph& graph);

/// The name of a node of a plan: that of the file, by Node::origin, or else of its operator with its number in the
/// graph.
[[nodiscard]] std::string planned_name(const Graph& graph, const std::vector<std::string>& node_names, NodeId id);

}  // namespace taso
