#include "onnx_io/writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "graph/reals.h"
#include "onnx_io/device_annotations.h"
#include "onnx_io/functions.h"
#include "onnx_io/in_quotes.h"
#include "onnx_io/specified.h"
#include "onnx_io/tensor_proto.h"
#include "support/file.h"

namespace taso {
namespace {

constexpr std::size_t protobuf_limit = 0x7fffffff;  // Bytes of a message.
// Field numbers of onnx.proto.
constexpr int model_graph = 7, graph_node = 1, graph_initializer = 5, tensor_raw_data = 9;

template <class Message>
std::string serialize(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    TASO_CHECK(message.SerializeToCodedStream(&coded), "a message cannot be serialized");
  }
  return bytes;
}

/// A file as a list of owned texts and borrowed byte ranges.
class Pieces {
 public:
  void add(std::string text) {
    if (text.empty()) return;
    size_ += text.size();
    pieces_.push_back({std::move(text), {}});
  }
  void add(SharedBytes bytes) {
    if (bytes.bytes.empty()) return;
    size_ += bytes.bytes.size();
    pieces_.push_back({"", std::move(bytes)});
  }
  void add(Pieces other) {
    size_ += other.size_;
    for (Piece& piece : other.pieces_) pieces_.push_back(std::move(piece));
  }
  /// All of it in one string.
  [[nodiscard]] std::string join() const {
    std::string all;
    all.reserve(size_);
    for (const Piece& piece : pieces_) {
      if (!piece.text.empty()) all += piece.text;
      all.append(reinterpret_cast<const char*>(piece.bytes.bytes.data()), piece.bytes.bytes.size());
    }
    return all;
  }
  /// Zeros up to a multiple of `alignment`.
  void align(std::size_t alignment) { add(std::string((alignment - size_ % alignment) % alignment, '\0')); }
  [[nodiscard]] std::size_t size() const { return size_; }

  [[nodiscard]] Status write(const std::string& path, const std::string& shown) const {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    bool good = file != nullptr;
    constexpr std::size_t chunk = std::size_t{16} << 20;
    for (const Piece& piece : pieces_) {
      const auto bytes = piece.text.empty() ? piece.bytes.bytes : std::as_bytes(std::span(piece.text));
      for (std::size_t begin = 0; good && begin < bytes.size(); begin += chunk) {
        const auto part = bytes.subspan(begin, std::min(chunk, bytes.size() - begin));
        good = std::fwrite(part.data(), 1, part.size(), file) == part.size();
        if (piece.bytes.mapped && bytes.size() > chunk) release_pages(part);
      }
    }
    const int reason = errno;
    if (file != nullptr && std::fclose(file) != 0) good = false;
    if (!good) return bad_input("cannot write: " + std::string(std::strerror(reason)), {shown});
    return {};
  }

 private:
  struct Piece {
    std::string text;
    SharedBytes bytes;
  };
  std::vector<Piece> pieces_;
  std::size_t size_ = 0;
};

class Writer {
 public:
  Writer(const Document& document, const ImportedModel& imported, const ExportedGraph& exported,
         const ImportOptions& import_options, std::string path, const SaveOptions& options, Weights weights)
      : document_(document),
        imported_(imported),
        exported_(exported),
        import_options_(import_options),
        path_(std::move(path)),
        options_(options),
        weights_(weights) {}

  /// The model with its weights inside.
  Expected<std::string> bytes() {
    TASO_RETURN_IF_ERROR(make_ends());
    TASO_ASSIGN(const Pieces model, assemble());
    if (model.size() > protobuf_limit) return bad_input("the model with its weights is larger than 2 GiB", {path_});
    return model.join();
  }

