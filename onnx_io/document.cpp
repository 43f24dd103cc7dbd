#include "onnx_io/document.h"

#include <google/protobuf/io/coded_stream.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <set>
#include <unordered_set>

#include "onnx_io/in_quotes.h"

namespace taso {
namespace {

/// The newest default operator set whose changes are known here.
constexpr std::int64_t newest_opset = 24;
constexpr std::int64_t oldest_opset = 7;
/// The oldest in which all that operators become can be written: Slice has steps from 10 on, Expand is in 8.
constexpr std::int64_t first_with_all_forms = 10;

/// Calls `visit` with each subgraph in a node's attributes.
void for_each_subgraph(const onnx::NodeProto& node, const std::function<void(const onnx::GraphProto&)>& visit) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) visit(attribute.g());
    for (const auto& graph : attribute.graphs()) visit(graph);
  }
}

void collect_names(const onnx::GraphProto& graph, std::map<std::string, int>& names) {
  auto add = [&](const std::string& name) { names.emplace(name, 0); };
  for (const auto& value : graph.input()) add(value.name());
  for (const auto& value : graph.output()) add(value.name());
  for (const auto& value : graph.value_info()) add(value.name());
  for (const auto& tensor : graph.initializer()) add(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) add(tensor.values().name());
  for (const auto& node : graph.node()) {
    add(node.name());
    for (const auto& name : node.input()) add(name);
    for (const auto& name : node.output()) add(name);
    for_each_subgraph(node, [&](const onnx::GraphProto& body) { collect_names(body, names); });
  }
}

using NameSet = std::unordered_set<std::string>;

