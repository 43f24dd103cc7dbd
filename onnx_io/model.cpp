#include "onnx_io/model.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "graph/reals.h"
#include "onnx_io/body.h"
#include "onnx_io/carried.h"
#include "onnx_io/document.h"
#include "onnx_io/export.h"
#include "onnx_io/import.h"
#include "onnx_io/in_quotes.h"
#include "onnx_io/mapped.h"
#include "onnx_io/symbolic_export.h"
#include "onnx_io/writer.h"
#include "support/file.h"

namespace taso {

/// Everything a loaded model is. Immutable.
struct ModelDocument {
  std::shared_ptr<const Document> document;
  ImportedModel imported;
  ImportOptions options;
  std::vector<OriginalNode> nodes;
  std::vector<std::string> warnings;
  const OperatorRegistry* registry = nullptr;
  /// Of a model at all sizes: what its integers and constants are.
  const SampledSizes* sizes = nullptr;
  std::shared_ptr<SymbolicConstants> symbolic_constants;
};

namespace {

/// One line for all nodes whose import was ill-typed.
std::string ill_typed_warning(const std::vector<IllTypedNode>& nodes) {
  const bool one = nodes.size() == 1;
  return (one ? "1 node is carried, as what it becomes is ill-typed: "
              : std::to_string(nodes.size()) + " nodes are carried, as what they become is ill-typed; the first: ") +
         nodes[0].node + ": " + nodes[0].reason;
}

/// Fills in what follows from the imported graph.
void describe_import(ModelDocument& model) {
  model.warnings = model.document->warnings();
  if (const std::vector<std::string>& found = model.imported.contradictions; !found.empty())
    model.warnings.push_back(
        (found.size() == 1 ? "1 type that the file states is not what ONNX's schema says, and neither is believed: "
                           : std::to_string(found.size()) + " types that the file states are not what ONNX's schemas "
                                                            "say, and neither are believed; the first: ") +
        found[0]);
  if (!model.imported.ill_typed.empty()) model.warnings.push_back(ill_typed_warning(model.imported.ill_typed));
}

/// Fills in what follows from the document.
void list_nodes(ModelDocument& model) {
  model.nodes.clear();
  for (const auto& node : model.document->graph().node())
    model.nodes.push_back({node.name(), is_default_domain(node.domain()) ? "" : node.domain(), node.op_type()});
}

Expected<std::shared_ptr<const ModelDocument>> open_document(std::span<const std::byte> bytes,
                                                             std::shared_ptr<const void> owner, bool mapped,
                                                             const std::string& path, const OperatorRegistry& registry,
                                                             const ImportOptions& options) {
  auto model = std::make_shared<ModelDocument>();
  model->registry = &registry;
  model->options = options;
  const AbsentData absent = options.absent_weights ? AbsentData::allowed : AbsentData::refused;
  TASO_ASSIGN(model->document, Document::parse(bytes, std::move(owner), mapped, path, absent));
  TASO_ASSIGN(model->imported, import_document(*model->document, registry, options));
  describe_import(*model);
  list_nodes(*model);
  return std::shared_ptr<const ModelDocument>(std::move(model));
}

}  // namespace

Expected<Model> Model::load(const std::string& path, const OperatorRegistry& registry, const ImportOptions& options) {
  TASO_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  const auto bytes = file->bytes();
  Model model;
  TASO_ASSIGN(model.document_, open_document(bytes, std::move(file), true, path, registry, options));
  return model;
}

Expected<Model> Model::with_sizes(SymbolSizes sizes) const {
  ImportOptions options = document_->options;
  options.symbol_sizes = std::move(sizes);
  for (auto& [tensor, axes] : options.free_extents)
    for (auto& [axis, more] : axes) more = 0;
  return imported_anew(std::move(options));
}

Expected<Model> Model::with_sizes(SymbolSizes sizes, FreeExtents extents) const {
  ImportOptions options = document_->options;
  options.symbol_sizes = std::move(sizes);
  options.free_extents = std::move(extents);
  return imported_anew(std::move(options));
}

Expected<Model> Model::with_quotients(bool quotients) const {
  ImportOptions options = document_->options;
  options.quotients = quotients;
  return imported_anew(std::move(options));
}

Expected<Model> Model::with_unfolded(const std::map<std::string, std::string>& nodes) const {
  ImportOptions options = document_->options;
  options.unfolded.insert(nodes.begin(), nodes.end());
  return imported_anew(std::move(options));
}

Expected<Model> Model::with_free_extents(FreeExtents extents) const {
  return with_sizes(document_->options.symbol_sizes, std::move(extents));
}

const FreeExtents& Model::free_extents() const { return document_->options.free_extents; }

Expected<Model> Model::with_open_extents(const FreeExtents& extents) const {
  ImportOptions options = document_->options;
  for (const auto& [tensor, axes] : extents) {
    options.free_extents[tensor].insert(axes.begin(), axes.end());
    options.opened.insert(tensor);
  }
  return imported_anew(std::move(options));
}

FreeExtents Model::open_extents() const {
  FreeExtents extents;
  for (const auto& [tensor, axes] : document_->imported.decisions.open)
    for (const std::size_t axis : axes) extents[tensor].emplace(axis, 0);
  return extents;
}

Expected<Model> Model::imported_anew(ImportOptions options) const {
  return imported_anew(document_->document, std::move(options));
}

Expected<Model> Model::imported_anew(std::shared_ptr<const Document> document, ImportOptions options) const {
  auto other = std::make_shared<ModelDocument>(*document_);
  other->document = std::move(document);
  other->options = std::move(options);
  TASO_ASSIGN(other->imported, import_document(*other->document, *other->registry, other->options));
  describe_import(*other);
  list_nodes(*other);
  Model model;
  model.document_ = std::move(other);
  return model;
}

namespace {

/// Whether `graph` may stand for the model's: same inputs, same types of outputs, and all its constants have data.
Status check_ends(const Graph& before, const Graph& graph) {
  TASO_RETURN_IF_ERROR(graph.validate());
  for (const NodeId id : graph.topological_order())
    if (graph.node(id).kind == NodeKind::constant) TASO_RETURN_IF_ERROR(graph.node(id).constant->require_data());
  if (graph.inputs().size() != before.inputs().size() || graph.outputs().size() != before.outputs().size())
    return internal_error("the graph to be saved has other inputs or outputs than the model");
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const Node &now = graph.node(graph.inputs()[i]), &was = before.node(before.inputs()[i]);
    if (now.name != was.name || now.outputs != was.outputs)
      return internal_error("the graph to be saved has another input than \"" + was.name + "\"");
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    if (graph.type(graph.outputs()[i]) != before.type(before.outputs()[i]))
      return internal_error("the graph to be saved has another type of output " + std::to_string(i));
  return {};
}

BodyPlace name_place(const Document& document, SubgraphPlace place) {
  const onnx::NodeProto& node = document.node(place.node);
  const auto named = std::find_if(node.output().begin(), node.output().end(), [](const auto& o) { return !o.empty(); });
  return {named == node.output().end() ? "" : *named, node.attribute(place.attribute).name()};
}

Expected<SubgraphPlace> find_place(const Document& document, const BodyPlace& wanted) {
  for (const SubgraphPlace place : bodies_of(document))
    if (name_place(document, place) == wanted) return place;
  return document.error("no node that makes " + in_quotes(wanted.node) + " has a subgraph " +
                        in_quotes(wanted.attribute));
}

}  // namespace

std::vector<BodyPlace> Model::bodies() const {
  std::vector<BodyPlace> places;
  for (const SubgraphPlace place : bodies_of(*document_->document)) {
    BodyPlace named = name_place(*document_->document, place);
    if (!named.node.empty()) places.push_back(std::move(named));
  }
  return places;
}

std::string Model::describe_body(const BodyPlace& place) const {
  const auto found = find_place(*document_->document, place);
  return place.attribute + " of " + (found ? document_->document->describe(found->node) : in_quotes(place.node));
}

Expected<Model> Model::body(const BodyPlace& place) const {
  TASO_ASSIGN(const SubgraphPlace found, find_place(*document_->document, place));
  auto inside = std::make_shared<ModelDocument>();
  inside->registry = document_->registry;
  inside->options = document_->options;
  inside->options.input_shapes.clear();
  inside->options.symbol_sizes.clear();
  inside->options.free_extents.clear();
  inside->options.opened.clear();
  TASO_ASSIGN(Body body,
              read_body(*document_->document, document_->imported, *inside->registry, inside->options, found));
  inside->document = std::move(body.document);
  inside->imported = std::move(body.imported);
  describe_import(*inside);
  list_nodes(*inside);
  Model model;
  model.document_ = std::move(inside);
  return model;
}

Expected<std::optional<Model>> Model::with_body(const BodyPlace& place, const Model& body, const Graph& graph) const {
  TASO_RETURN_IF_ERROR(body.document_->document->require_data());
  TASO_RETURN_IF_ERROR(check_ends(body.graph(), graph));
  TASO_ASSIGN(const SubgraphPlace found, find_place(*document_->document, place));
  TASO_ASSIGN(const ExportedGraph exported,
              export_graph(*body.document_->document, body.document_->imported, graph, *document_->registry,
                           {.verbatim = true, .fold = true, .varying = {}}));
  TASO_ASSIGN(auto document, taso::with_body(*document_->document, found, *body.document_->document,
                                             body.document_->imported, exported));
  if (!document) return std::optional<Model>();
  TASO_ASSIGN(Model model, imported_anew(std::move(document), document_->options));
  return std::optional(std::move(model));
}

std::string Model::metadata(const std::string& key) const {
  for (const auto& entry : document_->document->model().metadata_props())
    if (entry.key() == key) return entry.value();
  return "";
}

Expected<Model> Model::parse(std::string bytes, const std::string& path, const OperatorRegistry& registry,
                             const ImportOptions& options) {
  auto stored = std::make_shared<const std::string>(std::move(bytes));
  const auto view = std::as_bytes(std::span(stored->data(), stored->size()));
  Model model;
  TASO_ASSIGN(model.document_, open_document(view, std::move(stored), false, path, registry, options));
  return model;
}

const SizeDecisions& Model::size_decisions() const { return document_->imported.decisions; }
const Graph& Model::graph() const { return document_->imported.graph; }
const std::vector<TensorDeclaration>& Model::inputs() const { return document_->imported.inputs; }
const std::vector<TensorDeclaration>& Model::outputs() const { return document_->imported.outputs; }
const std::vector<Symbol>& Model::symbols() const { return document_->imported.symbols; }
const std::vector<OriginalNode>& Model::original_nodes() const { return document_->nodes; }
std::vector<CarriedNode> Model::carried_nodes() const {
  return explain_carried(*document_->document, document_->imported);
}
Coverage Model::coverage() const {
  return coverage_of(*document_->document, document_->imported, *document_->registry);
}
std::string Model::describe_node(std::int32_t node) const { return document_->document->describe(node); }
const std::vector<std::string>& Model::warnings() const { return document_->warnings; }
const std::vector<IllTypedNode>& Model::ill_typed_nodes() const { return document_->imported.ill_typed; }
std::int64_t Model::opset() const { return document_->document->opset(); }
std::int64_t Model::ir_version() const { return document_->document->model().ir_version(); }
const std::string& Model::path() const { return document_->document->path(); }

Expected<SaveReport> Model::save(const Graph& graph, const std::string& path, const SaveOptions& options) const {
  TASO_RETURN_IF_ERROR(document_->document->require_data());
  TASO_RETURN_IF_ERROR(check_ends(this->graph(), graph));
  TASO_ASSIGN(const ExportedGraph exported,
              export_graph(*document_->document, document_->imported, graph, *document_->registry,
                           {.verbatim = options.verbatim,
                            .fold = true,
                            .varying = {},
                            .in_order_of_ids = options.in_order_of_ids,
                            .annotations = options.annotations ? &*options.annotations : nullptr}));
  return write_model(*document_->document, document_->imported, exported, document_->options, path, options);
}

Expected<Model> Model::read_again(const Graph& graph) const {
  TASO_RETURN_IF_ERROR(document_->document->require_data());
  TASO_RETURN_IF_ERROR(check_ends(this->graph(), graph));
  TASO_ASSIGN(const ExportedGraph exported,
              export_graph(*document_->document, document_->imported, graph, *document_->registry,
                           {.verbatim = true, .fold = true, .varying = {}}));
  TASO_ASSIGN(std::string bytes, model_bytes(*document_->document, document_->imported, exported, document_->options));
  return parse(std::move(bytes), path(), *document_->registry, document_->options);
}

namespace {

/// The graph with shapes in place of large weights that are computed, so that nothing is: but for broadcasts, which the
/// file need not spell out.
Graph with_shapes_of_weights(Graph graph) {
  for (const NodeId id : graph.topological_order()) {
    const Node node = graph.node(id);
    if (node.kind != NodeKind::op || !node.weight_only || node.op == "broadcast") continue;
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) {
      const TensorType& type = node.outputs[port];
      if (!type.known || !is_real(type.element) || type.elements() < smallest_shape) continue;
      const std::string name = "computed_" + std::to_string(id) + "_" + std::to_string(port);
      graph.replace_uses({id, port}, {graph.add_constant(ConstantData::shape_only(type, name)), 0});
    }
  }
  graph.remove_dead();
  return graph;
}

}  // namespace

