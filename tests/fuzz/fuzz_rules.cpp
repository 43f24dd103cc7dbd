// Any text given as a rule file is refused, or its rules print as text that gives the same rules.
#include <cstdint>
#include <string_view>

#include "graph/pattern.h"
#include "tests/support/shipped.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace taso;
  const OperatorRegistry& registry = test::registry();
  const auto rules = parse_rules({reinterpret_cast<const char*>(data), size}, "fuzz", registry);
  if (!rules) return 0;
  for (const Substitution& rule : *rules) {
    const std::string text = to_string(rule, registry);
    const auto again = parse_rules(text, "printed", registry);
    TASO_CHECK(again.ok(), again.ok() ? "" : again.error().to_string() + "\n" + text);
    TASO_CHECK(again->size() == 1 && to_string(again->front(), registry) == text, "prints differently: " + text);
  }
  return 0;
}
