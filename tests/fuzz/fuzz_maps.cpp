// Any text given as a map file is refused with an error, or describes nodes.
#include <cstdint>
#include <string_view>

#include "tests/support/shipped.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace taso;
  const auto mapped =
      OperatorRegistry::parse_maps({reinterpret_cast<const char*>(data), size}, "fuzz", test::registry());
  if (!mapped) TASO_CHECK(mapped.error().code == ErrorCode::bad_input, mapped.error().to_string());
  return 0;
}
