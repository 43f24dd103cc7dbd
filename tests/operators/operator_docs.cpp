/// operator_docs FOLDER: prints docs/operators.md for the specifications of a folder.

#include <cstdio>

#include "operators/documentation.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: operator_docs FOLDER\n");
    return 2;
  }
  const taso::Expected<taso::OperatorRegistry> registry = taso::OperatorRegistry::load(argv[1]);
  if (!registry) {
    std::fprintf(stderr, "%s\n", registry.error().to_string().c_str());
    return registry.error().exit_code();
  }
  std::fputs(taso::document_operators(*registry).c_str(), stdout);
  return 0;
}
