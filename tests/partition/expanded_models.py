#!/usr/bin/env python3
"""expanded_models.py FOLDER: in each folder of draw_models, model.onnx and model.expanded.onnx compute the same in ONNX
Runtime on the inputs there: within 1e-4 of the largest magnitude of an output. Models that ONNX Runtime does not run (a
Pad of a scalar, say) are left out; what runs must run written out, too. That one weight of an expanded model is another
is found."""
import glob, os, sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

TOLERANCE = 1e-4


def outputs(model, feeds):
    """The outputs of a model of which ONNX Runtime changes nothing."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})


def difference(expected, actual):
    """The largest one, relative to the largest magnitude of the output; infinite where shapes or what is finite differ."""
    worst = 0.0
    for e, a in zip(expected, actual, strict=True):
        if e.shape != a.shape or not np.array_equal(np.isfinite(e), np.isfinite(a)):
            return float("inf")
        e, a = (v[np.isfinite(v)].astype(np.float64) for v in (e, a))
        if e.size:
            worst = max(worst, float(np.max(np.abs(e - a))) / max(float(np.max(np.abs(e))), 1e-6))
    return worst


def with_another_weight(model):
    """The model with one weight that an operator reads changed; None if there is none."""
    read = {name for node in model.graph.node for name in node.input}
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name in read and int(np.prod(tensor.dims)) > 0:
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            for other in changed.graph.initializer:
                if other.name == tensor.name:
                    other.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5) + 1, tensor.name))
            return changed
    return None


def main():
    compared, left_out, wrong, planted, found = 0, 0, 0, 0, 0
    for folder in sorted(glob.glob(os.path.join(sys.argv[1], "*")), key=lambda f: int(os.path.basename(f))):
        feeds = {os.path.basename(f)[:-4]: np.load(f) for f in glob.glob(os.path.join(folder, "*.npy"))}
        model = onnx.load(os.path.join(folder, "model.onnx"))
        expanded = onnx.load(os.path.join(folder, "model.expanded.onnx"))
        onnx.checker.check_model(expanded)
        try:
            expected = outputs(model, feeds)
        except Exception:
            left_out += 1
            continue
        worst = difference(expected, outputs(expanded, feeds))
        compared += 1
        if not worst <= TOLERANCE:
            wrong += 1
            print(f"{folder}: outputs differ by {worst:.1e} of the largest")
        changed = with_another_weight(expanded)
        if changed is not None:
            planted += 1
            found += difference(expected, outputs(changed, feeds)) > TOLERANCE
    print(f"{compared} models written out compared, {wrong} wrong, {left_out} not run by ONNX Runtime; "
          f"{found} of {planted} with another weight found")
    sys.exit(wrong > 0 or compared < 5 * left_out or found < planted / 2)


main()
