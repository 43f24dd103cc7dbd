#include "partition/plan_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "partition/json_tree.h"
#include "partition/member_reader.h"
#include "partition/topology.h"
#include "support/file.h"

namespace taso {
namespace {

constexpr std::int64_t most_extent = (std::int64_t{1} << 53) - 1;  ///< JSON's numbers are doubles.
constexpr std::int64_t most_number = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t longest_topology = 60, longest_transport = 2000;
constexpr int read_version = 3;

/// Reads the sections of one file.
class PlanReader {
 public:
  explicit PlanReader(const std::string& file) { document_.file = file; }

  Expected<PlanDocument> run(const JsonTree& tree) {
    TASO_RETURN_IF_ERROR(check_version(tree));
    TASO_ASSIGN(const MemberReader reader,
                MemberReader::open(
                    tree, "", document_.file,
                    {"format", "version", "model", "input_shapes", "symbols", "topology", "device", "mesh", "costs",
                     "unit", "partition", "memory_per_device", "plan", "others", "nodes", "kept", "transfers"},
                    {"measured"}));
    TASO_RETURN_IF_ERROR(read_head(reader));
    TASO_RETURN_IF_ERROR(read_plan(reader));
    TASO_RETURN_IF_ERROR(read_others(reader));
    TASO_RETURN_IF_ERROR(read_nodes(reader));
    TASO_RETURN_IF_ERROR(read_kept(reader));
    TASO_RETURN_IF_ERROR(read_transfers(reader));
    return std::move(document_);
  }

 private:
  [[nodiscard]] Expected<MemberReader> open(const JsonTree& tree, const std::string& place,
                                            const std::vector<std::string>& names,
                                            const std::vector<std::string>& optional = {}) const {
    return MemberReader::open(tree, place, document_.file, names, optional);
  }

  /// Before anything else: members of other versions have other names.
  [[nodiscard]] Status check_version(const JsonTree& tree) const {
    const auto* object = std::get_if<JsonTree::Object>(&tree.value);
    const auto find = [&](const char* name) -> const JsonTree* {
      if (object == nullptr) return nullptr;
      const auto at = std::find_if(object->begin(), object->end(), [&](const auto& one) { return one.first == name; });
      return at == object->end() ? nullptr : &at->second;
    };
    const JsonTree* format = find("format");
    const auto* name = format == nullptr ? nullptr : std::get_if<std::string>(&format->value);
    if (name == nullptr || *name != "taso partition plan")
      return bad_input("this is no plan of taso-opt (\"format\": \"taso partition plan\")",
                       {document_.file, format == nullptr ? tree.line : format->line});
    const JsonTree* version = find("version");
    const auto* number = version == nullptr ? nullptr : std::get_if<std::int64_t>(&version->value);
    const SourceLocation where{document_.file, version == nullptr ? tree.line : version->line};
    if (number == nullptr)
      return bad_input(
          fmt::format("version: expected {}, found {}", read_version, version == nullptr ? "none" : version->kind()),
          where);
    if (*number == read_version) return {};
    return bad_input(
        fmt::format("version: expected {}, found {}: {}", read_version, *number,
                    *number >= 1 && *number < read_version ? "the plan was made by an older taso-opt; make it again"
                                                           : "the plan was made by a newer taso-opt, or is none"),
        where);
  }