  Expected<onnx::GraphProto> graph() {
    TASO_RETURN_IF_ERROR(make_ends());
    onnx::GraphProto graph = frame_;
    for (const onnx::NodeProto& node : exported_.nodes) *graph.add_node() = node;
    for (const WrittenConstant& constant : exported_.constants) {
      if (constant.document_index >= 0) {
        *graph.add_initializer() = document_.graph().initializer(constant.document_index);
        continue;
      }
      auto [tensor, bytes] = new_initializer(constant);
      tensor.set_raw_data(bytes.bytes.data(), bytes.bytes.size());
      *graph.add_initializer() = std::move(tensor);
    }
    return graph;
  }

  Expected<SaveReport> run() {
    TASO_RETURN_IF_ERROR(make_ends());
    report_.nodes = static_cast<std::int64_t>(exported_.nodes.size());
    report_.verbatim_nodes = exported_.verbatim_nodes;
    report_.folded_constants = exported_.folded;
    report_.annotated_tensors = exported_.annotated_tensors;
    external_ = options_.external_data || document_.has_external_data();
    Pieces model;
    if (!external_) {
      TASO_ASSIGN(model, assemble());
      external_ = static_cast<std::int64_t>(model.size()) > options_.inline_limit;
    }
    if (external_) {
      TASO_ASSIGN(model, assemble());
      if (model.size() > protobuf_limit)
        return bad_input("the model without its external data is larger than 2 GiB", {path_});
    }
    report_.external_data = data_.size() > 0;
    TASO_ASSIGN(const OutputFile output, find_output(path_));
    if (data_.size() > 0) {
      // The model names its data by a plain name beside itself, and links to data are refused when models are read.
      std::error_code error;
      if (output.written_through)
        return bad_input("weights cannot be put beside a device or a pipe; expected a file name", {path_});
      if (std::filesystem::is_symlink(path_ + ".data", error))
        return bad_input("cannot write: external data must not be a symbolic link", {path_ + ".data"});
    }
    if (data_.size() > 0)
      TASO_RETURN_IF_ERROR(replace_file(
          path_ + ".data", [&](const std::string& temporary) { return data_.write(temporary, path_ + ".data"); }));
    TASO_RETURN_IF_ERROR(
        replace_file(path_, [&](const std::string& temporary) { return model.write(temporary, path_); }));
    return report_;
  }

 private:
  /// All but nodes and weights, checked.
  Status make_ends() {
    make_header();
    make_frame();
    return check_structure(header_, frame_, exported_, document_);
  }

  /// The model but for its graph.
  void make_header() {
    header_ = document_.model();
    header_.clear_graph();
    bool new_constants = false, default_domain = document_.opset() != 0;
    for (const WrittenConstant& constant : exported_.constants)
      new_constants = new_constants || constant.document_index < 0;
    // Before version 4 every initializer had to be a graph input too.
    if (new_constants && header_.ir_version() < 4) header_.set_ir_version(4);
    // New nodes are those of the operator set that the file is read as.
    if (static_cast<std::int64_t>(exported_.nodes.size()) > exported_.verbatim_nodes)
      for (auto& set : *header_.mutable_opset_import())
        if (is_default_domain(set.domain()) && set.version() < document_.opset()) set.set_version(document_.opset());
    for (const onnx::FunctionProto& function : exported_.functions) {
      *header_.add_functions() = function;
      report_.functions.push_back(function.domain() + "::" + function.name());
    }
    for (const auto& [op, reason] : exported_.without_function)
      report_.without_function.emplace_back(std::string(specified_domain) + "::" + op, reason);
    if (!exported_.functions.empty() && header_.ir_version() < ir_version_of_functions) {
      report_.raised_ir_version = header_.ir_version();
      header_.set_ir_version(ir_version_of_functions);
    }
    const auto imports = [&](const std::string& domain) {
      return std::any_of(header_.opset_import().begin(), header_.opset_import().end(),
                         [&](const auto& set) { return set.domain() == domain; });
    };
    for (const onnx::NodeProto& node : exported_.nodes) {
      if (!is_default_domain(node.domain()) && !imports(node.domain())) {
        auto& set = *header_.add_opset_import();
        set.set_domain(node.domain());
        set.set_version(version_of_new_domains);
      }
      if (default_domain || !is_default_domain(node.domain())) continue;
      header_.add_opset_import()->set_version(13);
      default_domain = true;
    }
    if (options_.annotations) {
      header_.set_ir_version(std::max<std::int64_t>(header_.ir_version(), ir_version_of_annotations));
      header_.mutable_unknown_fields()->AddLengthDelimited(model_configuration_field,
                                                           device_configuration_bytes(*options_.annotations));
    }
    for (const auto& [key, value] : options_.metadata) {
      onnx::StringStringEntryProto* entry = nullptr;
      for (auto& candidate : *header_.mutable_metadata_props())
        if (candidate.key() == key) entry = &candidate;
      if (entry == nullptr) entry = header_.add_metadata_props();
      entry->set_key(key);
      entry->set_value(value);
    }
  }

