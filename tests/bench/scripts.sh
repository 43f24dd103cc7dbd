#!/usr/bin/env bash
# scripts.sh BENCH PROGRAMS WORK: the scripts of bench on a small model and on a file that is no model.
set -euo pipefail
bench=$1 programs=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work"
export TASO_BIN=$programs TASO_WORK=$work/bench PEERS=none
"$programs/build-models" nasrnn nasrnn.onnx --small
echo "no model" > broken.onnx

expect() { # expect FILE REGEX
  grep -qE "$2" "$1" || { echo "no line $2 in:"; cat "$1"; exit 1; }
}

# Every product of one tensor is one in the end: by rules of two operators. Half of the launches need those of three.
"$bench/rules_used.sh" --cost launches --sizes "1 2 3" nasrnn.onnx broken.onnx > rules.md 2> rules.log
expect rules.md '^\| rule \| nasrnn \| broken \| all \|$'
expect rules.md '^\| merge_matmul_1 \| [1-9][0-9]* \|  \| [1-9][0-9]* \|$'
expect rules.md '^\| nasrnn \| 88 \| 1\.000 \| 1\.[0-9]+ \| 2\.000 \| 2\.000 \|$'
expect rules.md '^\| broken \| - \| - \| - \| - \| - \|$'

number='[0-9.]+ \([0-9]+\)'
"$bench/runtime.sh" --threads 1 --rounds 2 --cost launches nasrnn.onnx broken.onnx > runtime.md 2> runtime.log
expect runtime.md "^\| nasrnn \| 1 \| $number \| $number \| $number \| - \| - \| - \| [0-9.]+ \| [0-9.]+ \([0-9.]+ %\) \| - \|\$"
expect runtime.md '^\| nasrnn \| 1 \| - \| [0-9.]+ \| - \|'
expect runtime.md '^\| broken \| 1 \| - \| - \| - \| - \| - \| - \| - \| - \| - \|$'

if command -v python3 > /dev/null; then
  "$bench/groups.py" --programs "$programs" --rounds 2 --repeat 1 nasrnn.onnx > groups.md
  expect groups.md '^\| nasrnn \| ([0-9]+ \| ){3}([0-9.]+ \| ){3}[0-9.]+ \[[0-9.]+, [0-9.]+\] \|$'
  code=0
  "$bench/groups.py" --programs "$programs" broken.onnx > groups.md 2> groups.log || code=$?
  [ $code = 1 ] && expect groups.log '^groups.py: taso-run: broken.onnx: '
fi

# Wrong use is one line and exit code 2.
for script in runtime.sh rules_used.sh; do
  for arguments in "" "--bogus"; do
    code=0
    # Without quotes: nothing, or one word.
    # shellcheck disable=SC2086
    "$bench/$script" $arguments 2> wrong.log || code=$?
    if [ $code != 2 ] || [ "$(wc -l < wrong.log)" != 1 ]; then
      echo "$script $arguments: exit code $code"
      cat wrong.log
      exit 1
    fi
  done
done
