/// The functions of sizes and indices that the language has by itself, as a table: what they take and what they are.
/// What they compute stands in operators/size_interpreter.h, once for all domains of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "operators/definition.h"

namespace taso {

/// What an argument may be.
enum class SizeArgument : std::uint8_t {
  integer,              ///< A size.
  integers,             ///< A vector of sizes.
  integer_or_integers,  ///< Either.
  vector,               ///< A vector of sizes or of indices.
  whole,                ///< A size, an index, or a vector of them.
};

/// What a call is.
enum class SizeResult : std::uint8_t {
  integer,   ///< A size.
  integers,  ///< A vector of sizes.
  index,     ///< An index.
  boolean,   ///< A condition.
  as_first,  ///< What the first argument is.
  joined,    ///< A vector of what the arguments are.
  widest,    ///< A vector of sizes where an argument is one, otherwise a size.
};

/// One function of the table.
struct SizeBuiltinSpec {
  std::string_view name;
  SizeBuiltin function = SizeBuiltin::none;
  std::span<const SizeArgument> arguments;  ///< Of a variadic function: of all its arguments.
  bool variadic = false;                    ///< Takes one argument or more.
  SizeResult result = SizeResult::integer;
};

/// nullptr if the language has no function of this name. `max` and `min` are found, though their arguments may also be
/// scalars.
[[nodiscard]] const SizeBuiltinSpec* find_size_builtin(std::string_view name);
/// All of them, by name.
[[nodiscard]] std::span<const SizeBuiltinSpec> size_builtins();

}  // namespace taso