  [[nodiscard]] Status read_head(const MemberReader& reader) {
    TASO_ASSIGN(document_.model, identity(reader.member("model"), "model"));
    TASO_ASSIGN(const JsonTree::Object* shapes, reader.object("input_shapes"));
    for (const auto& [name, tree] : *shapes) {
      TASO_ASSIGN(document_.input_shapes[name], extents(tree, "input_shapes." + JsonTree{name}.kind()));
    }
    TASO_ASSIGN(const JsonTree::Object* symbols, reader.object("symbols"));
    for (const auto& [name, tree] : *symbols) {
      const auto* size = std::get_if<std::int64_t>(&tree.value);
      if (size == nullptr || *size < 1 || *size > most_extent)
        return reader.wrong("symbols." + JsonTree{name}.kind(), tree,
                            fmt::format("expected an integer from 1 to {}, found {}", most_extent, tree.kind()));
      document_.symbols[name] = *size;
    }
    TASO_ASSIGN(document_.topology, reader.text("topology", longest_topology));
    TASO_ASSIGN(document_.mesh.device, reader.device("device"));
    TASO_RETURN_IF_ERROR(read_mesh(reader));
    TASO_ASSIGN(const std::string costs, reader.word("costs", {"roofline", "time", "flops", "bytes"}));
    document_.cost = *plan_cost_named(costs);
    TASO_RETURN_IF_ERROR(reader.word("unit", {std::string(name_of(unit_of(document_.cost)))}).ok()
                             ? Status()
                             : reader.expected("unit", fmt::format("\"{}\", in which costs by {} are",
                                                                   name_of(unit_of(document_.cost)), costs)));
    TASO_ASSIGN(const std::string method, reader.word("partition", {"exact", "recursive"}));
    document_.method = method == "exact" ? PlanMethod::exact : PlanMethod::recursive;
    if (reader.is_null("memory_per_device")) return {};
    if (const auto memory = reader.amount("memory_per_device"); memory && *memory > 0) {
      document_.memory_per_device = *memory;
      return {};
    }
    return reader.expected("memory_per_device", "a number of bytes above 0, or null");
  }

  [[nodiscard]] Expected<FileIdentity> identity(const JsonTree& tree, const std::string& place) const {
    TASO_ASSIGN(const MemberReader reader, open(tree, place, {"file", "bytes", "hash"}));
    FileIdentity file;
    TASO_ASSIGN(file.name, reader.any_text("file"));
    if (file.name.empty() || file.name.find('/') != std::string::npos)
      return reader.expected("file", "the name of a file, without a folder");
    TASO_ASSIGN(const std::int64_t bytes, reader.integer("bytes", 0, most_extent));
    file.bytes = static_cast<std::uint64_t>(bytes);
    TASO_ASSIGN(const std::string digits, reader.any_text("hash"));
    const std::optional<Hash128> hash = hash_from_text(digits);
    if (!hash) return reader.expected("hash", "32 hexadecimal digits");
    file.hash = *hash;
    return file;
  }

  [[nodiscard]] Expected<Shape> extents(const JsonTree& tree, const std::string& place) const {
    const auto* list = std::get_if<JsonTree::List>(&tree.value);
    Shape shape;
    for (const JsonTree& one : list == nullptr ? JsonTree::List() : *list) {
      const auto* extent = std::get_if<std::int64_t>(&one.value);
      if (extent == nullptr || *extent < 0 || *extent > most_extent) {
        list = nullptr;
        break;
      }
      shape.push_back(*extent);
    }
    if (list == nullptr)
      return bad_input(fmt::format("{}: expected a list of integers from 0 to {}", place, most_extent),
                       {document_.file, tree.line});
    return shape;
  }

  [[nodiscard]] Status read_mesh(const MemberReader& reader) {
    TASO_ASSIGN(const JsonTree::List* axes, reader.list("mesh", "axes, slowest links first"));
    std::int64_t devices = 1;
    const bool measured = reader.has("measured");
    if (measured) TASO_RETURN_IF_ERROR(read_measured(reader));
    for (const JsonTree& tree : *axes) {
      const std::string place = fmt::format("mesh[{}]", document_.mesh.axes.size());
      TASO_ASSIGN(MeshAxis axis, read_mesh_axis(tree, place, document_.file, measured));
      if (axis.size < 2) return reader.wrong(place + ".size", tree, "expected at least 2, found 1");
      devices *= axis.size;
      if (devices > most_devices)
        return reader.wrong("mesh", reader.member("mesh"), fmt::format("more than {} devices", most_devices));
      document_.mesh.axes.push_back(std::move(axis));
    }
    return {};
  }

