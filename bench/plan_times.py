#!/usr/bin/env python3
"""What steps of plans were predicted to take, and what they take: plans of several models on ranks of this machine.

    bench/plan_times.py build/release/bin work [--ranks 2] [--rounds 2] [MODEL[:OPTION=VALUE...] ...]

Measures the links and transfers of the ranks first, into `work`, where all files go. Of each model its best plan and the
others that taso-opt knows are run in turn, every one so often; the median of its runs counts, and how far medians of
rounds are apart is the noise (A/A). Prints a table (Markdown), the median of the errors, and how many pairs of plans
of one model that differ by more than the noise are in the order that was predicted."""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys

MODELS = ["bert_base:depth=2", "gpt2_block", "transformer:depth=1:extent=64", "llama_block:extent=32", "nasrnn",
          "squeezenet1_1", "resnet50:extent=128", "unet:extent=64", "inception_v3:extent=150"]


def run(*words, **how):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Bench:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.costs, self.topology = self.work / "costs.sqlite", self.work / "machine.json"
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.on_ranks = ["mpirun", "--oversubscribe", "-np", options.ranks]
        self.how = {"env": environment}

    def tool(self, name):
        return pathlib.Path(self.options.bin) / name

    def measure_links(self):
        table = run(*self.on_ranks, self.tool("taso-run"), "--measure-links", self.topology, "--measure-collectives",
                    "--costs", self.costs, **self.how)
        (self.work / "links.txt").write_text(table)

    def plan(self, model, file, name):
        """Writes a plan; of the best one (no name) also the names of the others."""
        words = [self.tool("taso-opt"), model, "--plan-only", file, "--topology", self.topology, "--plan-cost", "time",
                 "--costs", self.costs, "-q"]
        run(*words, *(["--take-plan", name] if name else []), **self.how)
        return json.loads(file.read_text())

    def plans(self, model):
        """Plans of a model that differ in what they predict, by name."""
        best = self.plan(model, model.with_suffix(".best.json"), "")
        plans = {"best": (model.with_suffix(".best.json"), best["plan"])}
        for name, sums in best["others"].items():
            if "missing" in sums or any(sums["cost"] == other["cost"] for _, other in plans.values()):
                continue
            file = model.with_suffix("." + "".join(letter for letter in name if letter.isalnum()) + ".json")
            plans[name] = (file, self.plan(model, file, name)["plan"])
        return plans

    def time(self, model, plan):
        report = self.work / "run.json"
        run(*self.on_ranks, self.tool("taso-run"), model, "--plan", plan, "--repeat", self.options.repeat, "--json", report,
            "-q", **self.how)
        return json.loads(report.read_text())["time"]["median_us"] * 1e-6

    def model(self, spelling):
        """Rows (name, predicted, measured, noise) of one model."""
        name, *settings = spelling.split(":")
        file = self.work / (spelling.replace(":", "-").replace("=", "") + ".onnx")
        words = [word for setting in settings for word in ("--" + setting.split("=")[0], setting.split("=")[1])]
        run(self.tool("build-models"), name, file, *words)
        plans = self.plans(file)
        samples = {plan: [] for plan in plans}
        for _ in range(self.options.rounds):
            for plan, (path, _) in plans.items():
                samples[plan].append(self.time(file, path))
        rows = []
        for plan, (_, sums) in plans.items():
            measured = statistics.median(samples[plan])
            noise = (max(samples[plan]) - min(samples[plan])) / measured
            rows.append((plan, sums["cost"], sums.get("step"), measured, noise))
        return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder of the programs")
    parser.add_argument("work", help="folder for what is made")
    parser.add_argument("--ranks", type=int, default=2, help="at most as many as cores")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=30, help="runs of a round")
    parser.add_argument("models", nargs="*", default=MODELS)
    bench = Bench(parser.parse_intermixed_args())
    bench.measure_links()
    print("| model | plan | sum of costs ms | predicted step ms | measured ms | error % | noise % |")
    print("|---|---|---:|---:|---:|---:|---:|")
    errors, kept, pairs = [], 0, 0
    for model in bench.options.models or MODELS:
        rows = bench.model(model)
        for plan, cost, step, measured, noise in rows:
            predicted = cost if step is None else step
            errors.append(abs(predicted / measured - 1))
            print(f"| {model} | {plan} | {cost * 1e3:.3f} | {predicted * 1e3:.3f} | {measured * 1e3:.3f} "
                  f"| {100 * (predicted / measured - 1):+.1f} | {100 * noise:.1f} |", flush=True)
        for one, other in itertools.combinations(rows, 2):
            if abs(one[3] - other[3]) <= max(one[4], other[4]) * max(one[3], other[3]):
                continue
            pairs += 1
            order = [(row[1] if row[2] is None else row[2]) for row in (one, other)]
            kept += (order[0] < order[1]) == (one[3] < other[3])
    print(f"\n{len(errors)} plans: median error {100 * statistics.median(errors):.1f} %, largest {100 * max(errors):.1f} %; "
          f"order kept of {kept} of {pairs} pairs that differ by more than the noise")


if __name__ == "__main__":
    main()
