#!/usr/bin/env bash
# plan.sh MPIRUN TASO_RUN TASO_OPT BUILD_MODELS SPECS FOLDER WORK: taso-run --plan under mpirun; WORK is one of the functions
# below.
set -euo pipefail
mpirun=$1 run=$2 opt=$3 models=$4 specs=$5 folder=$6 work=$7
. "$(dirname "${BASH_SOURCE[0]}")/mpirun.sh"
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

wrong() {
  echo "$1"
  for file in stdout stderr; do
    if [ -e $file ]; then sed "s/^/$file: /" $file; fi
  done
  exit 1
}

# plan_for N: plan.N.json, for model.onnx and so many devices.
plan_for() { "$opt" model.onnx --specs "$specs" --plan-only "plan.$1.json" --devices "$1" -q; }

# start N ARGUMENT...: so many ranks of taso-run with these arguments; the exit code is `got`. Over within 30 seconds.
start() {
  local count=$1
  shift
  got=0
  timeout --kill-after=5 30 "${ranks[@]}" -np "$count" "$run" --specs "$specs" "$@" > stdout 2> stderr < /dev/null ||
    got=$?
}

# says CODE TEXT: taso-run has ended with this code and one line, which holds the extended regular expression TEXT.
says() {
  [ $got = "$1" ] || wrong "exit code $got, not $1"
  [ "$(grep -c '^taso-run: ' stderr)" = 1 ] || wrong "not one line of taso-run"
  grep -qE "^taso-run: .*$2" stderr || wrong "no line '$2'"
}

wrote_nothing() { # wrote_nothing FILE...
  for file in "$@"; do
    if compgen -G "$file*" > /dev/null; then wrong "$(echo "$file"*) was written"; fi
  done
}

# As many processes as a plan has devices compute what threads do, and the same each time.
runs() {
  for name in nasrnn bert_base; do
    "$models" $name model.onnx --small > /dev/null
    for count in 2 3 4; do
      plan_for $count
      start $count model.onnx --plan plan.$count.json --repeat 2 --check --save-outputs once --json once.json \
        --trace once.trace
      [ $got = 0 ] || wrong "$name on $count ranks: exit code $got"
      grep -q "^model.onnx on $count ranks (mpi): median .* of 2 runs" stdout || wrong "no line of the time"
      grep -qE '^payload: [1-9][0-9]* bytes in [0-9]+ transfers a run, as predicted' stdout || wrong "no payload"
      grep -q '"transport": "mpi"' once.json || wrong "the report is of other ranks"
      [ "$(grep -c '"kernels": [1-9]' once.json)" = $count ] || wrong "the report has not all ranks"
      grep -q '"within": true' once.json || wrong "the outputs were not checked"
      for ((rank = 0; rank < count; ++rank)); do
        grep -q "\"name\": \"rank $rank\"" once.trace || wrong "the trace does not name rank $rank"
        [ "$(grep -c "\"pid\": $rank,\$" once.trace)" -gt 10 ] || wrong "the trace has no steps of rank $rank"
      done
      start $count model.onnx --plan plan.$count.json --repeat 2 -q --save-outputs twice
      [ $got = 0 ] || wrong "$name on $count ranks again: exit code $got"
      [ ! -s stdout ] || wrong "-q prints"
      diff -r once twice || wrong "$name on $count ranks: the outputs differ from run to run"
      "$run" --specs "$specs" model.onnx --plan plan.$count.json -q --save-outputs threads --json threads.json
      [ -n "$(ls once)" ] || wrong "no outputs"
      diff -r once threads || wrong "$name on $count ranks: the outputs differ from those of threads"
      diff <(grep payload_bytes once.json) <(grep payload_bytes threads.json) || wrong "$name: the payload differs"
      rm -r once twice threads
    done
  done
}

# One process is the process of all ranks, as threads.
alone() {
  "$models" nasrnn model.onnx --small > /dev/null
  for count in 1 2; do
    plan_for $count
    start 1 model.onnx --plan plan.$count.json --check
    [ $got = 0 ] || wrong "exit code $got"
    grep -qE "^model.onnx on $count ranks? \(threads\): median " stdout || wrong "not $count ranks"
  done
}

