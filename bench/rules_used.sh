#!/usr/bin/env bash
# Which rules make the graphs that taso-opt finds, and what larger rules bring (Figures 2.10 and 2.11 of the TASO chapter). Prints
# markdown tables: for each rule and model the number of applications on the way to the graph of least predicted cost; and for
# each model that cost when the search has rules of at most 1, 2, 3, 4 operators on the source side, or all, against the baseline.
# Graphs are not timed whole. The first run of a model measures the kernels that the database lacks.
# usage: bench/rules_used.sh [--threads N] [--cost C] [--costs FILE] [--no-measure] [--sizes "1 2 3 4"] MODEL.onnx...
set -euo pipefail
here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${TASO_BIN:-build/release/bin}
work=${TASO_WORK:-build/bench}/rules
threads=1 cost=time costs="" sizes="1 2 3 4" measure=()
while [ $# -gt 0 ]; do
  case $1 in
    --threads) threads=$2; shift 2 ;;
    --cost) cost=$2; shift 2 ;;
    --costs) costs=$2; shift 2 ;;
    --no-measure) measure=(--no-measure); shift ;;
    --sizes) sizes=$2; shift 2 ;;
    -*) echo "rules_used.sh: $1 is not an option; see the head of this file" >&2; exit 2 ;;
    *) break ;;
  esac
done
if [ $# = 0 ]; then echo "rules_used.sh: no models; usage: bench/rules_used.sh [option...] MODEL.onnx..." >&2; exit 2; fi
[ -x "$bin/taso-opt" ] || { echo "rules_used.sh: $bin/taso-opt is not there; build it, or set TASO_BIN" >&2; exit 3; }
mkdir -p "$work"
# Names of files are those of the caller's folder.
absolute() { case $1 in /*) echo "$1" ;; *) echo "$here/$1" ;; esac; }
if [ -n "$costs" ]; then costs=$(absolute "$costs"); else costs=${TASO_WORK:-build/bench}/costs.sqlite; fi
models=()
for model in "$@"; do models+=("$(absolute "$model")"); done

rm -f "$work"/used "$work"/costs
for model in "${models[@]}"; do
  name=$(basename "$model" .onnx)
  for size in all $sizes; do
    echo "rules_used.sh: $name, $size" >&2
    report=$work/$name.$size.json
    rm -f "$report"
    limit=()
    [ "$size" = all ] || limit=(--max-rule-size "$size")
    "$bin/taso-opt" "$model" -o "$work/$name.onnx" --cost "$cost" --costs "$costs" --threads "$threads" --rerank 0 --no-check \
      --no-certificate -q --json "$report" "${measure[@]}" "${limit[@]}" || true
    if [ ! -f "$report" ]; then
      echo "$name $size - -" >> "$work"/costs
      continue
    fi
    awk -v model="$name" -v size="$size" -v used="$work/used" -v costs="$work/costs" '
      /^  "[a-z_]*": [{[]/ { split($0, part, "\""); at = part[2] }
      /^  []}]/            { at = "" }
      { field = $1; number = $2; sub(/,$/, "", number) }
      at == "baseline" && field == "\"cost\":"  { baseline = number }
      at == "result" && field == "\"cost\":"    { result = number }
      at == "rules" && field == "\"baseline\":" { in_baseline = number }
      at == "rules" && field == "\"name\":"     { gsub(/"/, "", number); rule = number }
      at == "rules" && field == "\"search\":" && size == "all" { print model, rule, in_baseline, number >> used }
      END { print model, size, baseline, result >> costs }' "$report"
  done
done
touch "$work"/used

echo "Least predicted cost by $cost of the graphs found, $threads thread(s)."
for stage in search baseline; do
  echo
  case $stage in
    search) column=4; echo "Applications in the search, to the graph of least cost:" ;;
    baseline) column=3; echo "Applications that made the baseline:" ;;
  esac
  echo
  awk -v column="$column" -v models="$(for m in "$@"; do basename "$m" .onnx; done | tr '\n' ' ')" '
    $column > 0 { count[$2, $1] = $column; total[$2] += $column; if (!($2 in seen)) { seen[$2] = 1; rules[++n] = $2 } }
    END {
      m = split(models, name, " ")
      line = "| rule |"; rule_line = "|---|"
      for (j = 1; j <= m; ++j) { line = line " " name[j] " |"; rule_line = rule_line "---:|" }
      print line " all |"; print rule_line "---:|"
      # Most used first, then by name.
      for (i = 2; i <= n; ++i) {
        r = rules[i]
        for (k = i - 1; k > 0 && (total[rules[k]] < total[r] || (total[rules[k]] == total[r] && rules[k] > r)); --k) rules[k + 1] = rules[k]
        rules[k + 1] = r
      }
      for (i = 1; i <= n; ++i) {
        line = "| " rules[i] " |"
        for (j = 1; j <= m; ++j) line = line " " ((rules[i], name[j]) in count ? count[rules[i], name[j]] : "") " |"
        print line " " total[rules[i]] " |"
      }
    }' "$work"/used
done
echo
echo "Baseline / least cost, by the largest rules of the search (operators on the source side):"
echo
awk -v sizes="$sizes all" '
  { if (!($1 in seen)) { seen[$1] = 1; models[++m] = $1 } baseline[$1, $2] = $3; found[$1, $2] = $4 }
  END {
    n = split(sizes, size, " ")
    line = "| model | baseline |"; rule_line = "|---|---:|"
    for (j = 1; j <= n; ++j) { line = line (size[j] == "all" ? " all |" : " at most " size[j] " |"); rule_line = rule_line "---:|" }
    print line; print rule_line
    for (i = 1; i <= m; ++i) {
      line = "| " models[i] " | " (baseline[models[i], "all"] == "-" ? "-" : sprintf("%.6g", baseline[models[i], "all"])) " |"
      for (j = 1; j <= n; ++j) {
        b = baseline[models[i], size[j]]; f = found[models[i], size[j]]
        line = line " " (f == "-" || f + 0 == 0 ? "-" : sprintf("%.3f", b / f)) " |"
      }
      print line
    }
  }' "$work"/costs