  /// Where times of transfers were measured.
  [[nodiscard]] Status read_measured(const MemberReader& reader) {
    TASO_ASSIGN(const MemberReader measured, open(reader.member("measured"), "measured", {"transport", "copy"}));
    TASO_ASSIGN(document_.mesh.transport, measured.text("transport", longest_transport));
    TASO_ASSIGN(document_.mesh.copy, measured.times("copy"));
    return {};
  }

  /// The sums among the members of an object.
  [[nodiscard]] Expected<StatedSums> sums_in(const MemberReader& reader) const {
    StatedSums sums;
    for (const auto& [name, place] : {std::pair("cost", &sums.cost),
                                      {"compute", &sums.compute},
                                      {"transfer", &sums.transfer},
                                      {"transfer_bytes", &sums.transfer_bytes},
                                      {"weight_bytes", &sums.weight_bytes},
                                      {"memory", &sums.memory}}) {
      TASO_ASSIGN(*place, reader.amount(name));
    }
    if (reader.has("step")) {
      if (document_.cost != PlanCost::time) return reader.expected("step", "none, since costs are not \"time\"");
      TASO_ASSIGN(sums.step, reader.amount("step"));
    }
    return sums;
  }

  [[nodiscard]] Status read_plan(const MemberReader& reader) {
    TASO_ASSIGN(const MemberReader plan, open(reader.member("plan"), "plan",
                                              {"cost", "compute", "transfer", "transfer_bytes", "weight_bytes",
                                               "memory", "lower_bound", "exact", "complete", "stopped"},
                                              {"step"}));
    TASO_ASSIGN(document_.sums, sums_in(plan));
    TASO_ASSIGN(document_.lower_bound, plan.amount("lower_bound"));
    TASO_ASSIGN(document_.exact, plan.truth("exact"));
    TASO_ASSIGN(document_.complete, plan.truth("complete"));
    TASO_ASSIGN(document_.stopped, plan.truth("stopped"));
    return {};
  }

  [[nodiscard]] Status read_others(const MemberReader& reader) {
    TASO_ASSIGN(const JsonTree::Object* others, reader.object("others"));
    for (const auto& [name, tree] : *others) {
      const std::string place = "others." + JsonTree{name}.kind();
      StatedAlternative& other = document_.others[name];
      const auto* object = std::get_if<JsonTree::Object>(&tree.value);
      if (object != nullptr && object->size() == 1 && object->front().first == "missing") {
        TASO_ASSIGN(const MemberReader missing, open(tree, place, {"missing"}));
        TASO_ASSIGN(other.missing, missing.any_text("missing"));
        continue;
      }
      TASO_ASSIGN(
          const MemberReader sums,
          open(tree, place, {"cost", "compute", "transfer", "transfer_bytes", "weight_bytes", "memory"}, {"step"}));
      TASO_ASSIGN(other.sums, sums_in(sums));
    }
    return {};
  }

  [[nodiscard]] Expected<AxisUse> use(const JsonTree& tree, const std::string& place) const {
    TASO_ASSIGN(const MemberReader any, open(tree, place, {"use"}, {"variable", "reducer", "inputs"}));
    TASO_ASSIGN(const std::string kind, any.word("use", {"repeat", "cut", "partial"}));
    AxisUse use;
    if (kind == "repeat") {
      TASO_RETURN_IF_ERROR(open(tree, place, {"use"}).ok() ? Status() : open(tree, place, {"use"}).error());
      return use;
    }
    if (kind == "cut") {
      TASO_ASSIGN(const MemberReader reader, open(tree, place, {"use", "variable"}, {"reducer"}));
      use.kind = AxisUse::Kind::cut;
      TASO_ASSIGN(use.variable, reader.any_text("variable"));
      if (!reader.has("reducer")) return use;
      TASO_ASSIGN(use.reducer, reader.any_text("reducer"));
      if (use.reducer.empty()) return reader.expected("reducer", "what combines the pieces, or no such key");
      return use;
    }
    TASO_ASSIGN(const MemberReader reader, open(tree, place, {"use", "inputs", "reducer"}));
    use.kind = AxisUse::Kind::partial;
    TASO_ASSIGN(const std::vector<std::int64_t> inputs, reader.integers("inputs", 0, most_number));
    use.inputs.assign(inputs.begin(), inputs.end());
    TASO_ASSIGN(use.reducer, reader.any_text("reducer"));
    if (use.reducer.empty()) return reader.expected("reducer", "what combines the results");
    return use;
  }

