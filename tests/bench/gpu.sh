#!/usr/bin/env bash
# gpu.sh BENCH BUILD WORK: bench/gpu on the test backend: the bundle is complete, a dry run of the whole sequence in it, killed a few times, measures,
# packs and writes its tables, a second one has nothing to do, and wrong use is one line. PyTorch's part is left out.
set -Eeuo pipefail
trap 'echo "line $LINENO ends the test: $BASH_COMMAND"' ERR
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

run=bundle/bench/gpu/run
options=(--dry-run --state state --out results --references references --models nasrnn --batches 1 --math fp32,fp16 --python none)
"$run" "${options[@]}" --prepare > prepare.log 2>&1 || { cat prepare.log; exit 1; }
[ -n "$(ls references/nasrnn.b1/*.npy)" ]

# Killed at any moment, it leaves whole files, nobody who goes on, and goes on itself the next time.
json_files() { find state/results -name '*.json'; }
for moment in 1 2.3 4; do
  timeout -s KILL $moment "$run" "${options[@]}" > killed.log 2>&1 || true
  sleep 0.2
  if pgrep -f "$PWD/bundle/bin/" > left.log; then echo "a program goes on after a kill at $moment s"; exit 1; fi
  for file in $(json_files); do python3 -m json.tool "$file" > json.log 2>&1 || { echo "killed at $moment s: $file is no JSON"; exit 1; }; done
done
if [ -n "$(ls results)" ]; then cat results/results.tar.gz.* | tar -tz > killed.list; fi
# A kill counts as a try, and after two a step is left out: not here, where kills are the test.
find state/results -name '*.json' -exec grep -q '"unfinished": true' {} ';' -delete
"$run" "${options[@]}" --minutes 5 > run.log 2>&1 || { cat run.log; exit 1; }
expect run.log ' ([0-9]+) of \1 steps done, 0 of them failed; nothing is left$'
number='[0-9.]+ \([0-9.]+\)'
expect results/TABLES.md 'A dry run on the processor: no figure here means anything'
expect results/TABLES.md "^\| nasrnn\.b1\.fp32 \| $number \| $number \| $number \| $number \| - \| - \| - \| - \| - \| - \| [0-9.]+ \| - \| - \|$"
expect results/TABLES.md '^\| nasrnn\.b1\.fp16\.optimized \| [A-Za-z0-9_]+ \| [0-9.e-]+ \| 0\.01 \| yes \|$'
expect results/TABLES.md '^\| nasrnn\.b1\.fp16 \| [1-9][0-9]* \| 0 \| 0 \| '
expect results/TABLES.md '^\| nasrnn\.b1\.fp32\.fused \| [0-9.]+ \| [0-9.]+ \| [+-][0-9.]+ % \| 88 \| '
expect results/TABLES.md '^- time/nasrnn.b1.fp32.first, torch: left out \(--python none\)$'
expect results/device.json '"name":"host test device"'
cat results/results.tar.gz.* > results.tar.gz
tar -xzf results.tar.gz -C "$(mkdir -p unpacked && echo unpacked)"
expect unpacked/costs/nasrnn.b1.fp16.costs 'host test device; driver 1.0; fp32; .*floats=f16'
expect unpacked/costs/nasrnn.b1.fp16.costs '	engine	.* => engine [12]	'
expect unpacked/times.tsv '^nasrnn\.b1\.fp16	'
if [ "$(find results -type f | wc -l)" -gt 8 ] || [ -n "$(find results -size +16M)" ]; then echo "too many files, or too large"; ls -l results; exit 1; fi
if find unpacked -name '*.onnx' | grep -q .; then echo "models are packed"; exit 1; fi
# What is done is not done again, and no engine is chosen twice: neither here nor where only the packed results are.
touch stamp
"$run" "${options[@]}" > again.log 2>&1
expect again.log ', 0 of them failed; nothing is left$'
if find state/results -name '*.json' -newer stamp | grep -q .; then echo "results were made again"; exit 1; fi
"$run" "${options[@]}" --state resumed --out elsewhere/results --resume results/results.tar.gz.* > resumed.log 2>&1
expect resumed.log 'resumed from 1 files$'
expect resumed.log ', 0 of them failed; nothing is left$'
"$run" "${options[@]}" --state resumed --out elsewhere/results --again 'check/.*fp32.optimized' > resumed.log 2>&1
expect resumed.log ', 0 of them failed; nothing is left$'
[ -f resumed/models/nasrnn.b1.fp32.optimized.onnx ] || { echo "a model that is missing was not made anew"; exit 1; }
expect resumed/results/check/nasrnn.b1.fp32.optimized.json '"choices": 0'
"$run" "${options[@]}" --list > list.log
expect list.log '^optimize/nasrnn\.b1\.fp32 +done$'
# Without references nothing is compared, and that is no failure.
"$run" "${options[@]}" --references nowhere --again 'check/.*fp16.fused' --only 'check/.*fp16' > without.log 2>&1
expect without.log 'check/nasrnn.b1.fp16.fused: left out: there are no references; make them with --prepare$'
expect without.log '2 of 3 steps done, 0 of them failed; next: check/nasrnn.b1.fp16.fused$'