  /// The graph but for its nodes and initializers.
  void make_frame() {
    frame_ = document_.graph();
    frame_.clear_node();
    frame_.clear_initializer();
    std::set<std::string> names;
    for (const onnx::NodeProto& node : exported_.nodes) names.insert(node.output().begin(), node.output().end());
    for (const WrittenConstant& constant : exported_.constants) names.insert(constant.name);
    for (const auto& input : frame_.input()) names.insert(input.name());
    frame_.clear_value_info();
    const bool replaced = !import_options_.input_shapes.empty();
    for (const onnx::ValueInfoProto& info : document_.graph().value_info()) {
      if (replaced || !names.contains(info.name())) continue;
      const auto type = exported_.types.find(info.name());
      const std::optional<Shape> declared = declared_shape(info.type());
      if (type != exported_.types.end() && type->second.known && declared && *declared != type->second.shape) continue;
      *frame_.add_value_info() = info;
    }
    if (!replaced) return;
    for (auto& input : *frame_.mutable_input()) {
      const auto shape = import_options_.input_shapes.find(input.name());
      if (shape != import_options_.input_shapes.end()) declare(input, shape->second);
    }
    for (int i = 0; i < frame_.output_size(); ++i) {
      const TensorType& type = imported_.outputs[static_cast<std::size_t>(i)].type;
      if (type.known) declare(*frame_.mutable_output(i), type.shape);
    }
  }

  static void declare(onnx::ValueInfoProto& info, const Shape& shape) {
    if (!info.type().has_tensor_type()) return;
    auto& declared = *info.mutable_type()->mutable_tensor_type()->mutable_shape();
    while (declared.dim_size() > static_cast<int>(shape.size())) declared.mutable_dim()->RemoveLast();
    while (declared.dim_size() < static_cast<int>(shape.size())) declared.add_dim();
    for (int i = 0; i < declared.dim_size(); ++i) {
      auto& extent = *declared.mutable_dim(i);
      const std::int64_t value = shape[static_cast<std::size_t>(i)];
      if (!extent.has_dim_value() || extent.dim_value() != value) extent.set_dim_value(value);
    }
  }

  // ------------------------------------------------------------------------------------------- assembling

  Expected<Pieces> assemble() {
    report_.weight_bytes = 0;
    Pieces graph;
    for (std::size_t i = 0; i < exported_.nodes.size(); ++i) TASO_RETURN_IF_ERROR(add_node(graph, i));
    onnx::GraphProto frame = frame_;
    for (auto& sparse : *frame.mutable_sparse_initializer()) {
      if (sparse.has_values()) TASO_RETURN_IF_ERROR(localize(*sparse.mutable_values()));
      if (sparse.has_indices()) TASO_RETURN_IF_ERROR(localize(*sparse.mutable_indices()));
    }
    graph.add(serialize(frame));
    for (const WrittenConstant& constant : exported_.constants) TASO_RETURN_IF_ERROR(add_initializer(graph, constant));

    onnx::ModelProto header = header_;
    for (auto& function : *header.mutable_functions())
      for (auto& node : *function.mutable_node()) TASO_RETURN_IF_ERROR(localize(node));
    for (auto& training : *header.mutable_training_info()) {
      if (training.has_initialization()) TASO_RETURN_IF_ERROR(localize(*training.mutable_initialization()));
      if (training.has_algorithm()) TASO_RETURN_IF_ERROR(localize(*training.mutable_algorithm()));
    }
    Pieces model;
    model.add(serialize(header));
    std::string prefix;
    wire::append_length_prefix(prefix, model_graph, graph.size());
    model.add(std::move(prefix));
    model.add(std::move(graph));
    return model;
  }