/// The names that a subgraph defines itself.
NameSet definitions(const onnx::GraphProto& graph) {
  NameSet names;
  for (const auto& value : graph.input()) names.insert(value.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

void collect_outer_reads(const onnx::GraphProto& graph, const std::vector<const NameSet*>& scopes,
                         std::vector<OuterRead>& reads) {
  const NameSet own = definitions(graph);
  std::vector<const NameSet*> inner = scopes;
  inner.push_back(&own);
  const auto read = [&](const std::string& name, const std::string& reader) {
    if (name.empty() || std::ranges::any_of(inner, [&](const NameSet* scope) { return scope->contains(name); })) return;
    reads.push_back({name, reader});
  };
  for (const auto& node : graph.node()) {
    for (const auto& name : node.input()) read(name, "a node (" + node.op_type() + ")");
    for_each_subgraph(node, [&](const onnx::GraphProto& deeper) { collect_outer_reads(deeper, inner, reads); });
  }
  for (const auto& output : graph.output()) read(output.name(), "an output");
}

}  // namespace

std::vector<OuterRead> outer_reads(const onnx::GraphProto& graph) {
  std::vector<OuterRead> reads;
  collect_outer_reads(graph, {}, reads);
  return reads;
}

Expected<std::shared_ptr<const Document>> Document::parse(std::span<const std::byte> bytes,
                                                          std::shared_ptr<const void> owner, bool mapped,
                                                          const std::string& path, AbsentData absent) {
  std::shared_ptr<Document> document(new Document(path));
  document->owner_ = std::move(owner);
  document->mapped_ = mapped;
  document->absent_ = absent;
  if (bytes.empty()) return document->error("the file is empty; an ONNX model was expected");
  TASO_ASSIGN(document->skeleton_, wire::take_weights_out(bytes, path));
  std::string& skeleton = document->skeleton_.bytes;
  if (skeleton.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    return document->error("the model without its weights is larger than 2 GiB");
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(skeleton.data()),
                                                static_cast<int>(skeleton.size()));
  if (!document->model_.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return document->error("not an ONNX model: protobuf cannot parse it (or its subgraphs nest more than 100 deep)");
  skeleton.clear();
  skeleton.shrink_to_fit();
  if (!document->model_.has_graph()) return document->error("not an ONNX model: it has no graph");
  TASO_RETURN_IF_ERROR(document->analyse());
  return std::shared_ptr<const Document>(std::move(document));
}

Status Document::analyse() {
  TASO_RETURN_IF_ERROR(check_operator_sets());
  TASO_RETURN_IF_ERROR(collect_tensors());
  TASO_RETURN_IF_ERROR(resolve_uses());
  TASO_RETURN_IF_ERROR(sort_nodes());
  for (const std::string& name : read_before_)
    if (const int tensor = find(name); tensor >= 0)
      if (DocumentTensor& entry = tensors_[static_cast<std::size_t>(tensor)]; entry.source == TensorSource::initializer)
        entry.used = true;
  collect_names(graph(), all_names_);
  return {};
}

Expected<std::shared_ptr<const Document>> Document::of_subgraph(
    const Document& outer, onnx::GraphProto graph,
    const std::vector<std::pair<std::string, TensorContents>>& constants) {
  std::shared_ptr<Document> document(new Document(outer.path_));
  document->owner_ = outer.owner_;
  document->mapped_ = outer.mapped_;
  document->absent_ = outer.absent_;
  document->is_subgraph_ = true;
  document->depth_ = outer.depth_ + 1;
  document->all_names_ = outer.all_names_;
  document->model_.set_ir_version(outer.model_.ir_version());
  *document->model_.mutable_opset_import() = outer.model_.opset_import();
  *document->model_.mutable_functions() = outer.model_.functions();
  for (const auto& [name, contents] : constants) {
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(contents.data_type);
    for (const std::int64_t extent : contents.type.shape) tensor.add_dims(extent);
    document->given_.emplace(name, contents);
  }
  *document->model_.mutable_graph() = std::move(graph);
  TASO_RETURN_IF_ERROR(document->analyse());
  return std::shared_ptr<const Document>(std::move(document));
}

Expected<std::shared_ptr<const Document>> Document::with_subgraph(int node, int attribute,
                                                                  onnx::GraphProto graph) const {
  std::shared_ptr<Document> document(new Document(path_));
  document->owner_ = owner_;
  document->mapped_ = mapped_;
  document->absent_ = absent_;
  document->is_subgraph_ = is_subgraph_;
  document->depth_ = depth_;
  document->given_ = given_;
  document->all_names_ = all_names_;
  document->model_ = model_;
  document->skeleton_ = skeleton_;
  document->skeleton_.nodes.erase(static_cast<std::size_t>(node));
  document->read_before_ = read_before_;
  for (const OuterRead& read : outer_reads(this->node(node).attribute(attribute).g()))
    document->read_before_.insert(read.name);
  *document->model_.mutable_graph()->mutable_node(node)->mutable_attribute(attribute)->mutable_g() = std::move(graph);
  TASO_RETURN_IF_ERROR(document->analyse());
  return std::shared_ptr<const Document>(std::move(document));
}

std::string Document::describe(int index) const {
  const auto& proto = node(index);
  const std::string op = (is_default_domain(proto.domain()) ? "" : proto.domain() + "::") + proto.op_type();
  return "node " + (proto.name().empty() ? "#" + std::to_string(index) : in_quotes(proto.name())) + " (" + op + ")";
}

std::int64_t Document::version(std::string_view domain) const {
  const auto found = versions_.find(domain);
  return found == versions_.end() ? 0 : found->second;
}

bool Document::has_node(std::string_view domain, std::string_view op_type) const {
  return node_types_.contains({std::string(domain), std::string(op_type)});
}

Status Document::check_operator_sets() {
  if (model_.ir_version() < 3)
    return error("IR version " + std::to_string(model_.ir_version()) + " is not supported; 3 or newer is");
  for (const auto& set : model_.opset_import()) {
    const std::string domain = is_default_domain(set.domain()) ? "" : set.domain();
    if (set.version() < 1)
      return error("opset_import gives version " + std::to_string(set.version()) + " for domain " + in_quotes(domain));
    versions_[domain] = set.version();
  }
  for (int i = 0; i < graph().node_size(); ++i) {
    if (node(i).op_type().empty()) return error(describe(i) + " has no operator type");
    const std::string domain = domain_of(node(i));
    node_types_.emplace(domain, node(i).op_type());
    if (!versions_.contains(domain))
      return error(describe(i) + ": opset_import names no version for domain " + in_quotes(domain));
  }
  opset_ = version("");
  if (opset_ > 0 && opset_ < oldest_opset)
    for (std::int64_t opset = first_with_all_forms; opset >= oldest_opset; --opset)
      if (means_the_same(opset)) {
        opset_ = opset;
        break;
      }
  if (opset_ > newest_opset)
    warnings_.push_back("opset " + std::to_string(opset_) + " is newer than " + std::to_string(newest_opset) +
                        ", the newest that is known here; operators are read as of that one");
  if (opset_ != 0 && opset_ < oldest_opset)
    warnings_.push_back("opset " + std::to_string(opset_) + " is older than " + std::to_string(oldest_opset) +
                        ", the oldest that is understood; every node is carried as it is");
  return {};
}

bool Document::means_the_same(std::int64_t opset) const {
  const auto before = static_cast<int>(version("")), after = static_cast<int>(opset);
  if (model_.functions_size() > 0 || std::none_of(graph().node().begin(), graph().node().end(),
                                                  [](const auto& node) { return is_default_domain(node.domain()); }))
    return false;
  return std::all_of(graph().node().begin(), graph().node().end(), [&](const onnx::NodeProto& node) {
    if (!is_default_domain(node.domain())) return true;
    const bool has_subgraphs = std::any_of(node.attribute().begin(), node.attribute().end(),
                                           [](const auto& one) { return one.has_g() || one.graphs_size() > 0; });
    const onnx::OpSchema* const old = onnx::OpSchemaRegistry::Schema(node.op_type(), before, onnx::ONNX_DOMAIN);
    return !has_subgraphs && old != nullptr &&
           old == onnx::OpSchemaRegistry::Schema(node.op_type(), after, onnx::ONNX_DOMAIN);
  });
}

Status Document::define(DocumentTensor tensor) {
  if (tensor.name.empty()) return {};
  const auto [place, added] = index_.emplace(tensor.name, static_cast<int>(tensors_.size()));
  if (added) {
    tensors_.push_back(std::move(tensor));
    return {};
  }
  DocumentTensor& first = tensors_[static_cast<std::size_t>(place->second)];
  // An initializer may carry the name of a graph input: it is that input's default.
  if (first.source == TensorSource::input && tensor.source != TensorSource::input &&
      tensor.source != TensorSource::node) {
    tensor.is_input = true;
    first = std::move(tensor);
    return {};
  }
  return error("tensor " + in_quotes(tensor.name) + " is defined twice" +
               (tensor.source == TensorSource::node ? ", the second time by " + describe(tensor.index) : ""));
}

Status Document::collect_tensors() {
  for (int i = 0; i < graph().input_size(); ++i) {
    if (graph().input(i).name().empty()) return error("graph input #" + std::to_string(i) + " has no name");
    TASO_RETURN_IF_ERROR(define({graph().input(i).name(), TensorSource::input, i, 0, false, true}));
  }
  for (int i = 0; i < graph().initializer_size(); ++i) {
    const auto& tensor = graph().initializer(i);
    if (tensor.name().empty()) return error("initializer #" + std::to_string(i) + " has no name");
    TASO_RETURN_IF_ERROR(define({tensor.name(), TensorSource::initializer, i, 0, false, false}));
    if (const auto given = given_.find(tensor.name()); given != given_.end()) {
      initializers_.push_back(given->second);
      continue;
    }
    const auto taken = skeleton_.initializers.find(static_cast<std::size_t>(i));
    auto contents = read_contents(tensor, taken == skeleton_.initializers.end() ? nullptr : &taken->second, external_,
                                  owner_, mapped_, absent_);
    if (!contents) return error("initializer " + in_quotes(tensor.name()) + ": " + contents.error().message);
    has_external_data_ = has_external_data_ || contents->external;
    initializers_.push_back(std::move(*contents));
  }
  for (int i = 0; i < graph().sparse_initializer_size(); ++i)
    TASO_RETURN_IF_ERROR(
        define({graph().sparse_initializer(i).values().name(), TensorSource::sparse_initializer, i, 0, false, false}));
  for (int i = 0; i < graph().node_size(); ++i)
    for (int port = 0; port < node(i).output_size(); ++port)
      TASO_RETURN_IF_ERROR(define({node(i).output(port), TensorSource::node, i, port, false, false}));
  return {};
}

int Document::find(const std::string& name) const {
  const auto place = index_.find(name);
  return place == index_.end() ? -1 : place->second;
}

Status Document::collect_captures(const onnx::GraphProto& body, int node_index) {
  auto& captured = captures_[static_cast<std::size_t>(node_index)];
  for (const auto& [name, reader] : outer_reads(body)) {
    const int tensor = find(name);
    if (tensor < 0)
      return error(describe(node_index) + ": " + reader + " of its subgraph reads " + in_quotes(name) +
                   ", which nothing defines");
    tensors_[static_cast<std::size_t>(tensor)].used = true;
    if (std::find(captured.begin(), captured.end(), name) == captured.end()) captured.push_back(name);
  }
  return {};
}

Status Document::resolve_uses() {
  captures_.resize(static_cast<std::size_t>(graph().node_size()));
  for (int i = 0; i < graph().node_size(); ++i) {
    for (const auto& name : node(i).input()) {
      if (name.empty()) continue;
      const int tensor = find(name);
      if (tensor < 0) return error(describe(i) + " reads " + in_quotes(name) + ", which nothing defines");
      tensors_[static_cast<std::size_t>(tensor)].used = true;
    }
    Status status;
    for_each_subgraph(node(i), [&](const onnx::GraphProto& body) {
      if (status) status = collect_captures(body, i);
    });
    TASO_RETURN_IF_ERROR(status);
  }
  if (graph().output_size() == 0) return error("the graph has no outputs");
  for (const auto& output : graph().output()) {
    const int tensor = find(output.name());
    if (tensor < 0) return error("graph output " + in_quotes(output.name()) + " is not defined by anything");
    tensors_[static_cast<std::size_t>(tensor)].used = true;
  }
  return {};
}

Status Document::sort_nodes() {
  const auto count = static_cast<std::size_t>(graph().node_size());
  std::vector<std::vector<int>> users(count);
  std::vector<std::vector<int>> producers(count);
  std::vector<int> pending(count, 0);
  for (int i = 0; i < graph().node_size(); ++i) {
    auto depend = [&](const std::string& name) {
      const int tensor = name.empty() ? -1 : find(name);
      if (tensor < 0 || tensors_[static_cast<std::size_t>(tensor)].source != TensorSource::node) return;
      const int producer = tensors_[static_cast<std::size_t>(tensor)].index;
      users[static_cast<std::size_t>(producer)].push_back(i);
      producers[static_cast<std::size_t>(i)].push_back(producer);
      ++pending[static_cast<std::size_t>(i)];
    };
    for (const auto& name : node(i).input()) depend(name);
    for (const auto& name : captures(i)) depend(name);
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i)
    if (pending[i] == 0) ready.push(static_cast<int>(i));
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order_.push_back(next);
    for (int user : users[static_cast<std::size_t>(next)])
      if (--pending[static_cast<std::size_t>(user)] == 0) ready.push(user);
  }
  if (order_.size() == count) return {};
  // Walk backwards among the nodes that are left until one repeats: it lies on a cycle.
  auto stuck = [&](int i) { return pending[static_cast<std::size_t>(i)] > 0; };
  int current = 0;
  while (!stuck(current)) ++current;
  std::set<int> seen;
  while (seen.insert(current).second) {
    const auto& before = producers[static_cast<std::size_t>(current)];
    current = *std::find_if(before.begin(), before.end(), stuck);
  }
  return error("the graph has a cycle through " + describe(current));
}

Expected<TensorContents> Document::attribute_tensor(int node_index, int attribute) const {
  const auto key = std::make_pair(static_cast<std::size_t>(node_index), static_cast<std::size_t>(attribute));
  const auto taken = skeleton_.attributes.find(key);
  auto contents = read_contents(node(node_index).attribute(attribute).t(),
                                taken == skeleton_.attributes.end() ? nullptr : &taken->second, external_, owner_,
                                mapped_, absent_);
  if (!contents)
    return error(describe(node_index) + ": attribute " + in_quotes(node(node_index).attribute(attribute).name()) +
                 ": " + contents.error().message);
  return contents;
}

Status Document::require_data() const {
  for (std::size_t i = 0; i < initializers_.size(); ++i)
    if (initializers_[i].absent)
      return error("initializer " + in_quotes(graph().initializer(static_cast<int>(i)).name()) +
                   " is only a shape: without its data the model cannot be written");
  return {};
}

Expected<TensorContents> Document::external_tensor(const onnx::TensorProto& tensor) const {
  auto contents = read_contents(tensor, nullptr, external_, owner_, mapped_);
  if (!contents) return error("tensor " + in_quotes(tensor.name()) + ": " + contents.error().message);
  return contents;
}

}  // namespace taso
