#include "operators/machine_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "graph/reals.h"
#include "graph/words.h"

namespace taso {
namespace machine {
namespace {

using Numbers = std::span<const MachineNumber>;
using Domain = ElementDomain;

MachineNumber truth(bool value) { return {value ? 1.0 : 0.0, value ? 1 : 0}; }
MachineNumber word(std::int64_t value, const MachineTypes& types) { return {0, wrapped(value, types.integers)}; }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t word_of(std::uint64_t value) { return static_cast<std::int64_t>(value); }

bool less(std::int64_t x, std::int64_t y, const MachineTypes& types) {
  return is_unsigned(types.integers) ? bits(x) < bits(y) : x < y;
}

/// The quotient towards 0. No quotient by 0 is defined, by ONNX neither: here it is 0, and the remainder the dividend.
std::int64_t quotient(std::int64_t x, std::int64_t y, const MachineTypes& types) {
  if (y == 0) return 0;
  if (is_unsigned(types.integers)) return word_of(bits(x) / bits(y));
  return y == -1 ? word_of(0 - bits(x)) : x / y;
}
/// What that division leaves: of the sign of x.
std::int64_t remainder(std::int64_t x, std::int64_t y, const MachineTypes& types) {
  return word_of(bits(x) - bits(quotient(x, y, types)) * bits(y));
}

std::int64_t power(std::int64_t x, std::int64_t exponent, const MachineTypes& types) {
  if (exponent < 0 && !is_unsigned(types.integers)) return x == 1 ? 1 : x == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t result = 1;
  std::uint64_t square = bits(x);
  for (std::uint64_t rest = bits(exponent); rest != 0; rest >>= 1U) {
    if ((rest & 1U) != 0) result *= square;
    square *= square;
  }
  return word_of(result);
}

/// Whether the type has the whole number towards 0.
bool has_whole(double value, ElementType to) {
  const double cut = std::trunc(value), values = std::ldexp(1.0, static_cast<int>(8 * size_of(to)));
  return is_unsigned(to) ? cut >= 0 && cut < values : cut >= -values / 2 && cut < values / 2;
}

bool divides_by_zero(Numbers x, const MachineTypes&) { return x[1].word == 0; }

/// Whether a power is more than every runtime computes exactly: some compute it in f64.
bool is_no_power(Numbers x, const MachineTypes& types) {
  const auto real = [&](std::int64_t word) {
    return is_unsigned(types.integers) ? static_cast<double>(bits(word)) : static_cast<double>(word);
  };
  const double value = std::pow(real(x[0].word), real(x[1].word));
  return !(std::abs(value) < 9007199254740992.0) || std::trunc(value) != value || !has_whole(value, types.integers);
}

unsigned width(const MachineTypes& types) { return static_cast<unsigned>(8 * size_of(types.integers)); }

bool shifts_too_far(Numbers x, const MachineTypes& types) { return bits(x[1].word) >= width(types); }

std::int64_t shifted(std::int64_t x, std::int64_t count, bool left, const MachineTypes& types) {
  if (bits(count) >= width(types)) return 0;
  return word_of(left ? bits(x) << bits(count) : bits(x) >> bits(count));
}

/// The whole number towards 0. Beyond the type ONNX defines nothing: it is what processors of the x86 kind make then,
/// which convert to 32 bits, or 64 where the type is wider, and have the least number for what does not fit.
std::int64_t whole(double value, ElementType to) {
  constexpr double end = 9223372036854775808.0;  // 2^63
  const double cut = std::trunc(value);
  if (to == ElementType::u64 && cut >= end && cut < 2 * end) return word_of(static_cast<std::uint64_t>(cut));
  if (size_of(to) < 4 || to == ElementType::i32)
    return cut >= -2147483648.0 && cut < 2147483648.0 ? static_cast<std::int64_t>(cut)
                                                      : std::numeric_limits<std::int32_t>::min();
  return cut >= -end && cut < end ? static_cast<std::int64_t>(cut) : std::numeric_limits<std::int64_t>::min();
}

MachineNumber converted(const MachineNumber& x, const MachineTypes& types) {
  const ElementType from = types.from, to = types.to;
  if (to == ElementType::boolean) return truth(is_real(from) ? x.real != 0 : x.word != 0);
  if (is_word(to)) return {0, wrapped(is_real(from) ? whole(x.real, to) : x.word, to)};
  if (is_real(from)) return {rounded(x.real, to), 0};
  // Rounded once to f32, also where a double does not hold the integer; to narrower ones from there, as runtimes do.
  if (to != ElementType::f64)
    return {rounded(from == ElementType::u64 ? static_cast<float>(bits(x.word)) : static_cast<float>(x.word), to), 0};
  return {rounded(from == ElementType::u64 ? static_cast<double>(bits(x.word)) : static_cast<double>(x.word), to), 0};
}

bool is_no_whole_number(Numbers x, const MachineTypes& types) {
  return is_real(types.from) && is_integer(types.to) && !has_whole(x[0].real, types.to);
}

/// What a real is in multiples of a scale: as runtimes have it, whose reals are f32 or, where they are, f64.
double multiple(Numbers x, const MachineTypes& types) {
  const double value = x[0].real / x[1].real;
  return types.from == ElementType::f64 ? value : rounded(value, ElementType::f32);
}

/// To the nearest, halves to even, moved by the zero point, or the nearest one that the type has; of NaN the least one,
/// as processors of the x86 kind make.
MachineNumber quantized(Numbers x, const MachineTypes& types) {
  const double values = std::ldexp(1.0, static_cast<int>(8 * size_of(types.integers)));
  const double least = is_unsigned(types.integers) ? 0.0 : -values / 2, value = multiple(x, types);
  const double moved = std::nearbyint(value) + static_cast<double>(x[2].word);
  if (!(moved >= least)) return word(static_cast<std::int64_t>(least), types);
  return word(static_cast<std::int64_t>(std::min(moved, least + values - 1)), types);
}

/// The distance from the zero point is rounded to f32 before it is scaled, as runtimes have it.
MachineNumber dequantized(Numbers x, const MachineTypes& types) {
  const double distance = static_cast<double>(word_of(bits(x[0].word) - bits(x[2].word)));
  return {rounded(rounded(distance, ElementType::f32) * x[1].real, types.to), 0};
}

bool is_no_multiple(Numbers x, const MachineTypes& types) { return std::isnan(multiple(x, types)); }

struct Row {
  std::string_view name;
  std::array<Domain, 3> parameters;
  std::size_t count;
  Domain result;
  MachineNumber (*function)(Numbers, const MachineTypes&);
  bool (*undefined)(Numbers, const MachineTypes&) = nullptr;  ///< For what ONNX defines no value, nor runtimes agree.
};

constexpr Domain R = Domain::real, I = Domain::integer, B = Domain::boolean, A = Domain::any;

/// This table is all that C++ knows of functions of integers, of truth values and of those that make them of reals.
constexpr std::array<Row, 38> rows = {{
    {"bitwise_and",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(x[0].word & x[1].word, types); }},
    {"bitwise_not", {I, I, I}, 1, I, [](Numbers x, const MachineTypes& types) { return word(~x[0].word, types); }},
    {"bitwise_or",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(x[0].word | x[1].word, types); }},
    {"bitwise_xor",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(x[0].word ^ x[1].word, types); }},
    {"cast",
     {A, A, A},
     1,
     A,
     [](Numbers x, const MachineTypes& types) { return converted(x[0], types); },
     is_no_whole_number},
    {"choose", {B, A, A}, 3, A, [](Numbers x, const MachineTypes&) { return x[0].word != 0 ? x[1] : x[2]; }},
    {"choose_integer", {B, I, I}, 3, I, [](Numbers x, const MachineTypes&) { return x[0].word != 0 ? x[1] : x[2]; }},
    {"dequantize", {I, R, I}, 3, R, dequantized},
    {"equal", {R, R, R}, 2, B, [](Numbers x, const MachineTypes&) { return truth(x[0].real == x[1].real); }},
    {"integer_abs",
     {I, I, I},
     1,
     I,
     [](Numbers x, const MachineTypes& types) {
       return word(less(x[0].word, 0, types) ? word_of(0 - bits(x[0].word)) : x[0].word, types);
     }},
    {"integer_add",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(word_of(bits(x[0].word) + bits(x[1].word)), types); }},
    {"integer_div",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(quotient(x[0].word, x[1].word, types), types); },
     divides_by_zero},
    {"integer_equal", {I, I, I}, 2, B, [](Numbers x, const MachineTypes&) { return truth(x[0].word == x[1].word); }},
    {"integer_less",
     {I, I, I},
     2,
     B,
     [](Numbers x, const MachineTypes& types) { return truth(less(x[0].word, x[1].word, types)); }},
    {"integer_less_equal",
     {I, I, I},
     2,
     B,
     [](Numbers x, const MachineTypes& types) { return truth(!less(x[1].word, x[0].word, types)); }},
    {"integer_maximum",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return less(x[0].word, x[1].word, types) ? x[1] : x[0]; }},
    {"integer_minimum",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return less(x[1].word, x[0].word, types) ? x[1] : x[0]; }},
    {"integer_mod",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) {
       const std::int64_t left = remainder(x[0].word, x[1].word, types);
       const bool other_sign = left != 0 && less(left, 0, types) != less(x[1].word, 0, types);
       return word(other_sign ? word_of(bits(left) + bits(x[1].word)) : left, types);
     },
     divides_by_zero},
    {"integer_mul",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(word_of(bits(x[0].word) * bits(x[1].word)), types); }},
    {"integer_neg",
     {I, I, I},
     1,
     I,
     [](Numbers x, const MachineTypes& types) { return word(word_of(0 - bits(x[0].word)), types); }},
    {"integer_pow",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(power(x[0].word, x[1].word, types), types); },
     is_no_power},
    {"integer_remainder",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(remainder(x[0].word, x[1].word, types), types); },
     divides_by_zero},
    {"integer_sign",
     {I, I, I},
     1,
     I,
     [](Numbers x, const MachineTypes& types) {
       return word(x[0].word == 0 ? 0 : less(x[0].word, 0, types) ? -1 : 1, types);
     }},
    {"integer_sub",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(word_of(bits(x[0].word) - bits(x[1].word)), types); }},
    {"is_inf", {R, R, R}, 1, B, [](Numbers x, const MachineTypes&) { return truth(std::isinf(x[0].real)); }},
    {"is_nan", {R, R, R}, 1, B, [](Numbers x, const MachineTypes&) { return truth(std::isnan(x[0].real)); }},
    {"is_negative_inf",
     {R, R, R},
     1,
     B,
     [](Numbers x, const MachineTypes&) { return truth(std::isinf(x[0].real) && x[0].real < 0); }},
    {"is_positive_inf",
     {R, R, R},
     1,
     B,
     [](Numbers x, const MachineTypes&) { return truth(std::isinf(x[0].real) && x[0].real > 0); }},
    {"less", {R, R, R}, 2, B, [](Numbers x, const MachineTypes&) { return truth(x[0].real < x[1].real); }},
    {"less_equal", {R, R, R}, 2, B, [](Numbers x, const MachineTypes&) { return truth(x[0].real <= x[1].real); }},
    {"logical_and",
     {B, B, B},
     2,
     B,
     [](Numbers x, const MachineTypes&) { return truth((x[0].word & x[1].word) != 0); }},
    {"logical_equal", {B, B, B}, 2, B, [](Numbers x, const MachineTypes&) { return truth(x[0].word == x[1].word); }},
    {"logical_not", {B, B, B}, 1, B, [](Numbers x, const MachineTypes&) { return truth(x[0].word == 0); }},
    {"logical_or", {B, B, B}, 2, B, [](Numbers x, const MachineTypes&) { return truth((x[0].word | x[1].word) != 0); }},
    {"logical_xor", {B, B, B}, 2, B, [](Numbers x, const MachineTypes&) { return truth(x[0].word != x[1].word); }},
    {"quantize", {R, R, I}, 3, I, quantized, is_no_multiple},
    {"shift_left",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(shifted(x[0].word, x[1].word, true, types), types); },
     shifts_too_far},
    {"shift_right",
     {I, I, I},
     2,
     I,
     [](Numbers x, const MachineTypes& types) { return word(shifted(x[0].word, x[1].word, false, types), types); },
     shifts_too_far},
}};

