#!/usr/bin/env bash
# gpu.sh BENCH BUILD WORK: bench/gpu on the test backend: the bundle is complete, a dry run in it measures and writes its tables, a second one
# has nothing to do, and wrong use is one line. PyTorch's part is left out.
set -euo pipefail
bench=$1 build=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work"
expect() { # expect FILE REGEX
  grep -qE "$2" "$1" || { echo "no line $2 in:"; cat "$1"; exit 1; }
}
if ! command -v ninja > /dev/null || [ ! -f "$build/build.ninja" ]; then
  echo "SKIP: the bundle is linked by ninja's commands"
  exit 77
fi
"$bench/gpu/bundle" --build "$build" --test-backend bundle > bundle.log 2>&1 || { cat bundle.log; exit 1; }
expect bundle.log '^bundle: complete$'
expect bundle.log '^bundle: .*/bundle\.tar\.gz, [1-5]?[0-9] MB$'
[ -x bundle/bin/taso-run ] && [ -f bundle/lib/taso/taso_host.so ] && [ -f bundle/share/taso/specs/rules/default.rules ]
# What runs is what was packed, somewhere else.
rm -rf bundle/bin
mkdir elsewhere
tar -C elsewhere -xzf bundle.tar.gz
rm -rf bundle
mv elsewhere/bundle bundle
# A library that is missing is noticed.
mv bundle/lib/libtbb.so.12 away
if "$bench/gpu/bundle" --check bundle > check.log 2>&1; then echo "a missing library is not noticed"; exit 1; fi
mv away bundle/lib/libtbb.so.12

dry=(bundle/bench/gpu/run --dry-run --out results --models nasrnn --batches 1 --math fp32,fp16 --python none)
"${dry[@]}" > run.log 2>&1 || { cat run.log; exit 1; }
expect run.log 'done: .*/TABLES.md$'
number='[0-9.]+ \([0-9.]+\)'
expect results/TABLES.md 'A dry run on the processor: no figure here means anything'
expect results/TABLES.md "^\| nasrnn\.b1\.fp32 \| $number \| $number \| $number \| $number \| - \| - \| - \| - \| [0-9.]+ \| - \| - \|$"
expect results/TABLES.md '^\| nasrnn\.b1\.fp16\.optimized \| [A-Za-z0-9_]+ \| [0-9.e-]+ \| 0\.01 \| yes \|$'
expect results/TABLES.md '^\| nasrnn\.b1\.fp16 \| [1-9][0-9]* \| 0 \| 0 \| '
expect results/TABLES.md '^\| nasrnn\.b1\.fp32\.fused \| [0-9.]+ \| [0-9.]+ \| [+-][0-9.]+ % \| 88 \| '
expect results/TABLES.md '^- time nasrnn.b1.fp32, torch: left out \(--python none\)$'
expect results/device.json '"name":"host test device"'
expect results/costs/nasrnn.b1.fp16.costs 'host test device; driver 1.0; fp32; .*floats=f16'
expect results/times.tsv '^nasrnn\.b1\.fp16	'
# What is done is not done again.
touch stamp
"${dry[@]}" > again.log 2>&1
if [ -n "$(find results/results -name '*.json' -newer stamp -not -name 'environment.json')" ]; then
  echo "results were made again"
  exit 1
fi

# Kernels that are wrong are found, one by one and in a model.
export TASO_BACKENDS=$PWD/bundle/lib/taso
model=results/models/nasrnn.b1.onnx
code=0
bundle/bin/kernel_check --device faulty "$model" > faulty.log || code=$?
expect faulty.log '^test: own elementwise[^:]*: add; .*: relative L2 [0-9.]+, allowed 1e-05$'
expect faulty.log '^[1-9][0-9]* kernels checked, [1-9][0-9]* failed$'
[ "$code" = 4 ] || { echo "a wrong kernel: exit code $code"; exit 1; }
code=0
bundle/bin/taso-run --device faulty --check --repeat 1 "$model" > faulty.log 2>&1 || code=$?
[ "$code" = 4 ] || { cat faulty.log; exit 1; }
unset TASO_BACKENDS

# Wrong use is one line.
for arguments in "" "--device" "--math fp8 $model" "$model"; do
  code=0
  # shellcheck disable=SC2086
  bundle/bin/kernel_check $arguments > wrong.log 2>&1 || code=$?
  expect wrong.log '^kernel_check: (wrong arguments; usage: kernel_check --device|--device: kernels of a backend are checked; give its name)'
  if [ $code != 2 ] || [ "$(wc -l < wrong.log)" != 1 ]; then cat wrong.log; exit 1; fi
done
code=0
bundle/bench/gpu/run --dry-run --out results --stages bogus > wrong.log 2>&1 || code=$?
expect wrong.log "^run: 'bogus' is no stage; stages: environment, "
if [ "$code" = 0 ] || [ "$(wc -l < wrong.log)" != 1 ]; then cat wrong.log; exit 1; fi
for arguments in "" "--bogus"; do
  code=0
  # Without quotes: nothing, or one word.
  # shellcheck disable=SC2086
  "$bench/gpu/bundle" $arguments 2> wrong.log || code=$?
  if [ $code != 2 ] || [ "$(wc -l < wrong.log)" != 1 ]; then
    echo "bundle $arguments: exit code $code"
    cat wrong.log
    exit 1
  fi
done
# A device that is not there ends the run, with the reason.
if bundle/bench/gpu/run --device nosuch --out absent --python none > absent.log 2>&1; then echo "no device, no error"; exit 1; fi
expect absent.log "^run: taso-run: device 'nosuch' is not available: there is no taso_nosuch.so"