# Command lines that do not fit each other or the plan.
different() {
  "$models" nasrnn other.onnx --small --seed 7 > /dev/null
  "$models" nasrnn model.onnx --small > /dev/null
  plan_for 2
  plan_for 3
  local hash='\([0-9a-f]{32}\)' first=(model.onnx --plan plan.2.json --save-outputs saved --json report.json)
  pair() { # pair CODE TEXT ARGUMENT...: rank 1 has these arguments
    local code=$1 text=$2
    shift 2
    start 1 "${first[@]}" : -np 1 "$run" --specs "$specs" "$@"
    says "$code" "$text"
    wrote_nothing saved report.json
  }
  pair 3 "the model must be the same on all ranks: it is other.onnx $hash on rank 1, model.onnx $hash on rank 0\$" \
    other.onnx --plan plan.2.json
  pair 3 "the plan must be the same on all ranks: it is plan.3.json $hash on rank 1, plan.2.json $hash on rank 0\$" \
    model.onnx --plan plan.3.json
  pair 3 "the options must be the same on all ranks: it is --seed 7 .* on rank 1, --seed 0 .* on rank 0\$" \
    model.onnx --plan plan.2.json --seed 7
  pair 2 'rank 1: mpirun runs a model as a plan says: give one with --plan$' model.onnx
  pair 2 'rank 1: --compare: does not go with --plan; leave one out$' model.onnx --plan plan.2.json --compare model.onnx
  pair 3 'rank 1: none.json: cannot open: No such file or directory$' model.onnx --plan none.json
  pair 2 'must be the same on all ranks: it is an end with code 2 on rank 1, a run on rank 0$' model.onnx --nonsense
  pair 2 'must be the same on all ranks: it is an end with code 0 on rank 1, a run on rank 0$' --version

  start 1 model.onnx --nonsense : -np 1 "$run" --specs "$specs" "${first[@]}"
  says 2 'unknown option --nonsense'
  start 1 --version : -np 1 "$run" --specs "$specs" "${first[@]}"
  says 2 'must be the same on all ranks: it is a run on rank 1, an end with code 0 on rank 0$'
  start 3 "${first[@]}"
  says 2 'the plan is for 2 devices, and there are 3 ranks; start as many: mpirun -np 2 taso-run model.onnx --plan plan.2.json$'
  start 2 other.onnx --plan plan.2.json --save-outputs saved
  says 3 'plan.2.json: the plan is of another model: of model.onnx .*, where other.onnx has '
  start 2 model.onnx
  says 2 'mpirun runs a model as a plan says: give one with --plan$'
  wrote_nothing saved report.json
}

# Operators without a meaning are named, as they are for one process.
carried() {
  if ! command -v python3 > /dev/null; then echo "SKIP: no python3"; exit 77; fi
  # y = Det(Relu(x)), message by message.
  python3 -c '
def field(number, value):
    if isinstance(value, int): return bytes([number << 3, value])
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(value)]) + value
def tensor(name, *extents):
    shape = b"".join(field(1, field(1, extent)) for extent in extents)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))
def node(op, x, y): return field(1, field(1, x) + field(2, y) + field(3, op.lower() + "0") + field(4, op))
graph = node("Relu", "x", "a") + node("Det", "a", "y") + field(2, "g") + field(11, tensor("x", 4, 4)) + field(12, tensor("y"))
open("model.onnx", "wb").write(field(1, 8) + field(8, field(1, "") + field(2, 17)) + field(7, graph))'
  plan_for 2
  start 2 model.onnx --plan plan.2.json --save-outputs saved --json report.json
  says 3 'model.onnx: node "det0" \(Det\) cannot be executed: the operator is not modelled'
  wrote_nothing saved report.json
}

# Where there is no room for a result all end, and nothing is half written.
full_disk() {
  "$models" nasrnn model.onnx --small > /dev/null
  plan_for 2
  "$run" --specs "$specs" model.onnx --plan plan.2.json -q --save-outputs saved
  local output
  output=$(ls saved)
  ln -sf /dev/full "saved/$output"
  start 2 model.onnx --plan plan.2.json --save-outputs saved --json report.json --trace run.trace
  says 3 "saved/$output: cannot write: No space left on device\$"
  wrote_nothing report.json run.trace
  [ "$(ls -A saved)" = "$output" ] || wrong "there is more than the output"
  start 2 model.onnx --plan plan.2.json --json /dev/full
  says 3 '/dev/full: cannot write: No space left on device$'
  start 2 model.onnx --plan plan.2.json --trace /dev/full
  says 3 '/dev/full: cannot write: No space left on device$'
  [ ! -s stdout ] || wrong "there are results"
}

# maximum NAME FILE: the largest number of this name in a report.
maximum() { grep -oE "\"$1\": [0-9.]+" "$2" | awk '{ if ($2 > most) most = $2 } END { printf "%d", most }'; }

# empty_peak N: the most that one of N ranks has resident with next to nothing to compute.
empty_peak() {
  printf 'input x f32[1]\noutput relu(x)\n' > empty.graph
  "$models" empty.graph empty.onnx
  "$opt" empty.onnx --specs "$specs" --plan-only empty.json --devices "$1" -q
  start "$1" empty.onnx --plan empty.json -q --json empty.report.json
  [ $got = 0 ] || wrong "the empty model: exit code $got"
  maximum peak_resident_bytes empty.report.json
}

