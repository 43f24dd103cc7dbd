#include "operators/size_functions.h"

#include <algorithm>
#include <array>

namespace taso {
namespace {

using Argument = SizeArgument;
using Result = SizeResult;

constexpr Argument one_vector[] = {Argument::vector};
constexpr Argument list[] = {Argument::integers};
constexpr Argument list_and_count[] = {Argument::integers, Argument::integer};
constexpr Argument vector_and_count[] = {Argument::vector, Argument::integer};
constexpr Argument number_and_count[] = {Argument::integer, Argument::integer};
constexpr Argument indices_and_shape[] = {Argument::vector, Argument::integers};
constexpr Argument axes_and_two[] = {Argument::integers, Argument::integer_or_integers, Argument::integer_or_integers};
constexpr Argument sizes[] = {Argument::integer_or_integers};
constexpr Argument anything[] = {Argument::whole};

// By name.
constexpr std::array<SizeBuiltinSpec, 15> builtins = {{
    {"before", SizeBuiltin::before, list_and_count, false, Result::integer},
    {"first", SizeBuiltin::first, vector_and_count, false, Result::as_first},
    {"inverse", SizeBuiltin::inverse, list, false, Result::integers},
    {"is_permutation", SizeBuiltin::is_permutation, list, false, Result::boolean},
    {"join", SizeBuiltin::join, anything, true, Result::joined},
    {"last", SizeBuiltin::last, vector_and_count, false, Result::as_first},
    {"length", SizeBuiltin::length, one_vector, false, Result::integer},
    {"max", SizeBuiltin::max, sizes, true, Result::widest},
    {"min", SizeBuiltin::min, sizes, true, Result::widest},
    {"nonzero", SizeBuiltin::nonzero, list, false, Result::integers},
    {"on", SizeBuiltin::on, axes_and_two, false, Result::integers},
    {"position", SizeBuiltin::position, indices_and_shape, false, Result::index},
    {"prod", SizeBuiltin::prod, list, false, Result::integer},
    {"repeat", SizeBuiltin::repeat, number_and_count, false, Result::integers},
    {"sum", SizeBuiltin::sum, list, false, Result::integer},
}};

}  // namespace

std::span<const SizeBuiltinSpec> size_builtins() { return builtins; }

const SizeBuiltinSpec* find_size_builtin(std::string_view name) {
  const auto found = std::lower_bound(builtins.begin(), builtins.end(), name,
                                      [](const SizeBuiltinSpec& spec, std::string_view n) { return spec.name < n; });
  return found != builtins.end() && found->name == name ? &*found : nullptr;
}

}  // namespace taso
