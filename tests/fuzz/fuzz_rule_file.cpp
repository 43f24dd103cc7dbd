// Any bytes given as a rule file of the original TASO are refused, or every rule of them has a reason or prints as text
// that gives the same rule.
#include <cstdint>
#include <span>

#include "rule_io/translate.h"
#include "tests/support/shipped.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace taso;
  const OperatorRegistry& registry = test::registry();
  const auto rules = rule_io::read_rule_collection(std::as_bytes(std::span(data, size)), "fuzz");
  if (!rules) return 0;
  for (const rule_io::FileRule& rule : *rules) {
    const rule_io::TranslatedRule translated = rule_io::translate(rule, "r", "fuzz", registry);
    if (!translated.problem.empty()) continue;
    const std::string text = to_string(translated.rule, registry);
    const auto again = parse_rules(text, "printed", registry);
    TASO_CHECK(again.ok(), again.ok() ? "" : again.error().to_string() + "\n" + text);
    TASO_CHECK(to_string(again->front(), registry) == text, "prints differently: " + text);
  }
  return 0;
}
