#!/usr/bin/env python3
"""Optimizes models with taso-opt and compares the results with the originals in ONNX Runtime.

For each model: taso-opt exits 0; its certificate holds (taso-verify --certificate); the result passes onnx.checker;
names, order, types and shapes of graph inputs and outputs are unchanged; on three random inputs its outputs are within
1e-4 * max|reference| of the original's (run without ONNX Runtime's own graph optimizations). Where an output hardly
depends on the inputs, the tensor before the final Softmax is compared besides. The test of the test: one rewritten weight
scaled by 1.05 is found. With --symbolic the first extents of inputs become symbolic, the model is optimized once, and the
result is compared at several batches. A second run, with all costs recorded, writes the same bytes (not with --once); its time and
memory are reported.
"""
import argparse, collections, os, subprocess, sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

RTOL = 1e-4


def load(path):
    return onnx.load(path)


def session(model, path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    if model.ByteSize() > 1_900_000_000:
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def signature(values):
    """Names, element types and extents (numbers or symbols) in order."""
    return [(v.name, v.type.tensor_type.elem_type,
             tuple(d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim)) for v in values]


def inputs_of(model):
    """Graph inputs that must be fed: IR 3 lists initializers among them."""
    initializers = {t.name for t in model.graph.initializer}
    return [v for v in model.graph.input if v.name not in initializers]


def feeds(model, seed):
    generator = np.random.default_rng(seed)
    result = {}
    for value in inputs_of(model):
        shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            result[value.name] = generator.integers(0, 2, shape).astype(dtype)
        else:
            result[value.name] = generator.standard_normal(shape).astype(np.float32)
    return result


def before_softmax(model):
    """output name -> the tensor that its final Softmax reads."""
    producer = {o: n for n in model.graph.node for o in n.output}
    found = {}
    for output in model.graph.output:
        node = producer.get(output.name)
        while node is not None and node.op_type in ("Reshape", "Identity", "Flatten"):
            node = producer.get(node.input[0])
        if node is not None and node.op_type == "Softmax":
            found[output.name] = node.input[0]
    return found


def outputs(model, path, all_feeds):
    """label -> its values for each of the feeds"""
    extended = onnx.ModelProto()
    extended.CopyFrom(model)
    labels = [o.name for o in model.graph.output]
    for name, inner in before_softmax(model).items():
        extended.graph.output.append(onnx.helper.make_tensor_value_info(inner, onnx.TensorProto.FLOAT, None))
        labels.append("before the softmax of " + name)
    runner = session(extended, path)
    results = [runner.run(None, f) for f in all_feeds]
    return {label: [r[i] for r in results] for i, label in enumerate(labels)}


def difference(reference, actual):
    """The largest difference relative to max|reference| over labels and feeds, and where it is."""
    worst, where = 0.0, ""
    for label, expected in reference.items():
        if label not in actual:
            return float("inf"), label + " is gone"
        for r, a in zip(expected, actual[label]):
            if r.size != a.size or not np.all(np.isfinite(a)):
                return float("inf"), label
            scale = float(np.max(np.abs(r))) if r.size else 0.0
            d = float(np.max(np.abs(r.astype(np.float64).ravel() - a.astype(np.float64).ravel()))) if r.size else 0.0
            relative = d / scale if scale > 0 else (0.0 if d == 0 else float("inf"))
            if relative > worst:
                worst, where = relative, label
    return worst, where


def sensitivity(values):
    """How much the most sensitive label changes between inputs, relative to its largest magnitude."""
    return max(float(np.max(np.abs(v[0] - v[1]))) / max(float(np.max(np.abs(v[0]))), 1e-30) for v in values.values())


def perturbed(model, original):
    """The model with one rewritten weight scaled by 1.05, and the weight's name."""
    known = {t.SerializeToString() for t in original.graph.initializer} if original.ByteSize() < 1_900_000_000 else set()
    read = collections.Counter(i for n in model.graph.node if n.op_type in ("Conv", "MatMul", "Gemm") for i in n.input[1:2])
    weights = [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and t.name in read]
    rewritten = [t for t in weights if t.SerializeToString() not in known] or weights
    if not rewritten:
        return None, ""
    target = max(rewritten, key=lambda t: int(np.prod(t.dims)))
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for t in copy.graph.initializer:
        if t.name == target.name:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t) * np.float32(1.05), t.name))
    return copy, target.name


# Started in a small process of its own: a child's peak memory counts from that of its parent.
LAUNCHER = """
import os, subprocess, sys, time
start = time.monotonic()
child = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(child.pid, 0)
report = (os.waitstatus_to_exitcode(status), time.monotonic() - start, usage.ru_maxrss / 1024)
os.write(int(sys.argv[1]), " ".join(map(str, report)).encode())
"""