  Status add_node(Pieces& graph, std::size_t i) {
    const auto& skeleton = document_.skeleton();
    const int original = exported_.originals[i];
    std::string prefix;
    if (original >= 0 && !external_) {
      const auto bytes = skeleton.nodes.find(static_cast<std::size_t>(original));
      if (bytes != skeleton.nodes.end()) {
        wire::append_length_prefix(prefix, graph_node, bytes->second.size());
        graph.add(std::move(prefix));
        graph.add(document_.part(bytes->second));
        report_.weight_bytes += static_cast<std::int64_t>(bytes->second.size());
        return {};
      }
    }
    onnx::NodeProto node = exported_.nodes[i];
    stored_.clear();
    // Put back what was taken out of its attributes; external tensors come along.
    const int source = original >= 0 ? original : source_of(node);
    for (int a = 0; source >= 0 && a < node.attribute_size(); ++a) {
      const auto taken = skeleton.attributes.find({static_cast<std::size_t>(source), static_cast<std::size_t>(a)});
      if (taken == skeleton.attributes.end()) continue;
      store(*node.mutable_attribute(a)->mutable_t(), document_.part(taken->second.bytes));
    }
    TASO_RETURN_IF_ERROR(localize(node));
    std::string bytes = serialize(node);
    wire::append_length_prefix(prefix, graph_node, bytes.size());
    graph.add(std::move(prefix));
    graph.add(std::move(bytes));
    return {};
  }

  /// The document node that a changed node was copied from: the one whose first output or name it has kept.
  [[nodiscard]] int source_of(const onnx::NodeProto& node) const {
    for (const auto& [place, taken] : document_.skeleton().attributes) {
      const onnx::NodeProto& candidate = document_.node(static_cast<int>(place.first));
      if (candidate.op_type() == node.op_type() && candidate.attribute_size() == node.attribute_size() &&
          ((!candidate.name().empty() && candidate.name() == node.name()) ||
           (candidate.output_size() > 0 && node.output_size() > 0 && candidate.output(0) == node.output(0))))
        return static_cast<int>(place.first);
    }
    return -1;
  }

  /// A constant that is none of the document, and its bytes; none where only its shape is written.
  [[nodiscard]] std::pair<onnx::TensorProto, SharedBytes> new_initializer(const WrittenConstant& constant) const {
    const ConstantData& data = *constant.data;
    onnx::TensorProto tensor;
    tensor.set_name(constant.name);
    tensor.set_data_type(data_type_of(data.type().element));
    for (std::int64_t extent : data.type().shape) tensor.add_dims(extent);
    if (weights_ == Weights::shapes && is_real(data.type().element) && data.type().elements() >= smallest_shape)
      return {std::move(tensor), {}};
    if (data.is_dense()) return {std::move(tensor), {data.dense_bytes(), constant.data, false}};
    auto expanded = std::make_shared<const std::vector<std::byte>>(data.to_bytes());
    return {std::move(tensor), {*expanded, expanded, false}};
  }