Expected<Model> Model::read_again_as_shapes(const Graph& whole) const {
  TASO_RETURN_IF_ERROR(check_ends(this->graph(), whole));
  const Graph graph = with_shapes_of_weights(whole);
  TASO_ASSIGN(const ExportedGraph exported,
              export_graph(*document_->document, document_->imported, graph, *document_->registry,
                           {.verbatim = true, .fold = true, .varying = {}}));
  TASO_ASSIGN(std::string bytes,
              model_bytes(*document_->document, document_->imported, exported, document_->options, Weights::shapes));
  ImportOptions options = document_->options;
  options.absent_weights = true;
  return parse(std::move(bytes), path(), *document_->registry, options);
}

Model Model::at_all_sizes(std::span<const Model> samples, const Graph& graph, const SampledSizes& sizes,
                          std::shared_ptr<SymbolicConstants> constants) {
  TASO_CHECK(!samples.empty(), "a model at no size");
  auto all = std::make_shared<ModelDocument>(*samples[0].document_);
  std::vector<const ImportedModel*> imported;
  for (const Model& sample : samples) imported.push_back(&sample.document_->imported);
  all->imported = import_at_all_sizes(imported, graph, *constants);
  all->sizes = &sizes;
  all->symbolic_constants = std::move(constants);
  Model model;
  model.document_ = std::move(all);
  return model;
}

