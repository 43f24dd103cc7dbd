#include "tests/attack/common.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace taso::testing {

void stop(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  std::exit(2);
}

void must(const Status& status) {
  if (!status) stop(status.error().to_string());
}

std::uint64_t number_argument(const std::string& option, const std::string& text) {
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ptr != text.data() + text.size() || text.empty())
    stop(option + " wants a number");
  return value;
}

void change_bytes(std::string& bytes, Random& random) {
  if (bytes.empty()) return;
  const std::size_t place = random.below(bytes.size());
  switch (random.below(5)) {
    case 0:
      bytes[place] = static_cast<char>(random.below(256));
      break;
    case 1:
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << random.below(8)));
      break;
    case 2:
      bytes[place] = static_cast<char>(bytes[place] + (random.below(2) == 0 ? 1 : -1));
      break;
    case 3:
      bytes.erase(place, 1 + random.below(6));
      break;
    default:
      bytes.insert(place, bytes.substr(random.below(bytes.size()), random.below(8)));
  }
}

}  // namespace taso::testing
