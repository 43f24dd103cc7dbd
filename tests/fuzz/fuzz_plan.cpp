// Any text given as the file of a plan is refused, or states what is printed as text that states the same.
#include <cstdint>
#include <string>

#include "partition/plan_document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace taso;
  const auto document = parse_plan_document({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!document) return 0;
  const std::string text = to_json(*document);
  const auto again = parse_plan_document(text, "printed");
  TASO_CHECK(again.ok(), again.ok() ? "" : again.error().to_string() + "\n" + text);
  TASO_CHECK(to_json(*again) == text, "prints differently: " + text);
  return 0;
}
