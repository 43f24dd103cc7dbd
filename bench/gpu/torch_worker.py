"""PyTorch's side of bench/gpu/run: one process that prepares variants of models and times them when it is asked to.

Requests are JSON objects, one a line, on standard input; answers likewise on standard output. Work that PyTorch prints goes
to standard error.
  {"do": "versions"}
  {"do": "prepare", "name": N, "model": FILE, "mode": M, "layout": L, "math": T, "inputs": DIR}   ->  {"seconds": of preparing}
  {"do": "time", "name": N, "repeat": R}                                           ->  {"us": [R samples]}
  {"do": "error", "name": N, "references": DIR}  ->  {"relative_l2": the norm of the difference from the outputs in DIR, the largest}
  {"do": "drop"}                                 forgets all variants
Every answer may instead be {"error": text}.

Modes: eager; graph (torch.cuda.graph round the eager model); compiled and autotuned (torch.compile with Inductor's freezing, by default
and by max-autotune-no-cudagraphs, and torch.cuda.graph round what it makes); reduce-overhead and max-autotune (torch.compile as it is). Layouts:
nchw, nhwc (channels_last, for inputs and weights of rank 4). Math: fp32 (TF32 off), tf32, fp16. Inputs are those that taso-run
--save-inputs wrote to a folder; without one they are seeded, uniform in [-1, 1), integers 0 or 1. A sample is the mean of some executions
that are queued together between two events of the stream, after as long a wait of the device, inputs in place; on a CPU it is wall time.
"""

import json
import os
import re
import sys
import time

import onnx_to_fx
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
COMPILED = {"compiled": "default", "autotuned": "max-autotune-no-cudagraphs", "reduce-overhead": "reduce-overhead", "max-autotune": "max-autotune"}
GRAPHED = ("graph", "compiled", "autotuned")


def set_math(math):
    tf32 = math == "tf32"
    if hasattr(torch.backends, "fp32_precision"):  # from 2.9 on
        torch.backends.cuda.matmul.fp32_precision = "tf32" if tf32 else "ieee"
        torch.backends.cudnn.conv.fp32_precision = "tf32" if tf32 else "ieee"
        return
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


class Variant:
    def __init__(self, request):
        self.math, self.mode = request["math"], request["mode"]
        self.file = request["model"]
        self.inputs = saved_inputs(self.file, request.get("inputs")) or seeded_inputs(self.file)
        if request["layout"] == "nhwc" and not any(t.dim() == 4 for t in self.inputs):
            raise ValueError("no input is an image: nhwc is nchw")
        module = onnx_to_fx.import_model(self.file)
        dtype = torch.float16 if self.math == "fp16" else torch.float32
        memory = torch.channels_last if request["layout"] == "nhwc" else torch.contiguous_format
        module = module.to(DEVICE).to(dtype)
        if request["layout"] == "nhwc":
            module = module.to(memory_format=memory)
        self.placed = []
        for tensor in self.inputs:
            tensor = tensor.to(DEVICE)
            if tensor.is_floating_point():
                tensor = tensor.to(dtype)
            if tensor.dim() == 4:
                tensor = tensor.contiguous(memory_format=memory)
            self.placed.append(tensor)
        self.call = module
        if self.mode in COMPILED:
            from torch._inductor import config

            config.freezing = self.mode in GRAPHED
            self.call = torch.compile(module.eval(), mode=COMPILED[self.mode], fullgraph=True, dynamic=False)
        self.prepare()

    def prepare(self):
        set_math(self.math)
        with torch.inference_mode():
            for _ in range(4):
                self.outputs = self.call(*self.placed)
            synchronize()
            if self.mode not in GRAPHED or DEVICE != "cuda":
                return
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self.call(*self.placed)
            torch.cuda.current_stream().wait_stream(stream)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.outputs = self.call(*self.placed)

    def once(self):
        if self.mode in GRAPHED and DEVICE == "cuda":
            self.graph.replay()
        else:
            self.outputs = self.call(*self.placed)

    def time(self, repeat):
        set_math(self.math)
        samples = []
        with torch.inference_mode():
            for _ in range(3):
                self.once()
            synchronize()
            if DEVICE == "cpu":
                for _ in range(repeat):
                    start = time.perf_counter()
                    self.once()
                    samples.append((time.perf_counter() - start) * 1e6)
                return samples
            # Clocks are up, and the device waits until all is queued: as for ours.
            start = time.perf_counter()
            while time.perf_counter() - start < 0.2:
                self.once()
                synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            block = 20
            for _ in range(repeat):
                torch.cuda._sleep(100_000)
                begin.record()
                for _ in range(block):
                    self.once()
                end.record()
                synchronize()
                once = begin.elapsed_time(end) * 1e3 / block
                samples.append(once)
                block = max(4, min(100, int(20e3 / max(once, 1.0)) + 1))
            return samples

    def error(self, references):
        """Of the outputs, from those in the folder."""
        set_math(self.math)
        with torch.inference_mode():
            self.once()
            synchronize()
            worst = 0.0
            for actual, expected in zip(self.outputs, saved_outputs(self.file, references)):
                difference = torch.linalg.vector_norm(actual.double().cpu().reshape(expected.shape) - expected)
                norm = torch.linalg.vector_norm(expected)
                worst = max(worst, float(difference / norm) if norm > 0 else float(difference > 0))
        return worst


