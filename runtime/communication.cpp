#include "runtime/communication.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/cpu/strided_copy.h"
#include "runtime/rank_graph.h"
#include "runtime/strides.h"

namespace taso {
namespace {

/// A message, as an operator names it.
struct MessageEnd {
  int peer = 0;
  std::uint32_t number = 0, transfer = 0;
};

/// The ends of several messages.
std::vector<MessageEnd> messages_of(const Attributes& attributes) {
  std::vector<MessageEnd> ends;
  for (std::size_t i = 0; i < attributes.integers("peers").size(); ++i)
    ends.push_back({static_cast<int>(attributes.integers("peers")[i]),
                    static_cast<std::uint32_t>(attributes.integers("numbers")[i]),
                    static_cast<std::uint32_t>(attributes.integers("transfers")[i])});
  return ends;
}

MessageEnd message_of(const Attributes& attributes) {
  return {static_cast<int>(attributes.integer("peer")), static_cast<std::uint32_t>(attributes.integer("number")),
          static_cast<std::uint32_t>(attributes.integer("transfer"))};
}

using Indices = Shape;

std::size_t byte_offset(const Indices& at, const Indices& strides, std::size_t element_bytes) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < at.size(); ++axis) offset += at[axis] * strides[axis];
  return static_cast<std::size_t>(offset) * element_bytes;
}

std::size_t bytes_of(const Indices& sizes, std::size_t element_bytes) {
  std::size_t bytes = element_bytes;
  for (const std::int64_t size : sizes) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

Indices row_major(const Indices& shape) { return strides_of(shape, Layout::row_major); }

/// Whether a box is a range of bytes of a row-major tensor of this shape: all axes before the first one that has more
/// than one index there are fixed, all after it whole.
bool is_range(const Indices& sizes, const Shape& shape) {
  std::size_t axis = 0;
  while (axis < sizes.size() && sizes[axis] == 1) ++axis;
  for (++axis; axis < sizes.size(); ++axis)
    if (sizes[axis] != shape[axis]) return false;
  return true;
}

class Send final : public Kernel {
 public:
  Send(Communication& communication, const KernelRequest& request) : Kernel("send"), communication_(communication) {
    for (const MessageEnd& message : messages_of(request.attributes)) {
      destinations_.push_back({message.peer, message.number});
      transfers_.push_back(message.transfer);
      communication_.expect(message.transfer);
    }
    const TensorType& type = request.inputs[0].type;
    const std::size_t width = size_of(type.element);
    Indices sizes = type.shape, starts(sizes.size(), 0);
    if (request.attributes.find("starts") != nullptr) {
      starts = request.attributes.integers("starts");
      sizes = request.attributes.integers("sizes");
    }
    const Indices strides = row_major(type.shape);
    offset_ = byte_offset(starts, strides, width);
    bytes_ = taso::bytes_of(sizes, width);
    copy_.emplace(sizes, strides, row_major(sizes), width);
  }
  Status execute(const KernelArguments& arguments) const override {
    AlignedBuffer payload = communication_.buffer(bytes_);
    copy_->run(arguments.inputs[0] + offset_, payload.data(), 1);
    return communication_.send(destinations_, transfers_, std::move(payload));
  }

 private:
  Communication& communication_;
  std::vector<Transport::Destination> destinations_;
  std::vector<std::uint32_t> transfers_;  ///< Of each.
  std::size_t offset_ = 0, bytes_ = 0;
  std::optional<cpu::StridedCopy> copy_;
};

class Receive final : public Kernel {
 public:
  Receive(Communication& communication, const KernelRequest& request)
      : Kernel("receive"),
        communication_(communication),
        message_(message_of(request.attributes)),
        bytes_(static_cast<std::size_t>(request.outputs[0].type.bytes())) {
    communication_.expect(message_.transfer);
  }
  Status execute(const KernelArguments& arguments) const override {
    return communication_.receive(message_.peer, message_.number, message_.transfer, {arguments.outputs[0], bytes_});
  }

 private:
  Communication& communication_;
  MessageEnd message_;
  std::size_t bytes_;
};

class Gather final : public Kernel {
 public:
  Gather(Communication& communication, const KernelRequest& request)
      : Kernel("gather in place"), communication_(communication) {
    const Attributes& attributes = request.attributes;
    const TensorType& type = request.outputs[0].type;
    const std::size_t rank = type.shape.size(), width = size_of(type.element);
    const Indices strides = row_major(type.shape);
    const Indices &operands = attributes.integers("operands"), &from = attributes.integers("from"),
                  &to = attributes.integers("to"), &sizes = attributes.integers("sizes");
    std::size_t message = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto of_part = [&](const Indices& all) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i * rank);
        return Indices(begin, begin + static_cast<std::ptrdiff_t>(rank));
      };
      const Indices box = of_part(sizes);
      Part part;
      part.bytes = taso::bytes_of(box, width);
      part.to = byte_offset(of_part(to), strides, width);
      Indices from_strides = row_major(box);
      if (operands[i] < 0) {
        part.message = {static_cast<int>(attributes.integers("peers")[message]),
                        static_cast<std::uint32_t>(attributes.integers("numbers")[message]),
                        static_cast<std::uint32_t>(attributes.integers("transfers")[message])};
        communication_.expect(part.message->transfer);
        part.in_place = is_range(box, type.shape);
        if (!part.in_place) workspace_bytes_ = std::max(workspace_bytes_, part.bytes);
        ++message;
      } else {
        part.operand = static_cast<std::size_t>(operands[i]);
        const Shape& shape = request.inputs[part.operand].type.shape;
        from_strides = row_major(shape);
        part.from = byte_offset(of_part(from), from_strides, width);
      }
      if (!part.in_place) part.copy.emplace(box, from_strides, strides, width);
      parts_.push_back(std::move(part));
    }
    // Messages may still be on their way.
    std::stable_partition(parts_.begin(), parts_.end(), [](const Part& part) { return !part.message; });
  }
  Status execute(const KernelArguments& arguments) const override {
    for (const Part& part : parts_) {
      std::byte* const target = arguments.outputs[0] + part.to;
      if (!part.message) {
        part.copy->run(arguments.inputs[part.operand] + part.from, target, 1);
        continue;
      }
      std::byte* const arrived = part.in_place ? target : arguments.workspace;
      TASO_RETURN_IF_ERROR(communication_.receive(part.message->peer, part.message->number, part.message->transfer,
                                                  {arrived, part.bytes}));
      if (!part.in_place) part.copy->run(arrived, target, 1);
    }
    return {};
  }

 private:
  struct Part {
    std::optional<MessageEnd> message;  ///< Else it is a box of...
    std::size_t operand = 0;            ///< ...this input.
    std::size_t from = 0, to = 0, bytes = 0;
    bool in_place = false;  ///< The message is received where it belongs.
    std::optional<cpu::StridedCopy> copy;
  };
  Communication& communication_;
  std::vector<Part> parts_;
};