# keeps_to_plan N EMPTY: in report.json no rank has ever had more resident than the plan says, and 15 %, and EMPTY.
keeps_to_plan() {
  local planned peak
  planned=$(maximum planned_memory_bytes report.json)
  peak=$(maximum peak_resident_bytes report.json)
  [ "$planned" -gt 1000000 ] || wrong "the plan takes $planned bytes"
  [ "$peak" -le $((planned * 115 / 100 + $2)) ] || wrong "$1 ranks: $peak bytes, planned $planned, empty program $2"
}

# What a rank has resident is what the plan says.
resident() {
  local count empty
  for count in 2 4; do
    empty=$(empty_peak $count)
    for name in gpt2_block alexnet; do
      "$models" $name model.onnx --seed 3 > /dev/null
      plan_for $count
      start $count model.onnx --plan plan.$count.json --repeat 1 --json report.json
      [ $got = 0 ] || wrong "$name on $count ranks: exit code $got"
      grep -qE '^memory: [0-9]+ bytes on a device by the plan; resident [0-9]+ bytes in the process that takes most, ' \
        stdout || wrong "no line of memory"
      keeps_to_plan $count "$empty"
    done
  done
}

# A model whose weights, 256 MiB, are twice what one process may have runs on four ranks and not on one. The limit is
# that of data (ulimit -d): of all private memory that can be written, so that a rank that held a copy of the whole
# weights, or of the model's file, would be refused. Pages of files that are read through a mapping do not count as data,
# and must not: they are given back as they are used. That they are is what the most that was resident says, in which
# they count. One rank needs more than the limit because products lay out their weights anew.
limited() {
  local external empty i
  local limit=$((128 * 1024))
  {
    echo 'input x f32[8, 2048]'
    for ((i = 0; i < 16; ++i)); do echo "weight w$i f32[2048, 2048]"; done
    echo 't0 = relu(matmul(x, w0))'
    for ((i = 1; i < 16; ++i)); do echo "t$i = relu(matmul(t$((i - 1)), w$i))"; done
    echo 'output t15'
  } > large.graph
  empty=$(empty_peak 4)
  for external in '' --external-data; do
    "$models" large.graph model.onnx $external
    for count in 1 4; do plan_for $count; done
    got=0
    (ulimit -d $limit && start 4 model.onnx --plan plan.4.json --repeat 1 --json report.json && exit $got) || got=$?
    [ $got = 0 ] || wrong "$external: 4 ranks end with exit code $got"
    keeps_to_plan 4 "$empty"
    rm report.json
    got=0
    (ulimit -d $limit && start 1 model.onnx --plan plan.1.json --repeat 1 --save-outputs saved --json report.json &&
      exit $got) || got=$?
    says 3 'out of memory: this needs more than the system gives'
    wrote_nothing saved report.json
    start 1 model.onnx --plan plan.1.json --repeat 1
    [ $got = 0 ] || wrong "$external: one rank without a limit ends with exit code $got"
    rm model.onnx*
  done
}

# A result that differs from float64, here because large summands cancel, ends all ranks with one line; so does a stdout
# that takes no more.
unequal() {
  printf 'input x f32[4, 64]\nt = fill(; shape=[4, 64], value=1e7)\nweight w f32[192, 8] = 1.0\noutput matmul(concat(t, x, neg(t); axis=-1), w)\n' > model.graph
  "$models" model.graph model.onnx
  plan_for 2
  start 2 model.onnx --plan plan.2.json --check
  says 4 'model.onnx: its outputs differ from float64 by a relative L2 norm of more than 1e-05$'
  grep -q 'not within it$' stdout || wrong "the output is not marked"
  start 2 model.onnx --plan plan.2.json
  [ $got = 0 ] || wrong "without --check: exit code $got"
}
full_stdout() {
  "$models" nasrnn model.onnx --small > /dev/null
  plan_for 2
  got=0
  timeout --kill-after=5 30 "${ranks[@]}" -np 2 bash -c 'exec "$0" "$@" > /dev/full' "$run" --specs "$specs" \
    model.onnx --plan plan.2.json > stdout 2> stderr < /dev/null || got=$?
  says 3 'cannot write to stdout: No space left on device$'
}

