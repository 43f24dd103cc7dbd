/// Requests that read nothing of each other, as one that asks for all of them, and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernel.h"

namespace taso {

/// One request among several, and which operands of the whole are its own.
struct IndependentRequest {
  KernelRequest request;
  std::vector<std::uint32_t> inputs, outputs;  ///< Per operand of the request: its number among the whole's.
};

/// What a request falls into: the parts of a fused one that hang together by what they read of each other, in the order
/// of the first of them. A single part is the request of its operator. A request that is not fused, or does not fall
/// apart, is the only one.
[[nodiscard]] std::vector<IndependentRequest> independent_requests(const KernelRequest& request);

/// The fused request for several, of which none reads what another one makes. Per request, `inputs` has a name for the
/// tensor of each input: equal names are one input of the whole, whose inputs have the names `names`. Outputs are those
/// of the requests, one after the other.
struct JoinedRequest {
  KernelRequest request;
  std::vector<std::uint32_t> names;
};
struct NamedRequest {
  const KernelRequest* request = nullptr;
  std::span<const std::uint32_t> inputs;
};
[[nodiscard]] JoinedRequest join_requests(std::span<const NamedRequest> requests);

}  // namespace taso
