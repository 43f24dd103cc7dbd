#include "operators/coverage.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

namespace taso {
namespace {

std::string count_of(std::int64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// The first cause, together with what other operators have the same.
CarriedCause main_cause(const Coverage& coverage) {
  CarriedCause main = coverage.causes[0];
  constexpr std::size_t shown_operators = 3;
  std::size_t operators = 1;
  for (const CarriedCause& other : std::span(coverage.causes).subspan(1)) {
    if (other.cause != main.cause || other.help != main.help) continue;
    main.nodes += other.nodes;
    if (++operators <= shown_operators) main.op += ", " + other.op;
  }
  if (operators > shown_operators) main.op += ", ..";
  return main;
}

}  // namespace

bool Coverage::counts_flops() const { return carried_flops && understood_flops + *carried_flops > 0; }

double Coverage::open_share() const {
  if (carried == 0) return 1;
  if (counts_flops()) return understood_flops / (understood_flops + *carried_flops);
  return static_cast<double>(understood) / static_cast<double>(understood + carried);
}

std::string open_share_text(const Coverage& coverage) {
  std::array<char, 16> percent{};
  std::snprintf(percent.data(), percent.size(), "%.1f %%", 100 * coverage.open_share());
  return std::string(percent.data()) + " of the model's " + (coverage.counts_flops() ? "arithmetic" : "nodes");
}

std::string to_string(const CarriedCause& cause) {
  std::string text = std::to_string(cause.nodes) + " x " + cause.op;
  if (cause.behind > 0) text += ", " + count_of(cause.behind, "node") + " behind";
  return text + ": " + cause.cause + "; helps: " + cause.help;
}

std::string causes_text(const Coverage& coverage, std::size_t limit) {
  std::string text;
  const std::size_t shown = std::min(limit, coverage.causes.size());
  for (std::size_t i = 0; i < shown; ++i) text += to_string(coverage.causes[i]) + "\n";
  if (const std::size_t more = coverage.causes.size() - shown; more > 0)
    text += "and " + count_of(static_cast<std::int64_t>(more), "cause") + " more; --verbose lists all\n";
  return text;
}

std::string coverage_warning(const Coverage& coverage) {
  if (coverage.causes.empty() || coverage.open_share() >= 0.5) return "";
  return "only " + open_share_text(coverage) + " can be rewritten; " + std::to_string(coverage.carried) + " of " +
         count_of(coverage.understood + coverage.carried, "node") + " carried, mainly " +
         to_string(main_cause(coverage));
}

}  // namespace taso
