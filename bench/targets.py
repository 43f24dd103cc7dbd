#!/usr/bin/env python3
"""What other tools and taso-opt make of models for a runtime: all variants of a model run in turn, in one process.

  bench/targets.py [MODEL...] [--runtime openvino] [--batches 1,8] [--threads 1,2] [--domain com.microsoft]
                   [--below 500] [--programs build/release/bin] [--out build/bench-targets]

A MODEL is a file, a folder of *.onnx files, or the name of an example (build-models --list); without any, all examples
whose weights take less than --below megabytes. With --batches, an example is built for each; of a
file the first extent of every input becomes that, where it is 1. Needs a Python with onnxruntime, for --runtime openvino
also that (scripts/setup --targets); onnxsim and onnxslim take part where it has them. Prints a table in Markdown. A time
is a median; a ratio the median, over the rounds, of the original's time over the variant's; A/A is a second copy of the
original, with the range of the middle half of its ratios; `search s` how long taso-opt took, measuring included. What
differs from the original's outputs by more than 1e-3 of their largest element, on random inputs, has no ratio but says
so. Last, the geometric mean of each column, and in which rows taso-opt's file is slower than the original by more than
A/A says.
"""
import argparse
import contextlib
import importlib.metadata
import os
import subprocess
import sys
import time

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "targets", "workers"))

import onnxruntime  # noqa: E402

import ort_worker  # noqa: E402
import taso_worker  # noqa: E402

TYPES = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool",
         "tensor(double)": "float64", "tensor(float16)": "float16"}


def folded(model, out):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = out
    options.log_severity_level = 3
    onnxruntime.InferenceSession(model, options, providers=[ort_worker.CPU])


def simplified(model, out):
    import onnx
    import onnxsim
    onnx.save(onnxsim.simplify(onnx.load(model))[0], out)


def slimmed(model, out):
    import onnxslim
    with contextlib.redirect_stdout(sys.stderr):  # It prints a table of its own.
        onnxslim.slim(model, out)


def optimized(model, out, options, threads, domains=()):
    command = [os.path.join(options.programs, "taso-opt"), model, "-o", out, "--device", options.runtime, "--worker-python",
               sys.executable, "--threads", str(threads), "-q"]
    command += [text for domain in domains for text in ("--allow-domain", domain)] + options.taso
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "exit code %d" % done.returncode)


def with_batch(model, batch, out):
    """The file with `batch` in the place of 1 as the first extent of its inputs."""
    import onnx
    document = onnx.load(model)
    weights = {tensor.name for tensor in document.graph.initializer}
    changed = False
    for value in document.graph.input:
        extents = value.type.tensor_type.shape.dim
        if value.name not in weights and len(extents) > 1 and extents[0].dim_value in (0, 1):
            extents[0].dim_value = batch
            changed = True
    if not changed:
        raise RuntimeError("no input has a first extent of 1")
    for value in list(document.graph.output):
        if value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
    del document.graph.value_info[:]
    onnx.save(document, out)
    inputs = inputs_of(out)
    runtime = ort_worker.Runtime()
    runtime.configure(1, "")
    taso_worker.OpenModel(runtime, {"file": out, "inputs": inputs}, 1).seconds()  # Fails if the file says the extent elsewhere.


def source(model, batch, options):
    """The file of a model at a batch."""
    stem = os.path.splitext(os.path.basename(model))[0]
    out = os.path.join(options.out, "%s.batch-%d.onnx" % (stem, batch))
    if not os.path.exists(model):
        subprocess.run([os.path.join(options.programs, "build-models"), model, out, "--batch", str(batch)], check=True,
                       stdout=subprocess.DEVNULL)
        return out
    if batch == 1:
        return model
    with_batch(model, batch, out)
    return out


def inputs_of(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=[ort_worker.CPU])
    described = [{"name": item.name, "type": TYPES[item.type], "low": 0, "high": 2,
                  "shape": [extent if isinstance(extent, int) else 1 for extent in item.shape]}
                 for item in session.get_inputs()]
    return described


def difference(model, reference):
    """The largest difference of outputs, relative to the largest element."""
    worst = 0.0
    for mine, its in zip(model, reference):
        if mine.shape != its.shape:
            return float("inf")
        if its.dtype.kind != "f":
            worst = max(worst, float((mine != its).any()))
            continue
        finite = numpy.isfinite(its)
        if not numpy.isfinite(mine[finite]).all():
            return float("inf")
        distance = float(numpy.abs(mine[finite] - its[finite]).max(initial=0))
        scale = float(numpy.abs(its[finite]).max(initial=0))
        worst = max(worst, distance / scale if scale > 0 else distance)
    return worst


def outputs_of(file, inputs):
    runtime = ort_worker.Runtime()
    runtime.configure(2, "")
    model = taso_worker.OpenModel(runtime, {"file": file, "inputs": inputs}, 1)
    model.seconds()
    return [value.numpy() for value in model.model.binding.get_outputs()]


def runtime_of(name, threads):
    if name == "openvino":
        import openvino_worker
        runtime = openvino_worker.Runtime()
    else:
        runtime = ort_worker.Runtime()
    runtime.configure(threads, "")
    return runtime


def runs_in(name, file, inputs, threads):
    """Runs a file once; an error where the runtime, or ONNX Runtime, which compares outputs, does not."""
    taso_worker.OpenModel(runtime_of(name, threads), {"file": file, "inputs": inputs}, 1).seconds()
    outputs_of(file, inputs)


