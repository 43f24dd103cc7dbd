/// The user's model: the ONNX file as a document, and the graph imported from it.
///
/// The file is the document. Every node that a graph still contains unchanged goes back as its original
/// NodeProto, byte for byte; metadata, functions, unknown fields, names, order and types of graph inputs and
/// outputs are the document's. Weights are never copied: constants lie in the mapped file (or the mapped
/// external data), and are streamed from there when a model is saved. Their bytes may be unaligned.
///
/// What is understood, and under which conditions, is listed in docs/onnx.md; everything else becomes an opaque
/// node "domain::OpType" that keeps its edges.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/size_arithmetic.h"
#include "onnx_io/device_annotations.h"
#include "onnx_io/size_decisions.h"
#include "operators/coverage.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// Extents that symbols stand for.
using SymbolSizes = std::map<std::string, std::int64_t>;
/// "batch=2, height=128".
[[nodiscard]] std::string to_string(const SymbolSizes& sizes);

/// Extents of what nodes compute that are symbols of their own: by tensor, what is added at each axis to the extent
/// that the operator gives, or to a number that stands for it where it depends on elements.
using FreeExtents = std::map<std::string, std::map<std::size_t, std::int64_t>>;

/// A symbolic extent of graph inputs.
struct Symbol {
  std::string name;      ///< As the file has it; "x[0]" for an extent of input x that has no name.
  std::string input;     ///< The first input that has it,
  std::size_t axis = 0;  ///< and where.
};

/// How a model is read.
struct ImportOptions {
  /// Shapes of graph inputs, by name: they make symbolic extents concrete; an extent that the file declares as a number
  /// must be the same here. The saved model declares these shapes.
  std::map<std::string, Shape> input_shapes;
  /// Extents that symbols of graph inputs stand for while the model is worked on (Model::symbols). The saved model
  /// keeps the symbols: see Model::save_at_all_sizes.
  SymbolSizes symbol_sizes;
  /// Quotients of symbolic extents, and extents that nodes round, are computed with; else what asks for them stays.
  bool quotients = true;
  /// First outputs of nodes that compute with symbolic extents and stay nodes all the same, and why: what they compute
  /// is not known at all sizes.
  std::map<std::string, std::string> unfolded = {};
  /// Extents that no formula is known of. The nodes that compute such tensors are carried, and to what reads them their
  /// extents are symbols, as if they were of graph inputs: whatever they are, what is done behind them is right. So
  /// that sizes at which a model is read do not make one equal to what it differs from elsewhere, something may be
  /// added to it there (at least 1 is left): a model read so does not exist, but what reads the tensor cannot tell.
  FreeExtents free_extents = {};
  /// Tensors whose extents depend on elements (Model::open_extents), and are free.
  std::set<std::string> opened = {};
  /// Initializers whose data is not there (the external file is missing, or none is stored) are constants that are only
  /// shapes (ConstantData::shape_only), named as in the file; else they are an error. What needs their elements is
  /// carried. Such a model can be looked at, and planned, but not saved (bad_input).
  bool absent_weights = false;
  /// What stands in graphs of pieces of operators is understood, too, and else carried: operators on tensors without
  /// elements, and integers that are moved. For graphs to which no rules are applied: proofs suppose extents of at
  /// least 1, and numbers. A node becomes the operator that is written so, whatever is known of its operands: a Max is
  /// a maximum, even where one operand is a number, and a BatchNormalization a batch_norm, even of weights.
  bool pieces = false;
};

/// How a model is written.
struct SaveOptions {
  /// Original nodes go back as they were wherever their meaning is unchanged. False lowers every operator node anew:
  /// graphs of pieces, so that each is read as the operator that it is (ImportOptions::pieces), and as a test of the
  /// exporters. Opaque nodes go back as they were in either case.
  bool verbatim = true;
  /// Weights of at least `external_minimum` bytes go to "<file>.data" beside the model. Happens by itself when the
  /// model would be larger than `inline_limit`.
  bool external_data = false;
  std::int64_t external_minimum = 1024;
  std::int64_t inline_limit = 1'800'000'000;
  /// Entries added to the model's metadata (a key that is there already gets the new value).
  std::map<std::string, std::string> metadata;
  /// Nodes stand in the order of their ids, which must be one in which they can run.
  bool in_order_of_ids = false;
  /// Annotations for several devices. The IR version of the file is raised to the first one that has them.
  std::optional<DeviceAnnotations> annotations = std::nullopt;
};

