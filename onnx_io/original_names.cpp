#include "onnx_io/original_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "graph/graph_text.h"
#include "support/hash.h"

namespace taso {
namespace {

/// Of all bytes of a constant with data, wherever they lie.
std::string short_hash(const ConstantData& constant) {
  const Hash128 hash = hash_bytes(constant.is_dense() ? constant.dense_bytes() : constant.splat_element());
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash.low));
}

}  // namespace

std::string original_name(const Node& node, const std::vector<OriginalNode>& originals) {
  if (node.origin < 0 || static_cast<std::size_t>(node.origin) >= originals.size()) return "";
  const OriginalNode& from = originals[static_cast<std::size_t>(node.origin)];
  std::string name = from.name.empty() ? fmt::format("#{}", node.origin) : fmt::format("'{}'", from.name);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  std::string type = from.op_type;
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool same = node.kind == NodeKind::opaque || type == node.op;
  return same ? name : fmt::format("{} ({})", name, from.op_type);
}

std::string annotated_text(const Graph& graph, const std::vector<OriginalNode>& originals) {
  return to_text(graph, [&](const Node& node, bool written_out) -> std::string {
    if (node.kind == NodeKind::input) return "";
    if (node.kind == NodeKind::constant) return written_out ? "" : "contents " + short_hash(*node.constant);
    std::string remark;
    if (node.kind == NodeKind::op)
      for (const TensorType& type : node.outputs) remark += (remark.empty() ? "" : ", ") + to_string(type);
    const std::string name = original_name(node, originals);
    if (!name.empty()) remark += (remark.empty() ? "" : " ") + name;
    return node.weight_only ? remark + ", computed once" : remark;
  });
}

}  // namespace taso
