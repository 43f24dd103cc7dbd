#!/usr/bin/env python3
"""How far models in half precision are from what they would compute without rounding, before and after taso-opt.

    bench/coverage/half_precision.py build/release/bin FOLDER [NAME ...] [--work FOLDER] [--limit SECONDS] [--seeds N]

For every FOLDER/NAME.onnx in which numbers are FLOAT16 (as export_models.py writes *_fp16): the reference is the same model with all numbers and
conversions widened to FLOAT, a thousand times more exact, in ONNX Runtime. The error of the original, and of what taso-opt makes of it without
rules, with the shipped ones (`--cost launches --steps 150`) and with measured costs (default), is the relative L2 of all outputs over a few random inputs,
in ONNX Runtime. Prints a table in Markdown, with the ratio of each error to the original's. Exit code 1 if one is above --most."""
import argparse
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from compare import SIZES, inputs_of

WAYS = {
    "no rules": lambda none: ["--rules", str(none), "--cost", "launches"],
    "shipped rules": lambda none: ["--cost", "launches", "--steps", "150"],
    "default": lambda none: [],
}


def widened_tensor(tensor):
    if tensor.data_type == TensorProto.FLOAT16:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))


def widen(graph):
    """Every FLOAT16 in a graph becomes FLOAT: weights, conversions, types."""
    for tensor in graph.initializer:
        widened_tensor(tensor)
    del graph.value_info[:]
    for value in list(graph.input) + list(graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                widen(attribute.g)
            if attribute.HasField("t"):
                widened_tensor(attribute.t)
            if attribute.name in ("to", "dtype", "output_dtype") and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT


def is_half(model):
    return any(t.data_type == TensorProto.FLOAT16 for t in model.graph.initializer)


def session(path):
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def feeds_of(runner, seeds):
    symbolic = any(not isinstance(extent, int) for entry in runner.get_inputs() for extent in entry.shape)
    return [inputs_of(runner, sizes, np.random.default_rng(seed)) for seed in range(seeds) for sizes in (SIZES if symbolic else SIZES[:1])]


def outputs(runner, feeds):
    kinds = {"tensor(float16)": np.float16, "tensor(float)": np.float32}
    wanted = {entry.name: kinds.get(entry.type) for entry in runner.get_inputs()}
    results = []
    for feed in feeds:
        results.append([o.astype(np.float64) for o in runner.run(None, {n: v.astype(wanted[n]) if wanted[n] else v for n, v in feed.items()})])
    return results


def error(reference, actual):
    """Relative L2 over all outputs, each by its own norm, and all inputs."""
    squares = [np.sum((a - r)**2) / max(np.sum(r**2), 1e-60) for rs, xs in zip(reference, actual) for r, a in zip(rs, xs)]
    return float(np.sqrt(np.mean(squares)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("half-work"))
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=float, default=1.5)
    parser.add_argument("--ways", default=",".join(WAYS))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    none = options.work / "none.rules"
    none.write_text("# no rules\n")
    ways = options.ways.split(",")
    print("| model | original | " + " | ".join(f"{way} | ratio" for way in ways) + " |")
    print("|---|---:|" + "---:|---:|" * len(ways))
    beyond = False
    for path in [options.folder / f"{n}.onnx" for n in options.names] or sorted(options.folder.glob("*.onnx")):
        model = onnx.load(path)
        if not is_half(model):
            continue
        first = session(path)
        feeds = feeds_of(first, options.seeds)
        widen(model.graph)
        wide = options.work / "wide.onnx"
        onnx.save(model, wide)
        reference = outputs(session(wide), feeds)
        own = error(reference, outputs(first, feeds))
        cells = [path.stem, f"{own:.2e}"]
        for way in ways:
            out = options.work / "out.onnx"
            out.unlink(missing_ok=True)
            try:
                done = subprocess.run([str(options.bin / "taso-opt"), str(path), "-o", str(out), *WAYS[way](none), "--no-certificate", "-q"],
                                      capture_output=True, text=True, timeout=options.limit)
                said = done.stderr.strip() if done.returncode else None
            except subprocess.TimeoutExpired:
                said = "takes too long"
            if said:
                cells += [said.splitlines()[-1][:90], "-"]
                beyond = True
                continue
            ours = error(reference, outputs(session(out), feeds))
            beyond = beyond or not ours <= options.most * own
            cells += [f"{ours:.2e}", f"{ours / own:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    return int(beyond)


if __name__ == "__main__":
    sys.exit(main())
