#!/usr/bin/env python3
"""sharding_file.py MODEL ANNOTATED DEVICES [uneven]: the sharding annotations of a model are well-formed, and the model
is the same. Some are of cut tensors, unless pieces are uneven.

What the IR says of annotations (onnx.proto, ShardingSpecProto): configurations and tensors are known, axes are there
and cut evenly, and there is a device or a group of devices for each shard. ONNX Runtime runs the annotated model.
"""
import sys

import numpy as np
import onnx
import onnxruntime as ort


def require(condition, message):
    if not condition:
        sys.exit("FAIL " + message)


plain, annotated, devices = onnx.load(sys.argv[1]), onnx.load(sys.argv[2]), int(sys.argv[3])
onnx.checker.check_model(sys.argv[2])
require(annotated.ir_version >= 11, f"IR version {annotated.ir_version}")
require(len(annotated.configuration) == 1, "one configuration")
configuration = annotated.configuration[0]
require(configuration.num_devices == devices and len(configuration.device) == devices, "number of devices")
shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
          for g in [onnx.shape_inference.infer_shapes(annotated).graph] for v in [*g.input, *g.output, *g.value_info]}
shapes.update({t.name: list(t.dims) for t in annotated.graph.initializer})
specs = cut = 0
for node in annotated.graph.node:
    for on_node in node.device_configurations:
        require(on_node.configuration_id == configuration.name, f"{node.name}: configuration {on_node.configuration_id}")
        names = [spec.tensor_name for spec in on_node.sharding_spec]
        require(len(set(names)) == len(names) > 0, f"{node.name}: tensors {names}")
        for spec in on_node.sharding_spec:
            require(spec.tensor_name in [*node.input, *node.output], f"{node.name}: no tensor {spec.tensor_name}")
            shards, axes = 1, [d.axis for d in spec.sharded_dim]
            require(sorted(set(axes)) == axes, f"{spec.tensor_name}: axes {axes}")
            for dim in spec.sharded_dim:
                require(len(dim.simple_sharding) == 1, "one simple sharding")
                simple = dim.simple_sharding[0]
                require(simple.dim_value == shapes[spec.tensor_name][dim.axis], f"{spec.tensor_name}: extent")
                require(simple.num_shards > 1 and simple.dim_value % simple.num_shards == 0, f"{spec.tensor_name}: uneven")
                shards *= simple.num_shards
            require(len(spec.device) == shards, f"{spec.tensor_name}: {len(spec.device)} devices for {shards} shards")
            groups = {entry.key: list(entry.value) for entry in spec.index_to_device_group_map}
            held = [d for entry in spec.device for d in groups.get(entry, [entry])]
            require(all(0 <= d < devices for d in held), f"{spec.tensor_name}: devices {held}")
            require(len(set(held)) == len(held), f"{spec.tensor_name}: a device has two shards")
            specs, cut = specs + 1, cut + (shards > 1)
require(specs > 0 and (cut > 0 or sys.argv[4:] == ["uneven"]), "nothing is annotated")


def without_annotations(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        del node.device_configurations[:]
    del copy.configuration[:]
    copy.ir_version = plain.ir_version
    return copy


require(without_annotations(annotated).graph.node == plain.graph.node, "the nodes are the model's")
session, other = (ort.InferenceSession(p, providers=["CPUExecutionProvider"]) for p in sys.argv[1:3])
feeds = {v.name: np.ones(v.shape, v.type[7:-1] if "int" in v.type else np.float32) for v in session.get_inputs()}
for a, b in zip(session.run(None, feeds), other.run(None, feeds)):
    require(np.array_equal(a, b), "outputs differ")
print(f"{sys.argv[2]}: {specs} annotations, {cut} of them of cut tensors")
