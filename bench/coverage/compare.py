#!/usr/bin/env python3
"""What taso-opt understands of exported models, the nodes it leaves beside its peers, and whether results stay equal.

    bench/coverage/compare.py build/release/bin FOLDER [NAME ...] [--work FOLDER] [--limit SECONDS]

For every FOLDER/NAME.onnx (as export_models.py writes them): nodes in the file, without Constant; nodes that compute at run time and those that are
understood, and the part that is open to rules (`taso-opt --coverage`); nodes that onnxsim, OnnxSlim and ONNX Runtime
(basic optimizations) leave, and taso-opt without rules (`--cost launches`); and the largest relative L2 of outputs in ONNX Runtime, of
the original against the written file, at several sizes where extents are symbolic. `-` where a tool fails or takes longer than the limit.
Prints a table in Markdown. Needs onnx, onnxruntime, numpy; onnxsim and onnxslim where they are installed."""
import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort

SIZES = [{}, {0: 1, 1: 7}, {0: 3, 1: 32}, {0: 5, 1: 17}]


def count(path):
    """Nodes that are no Constant: some tools write these as initializers, which makes no difference to a runtime."""
    return sum(node.op_type != "Constant" for node in onnx.load(path, load_external_data=False).graph.node)


def python_of(words, limit):
    try:
        return subprocess.run([sys.executable, *words], capture_output=True, timeout=limit).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def peers(model, work, limit):
    out = work / "peer.onnx"
    code = {
        "onnxsim": "import sys, onnx, onnxsim; m, ok = onnxsim.simplify(onnx.load(sys.argv[1])); onnx.save(m, sys.argv[2])",
        "OnnxSlim": "import sys, onnx, onnxslim; onnx.save(onnxslim.slim(sys.argv[1]), sys.argv[2])",
        "ORT basic": "import sys, onnxruntime as o; s = o.SessionOptions(); s.optimized_model_filepath = sys.argv[2]; "
                     "s.graph_optimization_level = o.GraphOptimizationLevel.ORT_ENABLE_BASIC; "
                     "o.InferenceSession(sys.argv[1], s, providers=['CPUExecutionProvider'])",
    }
    counts = {}
    for name, text in code.items():
        out.unlink(missing_ok=True)
        done = python_of(["-c", text, str(model), str(out)], limit) and out.exists()
        counts[name] = count(out) if done else None
    return counts


def sized(axis, declared, sizes):
    if isinstance(declared, int):
        return declared
    return sizes.get(min(axis, 1), 2 if axis == 0 else 16)


def inputs_of(session, sizes, random):
    """Values for all inputs; extents that have the same name are equal, `past` and `total` fit together."""
    names = {}
    for entry in session.get_inputs():
        for axis, extent in enumerate(entry.shape):
            if not isinstance(extent, int):
                names.setdefault(extent, sized(axis, extent, sizes))
    if {"past", "sequence", "total"} <= set(names):
        names["total"] = names["past"] + names["sequence"]
    if "samples" in names:
        names["samples"] = 4000 + 320 * sizes.get(1, 0)
    result = {}
    for entry in session.get_inputs():
        shape = [extent if isinstance(extent, int) else names[extent] for extent in entry.shape]
        if entry.type == "tensor(int64)":
            result[entry.name] = np.ones(shape, np.int64) if "mask" in entry.name else random.integers(0, 100, shape)
        else:
            kind = np.float16 if entry.type == "tensor(float16)" else np.float32
            result[entry.name] = random.standard_normal(shape).astype(kind)
    return result


def difference(original, written):
    first, second = (ort.InferenceSession(str(p), providers=["CPUExecutionProvider"]) for p in (original, written))
    symbolic = any(not isinstance(extent, int) for entry in first.get_inputs() for extent in entry.shape)
    most = 0.0
    for sizes in SIZES if symbolic else SIZES[:1]:
        feed = inputs_of(first, sizes, np.random.default_rng(0))
        for a, b in zip(first.run(None, feed), second.run(None, feed)):
            if a.shape != b.shape:
                raise ValueError(f"an output of shape {b.shape} instead of {a.shape}")
            a, b = a.astype(np.float64), b.astype(np.float64)
            most = max(most, float(np.linalg.norm(a - b) / max(np.linalg.norm(a), 1e-30)))
    return most


def row(bin_folder, model, work, limit):
    taso = str(bin_folder / "taso-opt")
    report = work / "coverage.json"
    subprocess.run([taso, "--coverage", str(model), "--json", str(report), "-q"], check=True)
    entry = json.loads(report.read_text())[0]
    coverage = entry["coverage"]
    rules = work / "none.rules"
    rules.write_text("# no rules\n")
    out = work / "out.onnx"
    out.unlink(missing_ok=True)
    try:
        done = subprocess.run([taso, str(model), "-o", str(out), "--rules", str(rules), "--cost", "launches", "--no-check",
                               "--no-certificate", "-q"], capture_output=True, text=True, timeout=limit)
        ours = count(out) if done.returncode == 0 else None
        said = done.stderr.strip().splitlines()[-1:] if done.returncode else []
    except subprocess.TimeoutExpired:
        ours, said = None, ["takes too long"]
    try:
        equal = f"{difference(model, out):.1e}" if ours is not None else said[0]
    except Exception as error:
        equal = f"**{str(error).splitlines()[0][:90]}**"
    others = peers(model, work, limit)
    share = f"{100 * coverage['open_share']:.1f} %" + ("" if coverage["open_share_of"] == "flops" else " of nodes")
    understood = coverage["nodes"] - coverage["carried_nodes"]
    cells = [model.stem, count(model), f"{understood} of {coverage['nodes']}", share,
             *("-" if n is None else n for n in others.values()), "-" if ours is None else ours, equal]
    return cells, others, ours


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("coverage-work"))
    parser.add_argument("--limit", type=float, default=120)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    models = [options.folder / f"{n}.onnx" for n in options.names] or sorted(options.folder.glob("*.onnx"))
    print("| model | nodes | understood | open | onnxsim | OnnxSlim | ORT basic | taso-opt, no rules | relative L2 |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    more = 0
    for model in models:
        cells, others, ours = row(options.bin, model, options.work, options.limit)
        known = [n for name, n in others.items() if n is not None and name != "ORT basic"]
        if ours is not None and known and ours > min(known):
            more += 1
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)
    print(f"\nmore nodes than the better of onnxsim and OnnxSlim: {more} of {len(models)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
