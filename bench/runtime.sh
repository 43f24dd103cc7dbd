#!/usr/bin/env bash
# Times whole models on this machine's CPU, one thread and two: by taso-run the original as it is, the folded and fused baseline and what
# taso-opt makes of it (twice: an A/A pair, whose difference is noise); by ONNX Runtime and OpenVINO the original, by
# ONNX Runtime also the optimized file. All contenders run in turn, each time in a process of its own, and every round begins with
# another. Prints markdown tables: times, ratios, and predicted against measured time. What cannot run a model is "-".
#
# Peers run in build/peers, a Python environment that is made here (pip) if it is not there, or in PEERS=PYTHON; PEERS=none leaves them out.
# usage: bench/runtime.sh [--threads "1 2"] [--rounds N] [--cost C] [--costs FILE] [--no-measure] MODEL.onnx...
set -euo pipefail
here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${TASO_BIN:-build/release/bin}
work=${TASO_WORK:-build/bench}/runtime
threads="1 2" rounds=9 cost=time costs="" measure=()
while [ $# -gt 0 ]; do
  case $1 in
    --threads) threads=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --cost) cost=$2; shift 2 ;;
    --costs) costs=$2; shift 2 ;;
    --no-measure) measure=(--no-measure); shift ;;
    -*) echo "runtime.sh: $1 is not an option; see the head of this file" >&2; exit 2 ;;
    *) break ;;
  esac
done
if [ $# = 0 ]; then echo "runtime.sh: no models; usage: bench/runtime.sh [option...] MODEL.onnx..." >&2; exit 2; fi
for program in taso-opt taso-run; do
  [ -x "$bin/$program" ] || { echo "runtime.sh: $bin/$program is not there; build it, or set TASO_BIN" >&2; exit 3; }
done
mkdir -p "$work"
# Names of files are those of the caller's folder.
absolute() { case $1 in /*) echo "$1" ;; *) echo "$here/$1" ;; esac; }
if [ -n "$costs" ]; then costs=$(absolute "$costs"); else costs=${TASO_WORK:-build/bench}/costs.sqlite; fi
models=()
for model in "$@"; do models+=("$(absolute "$model")"); done

peers=${PEERS:-build/peers/bin/python}
if [ "$peers" = none ]; then
  peers=
elif [ -z "${PEERS:-}" ] && ! "$peers" -c 'import numpy, onnxruntime, openvino' 2> /dev/null; then
  echo "runtime.sh: making build/peers (onnxruntime, openvino)" >&2
  python3 -m venv build/peers >&2 || true
  # One by one: each peer counts by itself.
  for package in numpy onnxruntime==1.31.1 openvino==2026.4.1; do
    build/peers/bin/pip install -q "$package" >&2 || echo "runtime.sh: $package cannot be installed" >&2
  done
fi

# value NAME FILE SECTION: a number of a taso-opt report, from a section such as "result"; empty if there is none.
value() {
  [ -f "$2" ] || return 0
  awk -v want="\"$1\":" -v section="$3" '
    /^  "[a-z_]*": \{/ { split($0, part, "\""); at = part[2] }
    /^  \}/            { at = "" }
    at == section && $1 == want && $2 !~ /null/ { sub(/,$/, "", $2); print $2; exit }' "$2"
}

# Median time of one process, in us. The original runs as it is; other files are fused first, which no file can ask for.
ours() { # ours MODEL OPTION...
  "$bin/taso-run" "$@" --threads "$count" --costs "$costs" --repeat "$repeat" --json - -q |
    awk '$1 == "\"median_us\":" { sub(/,$/, "", $2); print $2; exit }'
}
peer() { # peer RUNTIME MODEL
  [ -n "$peers" ] && "$peers" bench/peer_time.py "$1" "$2" --threads "$count" --repeat "$repeat"
}

run_contender() {
  case $1 in
    original | onnxruntime | openvino) local file=$model ;;
    baseline) local file=$work/$name.baseline.onnx ;;
    *) local file=$work/$name.optimized.onnx ;;
  esac
  case $1 in
    original) ours "$file" --as-is ;;
    onnxruntime*) peer onnxruntime "$file" ;;
    openvino) peer openvino "$file" ;;
    *) ours "$file" ;;
  esac
}

contenders=(original baseline optimized again onnxruntime onnxruntime_optimized openvino)
rm -f "$work"/rows
for count in $threads; do
  for model in "${models[@]}"; do
    name=$(basename "$model" .onnx).$count
    echo "runtime.sh: $name" >&2
    rm -f "$work/$name".*.times
    for step in optimized baseline; do
      options=(--cost "$cost" --costs "$costs" "${measure[@]}")
      # By launches and without a search, the baseline is the result.
      if [ $step = baseline ]; then options=(--cost launches --steps 0 --no-check --no-certificate); fi
      rm -f "$work/$name.$step.onnx" "$work/$name.$step.json"
      "$bin/taso-opt" "$model" -o "$work/$name.$step.onnx" --threads "$count" -q --json "$work/$name.$step.json" \
        "${options[@]}" || echo "runtime.sh: taso-opt cannot make $name.$step.onnx" >&2
    done
    # Half a second for each contender and round, within bounds.
    report=$work/$name.optimized.json
    predicted=$(value predicted_seconds "$report" result)
    repeat=$(awk -v s="${predicted:-0.1}" 'BEGIN { r = int(0.5 / (s > 0 ? s : 0.1)); print (r < 5 ? 5 : r > 100 ? 100 : r) }')
    failed=" "
    for ((round = 0; round < rounds; ++round)); do
      for ((i = 0; i < ${#contenders[@]}; ++i)); do
        contender=${contenders[$(((i + round) % ${#contenders[@]}))]}
        case $failed in *" $contender "*) continue ;; esac
        time=$(run_contender "$contender" 2> "$work/$name.$contender.log" || true)
        if [ -z "$time" ]; then
          failed+="$contender "
          rm -f "$work/$name.$contender.times"
        else
          echo "$time" >> "$work/$name.$contender.times"
        fi
      done
    done
    # model threads, then for each contender its times with commas or "-", then predicted seconds of three graphs.
    row="$(basename "$model" .onnx) $count"
    for contender in "${contenders[@]}"; do
      file=$work/$name.$contender.times
      if [ -s "$file" ]; then row+=" $(paste -sd, "$file")"; else row+=" -"; fi
    done
    for section in original baseline result; do
      number=$(value predicted_seconds "$report" $section)
      row+=" ${number:--}"
    done
    echo "$row" >> "$work"/rows
  done
done

echo "Processor: $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1). $("$bin/taso-run" --version);" \
  "$( ([ -n "$peers" ] && "$peers" bench/peer_time.py versions) || echo "no peers")."
echo "Medians of $rounds rounds in ms, in brackets the distance of the quartiles in % of the median. Ratios are medians of the ratios of the rounds."
awk -f bench/runtime.awk "$work"/rows
