/// What a person may have meant who mistyped a name.
#pragma once

#include <string>
#include <vector>

namespace taso {

/// How many letters must be put in, left out, replaced or exchanged with the next to make one word of another.
[[nodiscard]] std::size_t letters_apart(const std::string& a, const std::string& b);

/// The word nearest to the one given, the first of several; empty if more than a third of the letters are wrong in all.
[[nodiscard]] std::string nearest_word(const std::string& given, const std::vector<std::string>& words);

}  // namespace taso
