#include "runtime/transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace taso {
namespace {

AlignedBuffer buffer_of(const void* bytes, std::size_t size) {
  AlignedBuffer buffer(size);
  if (size > 0) std::memcpy(buffer.data(), bytes, size);
  return buffer;
}

/// A text whose size the receiver does not know is two messages: its size and its bytes.
Status send_text(Transport& transport, int to, std::uint32_t number, const std::string& text) {
  const std::uint64_t size = text.size();
  TASO_RETURN_IF_ERROR(transport.send(to, number, buffer_of(&size, sizeof(size))));
  return transport.send(to, number, buffer_of(text.data(), text.size()));
}

Expected<std::string> receive_text(Transport& transport, int from, std::uint32_t number) {
  std::uint64_t size = 0;
  TASO_RETURN_IF_ERROR(transport.receive(from, number, std::as_writable_bytes(std::span(&size, 1))));
  std::string text(size, '\0');
  TASO_RETURN_IF_ERROR(transport.receive(from, number, std::as_writable_bytes(std::span(text))));
  return text;
}

/// Texts as one: the size of each before it.
std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    const std::uint64_t size = text.size();
    all.append(reinterpret_cast<const char*>(&size), sizeof(size));
    all += text;
  }
  return all;
}

std::vector<std::string> taken_apart(const std::string& all) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size();) {
    std::uint64_t size = 0;
    std::memcpy(&size, all.data() + at, sizeof(size));
    at += sizeof(size);
    texts.push_back(all.substr(at, size));
    at += size;
  }
  return texts;
}

}  // namespace

// Rank 0 takes all and sends them to all: few messages, which are short.
Expected<std::vector<std::string>> Transport::all_gather(std::string bytes) {
  if (rank() > 0) {
    TASO_RETURN_IF_ERROR(send_text(*this, 0, gathering, bytes));
    TASO_ASSIGN(const std::string all, receive_text(*this, 0, gathering));
    return taken_apart(all);
  }
  std::vector<std::string> all;
  all.push_back(std::move(bytes));
  for (int from = 1; from < size(); ++from) {
    TASO_ASSIGN(std::string text, receive_text(*this, from, gathering));
    all.push_back(std::move(text));
  }
  const std::string message = joined(all);
  for (int to = 1; to < size(); ++to) TASO_RETURN_IF_ERROR(send_text(*this, to, gathering, message));
  return all;
}

Error Transport::wrong_size(int from, std::uint32_t number, const std::string& has, std::size_t expected) {
  return internal_error("message " + std::to_string(number) + " of rank " + std::to_string(from) + " has " + has +
                        " bytes, not " + std::to_string(expected));
}

Error error_of_rank(int rank, const Error& error) {
  return Error{error.code, "rank " + std::to_string(rank) + ": " + error.to_string(), {}};
}

Status agree(Transport& transport, const Status& own) {
  if (transport.size() == 1) return own;
  // The exit code as one byte, then the message; nothing where it is good.
  std::string text;
  if (!own) text = static_cast<char>(own.error().exit_code()) + own.error().to_string();
  TASO_ASSIGN(const std::vector<std::string> all, transport.all_gather(std::move(text)));
  const auto first = std::find_if(all.begin(), all.end(), [](const std::string& said) { return !said.empty(); });
  if (first == all.end()) return {};
  const Error error{static_cast<ErrorCode>(static_cast<unsigned char>((*first)[0])), first->substr(1), {}};
  if (std::all_of(all.begin(), all.end(), [&](const std::string& said) { return said == *first; })) return error;
  return error_of_rank(static_cast<int>(first - all.begin()), error);
}

Status agree_on(Transport& transport, const std::string& what, const std::string& own) {
  TASO_ASSIGN(const std::vector<std::string> all, transport.all_gather(own));
  const auto other = std::find_if(all.begin(), all.end(), [&](const std::string& said) { return said != all[0]; });
  if (other == all.end()) return {};
  return bad_input(what + " must be the same on all ranks: it is " + *other + " on rank " +
                   std::to_string(other - all.begin()) + ", " + all[0] + " on rank 0");
}

}  // namespace taso
