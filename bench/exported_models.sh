#!/usr/bin/env bash
# exported_models.sh PROGRAMS FOLDER [WORK]: every model *.onnx of a folder, with its weights, is planned for 2 and 4 devices as
# it is and run by as many ranks under mpirun, with --check; then optimized with its plan for 4 devices (--cost flops), which
# taso-verify checks, with the plan written out as one model. Prints a table in Markdown; exit code 1 if anything is wrong.
set -euo pipefail
programs=$(realpath "$1") folder=$(realpath "$2") work=${3:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"
ranks=(mpirun --oversubscribe)
if [ "$(id -u)" = 0 ]; then ranks+=(--allow-run-as-root); fi
failed=0
echo "| model | ranks | operators | transfers | bytes planned | bytes counted, as predicted | largest relative L2 | written out |"
echo "|---|---:|---:|---:|---:|---:|---:|---|"
for model in "$folder"/*.onnx; do
  name=$(basename "$model" .onnx)
  for count in 2 4; do
    predicted=- counted=- transfers=- operators=- difference=- written=-
    if "$programs/taso-opt" "$model" --plan-only "$name.$count.plan.json" --devices $count -q 2> stderr &&
      "${ranks[@]}" -np $count "$programs/taso-run" "$model" --plan "$name.$count.plan.json" --repeat 1 --check \
        --json run.json > stdout 2> stderr; then
      counted=$(sed -nE 's/^payload: ([0-9]+) bytes.*as predicted$/\1/p' stdout)
      transfers=$(sed -nE 's/^payload: .* in ([0-9]+) transfers.*/\1/p' stdout)
      difference=$(awk '/relative L2/ { seen = 1; next } seen && NF == 3 && $2 + 0 > most { most = $2 + 0 } END { printf "%.1e", most }' stdout)
    else
      failed=1
      counted="**$(tail -1 stderr)**"
    fi
    predicted=$(sed -nE 's/^ *"transfer_bytes": ([0-9]+).*/\1/p' "$name.$count.plan.json" | head -1)
    operators=$(grep -c '^    {"name".*"op"' "$name.$count.plan.json")
    if [ $count = 4 ]; then
      if "$programs/taso-opt" "$model" -o "$name.out.onnx" --cost flops --steps 3 --devices 4 --emit onnx --no-check -q 2> stderr &&
        "$programs/taso-verify" --plan "$name.out.plan.json" --expanded "$name.out.expanded.onnx" --original "$model" \
          --optimized "$name.out.onnx" > stdout 2> stderr; then
        written="checked"
      else
        failed=1
        written="**$(tail -1 stderr)**"
      fi
      rm -f "$name.out."*
    fi
    echo "| $name | $count | $operators | $transfers | $predicted | $counted | $difference | $written |"
  done
done
exit $failed