  [[nodiscard]] Expected<std::vector<AxisUse>> uses(const MemberReader& reader) const {
    TASO_ASSIGN(const JsonTree::List* list, reader.list("axes", "uses, one per axis of the mesh"));
    if (list->size() != document_.mesh.axes.size())
      return reader.wrong(reader.place_of("axes"), reader.member("axes"),
                          fmt::format("expected {} uses, one per axis of the mesh, found {}",
                                      document_.mesh.axes.size(), list->size()));
    std::vector<AxisUse> axes;
    for (const JsonTree& tree : *list) {
      TASO_ASSIGN(AxisUse one, use(tree, fmt::format("{}[{}]", reader.place_of("axes"), axes.size())));
      axes.push_back(std::move(one));
    }
    return axes;
  }

  [[nodiscard]] Status read_nodes(const MemberReader& reader) {
    TASO_ASSIGN(const JsonTree::List* list, reader.list("nodes", "the operators of the model"));
    for (const JsonTree& tree : *list) {
      const std::string place = fmt::format("nodes[{}]", document_.nodes.size());
      TASO_ASSIGN(const MemberReader node,
                  open(tree, place, {"name", "op", "axes", "cuts", "cost", "bytes_in", "bytes_out", "memory"}));
      StatedNode stated;
      stated.line = tree.line;
      TASO_ASSIGN(stated.name, node.any_text("name"));
      TASO_ASSIGN(stated.op, node.any_text("op"));
      TASO_ASSIGN(stated.axes, uses(node));
      TASO_ASSIGN(const JsonTree::List* cuts, node.list("cuts", "the variables that are cut"));
      for (const JsonTree& cut : *cuts) {
        TASO_ASSIGN(const MemberReader one,
                    open(cut, fmt::format("{}.cuts[{}]", place, stated.cuts.size()), {"variable", "extent", "points"}));
        CutPoints& points = stated.cuts.emplace_back();
        TASO_ASSIGN(points.variable, one.any_text("variable"));
        TASO_ASSIGN(points.extent, one.integer("extent", 2, most_extent));
        TASO_ASSIGN(points.points, one.integers("points", 1, most_extent));
      }
      TASO_ASSIGN(stated.cost, node.amount("cost"));
      TASO_ASSIGN(stated.bytes_in, node.amount("bytes_in"));
      TASO_ASSIGN(stated.bytes_out, node.amount("bytes_out"));
      TASO_ASSIGN(stated.memory, node.amount("memory"));
      document_.nodes.push_back(std::move(stated));
    }
    return {};
  }

  /// A place in the list of nodes.
  [[nodiscard]] Expected<std::size_t> place_in_nodes(const MemberReader& reader, const std::string& name) const {
    const auto count = static_cast<std::int64_t>(document_.nodes.size());
    if (count == 0) return reader.expected(name, "the number of one of the nodes, of which there are none");
    TASO_ASSIGN(const std::int64_t number, reader.integer(name, 0, count - 1));
    return static_cast<std::size_t>(number);
  }

