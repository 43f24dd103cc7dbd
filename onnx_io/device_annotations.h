/// Annotations of a model for several devices, as ONNX has them from version 11 of its IR on (DeviceConfigurationProto,
/// NodeDeviceConfigurationProto, ShardingSpecProto): which part of a tensor which device has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace taso {

/// How devices have a tensor: every cut axis in equal shards; shards in row-major order over the cut axes.
struct TensorSharding {
  struct CutAxis {
    std::int64_t axis = 0, extent = 0, shards = 1;
  };
  std::vector<CutAxis> axes;                       ///< Ascending.
  std::vector<std::vector<std::int64_t>> devices;  ///< Per shard, those that have it.
};

/// How the tensors of a node are sharded.
struct NodeSharding {
  std::vector<std::pair<Value, TensorSharding>> reads, makes;
};

struct DeviceAnnotations {
  std::string configuration;             ///< Its name in the file.
  std::int64_t devices = 0;              ///< Numbered from 0.
  std::map<NodeId, NodeSharding> nodes;  ///< Of the graph that is saved.
};

/// The first version of the IR that has them.
inline constexpr std::int64_t ir_version_of_annotations = 11;

/// A tensor of a node of the file.
using NamedSharding = std::pair<std::string, TensorSharding>;

/// Bytes of a NodeDeviceConfigurationProto, of the field device_configurations of a node.
[[nodiscard]] std::string node_configuration_bytes(const std::string& configuration,
                                                   const std::vector<NamedSharding>& tensors);
/// Bytes of a DeviceConfigurationProto, of the field configuration of a model.
[[nodiscard]] std::string device_configuration_bytes(const DeviceAnnotations& annotations);

/// Numbers of these fields.
inline constexpr int node_device_configurations_field = 10, model_configuration_field = 26;

}  // namespace taso
