"""ONNX Runtime as a target of taso-opt (docs/adding-a-target.md): --device ort, --device ort:CUDAExecutionProvider."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

try:
    import onnxruntime

    import taso_worker
except ImportError as error:
    sys.exit("%s: %s; scripts/setup --targets installs it, --worker-python names another Python" % (sys.executable, error))

CPU = "CPUExecutionProvider"


class OpenModel:
    def __init__(self, file, inputs, options, providers):
        self.session = onnxruntime.InferenceSession(file, options, providers=providers)
        used = self.session.get_providers()
        if used[0] != providers[0]:  # Its library does not load: ONNX Runtime warns, and takes the next one.
            raise RuntimeError("%s does not work here: ONNX Runtime uses %s instead" % (providers[0], used[0]))
        self.binding = self.session.io_binding()
        for name, array in inputs.items():
            self.binding.bind_cpu_input(name, array)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)

    def run(self):
        self.session.run_with_iobinding(self.binding)


class Runtime:
    name = "ONNX Runtime"
    version = onnxruntime.__version__

    def __init__(self):
        onnxruntime.set_default_logger_severity(3)
        self.threads, self.provider = 1, CPU

    def providers(self):
        others = [name for name in onnxruntime.get_available_providers() if name != CPU]
        return [CPU] + others

    def configure(self, threads, provider):
        self.threads, self.provider = threads, provider or CPU
        if self.provider not in self.providers():
            raise ValueError("no provider " + self.provider + " among " + ", ".join(self.providers()))
        return self.provider, "" if self.provider == CPU else self.device_name()

    def device_name(self):
        """What a provider runs on; its own name where nothing tells."""
        if "CUDA" in self.provider or "Tensorrt" in self.provider:
            try:
                command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
                return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.split("\n")[0]
            except (OSError, subprocess.SubprocessError):
                pass
        return self.provider

    def clock(self):
        # With one thread: time of that thread alone, which other programs do not lengthen.
        return time.thread_time() if self.threads == 1 and self.provider == CPU else time.perf_counter()

    def open(self, file, inputs):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        # Threads that wait for another session's turn must not use the processors.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        options.log_severity_level = 3
        providers = [self.provider] if self.provider == CPU else [self.provider, CPU]
        return OpenModel(file, inputs, options, providers)


if __name__ == "__main__":
    taso_worker.serve(Runtime())
