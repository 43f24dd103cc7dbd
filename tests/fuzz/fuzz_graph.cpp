// Any text given as a graph is refused, or gives a valid graph in which rules apply or decline.
#include <cstdint>
#include <string_view>

#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "tests/support/shipped.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace taso;
  const OperatorRegistry& registry = test::registry();
  static const RuleIndex rules = [] {
    auto loaded = load_rules(TASO_SOURCE_DIR "/specs/rules/default.rules", test::registry());
    TASO_CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().to_string());
    return RuleIndex(std::move(*loaded), test::registry());
  }();
  auto graph = parse_graph({reinterpret_cast<const char*>(data), size}, "fuzz", registry);
  if (!graph) return 0;
  normalize(*graph, registry);
  const Status valid = graph->validate();
  TASO_CHECK(valid.ok(), valid.ok() ? "" : valid.error().to_string());
  std::size_t tried = 0;
  for (const auto& [number, match] : rules.find_all(*graph)) {
    if (++tried > 20) break;
    const auto rewritten = apply(*graph, rules.rules()[number], match, registry);
    if (!rewritten) continue;
    const Status still = rewritten->validate();
    TASO_CHECK(still.ok(), still.ok() ? "" : rules.rules()[number].name + ": " + still.error().to_string());
  }
  return 0;
}
