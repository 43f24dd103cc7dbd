#include "tools/ranks.h"

#include <cstring>

#include "runtime/mpi/transport_mpi.h"
#include "tools/common.h"

namespace taso::tools {
namespace {

/// What is sent to rank 0 is two messages: how many bytes, and these.
constexpr std::uint32_t size_number = 0, bytes_number = 1;

AlignedBuffer buffer_of(const void* bytes, std::size_t size) {
  AlignedBuffer buffer(size);
  if (size > 0) std::memcpy(buffer.data(), bytes, size);
  return buffer;
}

}  // namespace

Expected<Ranks> Ranks::join(int& argc, char**& argv, const std::string& program) {
  if (!started_by_mpi()) return Ranks(nullptr, program);
  MpiOptions options;
  options.report = [program](const Error& error) { (void)tools::fail(program, error); };
  TASO_ASSIGN(std::unique_ptr<Transport> transport, open_mpi_transport(argc, argv, std::move(options)));
  return Ranks(std::move(transport), program);
}

Status Ranks::agree(const Status& own) const { return transport_ == nullptr ? own : taso::agree(*transport_, own); }

Status Ranks::send(const std::string& bytes) const {
  if (transport_ == nullptr) return {};
  const std::uint64_t size = bytes.size();
  TASO_RETURN_IF_ERROR(transport_->send(0, size_number, buffer_of(&size, sizeof(size))));
  return transport_->send(0, bytes_number, buffer_of(bytes.data(), bytes.size()));
}

Expected<std::string> Ranks::receive(int rank) const {
  TASO_CHECK(transport_ != nullptr, "there is no other rank");
  std::uint64_t size = 0;
  TASO_RETURN_IF_ERROR(transport_->receive(rank, size_number, std::as_writable_bytes(std::span(&size, 1))));
  std::string bytes(size, '\0');
  TASO_RETURN_IF_ERROR(transport_->receive(rank, bytes_number, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

int Ranks::fail(const Error& error) const {
  if (transport_ == nullptr) return tools::fail(program_, error);
  transport_->fail(error);
  return error.exit_code();
}

}  // namespace taso::tools