/// One declared extent of a graph input or output: a number, a symbol, or neither.
struct DeclaredExtent {
  std::optional<std::int64_t> value;
  std::string symbol;
};

/// A graph input or output as the file declares it.
struct TensorDeclaration {
  std::string name;
  ElementType element = ElementType::other;
  /// False if no shape is declared (or the value is not a tensor).
  bool has_shape = false;
  std::vector<DeclaredExtent> extents;
  /// The type in the imported graph; not `known` while an extent is symbolic.
  TensorType type;
};

/// A node of the user's file.
struct OriginalNode {
  std::string name;    ///< May be empty.
  std::string domain;  ///< "" for the default domain.
  std::string op_type;
};

/// A node of the file that is carried as an opaque node.
struct CarriedNode {
  std::int32_t node = -1;  ///< Its position in the file.
  std::string op;          ///< "domain::OpType" ("OpType" alone in the default domain).
  std::string reason;      ///< Its own, or: "behind node "rnn" (LSTM)".
  /// It is carried only because types or numbers that it reads are not known, which is so because of these nodes, in
  /// ascending order. Empty: it has a reason of its own.
  std::vector<std::int32_t> behind;
};

/// A node whose handler made a graph that is ill-typed: the node is carried. Either the file is wrong in a way that the
/// handler does not look for, or the handler is.
struct IllTypedNode {
  std::string node;    ///< As errors name it: `node "name" (OpType)`.
  std::string reason;  ///< What of the graph is ill-typed.
};

/// A part of a model: sizes of what save() would write or has written.
struct SaveReport {
  std::int64_t nodes = 0;             ///< Nodes in the written graph.
  std::int64_t verbatim_nodes = 0;    ///< Of these, original ones, byte for byte.
  std::int64_t folded_constants = 0;  ///< Weight-only values that were computed and stored.
  std::int64_t weight_bytes = 0;      ///< Bytes of all weights in the file and its external data.
  bool external_data = false;
  /// Functions that were added to the model: operators of the specifications that ONNX does not have, each with its
  /// definition as body. "taso::silu".
  std::vector<std::string> functions;
  /// Such operators that stand in the file without one: only programs that know the specifications can run it. With the
  /// reason.
  std::vector<std::pair<std::string, std::string>> without_function;
  std::int64_t raised_ir_version = 0;  ///< The model's IR version, where functions wanted a newer one; else 0.
  std::int64_t annotated_tensors = 0;  ///< Of SaveOptions::annotations, those that are tensors of nodes of the file.
};

/// A subgraph of a node of control flow (If, Loop, Scan).
struct BodyPlace {
  std::string node;       ///< The first output of the node that has a name; such names are unique.
  std::string attribute;  ///< "then_branch", "body", ...
  bool operator==(const BodyPlace&) const = default;
};

class Document;  // onnx_io/document.h (holds protobuf messages)
struct ModelDocument;
class SymbolicConstants;

/// A loaded model. Copies share the document.
class Model {
 public:
  /// Reads and imports a file. `registry` must outlive the model. Every malformed file is a bad_input error with one
  /// line that names the node or tensor and the fault.
  [[nodiscard]] static Expected<Model> load(const std::string& path, const OperatorRegistry& registry,
                                            const ImportOptions& options = {});
  /// The same from bytes; `path` names the model in errors and is where external data is looked for.
  [[nodiscard]] static Expected<Model> parse(std::string bytes, const std::string& path,
                                             const OperatorRegistry& registry, const ImportOptions& options = {});

