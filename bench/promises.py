#!/usr/bin/env python3
"""What taso-opt promises beside what taso-run --compare shows right afterwards, as a table.

    bench/promises.py [--programs build/release/bin] [--rounds 41] [--rules FILE] [--repeat 1] MODEL.onnx ...

Each model is optimized with an empty database of costs. Promised: the ratio of times by which the verdict says the
result is faster than the better of original and baseline; 1 where it claims no gain. Shown: that of `taso-run
--compare ORIGINAL RESULT`. Seconds are those of taso-opt, beside 100 runs of the model. With the empty rule file
/dev/null no gain is true: the last line counts those that are claimed.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time


def optimized(programs, model, folder, rules):
    """The report of taso-opt on a model, and the seconds that it took."""
    command = [f"{programs}/taso-opt", "-q", model, "-o", f"{folder}/out.onnx", "--json", f"{folder}/report.json"]
    start = time.time()
    subprocess.run(command + (["--rules", rules] if rules else []), check=True)
    seconds = time.time() - start
    with open(f"{folder}/report.json") as file:
        return json.load(file), seconds


def shown(programs, model, folder, rounds):
    """Seconds of original and result, run in turn."""
    command = [f"{programs}/taso-run", "-q", "--compare", model, f"{folder}/out.onnx", "--repeat", str(rounds),
               "--json", "-"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result, original = [one["time"]["median_us"] * 1e-6 for one in json.loads(output)["models"]]
    return original, result


def row(arguments, model):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        report, seconds = optimized(arguments.programs, model, folder, arguments.rules)
        original, result = shown(arguments.programs, model, folder, arguments.rounds)
    times = [report[name]["measured_seconds"] for name in ("original", "baseline", "result")]
    promised = 1.0
    if report["gain"] and all(times):
        promised = min(times[0], times[1]) / times[2]
    noise = report["noise"] or 0
    name = os.path.basename(model).removesuffix(".onnx")
    cells = [name, f"{promised:.3f}", f"{100 * noise:.1f} %", f"{original / result:.3f}", f"{original * 1e3:.2f} ms",
             report["choice"], f"{error(report):+.1f} %", f"{seconds:.0f} s", f"{100 * original:.0f} s"]
    print("| " + " | ".join(cells) + " |", flush=True)
    return bool(report["gain"])


def error(report):
    """By how many percent the predicted time of the result is off."""
    result = report["result"]
    if not result["measured_seconds"]:
        return float("nan")
    return 100 * (result["predicted_seconds"] / result["measured_seconds"] - 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", default="build/release/bin")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--rules")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    print("| model | promised | noise | shown | original | written | prediction off | taso-opt | 100 runs |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    gains = runs = 0
    for _ in range(arguments.repeat):
        for model in arguments.models:
            gains += row(arguments, model)
            runs += 1
    print(f"\n{gains} gains claimed in {runs} runs.")


main()
