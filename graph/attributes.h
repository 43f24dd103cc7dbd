/// Attribute values of operator applications.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/hash.h"

namespace taso {

/// A name used as a value, e.g. the activation of a fused convolution (`act=relu`).
struct SymbolValue {
  std::string name;
  auto operator<=>(const SymbolValue&) const = default;
};

/// An attribute value: integer, real, list of integers, or the name of a function.
using AttributeValue = std::variant<std::int64_t, double, std::vector<std::int64_t>, SymbolValue>;

/// "2", "0.5", "[1, 1]", "relu": the spelling used in rules and graphs; reals round-trip.
[[nodiscard]] std::string to_string(const AttributeValue& value);
void add_to_hash(Hasher& hasher, const AttributeValue& value);

/// Attributes by name, kept sorted by name so that equal sets compare and hash equal.
class Attributes {
 public:
  using Entry = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);

  void set(std::string_view name, AttributeValue value);
  /// The value, or nullptr.
  [[nodiscard]] const AttributeValue* find(std::string_view name) const;
  /// The value of a type that the caller has made sure of (TASO_CHECK).
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] const std::vector<std::int64_t>& integers(std::string_view name) const;
  [[nodiscard]] const std::string& symbol(std::string_view name) const;

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  bool operator==(const Attributes&) const = default;
  auto operator<=>(const Attributes&) const = default;

 private:
  std::vector<Entry> entries_;
};

/// "axis=-1, sizes=[2, 2]".
[[nodiscard]] std::string to_string(const Attributes& attributes);

}  // namespace taso
