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

struct Field {
  int number = 0;
  int wire_type = 0;
  std::span<const std::byte> whole;    // Tag and payload.
  std::span<const std::byte> payload;  // Of a length-delimited field.
};

/// Reads the fields of one message in order.
class Reader {
 public:
  Reader(std::span<const std::byte> message, const std::byte* file_begin, const std::string& path)
      : rest_(message), file_begin_(file_begin), path_(&path) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }

  Expected<Field> next() {
    const std::span<const std::byte> start = rest_;
    Field field;
    TASO_ASSIGN(const std::uint64_t tag, varint());
    field.number = static_cast<int>(tag >> 3);
    field.wire_type = static_cast<int>(tag & 7);
    if ((tag >> 3) == 0 || (tag >> 3) > 0x1fffffff) return malformed(start, "a field has no valid number");
    switch (field.wire_type) {
      case 0: {
        TASO_ASSIGN([[maybe_unused]] const std::uint64_t value, varint());
        break;
      }
      case 1:
        TASO_RETURN_IF_ERROR(skip(8));
        break;
      case 5:
        TASO_RETURN_IF_ERROR(skip(4));
        break;
      case 2: {
        TASO_ASSIGN(const std::uint64_t length, varint());
        if (length > rest_.size())
          return bad_input("the file is truncated or not an ONNX model: the field at byte " +
                               std::to_string(start.data() - file_begin_) + " needs " + std::to_string(length) +
                               " bytes, " + std::to_string(rest_.size()) + " are left",
                           {*path_});
        field.payload = rest_.first(length);
        rest_ = rest_.subspan(length);
        break;
      }
      default:
        return malformed(start, "a field has wire type " + std::to_string(field.wire_type));
    }
    field.whole = start.first(start.size() - rest_.size());
    return field;
  }

 private:
  Expected<std::uint64_t> varint() {
    const std::span<const std::byte> start = rest_;
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return malformed(start, "a number is cut off");
      const auto byte = std::to_integer<std::uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return malformed(start, "a number has more than ten bytes");
  }

  Status skip(std::size_t count) {
    if (rest_.size() < count) return malformed(rest_, "a number is cut off");
    rest_ = rest_.subspan(count);
    return {};
  }

  Error malformed(std::span<const std::byte> place, const std::string& what) const {
    return bad_input("not an ONNX model: " + what + " at byte " + std::to_string(place.data() - file_begin_), {*path_});
  }

  std::span<const std::byte> rest_;
  const std::byte* file_begin_;
  const std::string* path_;
};

void append(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Rewrites messages without their large tensors.
class Stripper {
 public:
  Stripper(std::span<const std::byte> file, const std::string& path, std::size_t minimum)
      : file_(file), path_(path), minimum_(minimum) {}

  Expected<Skeleton> run() {
    Reader reader = read(file_);
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
  [[nodiscard]] Reader read(std::span<const std::byte> message) const { return {message, file_.data(), path_}; }

  Expected<std::string> strip_graph(std::span<const std::byte> graph) {
    std::string out;
    Reader reader = read(graph);
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
    Reader reader = read(node);
    while (!reader.done()) {
      TASO_ASSIGN(const Field field, reader.next());
      if (field.number != node_attribute || field.wire_type != 2) {
        append(out, field.whole);
        continue;
      }
      std::string attribute;
      Reader inner = read(field.payload);
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
    Reader reader = read(tensor);
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

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void append_length_prefix(std::string& out, int field, std::uint64_t length) {
  append_varint(out, (static_cast<std::uint64_t>(field) << 3) | 2);
  append_varint(out, length);
}

}  // namespace taso::wire
