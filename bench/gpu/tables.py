"""The tables of bench/gpu/run, from the results that there are."""

import json

OURS = ["original", "folded", "fused", "optimized"]
TORCH_MODES = ["graph", "compiled", "autotuned", "reduce-overhead", "max-autotune", "eager"]


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread(values):
    """Distance of the quartiles over the median, by linear interpolation."""
    ordered = sorted(values)

    def quantile(q):
        position = q * (len(ordered) - 1)
        below = int(position)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (position - below)

    return (quantile(0.75) - quantile(0.25)) / median(ordered) if median(ordered) else 0.0


def best_of(groups, test):
    """(group, contender) of the least median among PyTorch's that pass the test."""
    found = {(group, kind): median(values) for group, samples in groups.items() for kind, values in samples.items() if kind.startswith("torch ") and test(kind) and values}
    return min(found, key=found.get) if found else None


def ratio(samples, kind, other):
    """The median of the ratios of rounds, in which both were timed one after the other."""
    a, b = samples.get(kind), samples.get(other)
    return f"{median([x / y for x, y in zip(a, b)]):.3f}" if a and b else "-"


def cell(groups, kind):
    values = [v for samples in groups.values() for v in samples.get(kind, [])]
    return f"{median(values) * 1e-3:.4f} ({spread(values) * 100:.1f})" if values else "-"


def rows_of_times(times):
    """`times`: by configuration and group of contenders, the samples of each."""
    rows = []
    for name, groups in times.items():
        modes = [best_of(groups, lambda k, m=mode: f" {m} " in k) for mode in TORCH_MODES]
        fastest = best_of(groups, lambda k: True)
        against_fused = next((g for g in groups.values() if g.get("fused") and g.get("optimized")), {})
        rows.append([name, *(cell(groups, kind) for kind in OURS), *(cell({m[0]: groups[m[0]]}, m[1]) if m else "-" for m in modes),
                     ratio(against_fused, "fused", "optimized"), ratio(groups[fastest[0]], fastest[1], "optimized") if fastest else "-", fastest[1] if fastest else "-"])
    return rows


def write(folder, results, kernels):
    """TABLES.md and .tsv files. `results`: by name of the step; `kernels`: by configuration, the lines of kernel_check."""
    facts = results.get("environment", {})

    def of(stage):
        return {name.split("/", 1)[1]: r for name, r in results.items() if name.startswith(stage + "/")}

    times = {}
    for name, result in of("time").items():
        configuration, group = name.rsplit(".", 1)
        if any(result.get("samples_us", {}).values()):
            times.setdefault(configuration, {})[group] = result["samples_us"]
    lines = ["# Measured by bench/gpu/run", "", f"Device: {facts.get('device', '-')}. {facts.get('nvidia_smi', '')}", "",
             f"Date: {facts.get('date', '-')}. Program: {facts.get('version', '-')}. PyTorch: {json.dumps(facts.get('torch', {}))}.", ""]
    if facts.get("dry_run"):
        lines += ["**A dry run on the processor: no figure here means anything.**", ""]

    def table(title, name, head, rows):
        if not rows:
            return
        (folder / f"{name}.tsv").write_text("".join("\t".join(map(str, r)) + "\n" for r in [head, *rows]))
        lines.extend([f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)])
        lines.extend("| " + " | ".join(map(str, r)) + " |" for r in rows)
        lines.append("")

    table("Whole graphs: ms, in brackets the distance of the quartiles in % of the median", "times",
          ["model.batch.math", *OURS, *(f"torch {m}, best layout and file" for m in TORCH_MODES), "fused / optimized", "best torch / optimized", "best torch"], rows_of_times(times))
    table("All contenders: us", "contenders", ["model.batch.math", "group", "contender", "median us", "spread %", "rounds"],
          [[name, group, kind, f"{median(v):.3f}", f"{spread(v) * 100:.2f}", len(v)] for name, groups in times.items() for group, samples in groups.items() for kind, v in samples.items() if v])
    table("Sum of kernels against whole graphs: us", "operators", ["model.batch.math.variant", "sum", "whole", "sum - whole", "kernels", "most"],
          [[name, f"{r['sum_us']:.1f}", f"{r['whole_us']:.1f}", f"{(r['sum_us'] / r['whole_us'] - 1) * 100:+.1f} %", r["kernels"],
            ", ".join(f"{op} {us:.0f}" for op, (us, _) in sorted(r["by_operator"].items(), key=lambda e: -e[1][0])[:5])] for name, r in of("operators").items() if r.get("whole_us")])
    rows = [[name, o["name"], f"{o['relative_l2']:.3g}" if o["relative_l2"] is not None else "infinite", f"{r['bound']:g}", "yes" if o["within"] else "NO"]
            for name, r in of("check").items() for o in r.get("outputs", [])]
    rows += [[f"{name} {kind}", "worst output", f"{f['relative_l2']:.3g}", "-", "-"]
             for name, t in of("time").items() for kind, f in t.get("facts", {}).items() if isinstance(f, dict) and "relative_l2" in f]
    table("Relative L2 norm of the difference from float64", "check", ["model.batch.math.variant", "output", "relative L2", "bound", "within"], rows)
    rows = []
    for name, checked in kernels.items():
        errors = [k.get("relative_l2") or 0.0 for k in checked if "within" in k]
        rows.append([name, len(errors), sum(k.get("within") is False for k in checked), sum("declined" in k for k in checked), f"{max(errors, default=0):.2g}",
                     f"{sum(k.get('seconds', 0) for k in checked):.0f}"])
    table("Kernels against the host's", "kernels", ["model.batch.math", "checked", "failed", "declined", "largest relative L2", "seconds"], rows)
    table("Searches", "searches",
          ["model.batch.math", "choice", "kernels of the baseline", "of the result", "kernels measured", "engines chosen", "in seconds", "seconds", "verdict"],
          [[name, r["choice"], r["baseline"]["kernels"], r["result"]["kernels"], r["measured_kernels"], r.get("tuning", {}).get("choices", "-"),
            f"{r.get('tuning', {}).get('seconds', 0):.1f}", f"{r['wall_seconds']:.1f}", r["verdict"]] for name, r in of("optimize").items() if "choice" in r])
    left = [f"- {name}: {r['error']}" for name, r in results.items() if r.get("error")]
    left += [f"- {name}, {kind}: {why}" for name, r in results.items() for kind, why in r.get("failed", {}).items()]
    left += [f"- {name}: not finished" for name, r in results.items() if r.get("unfinished") and not r.get("error")]
    if left:
        lines += ["## What failed or was left out", "", *left, ""]
    (folder / "TABLES.md").write_text("\n".join(lines))
