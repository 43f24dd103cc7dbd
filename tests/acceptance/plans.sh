#!/usr/bin/env bash
# plans.sh PROGRAMS SPECS FOLDER: every small example is planned for 3 and 4 devices and run by as many threads, whose
# outputs are checked against float64. What cannot be executed alone is refused with the same line. Plans that are written
# out as one model are checked as they are read again: with folded weights, and without concatenations of one operand.
set -euo pipefail
programs=$1 specs=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
failed=0 ran=0
for model in $("$programs/build-models" --list); do
  "$programs/build-models" "$model" model.onnx --small > /dev/null
  alone=0
  "$programs/taso-run" model.onnx --specs "$specs" --repeat 1 > /dev/null 2> alone || alone=$?
  for devices in 3 4; do
    got=0
    "$programs/taso-opt" model.onnx --specs "$specs" --plan-only plan.json --devices $devices -q &&
      "$programs/taso-run" model.onnx --specs "$specs" --plan plan.json --repeat 1 --check > stdout 2> stderr || got=$?
    if [ $alone = 3 ] && [ $got = 3 ] && diff alone stderr; then continue; fi
    if [ $got = 0 ] && grep -q "^model.onnx on $devices ranks (threads): " stdout &&
      grep -qE '^payload: [1-9][0-9]* bytes in [0-9]+ transfers a run, as predicted' stdout; then
      ran=$((ran + 1))
      continue
    fi
    failed=$((failed + 1))
    echo "$model on $devices devices: exit code $got"
    cat stdout stderr
  done
done
for model in densenet121 squeezenet1_1 gpt2_block; do
  "$programs/build-models" "$model" model.onnx --small > /dev/null
  "$programs/taso-opt" model.onnx -o out.onnx --specs "$specs" --cost flops --devices 4 --mesh 2x2 --emit onnx -q
  "$programs/taso-verify" --specs "$specs" --plan out.plan.json --optimized out.onnx --expanded out.expanded.onnx > stdout 2>&1 &&
    grep -q 'out.expanded.onnx is that plan written out' stdout && continue
  failed=$((failed + 1))
  echo "$model, written out:"
  cat stdout
done
[ $failed = 0 ] && [ $ran -gt 0 ] || exit 1
echo "$ran plans"