  /// The same file at other sizes of its symbols; its free extents are those that they have there.
  [[nodiscard]] Expected<Model> with_sizes(SymbolSizes sizes) const;
  /// The same, with other values of ImportOptions::free_extents.
  [[nodiscard]] Expected<Model> with_sizes(SymbolSizes sizes, FreeExtents extents) const;
  /// The same file with another value of ImportOptions::quotients.
  [[nodiscard]] Expected<Model> with_quotients(bool quotients) const;
  /// The same file with other ImportOptions::free_extents.
  [[nodiscard]] Expected<Model> with_free_extents(FreeExtents extents) const;
  [[nodiscard]] const FreeExtents& free_extents() const;
  /// Extents that depend on elements, of tensors of unknown shape.
  [[nodiscard]] FreeExtents open_extents() const;
  /// The same file with these extents free, besides those that are, so that the shapes are known.
  [[nodiscard]] Expected<Model> with_open_extents(const FreeExtents& extents) const;
  /// The same file with more nodes in ImportOptions::unfolded.
  [[nodiscard]] Expected<Model> with_unfolded(const std::map<std::string, std::string>& nodes) const;

  /// The graph as imported (docs/onnx.md gives the form of every operator); not normalised. graph().inputs() and
  /// outputs() correspond to inputs() and outputs() one to one.
  [[nodiscard]] const Graph& graph() const;
  /// What the import decided by the sizes of symbols, if it was given such.
  [[nodiscard]] const SizeDecisions& size_decisions() const;
  /// The inputs a caller must feed: graph inputs without an initializer, in the file's order.
  [[nodiscard]] const std::vector<TensorDeclaration>& inputs() const;
  [[nodiscard]] const std::vector<TensorDeclaration>& outputs() const;
  /// Symbolic extents of the inputs that have no shape of ImportOptions::input_shapes, in order of first use.
  [[nodiscard]] const std::vector<Symbol>& symbols() const;
  /// Nodes of the file; Node::origin of a graph node is an index into it.
  [[nodiscard]] const std::vector<OriginalNode>& original_nodes() const;
  /// Nodes that are carried and that outputs need, each after those that it reads.
  [[nodiscard]] std::vector<CarriedNode> carried_nodes() const;
  /// How much of the model is understood, and why the rest is carried.
  [[nodiscard]] Coverage coverage() const;
  /// A node of the file as messages name it: `node "name" (Conv)`, or `node #12 (Conv)` if it has no name.
  [[nodiscard]] std::string describe_node(std::int32_t node) const;
  /// Nodes that are carried because their import was ill-typed; warnings() counts them.
  [[nodiscard]] const std::vector<IllTypedNode>& ill_typed_nodes() const;
  /// Remarks for the user, such as an opset newer than the known ones.
  [[nodiscard]] const std::vector<std::string>& warnings() const;
  /// Version of the default operator set.
  [[nodiscard]] std::int64_t opset() const;
  [[nodiscard]] std::int64_t ir_version() const;
  [[nodiscard]] const std::string& path() const;
  /// An entry of the file's metadata; empty if there is none.
  [[nodiscard]] std::string metadata(const std::string& key) const;

  /// The subgraphs of nodes of control flow, in an order in which the nodes can run; those inside of these not. None
  /// before IR version 4 and opset 7.
  [[nodiscard]] std::vector<BodyPlace> bodies() const;
  /// "then_branch of node "name" (If)".
  [[nodiscard]] std::string describe_body(const BodyPlace& place) const;
  /// A subgraph as a model: what it reads from outside is an input, behind its own, or, where it is constant, an
  /// initializer. Types of inputs that the file does not state are those of what the node gives to the subgraph; what
  /// an iteration hands to the next one has the type of the first such value where the subgraph keeps it. It may be
  /// rewritten like any model, but is not saved by itself: see with_body(). bad_input if there is no such place, or
  /// the subgraph cannot be read.
  [[nodiscard]] Expected<Model> body(const BodyPlace& place) const;
  /// The same model with a subgraph replaced by what is written for `graph`, which must come from the graph of `body`,
  /// the model that body(place) gives, or one that is made of it by with_body(). Nothing if that leaves the file as
  /// it is. Inputs and outputs stay as they are declared, and new names are names of nothing else in the model.
  [[nodiscard]] Expected<std::optional<Model>> with_body(const BodyPlace& place, const Model& body,
                                                         const Graph& graph) const;