# Kernels that are wrong are found, one by one and in a model.
export TASO_BACKENDS=$PWD/bundle/lib/taso
model=state/models/nasrnn.b1.onnx
code=0
bundle/bin/kernel_check --device faulty "$model" > faulty.log || code=$?
expect faulty.log '^test: own elementwise[^:]*: add; .*: relative L2 [0-9.]+, allowed 1e-05$'
expect faulty.log '^[1-9][0-9]* kernels checked, [1-9][0-9]* failed$'
[ "$code" = 4 ] || { echo "a wrong kernel: exit code $code"; exit 1; }
# It ends after so many seconds, and goes on from its file: after a line that a kill cut off, but not with a kernel in which it ended twice.
bundle/bin/kernel_check --device host --results checked.jsonl --seconds 0 "$model" > some.log
expect some.log '^0 kernels checked, 0 failed; [1-9][0-9]* left$'
bundle/bin/kernel_check --device host --results checked.jsonl "$model" > some.log
expect some.log '^[1-9][0-9]* kernels checked, 0 failed$'
grep -h '"within"' checked.jsonl | head -n 1 > one.line
request=$(python3 -c 'import json; print(json.dumps(json.loads(open("one.line").read())["request"]))')
{ printf '{"request":%s,"begun":true}\n{"request":%s,"begun":true}\n' "$request" "$request"; printf '{"request":%s,"wit' "$request"; } > cut.jsonl
code=0
bundle/bin/kernel_check --device host --results cut.jsonl "$model" > cut.log || code=$?
expect cut.log '^[1-9][0-9]* kernels checked, 1 failed$'
expect cut.jsonl '"error":"the program ended twice during its check"'
[ "$code" = 4 ] || { echo "a kernel that ends the program: exit code $code"; exit 1; }
lines=$(wc -l < cut.jsonl)
bundle/bin/kernel_check --device host --results cut.jsonl "$model" > cut.log || true
[ "$(grep -c . cut.jsonl)" -le "$lines" ] || { echo "kernels were checked again"; exit 1; }
code=0
bundle/bin/taso-run --device faulty --check --repeat 1 "$model" > faulty.log 2>&1 || code=$?
[ "$code" = 4 ] || { cat faulty.log; exit 1; }
unset TASO_BACKENDS

# Wrong use is one line.
for arguments in "" "--device" "--math fp8 $model" "$model" "--seconds soon $model" "--engines some $model"; do
  code=0
  # shellcheck disable=SC2086
  bundle/bin/kernel_check $arguments > wrong.log 2>&1 || code=$?
  expect wrong.log '^kernel_check: (wrong arguments; usage: kernel_check --device|--device: kernels of a backend are checked; give its name)'
  if [ $code != 2 ] || [ "$(wc -l < wrong.log)" != 1 ]; then cat wrong.log; exit 1; fi
done
code=0
"$run" "${options[@]}" --only '(' > wrong.log 2>&1 || code=$?
expect wrong.log '^run: --only: no regular expression: '
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
if "$run" --device nosuch --state absent --out absent --python none > absent.log 2>&1; then echo "no device, no error"; exit 1; fi
expect absent.log "^run: taso-run: device 'nosuch' is not available: there is no taso_nosuch.so"
