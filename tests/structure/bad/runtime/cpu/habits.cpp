#include <dnnl.hpp>

#include "runtime/kernel.h"
// assert(false) in a comment is no violation.
static_assert(true);
int threads() { return getenv("TASO_THREADS") ? 1 : std::rand(); }
const char* home() { return std::getenv("HOME"); }
void die() { exit(1); }
