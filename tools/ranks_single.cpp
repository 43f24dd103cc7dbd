// Without MPI: one process.
#include "tools/ranks.h"

namespace taso::tools {

struct Ranks::Messages {};

Ranks::Ranks(int& argc, char**& argv) {
  (void)argc;
  (void)argv;
}
Ranks::~Ranks() = default;
Status Ranks::agree(const Status& own) const { return own; }
void Ranks::send(std::string bytes) { (void)bytes; }
void Ranks::send(const Error& error) { (void)error; }
void Ranks::advance() {}
Expected<std::string> Ranks::receive(int rank) const {
  return Error{ErrorCode::bad_input, "no rank " + std::to_string(rank), {}};
}
void Ranks::end_all(int exit_code) const { (void)exit_code; }

}  // namespace taso::tools