# lost SIGNAL RANK: one of three ranks gets a signal after a second of computing; all are over within 30 seconds.
lost() {
  local signal=$1 victim=$2 rank i
  rm -f pid.*
  timeout --kill-after=5 60 "${ranks[@]}" -np 3 bash -c \
    'echo $$ > "pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$0" "$@"' "$run" --specs "$specs" model.onnx \
    --plan plan.3.json --repeat 1000000 --save-outputs saved --save-inputs given --json report.json --trace run.trace \
    > stdout 2> stderr < /dev/null &
  local job=$!
  # Fields 14 and 15: time in user and kernel mode in ticks, of which there are 100 a second.
  for ((i = 0; i < 300; ++i)); do
    if [ -s "pid.$victim" ] &&
      awk '{ exit !($14 + $15 > 100) }' "/proc/$(cat "pid.$victim")/stat" 2> /dev/null; then
      break
    fi
    sleep 0.1
  done
  local begin=$SECONDS
  kill "-$signal" "$(cat "pid.$victim")" || wrong "rank $victim does not run"
  got=0
  wait $job || got=$?
  [ $((SECONDS - begin)) -le 30 ] || wrong "not over after $((SECONDS - begin)) s"
  [ $got != 0 ] && [ $got != 124 ] || wrong "exit code $got"
  for rank in 0 1 2; do
    for ((i = 0; i < 100; ++i)); do
      case $(awk '{ print $3 }' "/proc/$(cat pid.$rank)/stat" 2> /dev/null) in
        '' | Z | X) continue 2 ;;  # nobody may have asked for its exit code
      esac
      sleep 0.1
    done
    wrong "rank $rank is still there"
  done
  [ ! -s stdout ] || wrong "there are results"
  wrote_nothing saved given report.json run.trace
}
killed() {
  "$models" nasrnn model.onnx --small > /dev/null
  plan_for 3
  for rank in 0 1; do
    lost KILL $rank
    grep -qE "^mpi(run|exec) noticed that process rank $rank .* exited on signal 9" stderr || wrong "rank $rank unnamed"
  done
}
stopped() {
  "$models" nasrnn model.onnx --small > /dev/null
  plan_for 3
  for rank in 0 2; do
    lost STOP $rank
    says 6 "rank $rank has not been heard of for 5 s: it was stopped, killed or cut off"
  done
}

# Each rank computes on a device of its own (TASO_BACKENDS has one for tests), and its messages go through the host.
devices() {
  for work in "squeezenet1_1 fp32" "bert_base fp16"; do
    read -r name math <<< "$work"
    "$models" $name model.onnx --small > /dev/null
    plan_for 2
    start 2 model.onnx --plan plan.2.json --device host --math $math --repeat 2 --check --profile --json ranks.json
    [ $got = 0 ] || wrong "$name, $math: exit code $got"
    grep -qE '^payload: [1-9][0-9]* bytes in [0-9]+ transfers a run, as predicted' stdout || wrong "no payload"
    grep -q '"device": "host test device' ranks.json || wrong "the report names another device"
    grep -q '"within": true' ranks.json || wrong "the outputs were not checked"
    grep -qE '^ +[0-9.]+ +[0-9.]+% +(matmul|conv2d)[a-z_0-9]* +test: ' stdout || wrong "no product ran on the device"
    grep -q '^messages: from device to device$' stdout || wrong "messages did not go from device to device"
    grep -qE '^ +[0-9.]+ +[0-9.]+% +exchange_messages +messages of devices' stdout || wrong "no exchange ran on the device"
    start 2 model.onnx --plan plan.2.json --device host --math $math --repeat 2 --check --messages host --json host.json
    [ $got = 0 ] || wrong "$name, $math, by way of the host: exit code $got"
    grep -q '^messages: by way of the host$' stdout || wrong "messages did not go by way of the host"
    payload() { sed -n 's/.*"payload_bytes": \([0-9]*\).*/\1/p' $1; }
    case $math in
      fp32) [ "$(payload ranks.json)" = "$(payload host.json)" ] || wrong "the payload depends on the way" ;;
      fp16) [ "$(payload ranks.json)" = "$(($(payload host.json) / 2))" ] || wrong "halves are not half the payload" ;;
    esac
    timeout --kill-after=5 30 "$run" --specs "$specs" model.onnx --plan plan.2.json --device host --math $math \
      --repeat 2 --check > stdout 2> stderr || wrong "$name, $math: threads: exit code $?"
  done
  start 2 model.onnx --plan plan.2.json --messages device
  says 6 '--messages device: ranks have no messages from device to device: rank 0: its kernels are those of the host$'
  start 2 model.onnx --plan plan.2.json --device absent
  says 6 "device 'absent' is not available: there is no taso_absent.so in "
}

case $work in
  runs | devices | alone | different | carried | full_disk | full_stdout | killed | limited | resident | stopped | unequal) $work ;;
  *) wrong "no work '$work'" ;;
esac
