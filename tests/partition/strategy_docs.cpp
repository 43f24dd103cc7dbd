/// strategy_docs SPECS: prints docs/strategies.md for a folder of specifications.

#include <cstdio>
#include <string>

#include "partition/strategy_document.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: strategy_docs SPECS\n");
    return 2;
  }
  const std::string folder = argv[1];
  const taso::Expected<taso::OperatorRegistry> registry = taso::OperatorRegistry::load(folder + "/operators");
  if (!registry) {
    std::fprintf(stderr, "%s\n", registry.error().to_string().c_str());
    return registry.error().exit_code();
  }
  const auto proved = taso::ProvedStrategies::load({folder + "/strategies/default.rules"}, *registry);
  if (!proved) {
    std::fprintf(stderr, "%s\n", proved.error().to_string().c_str());
    return proved.error().exit_code();
  }
  std::fputs(taso::document_strategies(*registry, *proved).c_str(), stdout);
  return 0;
}
