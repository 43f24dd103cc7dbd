// libnccl.so.2 for tests: notes what is asked of it, and fails where it is told to. Sends nothing.
#include <nccl.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

std::string calls;
std::string failing;  ///< The function that fails.

ncclResult_t note(const char* function, const std::string& arguments = "") {
  calls += std::string(calls.empty() ? "" : "; ") + function + arguments;
  return failing == function ? ncclInvalidUsage : ncclSuccess;
}

}  // namespace

extern "C" {

/// What was called since the last time.
const char* fake_nccl_calls() {
  static std::string told;
  told = calls;
  calls.clear();
  return told.c_str();
}
void fake_nccl_fails(const char* function) { failing = function; }

ncclResult_t ncclGetVersion(int* version) {
  *version = FAKE_NCCL_VERSION;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 7, sizeof(*id));
  return note("unique id");
}
#ifndef FAKE_NCCL_LACKS
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
  *communicator = reinterpret_cast<ncclComm_t>(&calls);
  return note("join",
              " " + std::to_string(rank) + " of " + std::to_string(ranks) + (id.internal[0] == 7 ? "" : " elsewhere"));
}
#endif
ncclResult_t ncclCommDestroy(ncclComm_t) { return note("leave"); }
ncclResult_t ncclCommAbort(ncclComm_t) { return note("abort"); }
ncclResult_t ncclGroupStart() { return note("begin"); }
ncclResult_t ncclGroupEnd() { return note("end"); }
ncclResult_t ncclSend(const void*, size_t bytes, ncclDataType_t, int peer, ncclComm_t, cudaStream_t) {
  return note("send", " " + std::to_string(bytes) + " to " + std::to_string(peer));
}
ncclResult_t ncclRecv(void*, size_t bytes, ncclDataType_t, int peer, ncclComm_t, cudaStream_t) {
  return note("receive", " " + std::to_string(bytes) + " from " + std::to_string(peer));
}
const char* ncclGetErrorString(ncclResult_t) { return "invalid usage"; }
const char* ncclGetLastError(ncclComm_t) { return "the reason\nmore of it"; }
}
