#!/usr/bin/env python3
"""A worker that runs nothing: what a model takes follows from its nodes. Needs Python alone.

FAULT says what is wrong with it: one of the names below, in every answer with times, or with " once" in one answer of
all processes that have the same working folder, or with " in TEXT" in answers on files that hold the text, or with
" whole in TEXT" where such files take turns. "newer": it crashes once, and is another version from then on.
"""
import json
import os
import sys
import time

# Microseconds of a node of a type; of the others, nothing.
COSTS = {b"Relu": 3.0, b"Softmax": 5.0, b"MatMul": 10.0, b"Gemm": 10.0, b"Conv": 20.0, b"Add": 1.0, b"Concat": 2.0, b"Split": 2.0, b"Pad": 12.0}
# ... and of a convolution in so many groups beside that: wide groups are fast.
GROUPS = {2: -12.0, 3: -2.0}
EVICTED = 40.0  # What is added where the caches are emptied.
SCALE = 1e-3  # Times are less than what the worker takes to answer.
FAULT = os.environ.get("FAULT", "")


def seconds_of(file):
    with open(file, "rb") as stream:
        data = stream.read()
    # The type of a node is field 4 of its message: a tag, the number of letters, and these.
    cost = 1.0 + sum(cost * data.count(bytes([0x22, len(name)]) + name) for name, cost in COSTS.items())
    # The number is field 3 of the attribute, behind its name.
    cost += sum(cost * data.count(b"\x05group\x18" + bytes([groups])) for groups, cost in GROUPS.items())
    return cost * 1e-6 * SCALE, data


def fault_now(contents, in_turn):
    if FAULT.endswith(" once") or FAULT == "newer":
        if os.path.exists("fault.done"):
            return ""
        open("fault.done", "w").close()
        return "crash" if FAULT == "newer" else FAULT[: -len(" once")]
    if " in " in FAULT:
        fault, text = FAULT.split(" in ", 1)
        if fault.endswith(" whole"):
            fault = fault[: -len(" whole")] if in_turn else ""
        return fault if any(text.encode() in data for data in contents) else ""
    return FAULT


def say(answer):
    print(json.dumps(answer), flush=True)


def times(request, samples):
    models = [seconds_of(model["file"]) for model in request["models"]]
    models = [(seconds + (EVICTED * 1e-6 * SCALE if model.get("evict", 0) else 0), data)
              for (seconds, data), model in zip(models, request["models"])]
    answer = {"id": request["id"], "results": [{"seconds": [seconds] * samples} for seconds, _ in models]}
    fault = fault_now([data for _, data in models], request["do"] == "interleave")
    time.sleep(0.002)
    first = answer["results"][0]["seconds"]
    if fault == "crash":
        sys.exit("fake worker: it crashes here")
    if fault == "hang":
        time.sleep(1000)
    if fault == "malformed":
        print("{ no JSON", flush=True)
        return
    if fault == "nan":
        first[0] = float("nan")
    if fault == "zero":
        first[0] = 0
    if fault == "negative":
        first[0] = -1e-6
    if fault == "text":
        first[0] = "fast"
    if fault == "wild":
        answer["results"][0]["seconds"] = [first[0] * 10.0 ** (i - samples) for i in range(samples)]
    if fault == "count":
        first.append(1e-6)
    if fault == "models":
        answer["results"].append({"seconds": [1e-6] * samples})
    if fault == "late":
        first[0] = 1000.0
    if fault == "other":
        answer["id"] = 1000000
    if fault == "refuse":
        text = FAULT.split(" in ", 1)[1].encode() if " in " in FAULT else b""
        answer["results"] = [{"error": "it does not run this"} if text in data else result
                             for (_, data), result in zip(models, answer["results"])]
    say(answer)


def main():
    if FAULT == "silent":
        time.sleep(1000)
    version = 2 if FAULT == "version" else 1
    hello = {"taso_worker": version, "runtime": "Fake Runtime", "version": "1.0", "providers": ["plain", "other"]}
    if FAULT == "newer" and os.path.exists("fault.done"):
        hello["version"] = "2.0"
    if FAULT == "hello":
        hello = ["hello"]
    say(hello)
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "configure":
            say({"id": request["id"], "provider": request["provider"] or "plain"})
        elif request["do"] == "measure":
            times(request, request["runs"])
        elif request["do"] == "interleave":
            times(request, request["rounds"])
        else:
            break


main()