def run(command):
    """exit code, output, seconds, peak memory in MB"""
    reading, writing = os.pipe()
    process = subprocess.run([sys.executable, "-S", "-c", LAUNCHER, str(writing)] + command, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, pass_fds=[writing])
    os.close(writing)
    with os.fdopen(reading) as file:
        code, seconds, memory = file.read().split()
    return int(code), process.stdout, float(seconds), float(memory)


# What a line of launches.txt says: the operators counted, how many before, how many at most after, whether that is no gain.
Expectation = collections.namedtuple("Expectation", "operators before after no_gain")


def expectations(path):
    table = {}
    for line in open(path):
        line = line.split("#")[0].strip()
        if line:
            name, rest = line.split(":")
            words = rest.split()
            table[name] = Expectation(words[0].split(","), int(words[1]), int(words[2]), "no-gain" in words)
    return table


def count(model, operators):
    return sum(n.op_type in operators for n in model.graph.node)


class Failed(Exception):
    pass


def require(condition, message):
    if not condition:
        raise Failed(message)


def examine(path, options, table):
    name = os.path.splitext(os.path.basename(path))[0]
    out = os.path.join(options.work, name + ".optimized.onnx")
    again = os.path.join(options.work, name + ".again.onnx")
    base = [os.path.join(options.programs, "taso-opt"), path, "--cost", options.cost, "--costs",
            os.path.join(options.work, "costs.sqlite"), "--seed", "0"]
    if options.steps:
        base += ["--steps", str(options.steps)]
    expected = table.get(name) if options.counts else None
    # The file is written all the same where this option ends with another exit code.
    base += ["-v"] + (["--fail-if-no-gain"] if expected else [])
    code, text, cold, memory = run(base + ["-o", out])
    require(code == (5 if expected and expected.no_gain else 0), f"taso-opt exits {code}: {text.strip()}")
    warm = float("nan")
    if not options.once:
        code, text, warm, memory = run(base + ["-o", again])
        require(code == (5 if expected and expected.no_gain else 0), f"the second run exits {code}: {text.strip()}")
        with open(out, "rb") as a, open(again, "rb") as b:
            require(a.read() == b.read(), "two runs wrote different bytes")
        os.remove(again)
    verify = os.path.join(options.programs, "taso-verify")
    if os.path.exists(verify):
        certificate = os.path.splitext(out)[0] + ".taso.json"
        code, text, _, _ = run([verify, "-q", "--certificate", certificate, "--original", path])
        require(code == 0, f"the certificate does not hold: {text.strip()}")
    original, result = load(path), load(out)
    onnx.checker.check_model(out)
    require(signature(inputs_of(original)) == signature(inputs_of(result)), "graph inputs changed")
    require(signature(original.graph.output) == signature(result.graph.output), "graph outputs changed")

    note = ""
    if expected:
        counted = count(original, expected.operators), count(result, expected.operators)
        require(counted[0] == expected.before, f"{counted[0]} {expected.operators} in the file, not {expected.before}")
        require(counted[1] <= expected.after, f"{counted[1]} {expected.operators} are left, expected at most {expected.after}")
        note = (f"{'+'.join(expected.operators)} {counted[0]} -> {counted[1]}" +
                (", no gain reported" if expected.no_gain else ""))

    all_feeds = [feeds(original, seed) for seed in range(3)]
    reference = outputs(original, path, all_feeds)
    worst, where = difference(reference, outputs(result, out, all_feeds))
    require(worst <= RTOL, f"outputs differ by {worst:.1e} of the largest at {where}")
    seen = sensitivity(reference)
    require(seen > 1e-3, f"outputs change by {seen:.1e} between inputs: the comparison says nothing")
    wrong, weight = perturbed(result, original)
    caught = float("nan")
    if wrong is not None:
        caught, _ = difference(reference, outputs(wrong, out, all_feeds))
        require(caught > RTOL, f"{weight} scaled by 1.05 is not found: {caught:.1e}")
    if not options.keep:
        os.remove(out)
    print(f"ok   {name}: difference {worst:.1e}, perturbed {caught:.1e}, {cold:.1f} s then {warm:.1f} s, "
          f"{memory:.0f} MB {note}", flush=True)
    return (name, os.path.getsize(path) / 1e6, worst, caught, cold, warm, memory, note)


