#!/usr/bin/env bash
# layout_moves.sh PROGRAMS WORK: a row for each model; a second run with the recorded costs says the same but for
# seconds and times; wrong use is one line.
set -euo pipefail
programs=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
cd "$work"
"$programs/build-models" gpt2_block gpt2_block.onnx --small > /dev/null
"$programs/build-models" squeezenet1_1 squeezenet1_1.onnx --small > /dev/null
"$programs/layout_moves" costs.sqlite gpt2_block.onnx squeezenet1_1.onnx > first
"$programs/layout_moves" costs.sqlite gpt2_block.onnx squeezenet1_1.onnx > second
for model in gpt2_block squeezenet1_1; do
  grep -qE "^\| $model \| [1-9][0-9]* \| .* \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ % \| [0-9]+ of [0-9]+ \| (some)? \| [0-9.]+ % \| [0-9.]+ \| [-0-9.]+ \| [-0-9.]+ \| [-0-9. %]+ \|$" first ||
    { echo "no row of $model:"; cat first; exit 1; }
done
without_times() { sed -E 's/( [^|]*\|){4}$//' "$1"; }
diff <(without_times first) <(without_times second)
wrong() { # wrong CODE LINE ARGUMENT...
  local code=$1 line=$2 got=0
  shift 2
  "$programs/layout_moves" "$@" 2> message > /dev/null || got=$?
  if [ "$got" != "$code" ] || [ "$(wc -l < message)" != 1 ] || ! grep -qE "^$line" message; then
    echo "exit code $got:"
    cat message
    exit 1
  fi
}
wrong 2 'usage: layout_moves COSTS MODEL' costs.sqlite
wrong 3 'layout_moves: .*none.onnx' costs.sqlite none.onnx
