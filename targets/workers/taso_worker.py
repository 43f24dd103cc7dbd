"""The part of a worker that every runtime needs: the protocol of docs/adding-a-target.md.

A runtime is an object with

  name, version   texts
  providers()     what can be asked for, the default first
  configure(threads, provider)   returns the provider that runs, and the device it runs on ("" for this processor);
                  raises ValueError with one line where it has no such provider
  clock()         seconds, of which the difference is what a run takes
  open(file, inputs)   a model that is ready to run: an object whose run() runs it once, to its end. `inputs` are numpy
                  arrays by name

Standard output belongs to the protocol: whatever else writes there is sent to standard error.
"""
import json
import os
import queue
import sys
import threading

import numpy

PROTOCOL = 1


def random_input(description, seed, number):
    """An array of the stated type and shape, the same for the same seed and number."""
    generator = numpy.random.default_rng([seed, number])
    shape, kind = description["shape"], numpy.dtype(description["type"])
    if kind.kind == "f":
        return generator.uniform(-1, 1, shape).astype(kind)
    return generator.integers(description["low"], description["high"], shape).astype(kind)


class OpenModel:
    """A model with its inputs, and what empties the caches before a run."""

    def __init__(self, runtime, description, seed):
        self.runtime = runtime
        self.inputs = {
            item["name"]: random_input(item, seed, number) for number, item in enumerate(description["inputs"])
        }
        self.model = runtime.open(description["file"], self.inputs)
        evict = description.get("evict", 0)
        self.stream = numpy.ones(evict // 8, numpy.int64) if evict else None

    def prepare(self):
        if self.stream is None:
            return
        self.stream.sum()
        for array in self.inputs.values():
            array.sum()

    def seconds(self, runs=1):
        start = self.runtime.clock()
        for _ in range(runs):
            self.model.run()
        return (self.runtime.clock() - start) / runs


def one_line(error):
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:300]


class Server:
    def __init__(self, runtime, out):
        self.runtime = runtime
        self.out = out
        self.kept = {}  # What interleave has open, by file and occurrence.

    def say(self, answer):
        self.out.write(json.dumps(answer) + "\n")
        self.out.flush()

    def hello(self):
        self.say({"taso_worker": PROTOCOL, "runtime": self.runtime.name, "version": self.runtime.version,
                  "providers": self.runtime.providers()})

    def configure(self, request):
        provider, device = self.runtime.configure(request["threads"], request["provider"])
        return {"provider": provider, "device": device}

    def measure(self, request):
        self.kept.clear()
        results = []
        for description in request["models"]:
            try:
                model = OpenModel(self.runtime, description, request["seed"])
                for _ in range(request["warm_up"]):
                    model.seconds()
                times = []
                for _ in range(request["runs"]):
                    model.prepare()
                    times.append(model.seconds())
                results.append({"seconds": times})
            except Exception as error:  # The runtime's own: it does not run this model.
                results.append({"error": one_line(error)})
        return {"results": results}

    def interleave(self, request):
        keys, counts = [], {}
        for description in request["models"]:
            file = description["file"]
            counts[file] = counts.get(file, 0) + 1
            keys.append((file, counts[file]))
        self.kept = {key: model for key, model in self.kept.items() if key in keys}
        results = [{"seconds": []} for _ in keys]
        for description, key, result in zip(request["models"], keys, results):
            try:
                if key not in self.kept:
                    self.kept[key] = OpenModel(self.runtime, description, request["seed"])
                for _ in range(request["warm_up"]):
                    self.kept[key].seconds()
            except Exception as error:
                result.clear()
                result["error"] = one_line(error)
        for _ in range(request["rounds"]):
            for key, result in zip(keys, results):
                if "error" in result:
                    continue
                if request["block"] > 1:  # Each finds its own weights in the caches, as in steady use.
                    self.kept[key].seconds()
                result["seconds"].append(self.kept[key].seconds(request["block"]))
        return {"results": results}

    def answer(self, request):
        handlers = {"configure": self.configure, "measure": self.measure, "interleave": self.interleave}
        handler = handlers.get(request.get("do"))
        if handler is None:
            return {"error": "no such request: " + str(request.get("do"))}
        try:
            return handler(request)
        except Exception as error:
            return {"error": one_line(error)}


def serve(runtime):
    """Answers requests until there are no more. Ends at once when standard input is closed."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    requests = queue.Queue()

    def read():
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)

    server = Server(runtime, out)
    server.hello()
    threading.Thread(target=read, daemon=True).start()
    while True:
        request = json.loads(requests.get())
        if request.get("do") == "stop":
            os._exit(0)
        server.say({"id": request.get("id"), **server.answer(request)})