def saved(folder, names):
    """Tensors that taso-run wrote to a folder, under their names with what a file name cannot have as '_'."""
    import numpy

    return [torch.from_numpy(numpy.load(os.path.join(folder, re.sub(r"[^A-Za-z0-9_.-]", "_", name) + ".npy"))) for name in names]


def saved_inputs(file, folder):
    import onnx

    if not folder or not os.path.isdir(folder):
        return None
    graph = onnx.load(file, load_external_data=False).graph
    initializers = {tensor.name for tensor in graph.initializer}
    return saved(folder, [value.name for value in graph.input if value.name not in initializers])


def saved_outputs(file, folder):
    import onnx

    names = [value.name for value in onnx.load(file, load_external_data=False).graph.output]
    return [tensor.double() for tensor in saved(folder, names)]


def seeded_inputs(file):
    import onnx

    graph = onnx.load(file, load_external_data=False).graph
    initializers = {tensor.name for tensor in graph.initializer}
    generator = torch.Generator().manual_seed(0)
    tensors = []
    for value in graph.input:
        if value.name in initializers:
            continue
        kind = value.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        dtype = onnx_to_fx.DTYPES[kind.elem_type]
        if dtype.is_floating_point:
            tensors.append((torch.rand(shape, generator=generator) * 2 - 1).to(dtype))
        else:
            tensors.append(torch.randint(0, 2, shape, generator=generator).to(dtype))
    return tensors


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def versions():
    facts = {"torch": torch.__version__, "device": "cpu"}
    if DEVICE == "cuda":
        facts.update(
            device=torch.cuda.get_device_name(0), cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(),
            capability=".".join(map(str, torch.cuda.get_device_capability(0))),
        )
    try:
        import triton

        facts["triton"] = triton.__version__
    except ImportError:
        pass
    return facts


def answer(request, variants):
    what = request["do"]
    if what == "versions":
        return versions()
    if what == "drop":
        variants.clear()
        torch.compiler.reset()
        if DEVICE == "cuda":
            torch.cuda.empty_cache()
        return {}
    if what == "prepare":
        start = time.perf_counter()
        variants[request["name"]] = Variant(request)
        return {"seconds": time.perf_counter() - start}
    variant = variants[request["name"]]
    if what == "time":
        return {"us": variant.time(request["repeat"])}
    if what == "error":
        return {"relative_l2": variant.error(request["references"])}
    return {"error": f"unknown request {what}"}


def main():
    # Answers have a stream of their own: libraries print where they like.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.backends.cudnn.benchmark = True
    variants = {}
    for line in sys.stdin:
        try:
            result = answer(json.loads(line), variants)
        except Exception as error:  # whatever PyTorch raises is that variant's result
            result = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        answers.write(json.dumps(result) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