  [[nodiscard]] Status read_kept(const MemberReader& reader) {
    TASO_ASSIGN(const JsonTree::List* list, reader.list("kept", "values"));
    for (const JsonTree& tree : *list) {
      const std::string place = fmt::format("kept[{}]", document_.kept.size());
      TASO_ASSIGN(const MemberReader any,
                  open(tree, place, {"node_number", "output", "as"}, {"reader_number", "operand", "axes"}));
      TASO_ASSIGN(const std::string as, any.word("as", {"made", "read", "everywhere"}));
      std::vector<std::string> names = {"node_number", "output", "as"};
      if (as == "read") names.insert(names.end(), {"reader_number", "operand"});
      TASO_ASSIGN(
          const MemberReader kept,
          open(tree, place, names, as == "everywhere" ? std::vector<std::string>() : std::vector<std::string>{"axes"}));
      StatedKept stated;
      stated.line = tree.line;
      TASO_ASSIGN(stated.node, place_in_nodes(kept, "node_number"));
      TASO_ASSIGN(const std::int64_t output, kept.integer("output", 0, most_number));
      stated.output = static_cast<std::uint32_t>(output);
      stated.as = as == "made" ? KeptAs::Kind::made : as == "read" ? KeptAs::Kind::read : KeptAs::Kind::everywhere;
      if (as == "read") {
        TASO_ASSIGN(stated.reader, place_in_nodes(kept, "reader_number"));
        TASO_ASSIGN(const std::int64_t operand, kept.integer("operand", 0, most_number));
        stated.operand = static_cast<std::size_t>(operand);
      }
      if (kept.has("axes")) {
        TASO_ASSIGN(stated.axes, uses(kept));
      }
      document_.kept.push_back(std::move(stated));
    }
    return {};
  }

  [[nodiscard]] Status read_transfers(const MemberReader& reader) {
    TASO_ASSIGN(const JsonTree::List* list, reader.list("transfers", "what moves"));
    for (const JsonTree& tree : *list) {
      TASO_ASSIGN(const MemberReader transfer,
                  open(tree, fmt::format("transfers[{}]", document_.transfers.size()),
                       {"from", "from_number", "output", "to", "to_number", "bytes", "cost"}));
      StatedTransfer stated;
      stated.line = tree.line;
      TASO_ASSIGN(stated.from_name, transfer.any_text("from"));
      TASO_ASSIGN(stated.from, place_in_nodes(transfer, "from_number"));
      TASO_ASSIGN(const std::int64_t output, transfer.integer("output", 0, most_number));
      stated.output = static_cast<std::uint32_t>(output);
      if (transfer.is_null("to") != transfer.is_null("to_number"))
        return transfer.expected("to", "a name with a to_number, or null with null");
      if (!transfer.is_null("to")) {
        TASO_ASSIGN(stated.to_name, transfer.any_text("to"));
        TASO_ASSIGN(stated.to, place_in_nodes(transfer, "to_number"));
      }
      TASO_ASSIGN(stated.bytes, transfer.amount("bytes"));
      TASO_ASSIGN(stated.cost, transfer.amount("cost"));
      document_.transfers.push_back(std::move(stated));
    }
    return {};
  }

  PlanDocument document_;
};

}  // namespace

Expected<PlanDocument> parse_plan_document(const std::string& text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return bad_input("the file is empty; a plan is a JSON object (docs/partitioning.md)", {file});
  if (text.size() > most_plan_bytes)
    return bad_input(fmt::format("a plan of more than {} bytes", most_plan_bytes), {file});
  TASO_ASSIGN(const JsonTree tree, parse_json_tree(text, file));
  return PlanReader(file).run(tree);
}

Expected<PlanDocument> load_plan_document(const std::string& path) {
  TASO_ASSIGN(const std::string text, read_file(path));
  return parse_plan_document(text, path);
}

std::vector<NodeId> planned_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (!node.weight_only && (node.kind == NodeKind::op || node.kind == NodeKind::opaque)) nodes.push_back(id);
  }
  return nodes;
}

std::string planned_name(const Graph& graph, const std::vector<std::string>& node_names, NodeId id) {
  const Node& node = graph.node(id);
  if (node.origin >= 0 && static_cast<std::size_t>(node.origin) < node_names.size())
    return node_names[static_cast<std::size_t>(node.origin)];
  return node.kind == NodeKind::opaque ? node.name : fmt::format("{} {}", node.op, id);
}

}  // namespace taso
