#!/usr/bin/env python3
"""Times models in ONNX Runtime (all its optimizations on), in turn, and prints their medians in ms as table cells."""
import argparse, statistics, time

import numpy as np
import onnxruntime as ort

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("models", nargs="+")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--seconds", type=float, default=10.0, help="for all models together")
options = parser.parse_args()

settings = ort.SessionOptions()
settings.intra_op_num_threads = options.threads
settings.inter_op_num_threads = 1
settings.log_severity_level = 3
sessions = [ort.InferenceSession(m, settings, providers=["CPUExecutionProvider"]) for m in options.models]
generator = np.random.default_rng(0)
feeds = {i.name: generator.standard_normal([d if isinstance(d, int) else 1 for d in i.shape]).astype(np.float32)
         for i in sessions[0].get_inputs()}
times = [[] for _ in sessions]
for session in sessions:
    session.run(None, feeds)
end = time.monotonic() + options.seconds
while len(times[0]) < 11 or (time.monotonic() < end and len(times[0]) < 201):
    for session, samples in zip(sessions, times):
        start = time.perf_counter()
        session.run(None, feeds)
        samples.append(time.perf_counter() - start)
print("".join(f" {statistics.median(samples) * 1e3:.3f} |" for samples in times))
