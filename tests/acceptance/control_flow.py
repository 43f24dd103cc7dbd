"""control_flow.py PROGRAMS WORK SPECS: models with If, Loop and Scan, optimized, compute in ONNX Runtime what they computed.

In each, products of one tensor by several weights stand in subgraphs, one of them inside of another one. Each result passes onnx.checker
and has fewer products; its certificate holds, and does not once a step in a subgraph is another.
"""
import json, subprocess, sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

programs, work, specs = sys.argv[1:4]
rng = np.random.default_rng(1)
shape = [4, 8]


def tensor(name, extents=None, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, extents)


def weights(*names):
    return [numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float32) * 0.3, n) for n in names]


def products(x, out, prefix, names="wvu"):
    """out = tanh((x w) * (x v) + x u)"""
    parts = [f"{prefix}_{n}" for n in names]
    return ([helper.make_node("MatMul", [x, n], [y]) for n, y in zip(names, parts)]
            + [helper.make_node("Mul", parts[:2], [prefix + "_m"]), helper.make_node("Add", [prefix + "_m", parts[2]], [prefix + "_s"]),
               helper.make_node("Tanh", [prefix + "_s"], [out])])


def branch(name, x, prefix):
    return helper.make_graph(products(x, prefix + "_out", prefix), name, [], [tensor(prefix + "_out", [None, None])])


def write(name, nodes, inputs, outputs, initializers):
    model = helper.make_model(helper.make_graph(nodes, name, inputs, outputs, initializers),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = f"{work}/{name}.onnx"
    onnx.save(model, path)
    return path


def choice():
    nodes = [helper.make_node("Relu", ["x"], ["h"]),
             helper.make_node("If", ["flag"], ["y"], then_branch=branch("a", "h", "yes"), else_branch=branch("b", "x", "no"))]
    return write("choice", nodes, [tensor("x", shape), tensor("flag", [], TensorProto.BOOL)], [tensor("y", shape)],
                 weights("w", "v", "u"))


def loop():
    inner = helper.make_node("If", ["more"], ["state"], then_branch=branch("a", "sum", "yes"), else_branch=branch("b", "before", "no"))
    body = helper.make_graph(
        products("before", "sum", "outer") + [helper.make_node("Identity", ["more"], ["again"]), inner], "body",
        [tensor("i", [], TensorProto.INT64), tensor("more", [], TensorProto.BOOL), tensor("before")],
        [tensor("again", [], TensorProto.BOOL), tensor("state")])
    return write("loop", [helper.make_node("Loop", ["n", "flag", "x"], ["y"], body=body)],
                 [tensor("x", shape), tensor("n", [], TensorProto.INT64), tensor("flag", [], TensorProto.BOOL)],
                 [tensor("y", shape)], weights("w", "v", "u"))


def scan():
    body = helper.make_graph([helper.make_node("Add", ["state", "row"], ["sum"])] + products("sum", "next", "step")
                             + [helper.make_node("Identity", ["next"], ["each"])],
                             "body", [tensor("state", [1, 8]), tensor("row", [1, 8])], [tensor("next", [1, 8]), tensor("each", [1, 8])])
    return write("scan", [helper.make_node("Scan", ["x", "rows"], ["y", "all"], body=body, num_scan_inputs=1)],
                 [tensor("x", [1, 8]), tensor("rows", [5, 1, 8])], [tensor("y", [1, 8]), tensor("all", [5, 1, 8])],
                 weights("w", "v", "u"))


products_of = ("MatMul", "Gemm")


def count(graph, *op_types):
    return sum((n.op_type in op_types) + sum(count(a.g, *op_types) for a in n.attribute if a.HasField("g")) for n in graph.node)


def reads(graph):
    """All names that nodes and subgraphs read."""
    names = set()
    for node in graph.node:
        names.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= reads(attribute.g)
    return names


def session(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def random(declared):
    if "bool" in declared.type:
        return np.array(rng.random() > 0.5)
    if "int" in declared.type:
        return np.array(int(rng.integers(0, 4)))
    return rng.standard_normal(declared.shape).astype(np.float32)


def verify(certificate):
    return subprocess.run([f"{programs}/taso-verify", "--specs", specs, "--certificate", certificate, "-q"],
                          capture_output=True, text=True)


for path in (choice(), loop(), scan()):
    out = path.replace(".onnx", ".out.onnx")
    subprocess.run([f"{programs}/taso-opt", path, "-o", out, "--specs", specs, "--cost", "launches", "-q"], check=True)
    before, after = onnx.load(path), onnx.load(out)
    onnx.checker.check_model(after)
    assert count(after.graph, *products_of) < count(before.graph, *products_of), path
    read = reads(after.graph)
    assert all(t.name in read for t in after.graph.initializer), path
    one, two = session(path), session(out)
    for _ in range(6):
        values = {i.name: random(i) for i in one.get_inputs()}
        for a, b in zip(one.run(None, values), two.run(None, values)):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5, err_msg=path)
    certificate = out.replace(".onnx", ".taso.json")
    held = verify(certificate)
    assert held.returncode == 0, held.stdout + held.stderr
    with open(certificate) as file:
        text = json.load(file)
    assert text["bodies"], path
    text["bodies"][0]["steps"] = text["bodies"][0]["steps"][:-1]
    with open(certificate, "w") as file:
        json.dump(text, file)
    refused = verify(certificate)
    assert refused.returncode == 5, refused.stdout + refused.stderr
    print(path.split("/")[-1], count(before.graph, *products_of), "->", count(after.graph, *products_of), "products")
