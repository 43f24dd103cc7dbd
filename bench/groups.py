#!/usr/bin/env python3
"""Kernels and time of models with each operator a kernel of its own, and with groups of operators in one.

    bench/groups.py [--programs build/release/bin] [--threads 1] [--rounds 5] [--costs FILE] MODEL.onnx ...

A model is run as its file says (--as-is --no-groups), with operators fused by rules (--no-groups), and with groups as
users run it; in turn, each time in a process of its own. Prints a table in Markdown: kernels, median times in ms, and the
ratio of the last two, the median over the rounds, with the range of the middle half. --costs: layouts by costs that
taso-opt has recorded; otherwise by the rule.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

FORMS = [["--as-is", "--no-groups"], ["--no-groups"], []]


def run(options, model, form):
    """Kernels and microseconds of a run."""
    command = [os.path.join(options.programs, "taso-run"), model, "--threads", str(options.threads), "-q", "--json", "-",
               "--repeat", str(options.repeat)] + (["--costs", options.costs] if options.costs else []) + form
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("groups.py: " + (done.stderr.strip() or "taso-run failed"))
    measured = json.loads(done.stdout)["models"][0]
    return measured["kernels"], measured["time"]["median_us"]


def row(options, model):
    kernels, times = [0] * len(FORMS), [[] for _ in FORMS]
    for round in range(options.rounds):
        for i in range(len(FORMS)):
            place = (i + round) % len(FORMS)
            kernels[place], time = run(options, model, FORMS[place])
            times[place].append(time)
    ratios = sorted(one / other for one, other in zip(times[1], times[2]))
    quarter = len(ratios) // 4
    medians = ["%.3f" % (statistics.median(one) / 1e3) for one in times]
    return [os.path.basename(model).removesuffix(".onnx")] + [str(one) for one in kernels] + medians + [
        "%.3f [%.3f, %.3f]" % (statistics.median(ratios), ratios[quarter], ratios[-1 - quarter])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--programs", default="build/release/bin")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--costs")
    options = parser.parse_args()
    print("| model | kernels, as in the file | fused by rules | groups | ms, as in the file | fused by rules | groups "
          "| fused by rules / groups |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for model in options.models:
        print("| " + " | ".join(row(options, model)) + " |", flush=True)


main()
