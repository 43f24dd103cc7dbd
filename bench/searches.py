#!/usr/bin/env python3
"""Time and memory of taso-opt on models, first with what the cost database lacks to be measured, then with a warm one.

usage: bench/searches.py [--bin DIR] [--costs FILE] [--work DIR] [--threads N] MODEL.onnx...

Prints a markdown table, a row as soon as it is known. "cold": the first run, kernels measured among them; "warm": the
same command again, which measures nothing. "search" is that of the report; MB the process's greatest memory, the model's weights
included. "error" is the predicted time of the written graph against its measured one, where it was timed whole (the baseline's,
where nothing better was found; empty where the original has nothing to fuse).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time


def run(command):
    """Seconds, processor seconds, MB and exit status of a command."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        print(errors, end="", file=sys.stderr)
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--costs", default="build/bench/costs.sqlite")
    parser.add_argument("--work", default="build/bench/searches")
    parser.add_argument("--threads", default="1")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    work = pathlib.Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    print("| model | operators | cold s | kernels measured | warm s | search s | parts | processor s | MB | "
          "baseline ms | result ms | error |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    failed = 0
    for model in options.models:
        name = pathlib.Path(model).stem
        report = work / f"{name}.json"
        command = [f"{options.bin}/taso-opt", model, "-o", str(work / f"{name}.onnx"), "--costs", options.costs, "--threads",
                   options.threads, "--no-certificate", "--json", str(report), "-q"]
        cold, _, _, status = run(command)
        if status != 0:
            print(f"| {name} | failed |", flush=True)
            failed += 1
            continue
        measured = json.loads(report.read_text())["measured_kernels"]
        warm, processor, memory, _ = run(command)
        found = json.loads(report.read_text())
        result, baseline = found["result"], found["baseline"]
        error = ""
        if result.get("measured_seconds"):
            error = f"{100 * (result['predicted_seconds'] / result['measured_seconds'] - 1):+.1f} %"
        print(f"| {name} | {baseline['operator_count']} | {cold:.1f} | {measured} | {warm:.1f} | {found['search']['seconds']:.1f} | "
              f"{found['search']['parts']} | {processor:.1f} | {memory:.0f} | {1e3 * baseline['predicted_seconds']:.3f} | "
              f"{1e3 * result['predicted_seconds']:.3f} | {error} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
