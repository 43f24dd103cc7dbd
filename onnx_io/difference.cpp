#include "onnx_io/difference.h"

#include <algorithm>

#include "onnx_io/document.h"
#include "onnx_io/in_quotes.h"
#include "support/file.h"

namespace taso {
namespace {

Expected<std::shared_ptr<const Document>> open(const std::string& path) {
  TASO_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  const auto bytes = file->bytes();
  return Document::parse(bytes, std::move(file), true, path);
}

/// The first of two lists of messages that differs, as `name` tells it; empty if none does.
template <class List, class Name>
std::string difference(const List& a, const List& b, const Name& name) {
  for (int i = 0; i < std::max(a.size(), b.size()); ++i)
    if (i >= a.size() || i >= b.size() || a[i].SerializeAsString() != b[i].SerializeAsString())
      return name(i < b.size() ? b[i] : a[i], i);
  return "";
}

}  // namespace

Expected<std::string> first_difference(const std::string& path, const std::string& other) {
  TASO_ASSIGN(const std::shared_ptr<const Document> a, open(path));
  const auto opened = open(other);
  if (!opened) return opened.error().message;
  const std::shared_ptr<const Document>& b = *opened;
  std::string found = difference(a->graph().node(), b->graph().node(), [](const onnx::NodeProto& node, int i) {
    return "node " + std::to_string(i) + (node.name().empty() ? "" : ", " + in_quotes(node.name())) + " (" +
           node.op_type() + ")";
  });
  if (!found.empty()) return found;
  const auto tensor = [](const auto& entry, int) { return "initializer " + in_quotes(entry.name()); };
  const auto &mine = a->graph().initializer(), &theirs = b->graph().initializer();
  for (int i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    if (i >= mine.size() || i >= theirs.size() || mine[i].name() != theirs[i].name())
      return tensor(i < theirs.size() ? theirs[i] : mine[i], i);
    const TensorContents &x = a->initializer(i), &y = b->initializer(i);
    if (x.data_type != y.data_type || x.type.shape != y.type.shape || !std::ranges::equal(x.bytes.bytes, y.bytes.bytes))
      return tensor(theirs[i], i);
  }
  found = difference(a->graph().input(), b->graph().input(),
                     [](const auto& value, int) { return "graph input " + in_quotes(value.name()); });
  if (!found.empty()) return found;
  found = difference(a->graph().output(), b->graph().output(),
                     [](const auto& value, int) { return "graph output " + in_quotes(value.name()); });
  if (!found.empty()) return found;
  found = difference(a->model().metadata_props(), b->model().metadata_props(),
                     [](const auto& entry, int) { return "metadata " + in_quotes(entry.key()); });
  return found.empty() ? "bytes that are no part of the graph" : found;
}

}  // namespace taso
