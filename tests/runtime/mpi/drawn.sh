#!/usr/bin/env bash
# drawn.sh MPIRUN TASO_RUN TASO_VERIFY DRAW_MODELS SPECS FOLDER: random models in random plans run on 2, 3 and 4 ranks. What
# they compute is right by float64, and what they move is what the plan says, which is checked besides.
set -euo pipefail
mpirun=$1 run=$2 verify=$3 draw=$4 specs=$5 folder=$6
. "$(dirname "${BASH_SOURCE[0]}")/mpirun.sh"
rm -rf "$folder"
"$draw" "$folder" 15 2 3 4
failed=0 moved=0
for ((number = 0; number < 15; ++number)); do
  place=$folder/$number
  inputs=()
  for file in "$place"/*.npy; do
    if [ -e "$file" ]; then inputs+=(--input "$(basename "$file" .npy)=$file"); fi
  done
  count=$((2 + number % 3)) got=0
  "$verify" --specs "$specs" --plan "$place/model.plan.json" --expanded "$place/model.expanded.onnx" > "$place/verified" 2>&1 &&
    timeout --kill-after=5 60 "${ranks[@]}" -np $count "$run" --specs "$specs" "$place/model.onnx" \
      --plan "$place/model.plan.json" "${inputs[@]}" --repeat 2 --check > "$place/stdout" 2> "$place/stderr" < /dev/null ||
    got=$?
  if [ $got = 0 ] && grep -q "model.onnx on $count ranks (mpi): " "$place/stdout" &&
    grep -qE '^payload: [0-9]+ bytes in [0-9]+ transfers a run, as predicted' "$place/stdout"; then
    if grep -qE '^payload: [1-9]' "$place/stdout"; then moved=$((moved + 1)); fi
    continue
  fi
  failed=$((failed + 1))
  echo "model $number on $count ranks: exit code $got"
  cat "$place/verified" "$place/stdout" "$place/stderr" || true
done
[ $failed = 0 ] && [ $moved -ge 8 ] || { echo "$failed wrong, messages in $moved"; exit 1; }
echo "15 models, messages in $moved"