bool fits(const Row& row, const FunctionDefinition& function) {
  return row.name == function.name && row.result == function.result &&
         std::equal(row.parameters.begin(), row.parameters.begin() + static_cast<std::ptrdiff_t>(row.count),
                    function.parameter_domains.begin(), function.parameter_domains.end());
}

std::string to_text(const Row& row) {
  const auto named = [](Domain domain) { return domain == R ? "x" : std::string(to_string(domain)) + " x"; };
  std::string text = std::string(row.name) + "(";
  for (std::size_t i = 0; i < row.count; ++i) text += (i == 0 ? "" : ", ") + named(row.parameters.at(i));
  return text + ") -> " + to_string(row.result);
}

}  // namespace
}  // namespace machine

bool is_undefined(const FunctionDefinition& function, std::span<const MachineNumber> arguments,
                  const MachineTypes& types) {
  const auto row = std::find_if(machine::rows.begin(), machine::rows.end(),
                                [&](const machine::Row& one) { return one.function == function.machine; });
  return row != machine::rows.end() && row->undefined != nullptr && row->undefined(arguments, types);
}

const char* to_string(ElementDomain domain) {
  switch (domain) {
    case ElementDomain::real:
      return "real";
    case ElementDomain::integer:
      return "integer";
    case ElementDomain::boolean:
      return "boolean";
    case ElementDomain::any:
      return "any";
  }
  return "?";
}

const char* elements_of(ElementDomain domain) {
  switch (domain) {
    case ElementDomain::real:
      return "floating-point numbers";
    case ElementDomain::integer:
      return "integers";
    case ElementDomain::boolean:
      return "truth values";
    case ElementDomain::any:
      return "numbers or truth values";
  }
  return "?";
}

bool is_of(ElementType type, ElementDomain domain) {
  switch (domain) {
    case ElementDomain::real:
      return is_real(type);
    case ElementDomain::integer:
      return is_integer(type);
    case ElementDomain::boolean:
      return type == ElementType::boolean;
    case ElementDomain::any:
      return is_real(type) || is_word(type);
  }
  return false;
}

Status bind_machine_function(FunctionDefinition& function) {
  std::string known;
  for (const machine::Row& row : machine::rows) {
    if (machine::fits(row, function)) {
      function.machine = row.function;
      return {};
    }
    known += (known.empty() ? "" : ", ") + (row.name == function.name ? machine::to_text(row) : std::string(row.name));
  }
  return bad_input("function '" + function.name + "' is no function of reals, and not one of the primitives: " + known,
                   function.where);
}

}  // namespace taso
