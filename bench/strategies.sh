#!/usr/bin/env bash
# Compares the strategies of taso-opt (Figure 2.12 of the TASO chapter), beam search and other rules on models: predicted cost of the
# graph that each finds, all from one database of kernel costs. Prints a markdown table.
# Kernels that the database (--costs, default build/bench/strategies.costs.sqlite) lacks are measured, and so are whole graphs, by
# which taso-opt decides; with a database that knows them all nothing is measured. Baselines are those of the shipped rules throughout.
# --published FILE.pb adds the search with the rules of the original TASO alone: those that taso-verify proves.
# --rows adds the strategies that start from the file's own layouts, row-major throughout: slow to measure.
# usage: bench/strategies.sh [--threads N] [--costs FILE] [--published FILE.pb] [--rows] MODEL.onnx...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${TASO_BIN:-build/release/bin}
work=build/bench
mkdir -p $work
threads=1 rows=0 published='' costs=$work/strategies.costs.sqlite
while [ $# -gt 0 ]; do
  case $1 in
    --threads) threads=$2; shift 2 ;;
    --costs) costs=$2; shift 2 ;;
    --published) published=$2; shift 2 ;;
    --rows) rows=1; shift ;;
    *) break ;;
  esac
done

# What is not proved of the published rules is left out.
published_rules=()
if [ -n "$published" ]; then
  verdicts=$work/published.json
  # Exit code 5: some rules are not proved.
  [ "$verdicts" -nt "$published" ] || "$bin/taso-verify" "$published" -q --json "$verdicts" > /dev/null || [ $? = 5 ]
  published_rules=(--rules "$published" --baseline-rules specs/rules/default.rules)
  while read -r name; do published_rules+=(--disable-rule "$name"); done < <(awk -F '"' '
    $2 == "name" { name = $4 }
    $2 == "verdict" && ($4 == "refuted" || $4 == "unknown") { print name }' "$verdicts")
fi

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
labels=(layout graph sequential greedy joint beam)
titles="| model | layout | graph | sequential | greedy | joint | joint, beam"
if [ $rows = 1 ]; then
  labels=(graph_rows sequential_rows "${labels[@]}")
  titles="| model | graph, rows | sequential, rows${titles#| model}"
fi
if [ -n "$published" ]; then
  labels+=(published)
  titles+=" | joint, published rules"
fi
echo "$titles | graph / joint | search s | of it layouts s | beam s |"
echo "|---$(printf '|---:%.0s' "${labels[@]}" 1 2 3 4)|"
for model in "$@"; do
  name=$(basename "$model" .onnx)
  optimize() { # optimize LABEL OPTION...
    local label=$1; shift
    "$bin/taso-opt" "$model" -o "$work/$name.$label.onnx" --threads "$threads" --costs "$costs" --no-check \
      --no-certificate -q --json "$work/$name.$label.json" "$@"
    rm -f "$work/$name.$label.onnx"
  }
  row="| $name"
  for label in "${labels[@]}"; do
    case $label in
      greedy) optimize greedy --alpha 1 ;;
      beam) optimize beam --search beam ;;
      published) optimize published "${published_rules[@]}" ;;
      *_rows) optimize "$label" --strategy "${label%_rows}" --rule-layouts row-major ;;
      *) optimize "$label" --strategy "$label" ;;
    esac
    row+=" | $(field found "$work/$name.$label.json")"
  done
  row+=" | $(awk -v a="$(field found "$work/$name.graph.json")" -v b="$(field found "$work/$name.joint.json")" \
    'BEGIN { printf "%.3f", a / b }')"
  for label in joint beam; do row+=" | $(field seconds "$work/$name.$label.json")"; [ $label = beam ] ||
    row+=" | $(field share "$work/$name.joint.json")"; done
  echo "$row |"
done
