// Any text given as a specification is refused with an error, or defines operators.
#include <cstdint>
#include <string_view>

#include "operators/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace taso;
  const auto registry = OperatorRegistry::parse({reinterpret_cast<const char*>(data), size}, "fuzz", nullptr);
  if (!registry) TASO_CHECK(registry.error().code == ErrorCode::bad_input, registry.error().to_string());
  return 0;
}
