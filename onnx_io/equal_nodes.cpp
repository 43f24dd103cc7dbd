#include "onnx_io/equal_nodes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/hash.h"

namespace taso {
namespace {

class EqualNodes {
 public:
  EqualNodes(const Document& document, const ImportedModel& imported, ExportedGraph& exported)
      : document_(document), imported_(imported), exported_(exported) {}

  void drop() {
    if (document_.model().training_info_size() > 0) return;  // which may name any tensor
    find_constants();
    find_fixed_names();
    std::map<std::string, std::size_t> first;  // What a node says and reads -> the first such node.
    std::vector<bool> dropped(exported_.nodes.size(), false);
    for (std::size_t i = 0; i < exported_.nodes.size(); ++i) {
      onnx::NodeProto& node = exported_.nodes[i];
      for (std::string& input : *node.mutable_input()) {
        const auto renamed = renamed_.find(input);
        if (renamed == renamed_.end()) continue;
        input = renamed->second;
        exported_.verbatim_nodes -= exported_.originals[i] >= 0 ? 1 : 0;
        exported_.originals[i] = -1;
      }
      if (!is_function(node)) continue;
      const auto [place, added] = first.emplace(text_of(node), i);
      if (added || !can_stand_for(exported_.nodes[place->second], node)) continue;
      for (int port = 0; port < node.output_size(); ++port)
        if (!node.output(port).empty())
          renamed_.emplace(node.output(port), exported_.nodes[place->second].output(port));
      dropped[i] = true;
    }
    if (renamed_.empty()) return;
    drop_unread_constants(dropped);
    take_out(dropped);
  }

 private:
  void find_constants() {
    const auto note = [&](const std::string& name, const ConstantData* data) {
      if (data != nullptr && data->has_data()) constants_.emplace(name, data->identity());
    };
    const auto in_document = [&](const std::string& name) -> const ConstantData* {
      const int tensor = document_.find(name);
      if (tensor < 0) return nullptr;
      const auto& constant = imported_.constants[static_cast<std::size_t>(tensor)];
      return constant && constant->original ? constant->data.get() : nullptr;
    };
    for (const WrittenConstant& constant : exported_.constants)
      note(constant.name, constant.data ? constant.data.get() : in_document(constant.name));
    for (const onnx::NodeProto& node : exported_.nodes)
      if (node.op_type() == "Constant" && is_default_domain(node.domain()) && node.output_size() == 1)
        note(node.output(0), in_document(node.output(0)));
  }

  /// Outputs of the graph, and what subgraphs read.
  void find_fixed_names() {
    for (const auto& output : document_.graph().output()) fixed_.insert(output.name());
    for (int i = 0; i < document_.graph().node_size(); ++i)
      for (const auto& name : document_.captures(i)) fixed_.insert(name);
  }

  /// Whether what a node makes follows from its type, its attributes and what it reads. Tensors among its attributes
  /// may be left in the file.
  static bool is_function(const onnx::NodeProto& node) {
    static const std::set<std::string_view> random = {"Bernoulli",        "Dropout",          "Multinomial",
                                                      "RandomNormal",     "RandomNormalLike", "RandomUniform",
                                                      "RandomUniformLike"};
    return is_default_domain(node.domain()) && !random.contains(node.op_type()) && node.input_size() > 0 &&
           std::none_of(node.attribute().begin(), node.attribute().end(), [](const onnx::AttributeProto& attribute) {
             return attribute.has_g() || attribute.graphs_size() > 0 || attribute.has_t() ||
                    attribute.tensors_size() > 0 || attribute.has_ref_attr_name();
           });
  }

  std::string text_of(const onnx::NodeProto& node) const {
    onnx::NodeProto copy = node;
    copy.clear_name();
    copy.clear_doc_string();
    copy.clear_output();
    for (std::string& input : *copy.mutable_input()) {
      const auto constant = constants_.find(input);
      input = constant == constants_.end() ? "tensor " + input : "constant " + constant->second.to_string();
    }
    std::sort(copy.mutable_attribute()->begin(), copy.mutable_attribute()->end(),
              [](const auto& a, const auto& b) { return a.name() < b.name(); });
    return copy.SerializeAsString();
  }

  bool can_stand_for(const onnx::NodeProto& first, const onnx::NodeProto& node) const {
    if (first.output_size() < node.output_size()) return false;
    for (int port = 0; port < node.output_size(); ++port)
      if (!node.output(port).empty() && (first.output(port).empty() || fixed_.contains(node.output(port))))
        return false;
    return true;
  }

  /// Constants that only dropped nodes read.
  void drop_unread_constants(std::vector<bool>& dropped) {
    std::set<std::string_view> read(fixed_.begin(), fixed_.end()), let_go;
    for (std::size_t i = 0; i < exported_.nodes.size(); ++i)
      for (const std::string& input : exported_.nodes[i].input()) (dropped[i] ? let_go : read).insert(input);
    const auto is_let_go = [&](const std::string& name) { return let_go.contains(name) && !read.contains(name); };
    for (std::size_t i = 0; i < exported_.nodes.size(); ++i)
      if (exported_.nodes[i].op_type() == "Constant" && constants_.contains(exported_.nodes[i].output(0)) &&
          is_let_go(exported_.nodes[i].output(0)))
        dropped[i] = true;
    std::erase_if(exported_.constants, [&](const WrittenConstant& constant) {
      if (!is_let_go(constant.name)) return false;
      const int tensor = constant.document_index < 0 ? -1 : document_.find(constant.name);
      return tensor < 0 || !document_.tensors()[static_cast<std::size_t>(tensor)].is_input;
    });
  }

  void take_out(const std::vector<bool>& dropped) {
    std::vector<onnx::NodeProto> nodes;
    std::vector<int> originals;
    for (std::size_t i = 0; i < exported_.nodes.size(); ++i) {
      if (dropped[i]) {
        exported_.verbatim_nodes -= exported_.originals[i] >= 0 ? 1 : 0;
        continue;
      }
      nodes.push_back(std::move(exported_.nodes[i]));
      originals.push_back(exported_.originals[i]);
    }
    exported_.nodes = std::move(nodes);
    exported_.originals = std::move(originals);
  }

  const Document& document_;
  const ImportedModel& imported_;
  ExportedGraph& exported_;
  std::unordered_map<std::string, Hash128> constants_;
  std::set<std::string> fixed_;
  std::unordered_map<std::string, std::string> renamed_;
};

}  // namespace

void drop_equal_nodes(const Document& document, const ImportedModel& imported, ExportedGraph& exported) {
  EqualNodes(document, imported, exported).drop();
}

}  // namespace taso
