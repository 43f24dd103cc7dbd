#include "onnx_io/wire.h"

#include <cstring>

namespace taso::wire {
namespace {

// Field numbers of onnx.proto.
constexpr int model_graph = 7;
constexpr int graph_node = 1, graph_initializer = 5;
constexpr int node_attribute = 5;
constexpr int attribute_tensor = 5;
constexpr int tensor_float_data = 4, tensor_raw_data = 9;

void append(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Rewrites messages without their large tensors.
class Stripper {
 public:
  Stripper(std::span<const std::byte> file, const std::string& path, std::size_t minimum)
      : file_(file), path_(path), minimum_(minimum) {}

  Expected<Skeleton> run() {
    FieldReader reader = read(file_);
    while (!reader.done()) {
      TASO_ASSIGN(const Field field, reader.next());
      if (field.number != model_graph || field.wire_type != 2) {
        append(skeleton_.bytes, field.whole);
        continue;
      }
      TASO_ASSIGN(const std::string graph, strip_graph(field.payload));
      append_length_prefix(skeleton_.bytes, model_graph, graph.size());
      skeleton_.bytes += graph;
    }
    return std::move(skeleton_);
  }

 private:
  [[nodiscard]] FieldReader read(std::span<const std::byte> message) const {
    return {message, file_.data(), path_, "an ONNX model"};
  }

  Expected<std::string> strip_graph(std::span<const std::byte> graph) {
    std::string out;
    FieldReader reader = read(graph);
    while (!reader.done()) {
      TASO_ASSIGN(const Field field, reader.next());
      if (field.number == graph_initializer && field.wire_type == 2) {
        std::optional<TakenData> taken;
        TASO_ASSIGN(const std::string tensor, strip_tensor(field.payload, taken));
        if (taken) skeleton_.initializers[initializers_] = *taken;
        ++initializers_;
        append_length_prefix(out, graph_initializer, tensor.size());
        out += tensor;
      } else if (field.number == graph_node && field.wire_type == 2) {
        TASO_ASSIGN(const std::string node, strip_node(field.payload));
        append_length_prefix(out, graph_node, node.size());
        out += node;
      } else {
        append(out, field.whole);
      }
    }
    return out;
  }

  Expected<std::string> strip_node(std::span<const std::byte> node) {
    const std::size_t index = nodes_++;
    // Small nodes hold no large tensor: the usual case, copied as it is.
    std::string out;
    if (node.size() < minimum_) {
      append(out, node);
      return out;
    }
    std::size_t attributes = 0;
    bool stripped = false;
    FieldReader reader = read(node);
    while (!reader.done()) {
      TASO_ASSIGN(const Field field, reader.next());
      if (field.number != node_attribute || field.wire_type != 2) {
        append(out, field.whole);
        continue;
      }
      std::string attribute;
      FieldReader inner = read(field.payload);
      while (!inner.done()) {
        TASO_ASSIGN(const Field part, inner.next());
        if (part.number != attribute_tensor || part.wire_type != 2) {
          append(attribute, part.whole);
          continue;
        }
        std::optional<TakenData> taken;
        TASO_ASSIGN(const std::string tensor, strip_tensor(part.payload, taken));
        if (taken) {
          skeleton_.attributes[{index, attributes}] = *taken;
          stripped = true;
        }
        append_length_prefix(attribute, attribute_tensor, tensor.size());
        attribute += tensor;
      }
      ++attributes;
      append_length_prefix(out, node_attribute, attribute.size());
      out += attribute;
    }
    if (stripped) skeleton_.nodes[index] = node;
    return out;
  }

  Expected<std::string> strip_tensor(std::span<const std::byte> tensor, std::optional<TakenData>& taken) {
    std::string out;
    if (tensor.size() < minimum_) {
      append(out, tensor);
      return out;
    }
    std::vector<Field> fields;
    int payloads = 0;
    FieldReader reader = read(tensor);
    while (!reader.done()) {
      TASO_ASSIGN(Field field, reader.next());
      payloads += field.number == tensor_raw_data || field.number == tensor_float_data ? 1 : 0;
      fields.push_back(field);
    }
    for (const Field& field : fields) {
      const bool payload = field.number == tensor_raw_data || field.number == tensor_float_data;
      if (payload && payloads == 1 && field.wire_type == 2 && field.payload.size() >= minimum_)
        taken = TakenData{field.payload, field.number};
      else
        append(out, field.whole);
    }
    return out;
  }

  std::span<const std::byte> file_;
  const std::string& path_;
  std::size_t minimum_;
  Skeleton skeleton_;
  std::size_t initializers_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace

Expected<Skeleton> take_weights_out(std::span<const std::byte> file, const std::string& path, std::size_t minimum) {
  return Stripper(file, path, minimum).run();
}

}  // namespace taso::wire
