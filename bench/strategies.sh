#!/usr/bin/env bash
# Compares the strategies of taso-opt (Figure 2.12 of the TASO chapter) on models: predicted cost of the graph that each finds, all
# from one database of kernel costs. Prints a markdown table. Kernels are measured by the first runs, which time graphs whole as
# well; the other figures come from runs with --no-measure.
# --rows adds the strategies that start from the file's own layouts, row-major throughout: slow to measure.
# usage: bench/strategies.sh [--threads N] [--rows] MODEL.onnx...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${TASO_BIN:-build/release/bin}
work=build/bench
mkdir -p $work
threads=1
rows=0
if [ "${1:-}" = --threads ]; then threads=$2; shift 2; fi
if [ "${1:-}" = --rows ]; then rows=1; shift; fi

# One field of the report: found (the least cost of all graphs that competed), seconds (of the search), share (of it for layouts).
field() { # field NAME FILE
  awk -v want="$1" '
    /^  "contenders": \[/ { inside = 1 }
    /^  \]/               { inside = 0 }
    inside && /"cost":/   { sub(/.*: /, ""); sub(/,$/, ""); if (found == "" || $0 + 0 < found) found = $0 + 0 }
    /^  "layouts": \{/    { part = "layouts" }
    /^  "search": \{/     { part = "search" }
    /^  \}/               { part = "" }
    part != "" && /"seconds":/ { sub(/.*: /, ""); sub(/,$/, ""); seconds[part] = $0 + 0 }
    END { if (want == "found") printf "%.3f", found / 1000
          if (want == "seconds") printf "%.2f", seconds["search"]
          if (want == "share") printf "%.2f", seconds["layouts"] }' "$2"
}

echo "Processor: $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1); $threads thread(s); predicted ms."
echo
echo "| model | graph, rows | sequential, rows | graph | layout | sequential | greedy | joint | graph / joint | search s | of it layouts s |"
echo "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
for model in "$@"; do
  name=$(basename "$model" .onnx)
  optimize() { # optimize LABEL OPTION...
    local label=$1; shift
    "$bin/taso-opt" "$model" -o "$work/$name.$label.onnx" --threads "$threads" --costs $work/strategies.costs.sqlite --no-check \
      --no-certificate -q --json "$work/$name.$label.json" "$@"
  }
  optimize measure
  optimize greedy --alpha 1
  if [ $rows = 1 ]; then
    optimize measure --strategy graph --rule-layouts row-major
    optimize graph_rows --no-measure --strategy graph --rule-layouts row-major
    optimize sequential_rows --no-measure --strategy sequential --rule-layouts row-major
  fi
  optimize graph --no-measure --strategy graph
  optimize layout --no-measure --strategy layout
  optimize sequential --no-measure --strategy sequential
  optimize joint --no-measure --strategy joint
  row="| $name"
  for label in graph_rows sequential_rows graph layout sequential greedy joint; do
    case $rows:$label in 0:*_rows) row+=" | -" ;; *) row+=" | $(field found "$work/$name.$label.json")" ;; esac
  done
  row+=" | $(awk -v a="$(field found "$work/$name.graph.json")" -v b="$(field found "$work/$name.joint.json")" \
    'BEGIN { printf "%.3f", a / b }')"
  echo "$row | $(field seconds "$work/$name.joint.json") | $(field share "$work/$name.joint.json") |"
done