def measure(variants, inputs, threads, options):
    """Seconds of the variants, by round; and how far their outputs (in ONNX Runtime) are from the first one's."""
    outputs = [outputs_of(file, inputs) for file in variants]
    runtime = runtime_of(options.runtime, threads)
    models = [taso_worker.OpenModel(runtime, {"file": file, "inputs": inputs}, 1) for file in variants]
    for model in models:
        model.seconds()
        model.seconds()
    block = 4 if models[0].seconds() < 25e-3 else 1
    times = [[] for _ in models]
    for number in range(options.rounds):
        for place in range(len(models)):
            chosen = (place + number) % len(models)
            if block > 1:
                models[chosen].seconds()
            times[chosen].append(models[chosen].seconds(block))
    return numpy.array(times), [difference(one, outputs[0]) for one in outputs]


class Row:
    """A line of the table: a model at a batch and a number of threads."""

    def __init__(self, model, batch, threads, options):
        self.stem = os.path.splitext(os.path.basename(model))[0]
        self.batch, self.threads, self.options = batch, threads, options
        self.ratios = {}  # Of the columns that have one.
        self.low, self.high = 1.0, 1.0
        self.start = [self.stem, str(batch), str(threads)]

    def columns(self):
        makers = [("ONNX Runtime's own", folded), ("onnxsim", simplified), ("OnnxSlim", slimmed), ("taso-opt", self.optimize)]
        for domain in self.options.domains:
            makers.append(("with " + domain, lambda model, out, domain=domain: self.optimize(model, out, [domain])))
        return makers

    def optimize(self, model, out, domains=()):
        optimized(model, out, self.options, self.threads, domains)

    def texts(self, model):
        """The cells; `model` is the file."""
        files, cells, seconds = [model, model], {}, 0.0
        for name, make in self.columns():
            out = os.path.join(self.options.out, "%s.%s.%d.%d.onnx" %
                               (self.stem, name.split("'")[0].replace(" ", "-"), self.batch, self.threads))
            started = time.time()
            try:
                make(model, out)
                runs_in(self.options.runtime, out, inputs_of(model), self.threads)
                cells[name] = len(files)
                files.append(out)
            except ImportError:
                cells[name] = "not installed"
            except Exception as error:
                cells[name] = "fails: " + taso_worker.one_line(error)[:60]
            if name == "taso-opt":
                seconds = time.time() - started
        times, differences = measure(files, inputs_of(model), self.threads, self.options)
        ratios = numpy.median(times[0] / times, axis=1)
        self.low, self.high = numpy.quantile(times[0] / times[1], [0.25, 0.75])
        texts = self.start + ["%.3f" % (1e3 * numpy.median(times[0])), "%.3f [%.3f, %.3f]" % (ratios[1], self.low, self.high)]
        for name, place in cells.items():
            if isinstance(place, str):
                texts.append(place)
            elif differences[place] > 1e-3:
                texts.append("differs by %.1e" % differences[place])
            else:
                self.ratios[name] = ratios[place]
                texts.append("%.3f" % ratios[place])
        return texts + ["%.0f" % seconds]


def version(package):
    try:
        return package + " " + importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "no " + package


def models_of(options):
    if not options.models:
        return subprocess.run([os.path.join(options.programs, "build-models"), "--list-below", str(options.below)],
                              check=True, capture_output=True, text=True).stdout.split()
    models = []
    for model in options.models:
        if os.path.isdir(model):
            models += sorted(os.path.join(model, name) for name in os.listdir(model) if name.endswith(".onnx"))
        else:
            models.append(model)
    return models


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--below", type=int, default=500)
    parser.add_argument("--programs", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--runtime", default="ort", choices=["ort", "openvino"])
    parser.add_argument("--batches", default="1")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=32)
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "bench-targets"))
    parser.add_argument("--domain", dest="domains", action="append", default=[],
                        help="a column for taso-opt --allow-domain DOMAIN; repeatable")
    parser.add_argument("--taso", nargs=argparse.REMAINDER, default=[], help="further options of taso-opt")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    with open("/proc/cpuinfo") as info:
        names = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    print("%s, %d processors; %s\n" % (names[0], len(names),
                                       ", ".join(version(name) for name in ["onnxruntime", "onnxsim", "onnxslim"] +
                                                 ["openvino"] * (options.runtime == "openvino"))))
    rows = []
    for model in models_of(options):
        for batch in map(int, options.batches.split(",")):
            try:
                file = source(model, batch, options)
            except Exception as error:
                print("%s has no batch of %d: %s" % (model, batch, taso_worker.one_line(error)[:120]), file=sys.stderr)
                continue
            for threads in map(int, options.threads.split(",")):
                row = Row(model, batch, threads, options)
                names = [name for name, _ in row.columns()]
                if not rows:
                    print("| model | batch | threads | original ms | A/A | " + " | ".join(names) + " | search s |")
                    print("|---|---|---|---|---|" + "---|" * (len(names) + 1))
                print("| " + " | ".join(row.texts(file)) + " |", flush=True)
                rows.append(row)
    if not rows:
        return 1
    means = ["%.3f" % numpy.exp(numpy.mean([numpy.log(row.ratios[name]) for row in rows if name in row.ratios] or [0.0]))
             for name in names]
    print("| geometric mean |  |  |  |  | " + " | ".join(means) + " |  |")
    slower = [" ".join(row.start) for row in rows if row.ratios.get("taso-opt", 1.0) < min(row.low, 1 / row.high)]
    print("\nSlower than the original by more than A/A: " + (", ".join(slower) or "none"))
    return 0


sys.exit(main())
