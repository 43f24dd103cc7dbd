/// What libraries of collectives can do, for tests.
#pragma once

#include <map>
#include <string>

#include "partition/transfer_collectives.h"

namespace taso::test {

inline const std::map<std::string, CollectiveVocabulary>& vocabularies() {
  static const std::map<std::string, CollectiveVocabulary> all = {
      {"all", {{"sum", "max"}, {"sum", "max"}, true, true}},
      {"no_scatter", {{"sum"}, {}, true, true}},
      {"no_exchange", {{"sum", "max"}, {"sum"}, false, true}},
      {"no_groups", {{"sum"}, {}, true, false}},
      {"gather_only", {{}, {}, false, false}},
  };
  return all;
}

}  // namespace taso::test
