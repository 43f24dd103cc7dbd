#!/usr/bin/env bash
# gpu.sh BENCH BUILD WORK: bench/gpu on the test backend: the bundle is complete, a dry run of the whole sequence in it, killed a few times, measures,
# packs and writes its tables, a second one has nothing to do, commands end in time, and wrong use is one line. PyTorch's part is taken by stub_torch.
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
stub=$(realpath "$bench/../tests/bench/stub_torch")
"$bench/gpu/bundle" --build "$build" older > bundle.log 2>&1 || { cat bundle.log; exit 1; }
expect bundle.log '^bundle: complete$'
expect bundle.log '^bundle: .*/older\.tar\.gz, [1-5]?[0-9] MB$'
[ ! -e older/lib/taso/taso_host.so ]
if ls older/lib | grep -E '^libmpi'; then echo "the bundle has MPI, which nothing in it uses"; exit 1; fi
# A bundle that lies in the folder of the build, as this one of a test does, is no part of the next.
cp older/bin/kernel_check older/lib/taso/taso_older.so
mkdir -p "$build/tests/bench/gpu_older" && rm -rf "$build/tests/bench/gpu_older/older" && mv older "$build/tests/bench/gpu_older"
"$bench/gpu/bundle" --build "$build" --test-backend bundle > bundle.log 2>&1 || { cat bundle.log; exit 1; }
rm -rf "$build/tests/bench/gpu_older"
expect bundle.log '^bundle: complete$'
expect bundle.log '^bundle: .*/bundle\.tar\.gz, [1-6]?[0-9] MB$'
for file in bin/taso-run bin/cuda_module_test lib/taso/taso_host.so share/taso/specs/rules/default.rules; do
  [ -f bundle/$file ] || { echo "the bundle has no $file"; exit 1; }
done
if find bundle | grep older; then echo "the bundle has something of an older one"; exit 1; fi
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
expect references/nasrnn.arithmetic.json '^\{"fp32": [0-9.e-]+, "fp16": 0\.000[0-9]+\}$'

# What comes first is short: within two minutes the first search begins, whatever hangs. No step is longer than a command.
"$run" --list --state nothing --python none > list.log
awk '$1 ~ /^optimize/ { exit } { sum += $2 } END { if (sum == 0 || sum > 120) { print "before the first search: " sum " s"; exit 1 } }' list.log
awk '$3 != "s" || $2 > 520 { print "too long: " $0; exit 1 }' list.log
[ "$(head -n 5 list.log | awk '{ print $1 }' | tr '\n' ' ')" = "environment tests/first optimize/nasrnn.b1.tf32 check/nasrnn.b1.tf32.optimized time/nasrnn.b1.tf32.first " ]
[ "$(awk '{ print $1 }' list.log | sort | uniq -d | wc -l)" = 0 ]

# valid OUT: each archive is whole, and so is each JSON file in it; the tables are there.
valid() {
  rm -rf valid && mkdir valid
  for file in "$1"/results.*.tar.gz; do tar -xzf "$file" -C valid || { echo "$file is broken"; exit 1; }; done
  find valid -name '*.json' | while read -r file; do python3 -m json.tool "$file" > json.log 2>&1 || { echo "packed: $file is no JSON"; exit 1; }; done
  expect "$1/TABLES.md" '^# Measured by bench/gpu/run$'
  [ -s "$1/device.json" ]
}
# bounded OUT: at most 8 files of 16 MiB, 64 MiB in all.
bounded() {
  if [ "$(find "$1" -type f | wc -l)" -gt 8 ] || [ -n "$(find "$1" -size +16M)" ] || [ "$(find "$1" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')" -gt $((64 << 20)) ]; then
    echo "too many files, or too large"; ls -l "$1"; exit 1
  fi
}

# Killed at any moment, it leaves whole files, nobody who goes on, and goes on itself the next time.
json_files() { find state/devices -name '*.json'; }
for moment in 1 2.3 4; do
  timeout -s KILL $moment "$run" "${options[@]}" > killed.log 2>&1 || true
  sleep 0.2
  if pgrep -f "$PWD/bundle/bin/" > left.log; then echo "a program goes on after a kill at $moment s"; exit 1; fi
  for file in $(json_files); do python3 -m json.tool "$file" > json.log 2>&1 || { echo "killed at $moment s: $file is no JSON"; exit 1; }; done