def with_symbolic_batch(model):
    """The model with "batch" for a first extent of 1 of inputs and outputs; None if there is none."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    count = 0
    for value in list(inputs_of(copy)) + list(copy.graph.output):
        dims = value.type.tensor_type.shape.dim
        if dims and dims[0].dim_value == 1:
            dims[0].dim_param = "batch"
            count += 1
    return copy if count > 0 else None


def batch_feeds(model, batch, seed):
    """Feeds of one batch: no two rows are equal."""
    result = feeds(model, seed)
    for value in inputs_of(model):
        dims = value.type.tensor_type.shape.dim
        if dims and dims[0].dim_param == "batch":
            result[value.name] = np.concatenate([feeds(model, seed + i)[value.name] for i in range(batch)])
    return result


def examine_symbolic(path, options):
    """The model with a symbolic batch, optimized once, against the original at several batches; None if ONNX Runtime
    cannot run the original at these."""
    name = os.path.splitext(os.path.basename(path))[0]
    model = with_symbolic_batch(load(path))
    before, out = os.path.join(options.work, name + ".symbolic.onnx"), os.path.join(options.work, name + ".symbolic.out.onnx")
    batches = (1, 2, 3, 7)
    try:
        all_feeds = [batch_feeds(model, batch, 10 * batch) for batch in batches]
        reference = outputs(model, before, all_feeds)
    except Exception:  # fixed shapes inside
        return None
    onnx.save(model, before)
    base = [os.path.join(options.programs, "taso-opt"), before, "--cost", options.cost, "-o", out]
    code, text, seconds, memory = run(base)
    require(code == 0, f"taso-opt exits {code}: {text.strip()}")
    require("symbolic extents are kept" in text, "symbolic extents were not kept: " + text.strip())
    verify = os.path.join(options.programs, "taso-verify")
    if os.path.exists(verify):
        code, text, _, _ = run([verify, "-q", "--certificate", os.path.splitext(out)[0] + ".taso.json"])
        require(code == 0, f"the certificate does not hold: {text.strip()}")
    result = load(out)
    onnx.checker.check_model(out)
    require(signature(inputs_of(model)) == signature(inputs_of(result)), "graph inputs changed")
    require(signature(model.graph.output) == signature(result.graph.output), "graph outputs changed")
    worst, where = difference(reference, outputs(result, out, all_feeds))
    require(worst <= RTOL, f"outputs differ by {worst:.1e} of the largest at {where}")
    wrong, weight = perturbed(result, model)
    caught = float("nan")
    if wrong is not None:
        caught, _ = difference(reference, outputs(wrong, out, all_feeds))
        require(caught > RTOL, f"{weight} scaled by 1.05 is not found: {caught:.1e}")
    os.remove(before)
    os.remove(out)
    print(f"ok   {name}: at batches {batches} difference {worst:.1e}, perturbed {caught:.1e}, {seconds:.1f} s", flush=True)
    return (name, 0, worst, caught, seconds, seconds, memory, "symbolic batch")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--programs", required=True, help="folder of the built programs")
    parser.add_argument("--work", required=True, help="folder for results and the cost database")
    parser.add_argument("--cost", default="time")
    parser.add_argument("--steps", type=int, help="most graphs to expand")
    parser.add_argument("--counts", action="store_true", help="check the node counts of launches.txt")
    parser.add_argument("--once", action="store_true", help="no second run")
    parser.add_argument("--table", help="write a markdown table")
    parser.add_argument("--symbolic", action="store_true", help="models with a symbolic batch instead, at several batches")
    parser.add_argument("--keep", action="store_true", help="keep the optimized models")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    table = expectations(os.path.join(os.path.dirname(os.path.abspath(__file__)), "launches.txt"))
    rows, failures = [], 0
    for path in options.models:
        try:
            row = examine_symbolic(path, options) if options.symbolic else examine(path, options, table)
            if row is None:
                print(f"skip {os.path.basename(path)}: its shapes are fixed", flush=True)
            else:
                rows.append(row)
        except Failed as failure:
            failures += 1
            print(f"FAIL {os.path.basename(path)}: {failure}", flush=True)
    if options.table:
        with open(options.table, "w") as file:
            file.write("| model | MB | largest difference | one weight x 1.05 | first run, s | second run, s | memory, MB | |\n"
                       "|---|---:|---:|---:|---:|---:|---:|---|\n")
            for n, size, worst, caught, cold, warm, memory, note in rows:
                file.write(f"| {n} | {size:.0f} | {worst:.1e} | {caught:.1e} | {cold:.1f} | {warm:.1f} | {memory:.0f} | {note} |\n")
    print(f"{len(rows)} models right, {failures} wrong")
    sys.exit(1 if failures else 0)


main()
