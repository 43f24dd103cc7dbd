#!/usr/bin/env python3
"""rank_files.py MODEL FOLDER...: what models of ranks compute together is what the model computes.

Each folder has rank0.onnx, rank1.onnx, ... as taso-opt --emit ort-ranks or tensorrt-ranks writes them. Between collectives ranks
run in ONNX Runtime; collectives are done here, as the programs that they are of define them. All ranks must come to
the same collectives in the same order, and have the outputs of the model.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort

RTOL = 1e-4


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def is_collective(node):
    return node.op_type == "DistCollective" or (node.domain == "com.microsoft" and
                                                node.op_type in ("AllReduce", "AllGather", "AllToAll"))


def run_nodes(model, nodes, wanted, tensors):
    """Runs some of the nodes of a model, whose inputs are in `tensors`; adds what is wanted."""
    made = {name for node in nodes for name in node.output}
    read = {name for node in nodes for name in node.input if name}
    outputs = sorted(made & wanted)
    if not outputs:
        return
    initializers = [t for t in model.graph.initializer if t.name in read]
    known = {t.name for t in initializers}
    inputs = sorted(read - made - known)

    def declare(name):
        value = tensors[name]
        return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)

    graph = onnx.helper.make_graph(nodes, "part", [declare(name) for name in inputs],
                                   [], initializers)
    part = onnx.helper.make_model(graph, opset_imports=[o for o in model.opset_import if o.domain in ("", "ai.onnx")],
                                  ir_version=model.ir_version)
    inferred = {v.name: v for v in onnx.shape_inference.infer_shapes(part, strict_mode=True).graph.value_info}
    part.graph.output.extend(inferred[name] for name in outputs)
    onnx.checker.check_model(part)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(part.SerializeToString(), options, providers=["CPUExecutionProvider"])
    tensors.update(zip(outputs, session.run(outputs, {name: tensors[name] for name in inputs})))


def onnx_runtime_collective(node, group):
    """What every rank of a group that is all ranks gets; `group`: what each has."""
    a = attributes(node)
    if node.op_type != "AllReduce" and a["group_size"] != len(group):
        raise ValueError(f"group_size {a['group_size']} of {len(group)} ranks")
    if node.op_type == "AllReduce":
        return [sum(group[1:], group[0])] * len(group)
    if node.op_type == "AllGather":
        return [np.concatenate(group, axis=a["axis"])] * len(group)
    pieces = [np.split(x, len(group)) for x in group]
    return [np.concatenate([p[i] for p in pieces]) for i in range(len(group))]


def tensorrt_collective(node, group):
    a = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes(node).items()}
    if a["nb_rank"] != len(group) or a["group_size"] != len(group) or a["root"] != -1:
        raise ValueError(f"attributes {a} of {len(group)} ranks")
    if a["collective_operation"] == "all_gather":
        if a["reduce_op"] != "none":
            raise ValueError("an all-gather that reduces")
        return [np.concatenate(group)] * len(group)
    combined = group[0]
    for x in group[1:]:
        combined = {"sum": np.add, "max": np.maximum}[a["reduce_op"]](combined, x)
    if a["collective_operation"] == "all_reduce":
        return [combined] * len(group)
    if a["collective_operation"] != "reduce_scatter":
        raise ValueError(f"operation {a['collective_operation']}")
    return np.split(combined, len(group))


def run_ranks(models, feeds):
    """The outputs of every rank, and the number of collectives."""
    ranks = range(len(models))
    tensors = [dict(feeds) for _ in ranks]
    nodes = [list(m.graph.node) for m in models]
    ends = [[i for i, n in enumerate(own) if is_collective(n)] + [len(own)] for own in nodes]
    if len({len(e) for e in ends}) != 1:
        raise ValueError(f"ranks have different numbers of collectives: {[len(e) - 1 for e in ends]}")
    begins = [0] * len(models)
    for step in range(len(ends[0])):
        for r in ranks:
            wanted = {name for node in nodes[r][ends[r][step]:] for name in node.input}
            wanted |= {output.name for output in models[r].graph.output}
            run_nodes(models[r], nodes[r][begins[r]:ends[r][step]], wanted, tensors[r])
            begins[r] = ends[r][step] + 1
        if step == len(ends[0]) - 1:
            break
        done = set()
        for r in ranks:
            if r in done:
                continue
            node = nodes[r][ends[r][step]]
            group = list(attributes(node)["groups"]) if node.op_type == "DistCollective" else list(ranks)
            own = [nodes[e][ends[e][step]] for e in group]
            if any((n.op_type, attributes(n)) != (node.op_type, attributes(node)) for n in own):
                raise ValueError(f"ranks {group} come to different collectives: {node.name}")
            collective = tensorrt_collective if node.op_type == "DistCollective" else onnx_runtime_collective
            values = [tensors[e][n.input[0]] for e, n in zip(group, own)]
            if len({v.shape for v in values}) != 1:
                raise ValueError(f"tensors of {node.name} differ in shape: {[v.shape for v in values]}")
            for e, n, value in zip(group, own, collective(node, values)):
                tensors[e][n.output[0]] = value
            done.update(group)
    outputs = [[own[o.name] for o in m.graph.output] for own, m in zip(tensors, models)]
    return outputs, len(ends[0]) - 1


def random_feeds(session):
    generator = np.random.default_rng(0)
    feeds = {}
    for value in session.get_inputs():
        if "int" in value.type:
            feeds[value.name] = generator.integers(0, 2, value.shape).astype(value.type[7:-1])
        else:
            feeds[value.name] = generator.uniform(-1, 1, value.shape).astype(np.float32)
    return feeds


def main():
    session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    feeds = random_feeds(session)
    expected = session.run(None, feeds)
    for folder in sys.argv[2:]:
        files = [os.path.join(folder, f"rank{r}.onnx") for r in range(len(os.listdir(folder)))]
        models = [onnx.load(file) for file in files if os.path.exists(file)]
        outputs, count = run_ranks(models, feeds)
        worst = 0.0
        for own in outputs:
            for value, right in zip(own, expected):
                scale = float(np.max(np.abs(right)))
                difference = float(np.max(np.abs(value.astype(np.float64) - right)))
                worst = max(worst, difference / scale if scale > 0 else difference)
        print(f"{folder}: {len(models)} ranks, {count} collectives, largest difference {worst:.1e}")
        if not worst <= RTOL or len(models) < 2:
            sys.exit(1)


main()
