#include "runtime/independent_requests.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

namespace taso {
namespace {

using Source = FusedPart::Source;

/// Per part, the first one of those that it hangs together with.
std::vector<std::uint32_t> first_of_each(const Fused& fused) {
  std::vector<std::uint32_t> first(fused.parts.size());
  std::iota(first.begin(), first.end(), 0U);
  const auto first_of = [&](std::uint32_t part) {
    while (first[part] != part) part = first[part] = first[first[part]];
    return part;
  };
  for (std::uint32_t part = 0; part < first.size(); ++part)
    for (const Source& source : fused.parts[part].sources) {
      if (source.is_input) continue;
      const std::uint32_t one = first_of(source.index), other = first_of(part);
      first[std::max(one, other)] = std::min(one, other);
    }
  for (std::uint32_t part = 0; part < first.size(); ++part) first[part] = first_of(part);
  return first;
}

/// The number of `one` in `all`, where it is added if it is not there.
std::uint32_t number_of(std::uint32_t one, std::vector<std::uint32_t>& all) {
  const auto known = std::find(all.begin(), all.end(), one);
  if (known == all.end()) {
    all.push_back(one);
    return static_cast<std::uint32_t>(all.size() - 1);
  }
  return static_cast<std::uint32_t>(known - all.begin());
}

/// A single part as a request of its own. An operand that it reads twice is there twice.
void unfuse(IndependentRequest& made, const KernelRequest& whole, const FusedPart& part,
            std::span<const Source> results) {
  made.request = part.request;
  made.request.threads = whole.threads;
  made.request.cached_tenths = whole.cached_tenths;
  made.inputs.clear();
  for (std::size_t i = 0; i < part.sources.size(); ++i) {
    made.inputs.push_back(part.sources[i].index);
    made.request.inputs[i] = whole.inputs[part.sources[i].index];
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    made.request.outputs[results[i].port] = whole.outputs[made.outputs[i]];
}

/// Whether the results are all outputs of one part, in order.
bool are_outputs_of(std::span<const Source> results, const FusedPart& part) {
  if (results.size() != part.request.outputs.size()) return false;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].port != i) return false;
  return true;
}

}  // namespace

std::vector<IndependentRequest> independent_requests(const KernelRequest& request) {
  const auto whole = [&] {
    IndependentRequest only{request, std::vector<std::uint32_t>(request.inputs.size()),
                            std::vector<std::uint32_t>(request.outputs.size())};
    std::iota(only.inputs.begin(), only.inputs.end(), 0U);
    std::iota(only.outputs.begin(), only.outputs.end(), 0U);
    return std::vector<IndependentRequest>{std::move(only)};
  };
  if (!request.fused) return whole();
  const Fused& fused = *request.fused;
  const std::vector<std::uint32_t> first = first_of_each(fused);
  if (std::all_of(first.begin(), first.end(), [&](std::uint32_t one) { return one == first[0]; })) return whole();

  std::vector<IndependentRequest> made;
  for (std::uint32_t root = 0; root < first.size(); ++root) {
    if (first[root] != root) continue;
    IndependentRequest& one = made.emplace_back();
    Fused own;
    std::vector<std::uint32_t> numbers;  // of its parts, among the whole's
    for (std::uint32_t part = root; part < first.size(); ++part) {
      if (first[part] != root) continue;
      numbers.push_back(part);
      FusedPart& copy = own.parts.emplace_back(fused.parts[part]);
      for (Source& source : copy.sources)
        source.index = number_of(source.index, source.is_input ? one.inputs : numbers);
    }
    for (std::uint32_t result = 0; result < fused.results.size(); ++result) {
      if (first[fused.results[result].index] != root) continue;
      one.outputs.push_back(result);
      own.results.push_back(fused.results[result]);
      own.results.back().index = number_of(fused.results[result].index, numbers);
    }
    if (numbers.size() == 1 && are_outputs_of(own.results, fused.parts[root])) {
      unfuse(one, request, fused.parts[root], own.results);
      continue;
    }
    one.request.op = fused_op;
    one.request.threads = request.threads;
    one.request.cached_tenths = request.cached_tenths;
    for (const std::uint32_t input : one.inputs) one.request.inputs.push_back(request.inputs[input]);
    for (const std::uint32_t output : one.outputs) one.request.outputs.push_back(request.outputs[output]);
    one.request.fused = std::make_shared<const Fused>(std::move(own));
  }
  return made;
}

JoinedRequest join_requests(std::span<const NamedRequest> requests) {
  JoinedRequest joined;
  Fused fused;
  joined.request.op = fused_op;
  joined.request.threads = requests[0].request->threads;
  joined.request.cached_tenths = requests[0].request->cached_tenths;
  for (const NamedRequest& one : requests) {
    const KernelRequest& request = *one.request;
    std::vector<std::uint32_t> inputs;  // per input: its number among the whole's
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      inputs.push_back(number_of(one.inputs[i], joined.names));
      if (inputs.back() == joined.request.inputs.size()) joined.request.inputs.push_back(request.inputs[i]);
    }
    const auto before = static_cast<std::uint32_t>(fused.parts.size());
    if (request.fused) {
      for (const FusedPart& part : request.fused->parts)
        for (Source& source : fused.parts.emplace_back(part).sources)
          source.index = source.is_input ? inputs[source.index] : before + source.index;
      for (const Source& result : request.fused->results) {
        fused.results.push_back(result);
        fused.results.back().index += before;
      }
    } else {
      FusedPart& part = fused.parts.emplace_back(FusedPart{request, {}});
      for (Operand& output : part.request.outputs) output.within = {};
      for (const std::uint32_t input : inputs) part.sources.push_back({true, input, 0});
      for (std::uint32_t port = 0; port < request.outputs.size(); ++port)
        fused.results.push_back({false, before, port});
    }
    joined.request.outputs.insert(joined.request.outputs.end(), request.outputs.begin(), request.outputs.end());
  }
  joined.request.fused = std::make_shared<const Fused>(std::move(fused));
  return joined;
}

}  // namespace taso
