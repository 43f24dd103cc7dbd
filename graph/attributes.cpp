#include "graph/attributes.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/tensor_type.h"
#include "support/status.h"

namespace taso {
namespace {

template <class T>
const T& typed(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = attributes.find(name);
  TASO_CHECK(value != nullptr && std::holds_alternative<T>(*value),
             "attribute " + std::string(name) + " is missing or of another type");
  return std::get<T>(*value);
}

}  // namespace

std::string to_string(const AttributeValue& value) {
  struct Printer {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const {
      std::string text = fmt::format("{}", v);
      if (text.find_first_of(".eni") == std::string::npos) text += ".0";
      return text;
    }
    std::string operator()(const std::vector<std::int64_t>& v) const { return to_string(std::span(v)); }
    std::string operator()(const SymbolValue& v) const { return v.name; }
  };
  return std::visit(Printer{}, value);
}

void add_to_hash(Hasher& hasher, const AttributeValue& value) {
  hasher.add(static_cast<std::uint64_t>(value.index()));
  struct Adder {
    Hasher& hasher;
    void operator()(std::int64_t v) const { hasher.add(v); }
    void operator()(double v) const { hasher.add(v); }
    void operator()(const std::vector<std::int64_t>& v) const {
      hasher.add(static_cast<std::uint64_t>(v.size()));
      for (std::int64_t e : v) hasher.add(e);
    }
    void operator()(const SymbolValue& v) const { hasher.add(std::string_view(v.name)); }
  };
  std::visit(Adder{hasher}, value);
}

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

void Attributes::set(std::string_view name, AttributeValue value) {
  auto place = std::lower_bound(entries_.begin(), entries_.end(), name,
                                [](const Entry& entry, std::string_view key) { return entry.first < key; });
  if (place != entries_.end() && place->first == name)
    place->second = std::move(value);
  else
    entries_.insert(place, Entry(std::string(name), std::move(value)));
}

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.first == name) return &entry.second;
  return nullptr;
}

std::int64_t Attributes::integer(std::string_view name) const { return typed<std::int64_t>(*this, name); }
double Attributes::real(std::string_view name) const { return typed<double>(*this, name); }
const std::vector<std::int64_t>& Attributes::integers(std::string_view name) const {
  return typed<std::vector<std::int64_t>>(*this, name);
}
const std::string& Attributes::symbol(std::string_view name) const { return typed<SymbolValue>(*this, name).name; }

std::string to_string(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes.entries())
    text += (text.empty() ? "" : ", ") + name + "=" + to_string(value);
  return text;
}

}  // namespace taso
