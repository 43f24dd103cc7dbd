#!/usr/bin/env bash
# Times models whole on this machine's CPU: the original, the folded and fused baseline, and the optimized model in the same
# process, in turn, by taso-opt's last step; and original and optimized in ONNX Runtime, in turn, where build/oracle exists.
# Prints a markdown table. usage: bench/cpu_models.sh [--threads N] [MODEL.onnx...]; without models the examples are built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=build/release/bin
work=build/bench
mkdir -p $work
threads=1
if [ "${1:-}" = --threads ]; then threads=$2; shift 2; fi
models=("$@")
if [ ${#models[@]} = 0 ]; then
  for model in bert_base inception_v3 nasrnn resnet50 squeezenet1_1; do
    models+=("$work/$model.onnx")
    [ -f "$work/$model.onnx" ] || $bin/build-models $model "$work/$model.onnx"
  done
fi
python=build/oracle/bin/python
"$python" -c 'import onnxruntime' 2> /dev/null || python=

echo "Processor: $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1); $threads thread(s); medians in ms."
echo
echo "| model | kernels: original | baseline | optimized | ms: original | baseline | optimized | baseline / optimized | noise | ONNX Runtime: original | optimized |"
echo "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
for model in "${models[@]}"; do
  name=$(basename "$model" .onnx)
  $bin/taso-opt "$model" -o "$work/$name.optimized.onnx" --threads "$threads" --costs $work/costs.sqlite -q \
    --json "$work/$name.json"
  # One number per line: "name value" of the original, the baseline and the result.
  row=$(awk -v name="$name" '
    /^  "(original|baseline|result)": \{/ { split($0, part, "\""); section = part[2] }
    /^  \}/                               { section = "" }
    section != "" && /"kernels":/          { gsub(/[^0-9]/, ""); kernels[section] = $0 }
    section != "" && /"measured_seconds":/ { sub(/.*: /, ""); sub(/,$/, ""); ms[section] = $0 * 1000 }
    /^  "noise":/                          { sub(/.*: /, ""); sub(/,$/, ""); noise = $0 * 100 }
    END { printf "| %s | %d | %d | %d | %.3f | %.3f | %.3f | %.3f | %.1f %% |", name, kernels["original"], kernels["baseline"],
            kernels["result"], ms["original"], ms["baseline"], ms["result"], ms["baseline"] / ms["result"], noise }' \
    "$work/$name.json")
  if [ -n "$python" ]; then
    row+=$("$python" bench/onnxruntime_times.py --threads "$threads" "$model" "$work/$name.optimized.onnx")
  else
    row+=" - | - |"
  fi
  echo "$row"
done