done
if [ -n "$(ls results)" ]; then valid results; fi
# A kill counts as a try, and after two a step is left out: not here, where kills are the test.
find state/devices -name '*.json' -exec grep -q '"unfinished": true' {} ';' -delete
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
valid results
bounded results
mv valid unpacked
expect unpacked/costs/nasrnn.b1.fp16.costs 'host test device; driver 1.0; fp32; .*floats=f16'
expect unpacked/costs/nasrnn.b1.fp16.costs '	engine	.* => engine [12]	'
expect unpacked/devices/host_test_device/times.tsv '^nasrnn\.b1\.fp16	'
if find unpacked -name '*.onnx' -o -name '*.npy' | grep -q .; then echo "models or inputs are packed"; exit 1; fi
# What is done is not done again, and no engine is chosen twice: neither here nor where only the packed results are.
touch stamp
"$run" "${options[@]}" > again.log 2>&1
expect again.log ', 0 of them failed; nothing is left$'
if find state/devices -name '*.json' -newer stamp | grep -q .; then echo "results were made again"; exit 1; fi
"$run" "${options[@]}" --state resumed --out elsewhere/results --resume results/results.*.tar.gz > resumed.log 2>&1
expect resumed.log 'resumed from 1 files$'
expect resumed.log ', 0 of them failed; nothing is left$'
"$run" "${options[@]}" --state resumed --out elsewhere/results --again 'check/.*fp32.optimized' > resumed.log 2>&1
expect resumed.log ', 0 of them failed; nothing is left$'
[ -f resumed/models/nasrnn.b1.fp32.optimized.onnx ] || { echo "a model that is missing was not made anew"; exit 1; }
expect resumed/devices/host_test_device/results/check/nasrnn.b1.fp32.optimized.json '"choices": 0'
"$run" "${options[@]}" --list > list.log
expect list.log '^optimize/nasrnn\.b1\.fp32 +120 s  done$'
# Without references nothing is compared, and that is no failure.
"$run" "${options[@]}" --references nowhere --again 'check/.*fp16.fused' --only 'check/.*fp16' > without.log 2>&1
expect without.log 'check/nasrnn.b1.fp16.fused: left out: there are no references; make them with --prepare$'
expect without.log '2 of 3 steps done, 0 of them failed; next: check/nasrnn.b1.fp16.fused$'

# Too much to bring home: the results are packed, and of the rest what there is room for.
for i in 1 2 3 4 5; do head -c 14M /dev/urandom > state/costs/much$i.costs; done
head -c 17M /dev/urandom > state/costs/vast.costs
"$run" "${options[@]}" --out much > much.log 2>&1
expect much.log 'too much to pack: [1-9][0-9]* files are left out, the first costs/'
bounded much
valid much
[ "$(ls much/results.*.tar.gz | wc -l)" = 4 ]
[ -f valid/devices/host_test_device/results/environment.json ] && [ -f valid/costs/much1.costs ]
expect valid/LEFT_OUT.txt '^costs/vast\.costs$'
rm state/costs/much*.costs state/costs/vast.costs

# Results of another device stay its own, and are packed as well.
mv state/devices/host_test_device state/devices/another
"$run" "${options[@]}" --out both --only environment > both.log 2>&1
expect both.log ' 1 of 1 steps done, 0 of them failed; nothing is left$'
valid both
[ -f valid/devices/another/results/time/nasrnn.b1.fp32.first.json ] && [ -f valid/devices/host_test_device/results/environment.json ]
[ ! -e valid/devices/host_test_device/results/time ]
if grep -q 'nasrnn' both/TABLES.md; then echo "the tables are of another device"; exit 1; fi
rm -r state/devices/host_test_device
mv state/devices/another state/devices/host_test_device

# All kinds of steps: two batches, another arithmetic, the models that come later, and PyTorch, which refuses some, dies of one and hangs in another.
export STUB_LOG=$PWD/stub.log
whole=(--dry-run --state whole --out brought --references references --batches 1,2 --math tf32 --rounds 1 --python "$stub")
"$run" "${whole[@]}" --prepare > prepare.log 2>&1 || { cat prepare.log; exit 1; }
STUB_DIES='compiled nchw' STUB_HANGS='autotuned nchw' STUB_FAILS='reduce-overhead' "$run" "${whole[@]}" --torch-seconds 1 --minutes 8 > whole.log 2>&1 || { cat whole.log; exit 1; }
expect whole.log ' ([0-9]+) of \1 steps done, 0 of them failed; nothing is left$'
valid brought
bounded brought
for step in environment tests/first tests/device tests/slow operators/nasrnn.b2.tf32.fused kernels/gpt2_block.b2.tf32 check/gpt2_block.b1.tf32.original \
  time/nasrnn.b1.tf32.max-autotune time/gpt2_block.b2.tf32.compiled; do
  [ -f "valid/devices/host_test_device/results/$step.json" ] || { echo "no step $step"; exit 1; }
