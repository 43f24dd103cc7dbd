#!/usr/bin/env python3
"""What other tools and taso-opt make of models for ONNX Runtime: all variants of a model run in turn, in one process.

  bench/targets.py MODEL.onnx... [--programs build/release/bin] [--threads 1,2] [--domain com.microsoft] [--out build/bench-targets]

Needs a Python with onnxruntime (scripts/setup --targets); onnxsim and onnxslim take part where it has them. Prints a
table in Markdown. A time is a median; a ratio the median, over the rounds, of the original's time over the variant's;
A/A is a second copy of the original, with the range of the middle half of its ratios. What differs from the original's
outputs by more than 1e-3 of their largest element, on random inputs, has no ratio but says so.
"""
import argparse
import contextlib
import importlib.metadata
import os
import subprocess
import sys

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
    command = [os.path.join(options.programs, "taso-opt"), model, "-o", out, "--device", "ort", "--worker-python",
               sys.executable, "--threads", str(threads), "-q"]
    command += [text for domain in domains for text in ("--allow-domain", domain)] + options.taso
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "exit code %d" % done.returncode)


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
        if its.dtype.kind != "f":
            worst = max(worst, float((mine != its).any()))
            continue
        finite = numpy.isfinite(its)
        scale = numpy.abs(its[finite]).max(initial=0)
        if scale > 0:
            worst = max(worst, float(numpy.abs(mine[finite] - its[finite]).max()) / scale)
    return worst


def measure(variants, inputs, threads, rounds):
    """Seconds of the variants, by round; and how far their outputs are from the first one's."""
    runtime = ort_worker.Runtime()
    runtime.configure(threads, "")
    models = [taso_worker.OpenModel(runtime, {"file": file, "inputs": inputs}, 1) for file in variants]
    outputs = []
    for model in models:
        model.seconds()
        outputs.append([value.numpy() for value in model.model.binding.get_outputs()])
        model.seconds()
    block = 4 if models[0].seconds() < 25e-3 else 1
    times = [[] for _ in models]
    for number in range(rounds):
        for place in range(len(models)):
            chosen = (place + number) % len(models)
            if block > 1:
                models[chosen].seconds()
            times[chosen].append(models[chosen].seconds(block))
    return numpy.array(times), [difference(one, outputs[0]) for one in outputs]


def row(model, threads, options):
    stem = os.path.splitext(os.path.basename(model))[0]
    makers = [("ONNX Runtime's own", folded), ("onnxsim", simplified), ("OnnxSlim", slimmed),
              ("taso-opt", lambda source, out: optimized(source, out, options, threads))]
    for domain in options.domains:
        makers.append(("with " + domain, lambda source, out, domain=domain:
                       optimized(source, out, options, threads, [domain])))
    files, cells = [model, model], {}
    for name, make in makers:
        out = os.path.join(options.out, "%s.%s.%d.onnx" % (stem, name.split("'")[0].replace(" ", "-"), threads))
        try:
            make(model, out)
            cells[name] = len(files)
            files.append(out)
        except ImportError:
            cells[name] = "not installed"
        except Exception as error:
            cells[name] = "fails: " + taso_worker.one_line(error)[:60]
    times, differences = measure(files, inputs_of(model), threads, options.rounds)
    ratios = numpy.median(times[0] / times, axis=1)
    low, high = numpy.quantile(times[0] / times[1], [0.25, 0.75])
    texts = [stem, str(threads), "%.3f" % (1e3 * numpy.median(times[0])), "%.3f [%.3f, %.3f]" % (ratios[1], low, high)]
    for name, _ in makers:
        place = cells[name]
        if isinstance(place, str):
            texts.append(place)
        elif differences[place] > 1e-3:
            texts.append("differs by %.1e" % differences[place])
        else:
            texts.append("%.3f" % ratios[place])
    return texts, [name for name, _ in makers]


def version(package):
    try:
        return package + " " + importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "no " + package


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--programs", default=os.path.join(ROOT, "build", "release", "bin"))
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
                                       ", ".join(version(name) for name in ("onnxruntime", "onnxsim", "onnxslim"))))
    first = True
    for model in options.models:
        for threads in map(int, options.threads.split(",")):
            texts, names = row(model, threads, options)
            if first:
                print("| model | threads | original ms | A/A | " + " | ".join(names) + " |")
                print("|---|---|---|---|" + "---|" * len(names))
                first = False
            print("| " + " | ".join(texts) + " |", flush=True)


main()