namespace {

Expected<ExportedGraph> export_for_all(const ModelDocument& all, const Graph& graph,
                                       std::span<const SizedExport> samples, bool verbatim, bool fold) {
  const SymbolicExport symbolic{&all.imported, &graph, {all.sizes, all.symbolic_constants.get()}};
  return export_at_all_sizes(*all.document, symbolic, samples, *all.registry, verbatim, fold);
}

std::vector<SizedExport> exports_of(std::span<const Model::Sized> samples, const auto& imported_of) {
  std::vector<SizedExport> exports;
  for (const Model::Sized& one : samples) exports.push_back({&imported_of(*one.model), one.graph, one.sample});
  return exports;
}

}  // namespace

Expected<SaveReport> Model::save_at_all_sizes(const Graph& graph, std::span<const Sized> samples,
                                              const std::string& path, const SaveOptions& options) const {
  TASO_CHECK(document_->sizes != nullptr && !samples.empty(), "not a model at all sizes");
  TASO_RETURN_IF_ERROR(document_->document->require_data());
  TASO_RETURN_IF_ERROR(check_ends(this->graph(), graph));
  for (const Sized& one : samples) TASO_RETURN_IF_ERROR(check_ends(one.model->graph(), *one.graph));
  const auto exports = exports_of(
      samples, [](const Model& model) -> const auto& { return model.document_->imported; });
  TASO_ASSIGN(const ExportedGraph exported, export_for_all(*document_, graph, exports, options.verbatim, true));
  const ModelDocument& first = *samples[0].model->document_;
  return write_model(*first.document, first.imported, exported, first.options, path, options);
}

