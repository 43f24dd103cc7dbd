#!/usr/bin/env python3
"""Times a model in another runtime on the CPU, all its graph optimizations on, in f32: prints the median in us.

usage: peer_time.py onnxruntime|openvino MODEL [--threads N] [--repeat N], or peer_time.py versions
"""
import argparse, importlib.metadata, statistics, sys, time

import numpy as np

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("runtime", choices=["onnxruntime", "openvino", "versions"])
parser.add_argument("model", nargs="?")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--repeat", type=int, default=11)
options = parser.parse_args()


def values(shape, integer, dtype):
    generator = np.random.default_rng(0)
    return generator.integers(0, 2, shape).astype(dtype) if integer else generator.standard_normal(shape).astype(dtype)


def onnxruntime_run(path):
    import onnxruntime as ort
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    session = ort.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
             "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
    feeds = {i.name: values([d if isinstance(d, int) else 1 for d in i.shape], "float" not in i.type and "double" not in
                            i.type, types[i.type]) for i in session.get_inputs()}
    return lambda: session.run(None, feeds)


def openvino_run(path):
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": options.threads, "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32"})
    feeds = {}
    for i, port in enumerate(compiled.inputs):
        shape = [d.get_length() if d.is_static else 1 for d in port.get_partial_shape()]
        dtype = port.get_element_type().to_dtype()
        feeds[i] = values(shape, not np.issubdtype(dtype, np.floating), dtype)
    request = compiled.create_infer_request()
    request.set_tensors({port: openvino.Tensor(feeds[i]) for i, port in enumerate(compiled.inputs)})
    return request.infer


if options.runtime == "versions":
    found = []
    for package, name in (("onnxruntime", "ONNX Runtime"), ("openvino", "OpenVINO")):
        try:
            found.append(name + " " + importlib.metadata.version(package).split("-")[0])
        except importlib.metadata.PackageNotFoundError:
            pass
    print(", ".join(found) or "no peers")
    sys.exit(0)
if not options.model:
    parser.error("no model")
run = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}[options.runtime](options.model)
for _ in range(3):
    run()
samples = []
for _ in range(options.repeat):
    start = time.perf_counter()
    run()
    samples.append(time.perf_counter() - start)
print(f"{statistics.median(samples) * 1e6:.3f}")