done
time="$number"
expect brought/TABLES.md "^\| nasrnn\.b1\.tf32 \| $time \| $time \| $time \| $time \| $time \| $time \| $time \| - \| $time \| $time \| [0-9.]+ \| [0-9.]+ \| torch "
expect brought/TABLES.md "^\| gpt2_block\.b2\.tf32 \| $time \| $time \| $time \| $time \| $time \| $time \| - \| - \| - \| $time \| "
expect brought/TABLES.md "^- time/nasrnn\.b1\.tf32\.compiled, torch compiled nchw folded: PyTorch's process has ended with code 9$"
expect brought/TABLES.md '^- time/nasrnn\.b1\.tf32\.autotuned, torch autotuned nchw folded: PyTorch took more than 1 s$'
expect brought/TABLES.md '^- time/nasrnn\.b1\.tf32\.autotuned, torch reduce-overhead nhwc folded: RuntimeError: refused$'
expect valid/devices/host_test_device/results/environment.json '"torch": "stub"'
# In this order; the process that died is started once more, without what it died of; what it compiles is kept in the state.
sed 's/^[0-9]* //' stub.log | grep -v -E '^(error|time) ' | head -n 10 > stub.order
printf '%s\n' 'versions ' 'drop ' 'prepare torch graph nhwc folded' 'prepare torch graph nchw folded' 'prepare torch eager nchw original' \
  'drop ' 'prepare torch compiled nhwc folded' 'prepare torch compiled nchw folded' 'versions ' 'prepare torch compiled nhwc folded' > stub.expected
diff stub.order stub.expected
[ "$(grep -c ' versions ' stub.log)" = "$(awk '{ print $1 }' stub.log | sort -u | wc -l)" ]
[ -f whole/torch/inductor/torch_compiled_nhwc_folded ]

# What rounding alone does to a model is no failure; without knowledge of that it is one, which is not tried again.
rounded=(--dry-run --state rounded --out rounded.out --references rounded.references --models squeezenet1_1 --batches 1 --math tf32 --python none)
"$run" "${rounded[@]}" --prepare > prepare.log 2>&1 || { cat prepare.log; exit 1; }
rounded+=(--only 'environment|check/.*original')
"$run" "${rounded[@]}" > rounded.log 2>&1 || { cat rounded.log; exit 1; }
expect rounded.out/TABLES.md '^\| squeezenet1_1\.b1\.tf32\.original \| [A-Za-z0-9_]+ \| 0\.01[0-9]* \| 0\.0[45][0-9]* \| yes \|$'
rm rounded.references/squeezenet1_1.arithmetic.json
code=0
"$run" "${rounded[@]}" --again check > rounded.log 2>&1 || code=$?
expect rounded.log ' 2 of 2 steps done, 1 of them failed; nothing is left$'
[ "$code" = 1 ]

# While a step hangs, what it has until then is packed; a machine that is lost then takes little with it, and another goes on.
STUB_HANGS='graph nchw' "$run" "${whole[@]}" --state lost --out rescued --only 'environment|optimize/nasrnn.b1|time/nasrnn.b1.*first' > lost.log 2>&1 &
pid=$!
for _ in $(seq 600); do
  if [ -f rescued/results.00.tar.gz ] && tar -tzf rescued/results.00.tar.gz | grep -q 'results/time/nasrnn.b1.tf32.first.json'; then break; fi
  sleep 0.1
done
kill -KILL $pid
wait $pid 2> /dev/null || true
valid rescued
expect valid/devices/host_test_device/results/time/nasrnn.b1.tf32.first.json '"unfinished": true'
expect valid/devices/host_test_device/results/time/nasrnn.b1.tf32.first.json '"torch graph nhwc folded"'
rm -r lost
"$run" "${whole[@]}" --state lost --out rescued --resume rescued/results.*.tar.gz --only 'environment|optimize/nasrnn.b1|time/nasrnn.b1.*first' > lost.log 2>&1
expect lost.log ' 3 of 3 steps done, 0 of them failed; nothing is left$'

# A command ends in its minutes, whatever hangs, and the step that was cut goes on in the next.
begin=$(date +%s)
STUB_HANGS='graph nchw' "$run" "${whole[@]}" --state cut --out cut.out --minutes 0.1 --only 'environment|time/nasrnn.b1.*first' > cut.log 2>&1 || { cat cut.log; exit 1; }
took=$(($(date +%s) - begin))
[ "$took" -le 40 ] || { echo "6 s were given, $took taken"; exit 1; }
expect cut.log ' 1 of 2 steps done, 0 of them failed; next: time/nasrnn\.b1\.tf32\.first$'
valid cut.out
"$run" "${whole[@]}" --state cut --out cut.out --only 'environment|optimize/nasrnn.b1|time/nasrnn.b1.*first' > cut.log 2>&1
expect cut.log ' 3 of 3 steps done, 0 of them failed; nothing is left$'
expect cut.out/TABLES.md '^\| nasrnn\.b1\.tf32 \| first \| torch graph nchw folded \| 101\.000 \| 0\.00 \| 1 \|$'

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