class Exchange final : public Kernel {
 public:
  Exchange(Communication& communication, DeviceMessages& device, const KernelRequest& request)
      : Kernel("messages of devices"),
        communication_(communication),
        device_(device),
        transfer_(static_cast<std::uint32_t>(request.attributes.integer("transfer"))) {
    communication_.expect(transfer_);
    const std::vector<std::int64_t>& to = request.attributes.integers("to");
    const std::vector<std::int64_t>& from = request.attributes.integers("from");
    for (std::size_t i = 0; i < to.size(); ++i) {
      messages_.push_back({static_cast<int>(to[i]), nullptr, nullptr, bytes_of(request.inputs[i + 1])});
      moved_.sent += request.inputs[i + 1].type.bytes();
    }
    for (std::size_t i = 0; i < from.size(); ++i) {
      messages_.push_back({static_cast<int>(from[i]), nullptr, nullptr, bytes_of(request.outputs[i + 1])});
      moved_.received += request.outputs[i + 1].type.bytes();
    }
    sends_ = to.size();
  }
  Status execute(const KernelArguments& arguments) const override {
    std::vector<DeviceMessages::Message> messages = messages_;
    for (std::size_t i = 0; i < sends_; ++i) messages[i].from = arguments.inputs[i + 1];
    for (std::size_t i = sends_; i < messages.size(); ++i) messages[i].into = arguments.outputs[i - sends_ + 1];
    return device_.exchange(messages);
  }
  void note_run() const override { communication_.count(transfer_, moved_); }

 private:
  static std::size_t bytes_of(const Operand& operand) { return static_cast<std::size_t>(operand.type.bytes()); }

  Communication& communication_;
  DeviceMessages& device_;
  std::uint32_t transfer_;
  MovedBytes moved_;
  std::vector<DeviceMessages::Message> messages_;  ///< What is sent first; without memory.
  std::size_t sends_ = 0;
};

}  // namespace

Status check_moved(std::span<const std::int64_t> predicted, std::span<const MovedPayload> ranks) {
  MovedPayload counted(predicted.size());
  for (const MovedPayload& rank : ranks)
    for (std::size_t transfer = 0; transfer < rank.size(); ++transfer) {
      if (transfer == counted.size()) return internal_error("a message belongs to no transfer of the plan");
      counted[transfer].sent += rank[transfer].sent;
      counted[transfer].received += rank[transfer].received;
    }
  for (std::size_t transfer = 0; transfer < predicted.size(); ++transfer)
    for (const auto& [verb, bytes] :
         {std::pair("sends", counted[transfer].sent), {"receives", counted[transfer].received}})
      if (bytes != predicted[transfer])
        return internal_error("transfer " + std::to_string(transfer) + " of the plan " + verb + " " +
                              std::to_string(bytes) + " bytes and not " + std::to_string(predicted[transfer]) +
                              " as predicted");
  return {};
}

bool Communication::knows(std::string_view op) const {
  return op == send_op || op == receive_op || op == gather_op || op == exchange_op;
}

std::unique_ptr<Kernel> Communication::create(const KernelRequest& request) {
  if (request.op == send_op) return std::make_unique<Send>(*this, request);
  if (request.op == receive_op) return std::make_unique<Receive>(*this, request);
  if (request.op == gather_op) return std::make_unique<Gather>(*this, request);
  return nullptr;
}

std::unique_ptr<Kernel> Communication::create_on_device(const KernelRequest& request) {
  if (request.op != exchange_op || device_ == nullptr) return nullptr;
  return std::make_unique<Exchange>(*this, *device_, request);
}

Status Communication::send(std::span<const Transport::Destination> destinations,
                           std::span<const std::uint32_t> transfers, AlignedBuffer bytes) {
  for (const std::uint32_t transfer : transfers) moved_[transfer].sent += static_cast<std::int64_t>(bytes.size());
  return transport_.send_to(destinations, std::move(bytes));
}

Status Communication::receive(int from, std::uint32_t number, std::uint32_t transfer, std::span<std::byte> into) {
  TASO_RETURN_IF_ERROR(transport_.receive(from, number, into));
  moved_[transfer].received += static_cast<std::int64_t>(into.size());
  return {};
}

}  // namespace taso
