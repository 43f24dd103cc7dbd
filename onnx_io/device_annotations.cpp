#include "onnx_io/device_annotations.h"

#include <string_view>

#include "support/wire.h"

namespace taso {
namespace {

// Written field by field, since protobuf messages of older versions of ONNX do not have them.

void append_integer(std::string& out, int field, std::int64_t value) {
  wire::append_varint(out, static_cast<std::uint64_t>(field) << 3);
  wire::append_varint(out, static_cast<std::uint64_t>(value));
}

void append_bytes(std::string& out, int field, std::string_view bytes) {
  wire::append_length_prefix(out, field, bytes.size());
  out += bytes;
}

std::string sharding_spec_bytes(const std::string& tensor, const TensorSharding& sharding) {
  std::string spec, groups;
  append_bytes(spec, 1, tensor);
  std::int64_t next_group = -1;  // Numbers of groups of devices are negative, so that they are none of devices.
  for (const std::vector<std::int64_t>& devices : sharding.devices) {
    if (devices.size() == 1) {
      append_integer(spec, 2, devices[0]);
      continue;
    }
    append_integer(spec, 2, next_group);
    std::string entry;
    append_integer(entry, 1, next_group--);
    for (const std::int64_t device : devices) append_integer(entry, 2, device);
    append_bytes(groups, 3, entry);
  }
  spec += groups;
  for (const TensorSharding::CutAxis& cut : sharding.axes) {
    std::string simple, axis;
    append_integer(simple, 1, cut.extent);
    append_integer(simple, 3, cut.shards);
    append_integer(axis, 1, cut.axis);
    append_bytes(axis, 2, simple);
    append_bytes(spec, 4, axis);
  }
  return spec;
}

}  // namespace

std::string node_configuration_bytes(const std::string& configuration, const std::vector<NamedSharding>& tensors) {
  std::string bytes;
  append_bytes(bytes, 1, configuration);
  for (const auto& [tensor, sharding] : tensors) append_bytes(bytes, 2, sharding_spec_bytes(tensor, sharding));
  return bytes;
}

std::string device_configuration_bytes(const DeviceAnnotations& annotations) {
  std::string bytes;
  append_bytes(bytes, 1, annotations.configuration);
  append_integer(bytes, 2, annotations.devices);
  for (std::int64_t device = 0; device < annotations.devices; ++device)
    append_bytes(bytes, 3, "device " + std::to_string(device));
  return bytes;
}

}  // namespace taso