  Status add_initializer(Pieces& graph, const WrittenConstant& constant) {
    onnx::TensorProto tensor;
    SharedBytes bytes;
    if (constant.document_index >= 0) {
      tensor = document_.graph().initializer(constant.document_index);
      const TensorContents& contents = document_.initializer(constant.document_index);
      if (contents.external || document_.has_bytes_outside(constant.document_index)) {
        bytes = contents.bytes;
      } else if (external_ && contents.data_type != onnx::TensorProto::STRING &&
                 static_cast<std::int64_t>(contents.bytes.bytes.size()) >= options_.external_minimum) {
        bytes = contents.bytes;
        clear_data(tensor);
      }
      tensor.clear_external_data();
      tensor.clear_data_location();
      report_.weight_bytes += static_cast<std::int64_t>(contents.bytes.bytes.size());
    } else {
      const ConstantData& data = *constant.data;
      std::tie(tensor, bytes) = new_initializer(constant);
      if (bytes.bytes.empty() && data.type().elements() == 0) tensor.set_raw_data("");
      report_.weight_bytes += static_cast<std::int64_t>(bytes.bytes.size());
    }
    if (weights_ == Weights::shapes && is_real(element_of(tensor.data_type())) &&
        volume(Shape(tensor.dims().begin(), tensor.dims().end())) >= smallest_shape) {
      clear_data(tensor);
      bytes = {};
    }
    std::string prefix;
    if (bytes.bytes.empty() || is_external(bytes)) {
      if (!bytes.bytes.empty()) store(tensor, bytes);
      const std::string text = serialize(tensor);
      wire::append_length_prefix(prefix, graph_initializer, text.size());
      graph.add(prefix + text);
      return {};
    }
    const std::string text = serialize(tensor);
    std::string raw_prefix;
    wire::append_length_prefix(raw_prefix, tensor_raw_data, bytes.bytes.size());
    wire::append_length_prefix(prefix, graph_initializer, text.size() + raw_prefix.size() + bytes.bytes.size());
    graph.add(prefix + text + raw_prefix);
    graph.add(std::move(bytes));
    return {};
  }

  [[nodiscard]] bool is_external(const SharedBytes& bytes) const {
    return external_ && static_cast<std::int64_t>(bytes.bytes.size()) >= options_.external_minimum;
  }

  static void clear_data(onnx::TensorProto& tensor) {
    tensor.clear_raw_data();
    tensor.clear_float_data();
    tensor.clear_int32_data();
    tensor.clear_int64_data();
    tensor.clear_double_data();
    tensor.clear_uint64_data();
  }

  /// Gives a tensor its bytes: in the data file if they are many enough and there is to be one, else in the message.
  void store(onnx::TensorProto& tensor, const SharedBytes& bytes) {
    clear_data(tensor);
    tensor.clear_external_data();
    tensor.clear_data_location();
    if (!is_external(bytes)) {
      tensor.set_raw_data(bytes.bytes.data(), bytes.bytes.size());
      return;
    }
    constexpr std::size_t page = 4096, line = 64, large = std::size_t{1} << 20;
    data_.align(bytes.bytes.size() >= large ? page : line);
    auto add = [&](const std::string& key, const std::string& value) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    add("location", std::filesystem::path(path_).filename().string() + ".data");
    add("offset", std::to_string(data_.size()));
    add("length", std::to_string(bytes.bytes.size()));
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    data_.add(bytes);
    stored_.insert(&tensor);
  }

  /// Moves external tensors in nodes and subgraphs from the old data files to where the new model finds them.
  Status localize(onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return {};
    if (stored_.contains(&tensor)) return {};
    TASO_ASSIGN(const TensorContents contents, document_.external_tensor(tensor));
    store(tensor, contents.bytes);
    return {};
  }

  Status localize(onnx::NodeProto& node) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) TASO_RETURN_IF_ERROR(localize(*attribute.mutable_t()));
      for (auto& tensor : *attribute.mutable_tensors()) TASO_RETURN_IF_ERROR(localize(tensor));
      if (attribute.has_g()) TASO_RETURN_IF_ERROR(localize(*attribute.mutable_g()));
      for (auto& graph : *attribute.mutable_graphs()) TASO_RETURN_IF_ERROR(localize(graph));
    }
    return {};
  }

  Status localize(onnx::GraphProto& graph) {
    for (auto& tensor : *graph.mutable_initializer()) TASO_RETURN_IF_ERROR(localize(tensor));
    for (auto& node : *graph.mutable_node()) TASO_RETURN_IF_ERROR(localize(node));
    return {};
  }

  const Document& document_;
  const ImportedModel& imported_;
  const ExportedGraph& exported_;
  const ImportOptions& import_options_;
  std::string path_;
  const SaveOptions& options_;
  onnx::ModelProto header_;
  onnx::GraphProto frame_;
  Weights weights_;
  bool external_ = false;
  Pieces data_;
  std::set<const onnx::TensorProto*> stored_;  // Tensors of the node at hand that lie in data_ already.
  SaveReport report_;
};

