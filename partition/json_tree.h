/// JSON as a tree that knows its lines: for files that people write, whose mistakes are to be found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/status.h"

namespace taso {

/// A value of a JSON text. Integers beyond 64 bits are reals, as are numbers with a point or an exponent.
struct JsonTree {
  using List = std::vector<JsonTree>;
  using Object = std::vector<std::pair<std::string, JsonTree>>;  ///< In the order of the text; no name is there twice.

  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, List, Object> value = nullptr;
  int line = 0;  ///< Of a member: that of its name; of all else: where it begins.

  /// What it is, for messages: null, true, 12, "text" (quoted, cut where it is long), a list, an object.
  [[nodiscard]] std::string kind() const;
};

/// A JSON text (RFC 8259) as a tree. bad_input with the line of `file`: what is no JSON, a name that an object has
/// twice, numbers that no double holds, lists and objects nested deeper than 16.
[[nodiscard]] Expected<JsonTree> parse_json_tree(const std::string& text, const std::string& file);

}  // namespace taso
