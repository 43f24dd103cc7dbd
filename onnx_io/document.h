/// The ONNX file as a document: parsed, checked, with its tensors and their uses resolved. Internal to onnx_io:
/// includes protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "onnx_io/external_data.h"
#include "onnx_io/model.h"
#include "onnx_io/tensor_proto.h"
#include "onnx_io/wire.h"

namespace taso {

/// Where a tensor of the main graph comes from.
enum class TensorSource : std::uint8_t { input, initializer, sparse_initializer, node };

/// A named tensor of the main graph.
struct DocumentTensor {
  std::string name;
  TensorSource source = TensorSource::input;
  int index = 0;          ///< Position among inputs, initializers, sparse initializers or nodes.
  int port = 0;           ///< Output position, for nodes.
  bool used = false;      ///< Read by a node (or a subgraph) or a graph output.
  bool is_input = false;  ///< Listed among the graph inputs (an initializer may be).
};

/// The parsed file. Immutable after load but for caches.
class Document {
 public:
  /// Parses and checks: names defined once, every name that is read defined, no cycle, tensors consistent, operator
  /// sets declared. `bytes` is kept alive by `owner`; `mapped` says that it is a mapped file. `absent`: whether
  /// initializers and attributes may lack their bytes.
  [[nodiscard]] static Expected<std::shared_ptr<const Document>> parse(std::span<const std::byte> bytes,
                                                                       std::shared_ptr<const void> owner, bool mapped,
                                                                       const std::string& path,
                                                                       AbsentData absent = AbsentData::refused);

  [[nodiscard]] const onnx::ModelProto& model() const { return model_; }
  [[nodiscard]] const onnx::GraphProto& graph() const { return model_.graph(); }
  [[nodiscard]] const onnx::NodeProto& node(int index) const { return model_.graph().node(index); }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// A part of the file's bytes.
  [[nodiscard]] SharedBytes part(std::span<const std::byte> bytes) const { return {bytes, owner_, mapped_}; }
  [[nodiscard]] const wire::Skeleton& skeleton() const { return skeleton_; }
  /// Version of the default operator set; 0 if no node uses it.
  [[nodiscard]] std::int64_t opset() const { return opset_; }
  /// Version of the operator set of a domain (empty: the default one); 0 if the file names none.
  [[nodiscard]] std::int64_t version(std::string_view domain) const;
  /// Whether the main graph has a node of a type.
  [[nodiscard]] bool has_node(std::string_view domain, std::string_view op_type) const;
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  [[nodiscard]] const std::vector<DocumentTensor>& tensors() const { return tensors_; }
  /// Index of a tensor of the main graph, or -1.
  [[nodiscard]] int find(const std::string& name) const;
  /// Nodes, producers first; the file's order where that is one.
  [[nodiscard]] const std::vector<int>& order() const { return order_; }
  /// Names of the main graph that the subgraphs of a node read, each once, in order of first use.
  [[nodiscard]] const std::vector<std::string>& captures(int node) const {
    return captures_[static_cast<std::size_t>(node)];
  }
  /// Every name that occurs anywhere, in subgraphs too; new names avoid them.
  [[nodiscard]] const std::map<std::string, int>& all_names() const { return all_names_; }

  /// Contents of an initializer.
  [[nodiscard]] const TensorContents& initializer(int index) const {
    return initializers_[static_cast<std::size_t>(index)];
  }
  /// Contents of a tensor attribute of a node; an error names the node.
  [[nodiscard]] Expected<TensorContents> attribute_tensor(int node, int attribute) const;
  /// bad_input where an initializer lacks its bytes: the file cannot be written.
  [[nodiscard]] Status require_data() const;
  /// True if some tensor of the file lies in external data.
  [[nodiscard]] bool has_external_data() const { return has_external_data_; }
  /// Reads any other tensor that lies in external data (in subgraphs, functions, attributes).
  [[nodiscard]] Expected<TensorContents> external_tensor(const onnx::TensorProto& tensor) const;

  /// bad_input at this file.
  [[nodiscard]] Error error(const std::string& message) const { return bad_input(message, {path_}); }
  /// `node "name" (Conv)`, or `node #12 (Conv)` if it has no name.
  [[nodiscard]] std::string describe(int node) const;

 private:
  Document(std::string path) : path_(std::move(path)), external_(path_) {}
  Status check_operator_sets();
  Status collect_tensors();
  Status define(DocumentTensor tensor);
  Status resolve_uses();
  Status collect_captures(const onnx::GraphProto& body, int node,
                          const std::vector<const std::unordered_set<std::string>*>& scopes);
  Status sort_nodes();

  std::string path_;
  std::shared_ptr<const void> owner_;
  bool mapped_ = false;
  AbsentData absent_ = AbsentData::refused;
  onnx::ModelProto model_;
  wire::Skeleton skeleton_;
  mutable ExternalData external_;
  std::int64_t opset_ = 0;
  std::map<std::string, std::int64_t, std::less<>> versions_;
  std::set<std::pair<std::string, std::string>> node_types_;
  bool has_external_data_ = false;
  std::vector<std::string> warnings_;
  std::vector<DocumentTensor> tensors_;
  std::unordered_map<std::string, int> index_;
  std::vector<TensorContents> initializers_;
  std::vector<int> order_;
  std::vector<std::vector<std::string>> captures_;
  std::map<std::string, int> all_names_;
};

/// True for the two spellings of the default domain.
[[nodiscard]] inline bool is_default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }
/// The domain of a node, the default one in its empty spelling.
[[nodiscard]] inline std::string domain_of(const onnx::NodeProto& node) {
  return is_default_domain(node.domain()) ? "" : node.domain();
}

}  // namespace taso
