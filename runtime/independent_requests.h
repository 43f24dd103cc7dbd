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

/// A request and, per input, a name for its tensor.
struct NamedRequest {
  const KernelRequest* request = nullptr;
  std::span<const std::uint32_t> inputs;
};
/// A fused request for several, and the names of its inputs.
struct JoinedRequest {
  KernelRequest request;
  std::vector<std::uint32_t> names;
};
/// One request for several, at least one, none of which reads what another one makes. Inputs of equal names are one
/// input of the whole. Outputs are those of the requests, one after the other.
[[nodiscard]] JoinedRequest join_requests(std::span<const NamedRequest> requests);

}  // namespace taso
