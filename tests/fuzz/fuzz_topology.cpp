// Any text given as a topology is refused, or is one that is printed as text of the same.
#include <cstdint>
#include <string>

#include "partition/topology.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace taso;
  const auto topology = parse_topology({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!topology) return 0;
  const std::string text = topology_text(*topology);
  const auto again = parse_topology(text, "printed");
  TASO_CHECK(again.ok(), again.ok() ? "" : again.error().to_string() + "\n" + text);
  TASO_CHECK(topology_text(*again) == text, "prints differently: " + text);
  TASO_CHECK(default_mesh(*topology).devices() == topology->devices(), "a mesh of other devices");
  return 0;
}
