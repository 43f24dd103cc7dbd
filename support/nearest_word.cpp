#include "support/nearest_word.h"

#include <algorithm>

namespace taso {

std::size_t letters_apart(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> apart(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        apart[i][j] = i + j;
        continue;
      }
      apart[i][j] = std::min({apart[i - 1][j] + 1, apart[i][j - 1] + 1,
                              apart[i - 1][j - 1] + static_cast<std::size_t>(a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        apart[i][j] = std::min(apart[i][j], apart[i - 2][j - 2] + 1);
    }
  return apart[a.size()][b.size()];
}

std::string nearest_word(const std::string& given, const std::vector<std::string>& words) {
  std::string nearest;
  std::size_t least = given.size() / 3 + 1;
  for (const std::string& word : words)
    if (const std::size_t apart = letters_apart(given, word); apart < least) {
      least = apart;
      nearest = word;
    }
  return nearest;
}

}  // namespace taso
