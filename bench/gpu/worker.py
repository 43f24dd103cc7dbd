"""The process that is PyTorch's side of bench/gpu/run (torch_worker.py): started when it is first asked, once more if it has ended."""

import json
import os
import select
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Worker:
    """One process for all configurations: importing PyTorch takes a while. Compiled code is kept in `caches`."""

    def __init__(self, python, log, caches, start):
        """`start(command, **options)` is subprocess.Popen, or does more."""
        self.python, self.log, self.caches, self.start = python, log, caches, start
        self.process = None
        self.while_waiting = lambda: None
        self.versions = {}
        self.reason = "left out (--python none)" if python == "none" else ""

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def available(self, limit):
        """Starts the process if there is none. False, with a reason, where there is no PyTorch; without one where there was too little time."""
        if self.reason:
            return False
        if self.is_running():
            return True
        environment = {k: v for k, v in os.environ.items() if k != "NVIDIA_TF32_OVERRIDE"}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(self.caches / "inductor")
        environment["TRITON_CACHE_DIR"] = str(self.caches / "triton")
        environment["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "1"
        with open(self.log, "a") as log:
            try:
                self.process = self.start([self.python, str(HERE / "torch_worker.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
                self.versions = self.ask({"do": "versions"}, limit)
                return True
            except TimeoutError as error:
                self.reason = f"{self.python} runs no PyTorch: {error}" if limit > 60 else ""
                return False
            except (OSError, RuntimeError) as error:
                self.reason = f"{self.python} runs no PyTorch: {error}"
                return False

    def ask(self, request, limit):
        """The answer; RuntimeError where it is an error, TimeoutError where it does not come within `limit` seconds (the process is then ended)."""
        if not self.is_running():
            raise RuntimeError("PyTorch's process has ended")
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise RuntimeError("PyTorch's process has ended") from error
        end = time.monotonic() + max(limit, 0)
        while not select.select([self.process.stdout], [], [], max(min(end - time.monotonic(), 1), 0))[0]:
            if time.monotonic() >= end:
                self.process.kill()
                self.process.wait()
                raise TimeoutError(f"PyTorch took more than {limit:.0f} s")
            self.while_waiting()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"PyTorch's process has ended with code {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def stop(self):
        if self.is_running():
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
