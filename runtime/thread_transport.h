/// Ranks as threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "runtime/transport.h"

namespace taso {

/// Transports of `size` ranks (at least 1), by rank, which share their mailboxes and may be destroyed in any order.
/// What a rank has sent arrives though its transport be destroyed; who waits for more then gets an error that names it.
[[nodiscard]] std::vector<std::unique_ptr<Transport>> make_thread_transports(int size);

}  // namespace taso