  /// Writes `graph`, which must come from graph() by rewriting: same inputs, same number and types of outputs,
  /// opaque nodes untouched. Weight-only values are folded in float. The result passes a structural check (names
  /// defined once and before use, domains imported, outputs typed) before it is renamed to `path`, which may be the
  /// file the model was read from. Equal graphs give equal bytes.
  ///
  /// A node that comes from none of the file and whose operator is "domain::OpType" is written as that, its attributes
  /// as they are (names are texts); version 1 of the domain is imported where the file does not import it.
  [[nodiscard]] Expected<SaveReport> save(const Graph& graph, const std::string& path,
                                          const SaveOptions& options = {}) const;

  /// What load() gives of the file that save() writes for `graph`, at the same sizes of symbols, without a file.
  /// Weights are held in memory; bad_input if they are more than 2 GiB.
  [[nodiscard]] Expected<Model> read_again(const Graph& graph) const;
  /// The same but for weights: of large ones only the shapes are there, and none is computed.
  [[nodiscard]] Expected<Model> read_again_as_shapes(const Graph& graph) const;

  /// The model for all sizes of its symbols: `samples` are the same file at sizes of them, `graph` is the graph of each
  /// there, and its integers are names in `sizes`. Constants that are others at other samples have stand-ins from
  /// `constants` in `graph`, and in what this returns (onnx_io/symbolic_constants.h). `sizes` must outlive that.
  [[nodiscard]] static Model at_all_sizes(std::span<const Model> samples, const Graph& graph, const SampledSizes& sizes,
                                          std::shared_ptr<SymbolicConstants> constants);

  /// A graph, the model read at the sizes of symbols for which it was made, and the number of these sizes.
  struct Sized {
    const Model* model = nullptr;
    const Graph* graph = nullptr;
    std::size_t sample = 0;
  };
  /// Of a model from at_all_sizes: writes one file that is right at all sizes of the symbols. `samples` are `graph` at
  /// several sizes; as a second check, what save() would write at each must be that with the numbers of the sample, at
  /// most of them. An error of code not_proved names a node that has no form for all sizes; nothing is written.
  [[nodiscard]] Expected<SaveReport> save_at_all_sizes(const Graph& graph, std::span<const Sized> samples,
                                                       const std::string& path, const SaveOptions& options = {}) const;
  /// Whether save_at_all_sizes would write a file; weights are not computed.
  [[nodiscard]] Status can_save_at_all_sizes(const Graph& graph, std::span<const Sized> samples) const;

  /// Whether save() can write `graph` at the file's opset: some operators have a form in ONNX from some opset on only
  /// (dilations of MaxPool, steps of Slice, Expand, ...). `nodes` are those that are new since a graph for which the
  /// answer was yes, and those with other inputs. Safe to call from several threads.
  [[nodiscard]] bool can_save(const Graph& graph, const std::vector<NodeId>& nodes) const;

 private:
  [[nodiscard]] Expected<Model> imported_anew(ImportOptions options) const;
  [[nodiscard]] Expected<Model> imported_anew(std::shared_ptr<const Document> document, ImportOptions options) const;

  std::shared_ptr<const ModelDocument> document_;
};

/// Parses "NAME:D,D,..." as given to --input-shape ("NAME:" is a scalar); the name may contain colons.
[[nodiscard]] Expected<std::pair<std::string, Shape>> parse_input_shape(const std::string& text);

/// Operators of ONNX's own domain that the importer understands, with the maps of `registry`, sorted: op type,
/// operators of ours, conditions. For `docs/onnx.md` and --inspect.
struct ImportedOperator {
  std::string op_type;
  std::string form;        ///< What it becomes.
  std::string conditions;  ///< When it is carried instead.
};
[[nodiscard]] std::vector<ImportedOperator> imported_operators(const OperatorRegistry& registry);
/// Operators of ours that save() can write in ONNX's own domain; a test compares it with the specifications.
[[nodiscard]] std::vector<std::string> exported_operators(const OperatorRegistry& registry);

/// Names of the user's nodes, by their numbers; "Conv #12" for one that has none.
[[nodiscard]] std::vector<std::string> node_names(const Model& model);

}  // namespace taso
