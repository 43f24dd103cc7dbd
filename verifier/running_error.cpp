#include "verifier/running_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace taso {
namespace {

constexpr double roundoff = std::numeric_limits<double>::epsilon();         // of functions, too: twice the unit
constexpr double least_number = std::numeric_limits<double>::denorm_min();  // what underflow loses
constexpr double unknown = std::numeric_limits<double>::infinity();
// Of an argument with a larger error than this part of it the values at a few points say little of those between.
constexpr double largest_relative_error = 1e-3;
constexpr double relative_tolerance = 1e-6, safety = 4;

Rounded rounded(double value, double error) {
  if (!std::isfinite(value) || std::isnan(error)) return {value, unknown};
  return {value, error + roundoff * std::abs(value) + least_number};
}

bool is_small(Rounded x) { return x.error <= largest_relative_error * (1 + std::abs(x.value)); }

// The points of an argument's range at which a function is tried.
constexpr double places[] = {-1, -0.5, 0.5, 1};

}  // namespace

Rounded RunningErrorRing::add(Rounded a, Rounded b) { return rounded(a.value + b.value, a.error + b.error); }
Rounded RunningErrorRing::subtract(Rounded a, Rounded b) { return rounded(a.value - b.value, a.error + b.error); }

Rounded RunningErrorRing::multiply(Rounded a, Rounded b) {
  return rounded(a.value * b.value, std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error);
}

Rounded RunningErrorRing::divide(Rounded a, Rounded b) {
  const double quotient = a.value / b.value, least_divisor = std::abs(b.value) - b.error;
  if (!(least_divisor > 0)) return {quotient, unknown};
  return rounded(quotient, (a.error + std::abs(quotient) * b.error) / least_divisor);
}

Rounded RunningErrorRing::call(const FunctionDefinition& function, Rounded x) {
  const double value = function.real(x.value);
  double error = is_small(x) ? 0 : unknown;
  for (const double place : places) {
    if (x.error == 0 || error == unknown) break;
    const double change = std::abs(function.real(x.value + place * x.error) - value);
    error = std::isfinite(change) ? std::max(error, change) : unknown;
  }
  return rounded(value, error);
}

Rounded RunningErrorRing::call(const FunctionDefinition& function, Rounded x, Rounded y) {
  const double value = function.real2(x.value, y.value);
  double of_x = is_small(x) && is_small(y) ? 0 : unknown, of_y = 0;
  for (const double place : places) {
    if ((x.error == 0 && y.error == 0) || of_x == unknown) break;
    const double change_x = std::abs(function.real2(x.value + place * x.error, y.value) - value);
    const double change_y = std::abs(function.real2(x.value, y.value + place * y.error) - value);
    of_x = std::isfinite(change_x + change_y) ? std::max(of_x, change_x) : unknown;
    of_y = std::max(of_y, change_y);
  }
  return rounded(value, of_x + of_y);
}

Rounded RunningErrorRing::extremum(bool maximum, std::span<const Rounded> values) {
  Rounded best = values[0];
  double error = best.error;
  for (const Rounded& other : values.subspan(1)) {
    error = std::max(error, other.error);
    if (std::isnan(other.value) || (maximum ? other.value > best.value : other.value < best.value)) best = other;
  }
  return {best.value, error};
}

Rounded RunningErrorRing::infinity(bool negative) { return {negative ? -unknown : unknown, 0}; }

bool differ(Rounded a, Rounded b) {
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) return false;
  const double difference = std::abs(a.value - b.value);
  return difference > relative_tolerance * (1 + std::max(std::abs(a.value), std::abs(b.value))) &&
         difference > safety * (a.error + b.error);
}

}  // namespace taso
