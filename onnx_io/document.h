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

  /// A subgraph of a node as a document of its own: `graph` is the subgraph, in which everything that it reads from
  /// outside is a graph input or one of `constants`, initializers (behind those of `graph`) whose contents are given.
  [[nodiscard]] static Expected<std::shared_ptr<const Document>> of_subgraph(
      const Document& outer, onnx::GraphProto graph,
      const std::vector<std::pair<std::string, TensorContents>>& constants);
  /// The same document with another graph as an attribute of a node.
  [[nodiscard]] Expected<std::shared_ptr<const Document>> with_subgraph(int node, int attribute,
                                                                        onnx::GraphProto graph) const;
  /// Made by of_subgraph().
  [[nodiscard]] bool is_subgraph() const { return is_subgraph_; }
  /// In how many subgraphs it is.
  [[nodiscard]] int subgraph_depth() const { return depth_; }

  [[nodiscard]] const onnx::ModelProto& model() const { return model_; }
  [[nodiscard]] const onnx::GraphProto& graph() const { return model_.graph(); }
  [[nodiscard]] const onnx::NodeProto& node(int index) const { return model_.graph().node(index); }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// A part of the file's bytes.
  [[nodiscard]] SharedBytes part(std::span<const std::byte> bytes) const { return {bytes, owner_, mapped_}; }
  [[nodiscard]] const wire::Skeleton& skeleton() const { return skeleton_; }
  /// Version of the default operator set; 0 if no node uses it. Where the file's is older than what is
  /// understood, the newest one up to 10 at which all operators of the main graph mean the same.
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
  /// Whether the bytes of an initializer are not in its message: they stay in the file, or were given.
  [[nodiscard]] bool has_bytes_outside(int index) const {
    return skeleton_.initializers.contains(static_cast<std::size_t>(index)) ||
           given_.contains(graph().initializer(index).name());
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
  /// Checks the parsed model, and finds out all that follows from it.
  Status analyse();
  Status check_operator_sets();
  Status collect_tensors();
  /// Whether all operators of the main graph are those of another version of the default operator set.
  [[nodiscard]] bool means_the_same(std::int64_t opset) const;
  Status define(DocumentTensor tensor);
  Status resolve_uses();
  Status collect_captures(const onnx::GraphProto& body, int node);
  Status sort_nodes();

  std::string path_;
  std::shared_ptr<const void> owner_;
  bool mapped_ = false;
  AbsentData absent_ = AbsentData::refused;
  bool is_subgraph_ = false;
  std::map<std::string, TensorContents> given_;  ///< Initializers whose bytes are not in the message.
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
  /// What subgraphs read that stood where others do now: of initializers among these, those that nothing reads are none
  /// that nothing read in the first place.
  std::set<std::string> read_before_;
  int depth_ = 0;
};

/// A name that a graph reads and does not define, and what reads it, in words.
struct OuterRead {
  std::string name, reader;
};
/// What a graph, or a subgraph in it, reads from outside: in the order of the nodes, repeated where it is read again.
[[nodiscard]] std::vector<OuterRead> outer_reads(const onnx::GraphProto& graph);

/// True for the two spellings of the default domain.
[[nodiscard]] inline bool is_default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }
/// The domain of a node, the default one in its empty spelling.
[[nodiscard]] inline std::string domain_of(const onnx::NodeProto& node) {
  return is_default_domain(node.domain()) ? "" : node.domain();
}

}  // namespace taso