/// Names that subgraphs of a node read but do not define are checked with the node.
Status check_domain(const onnx::NodeProto& node, const std::set<std::string>& domains) {
  if (node.op_type().empty()) return internal_error("a node without operator type would be written");
  if (!domains.contains(is_default_domain(node.domain()) ? "" : node.domain()))
    return internal_error("operator " + in_quotes(node.op_type()) + " of domain " + in_quotes(node.domain()) +
                          ", which is not imported, would be written");
  return {};
}

}  // namespace

Status check_structure(const onnx::ModelProto& header, const onnx::GraphProto& frame, const ExportedGraph& exported,
                       const Document& document) {
  std::set<std::string> domains, defined, inputs;
  for (const auto& set : header.opset_import()) domains.insert(is_default_domain(set.domain()) ? "" : set.domain());
  auto define = [&](const std::string& name, const std::string& what) -> Status {
    if (!name.empty() && !defined.insert(name).second)
      return internal_error("tensor " + in_quotes(name) + " would be defined twice, the second time as " + what);
    return {};
  };
  for (const auto& input : frame.input()) {
    inputs.insert(input.name());
    TASO_RETURN_IF_ERROR(define(input.name(), "a graph input"));
  }
  auto define_initializer = [&](const std::string& name) -> Status {
    if (inputs.erase(name) > 0) return {};
    return define(name, "an initializer");
  };
  for (const WrittenConstant& constant : exported.constants) TASO_RETURN_IF_ERROR(define_initializer(constant.name));
  for (const auto& sparse : frame.sparse_initializer())
    TASO_RETURN_IF_ERROR(define_initializer(sparse.values().name()));
  for (std::size_t i = 0; i < exported.nodes.size(); ++i) {
    const onnx::NodeProto& node = exported.nodes[i];
    TASO_RETURN_IF_ERROR(check_domain(node, domains));
    auto use = [&](const std::string& name) -> Status {
      if (!name.empty() && !defined.contains(name))
        return internal_error("operator " + in_quotes(node.op_type()) + " would read " + in_quotes(name) +
                              " before it is defined");
      return {};
    };
    for (const auto& name : node.input()) TASO_RETURN_IF_ERROR(use(name));
    if (exported.originals[i] >= 0)
      for (const auto& name : document.captures(exported.originals[i])) TASO_RETURN_IF_ERROR(use(name));
    for (const auto& name : node.output()) TASO_RETURN_IF_ERROR(define(name, "an output of " + node.op_type()));
  }
  for (const auto& output : frame.output()) {
    if (!defined.contains(output.name()))
      return internal_error("graph output " + in_quotes(output.name()) + " would not be defined");
  }
  return {};
}

Expected<SaveReport> write_model(const Document& document, const ImportedModel& imported, const ExportedGraph& exported,
                                 const ImportOptions& import_options, const std::string& path,
                                 const SaveOptions& options) {
  return Writer(document, imported, exported, import_options, path, options, Weights::whole).run();
}

Expected<onnx::GraphProto> graph_message(const Document& document, const ImportedModel& imported,
                                         const ExportedGraph& exported) {
  return Writer(document, imported, exported, {}, document.path(), {}, Weights::whole).graph();
}

Expected<std::string> model_bytes(const Document& document, const ImportedModel& imported,
                                  const ExportedGraph& exported, const ImportOptions& import_options, Weights weights) {
  const SaveOptions options;
  return Writer(document, imported, exported, import_options, document.path(), options, weights).bytes();
}

}  // namespace taso
