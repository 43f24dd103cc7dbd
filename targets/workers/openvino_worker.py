"""OpenVINO as a target of taso-opt (docs/adding-a-target.md): --device openvino, --device openvino:GPU."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

try:
    import openvino

    import taso_worker
except ImportError as error:
    sys.exit("%s: %s; scripts/setup --targets installs it, --worker-python names another Python" % (sys.executable, error))


class OpenModel:
    def __init__(self, core, file, inputs, device, options):
        model = core.read_model(file)
        # Extents that the file leaves open are those of the inputs.
        model.reshape({name: openvino.PartialShape(list(array.shape)) for name, array in inputs.items()})
        self.request = core.compile_model(model, device, options).create_infer_request()
        for name, array in inputs.items():
            self.request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run(self):
        self.request.infer()


class Runtime:
    name = "OpenVINO"
    version = openvino.__version__.split("-")[0]

    def __init__(self):
        self.core = openvino.Core()
        self.threads, self.provider = 1, "CPU"

    def providers(self):
        return ["CPU"] + [name for name in self.core.available_devices if name != "CPU"]

    def configure(self, threads, provider):
        self.threads, self.provider = threads, provider or "CPU"
        if self.provider not in self.providers():
            raise ValueError("no device " + self.provider + " among " + ", ".join(self.providers()))
        if self.provider == "CPU":
            return self.provider, ""
        return self.provider, self.core.get_property(self.provider, "FULL_DEVICE_NAME")

    def clock(self):
        # With one thread: time of this process alone, which other programs do not lengthen.
        return time.process_time() if self.threads == 1 and self.provider == "CPU" else time.perf_counter()

    def open(self, file, inputs):
        options = {"PERFORMANCE_HINT": "LATENCY"}
        if self.provider == "CPU":
            # As the file says: no narrower floats where the processor has them.
            options.update({"INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
        return OpenModel(self.core, file, inputs, self.provider, options)


if __name__ == "__main__":
    taso_worker.serve(Runtime())