Status Model::can_save_at_all_sizes(const Graph& graph, std::span<const Sized> samples) const {
  TASO_CHECK(document_->sizes != nullptr && !samples.empty(), "not a model at all sizes");
  const auto exports = exports_of(
      samples, [](const Model& model) -> const auto& { return model.document_->imported; });
  TASO_ASSIGN(const ExportedGraph exported, export_for_all(*document_, graph, exports, true, false));
  return {};
}

std::string to_string(const SymbolSizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += (text.empty() ? "" : ", ") + name + "=" + std::to_string(size);
  return text;
}

bool Model::can_save(const Graph& graph, const std::vector<NodeId>& nodes) const {
  return can_export(*document_->document, document_->imported, graph, *document_->registry, nodes);
}

Expected<std::pair<std::string, Shape>> parse_input_shape(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  auto wrong = [&] {
    return Error{ErrorCode::usage, "\"" + text + "\" is not NAME:D,D,.. with extents of at least 1", {}};
  };
  if (colon == std::string::npos || colon == 0) return wrong();
  Shape shape;
  const char* place = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  while (place != end) {
    std::int64_t extent = 0;
    const auto [next, failure] = std::from_chars(place, end, extent);
    if (failure != std::errc() || extent < 1) return wrong();
    shape.push_back(extent);
    place = next;
    if (place == end) break;
    if (*place != ',' || ++place == end) return wrong();
  }
  if (!is_reasonable(shape)) return wrong();
  return std::pair(text.substr(0, colon), std::move(shape));
}

std::vector<ImportedOperator> imported_operators(const OperatorRegistry& registry) {
  std::map<std::string, ImportedOperator> result;
  for (const ImportRow& row : import_rows()) result[row.op_type] = {row.op_type, row.form, row.conditions};
  for (ImportedOperator& mapped : mapped_operators(registry)) {
    const auto [place, added] = result.try_emplace(mapped.op_type, mapped);
    if (!added) place->second.form += "; " + mapped.form;
  }
  std::vector<ImportedOperator> rows;
  for (auto& [op_type, row] : result) rows.push_back(std::move(row));
  return rows;
}

std::vector<std::string> exported_operators(const OperatorRegistry& registry) {
  std::set<std::string> result;
  for (const ExportRow& row : export_rows()) result.insert(row.op);
  for (const auto& mapping : registry.node_maps().all())
    if (mapping->domain.empty()) result.insert(mapping->op);
  return {result.begin(), result.end()};
}

std::vector<std::string> node_names(const Model& model) {
  std::vector<std::string> names;
  for (const OriginalNode& node : model.original_nodes())
    names.push_back(node.name.empty() ? node.op_type + " #" + std::to_string(names.size()) : node.name);
  return names;
}

}  // namespace taso
