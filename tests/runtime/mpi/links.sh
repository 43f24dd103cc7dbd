#!/usr/bin/env bash
# links.sh MPIRUN TASO_RUN TASO_OPT BUILD_MODELS SPECS FOLDER: two ranks measure their topology, for which taso-opt then
# plans; what goes wrong is said once.
set -euo pipefail
mpirun=$1 run=$2 opt=$3 models=$4 specs=$5 folder=$6
. "$(dirname "${BASH_SOURCE[0]}")/mpirun.sh"
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
"$models" nasrnn model.onnx --small > /dev/null
wrong() { echo "$1"; exit 1; }

"${ranks[@]}" -np 2 "$run" --specs "$specs" --measure-links links.json > table
grep -q '^2 ranks, shared memory: latency ' table || wrong "no table of links"
[ "$(grep -c '^a rank: ' table)" = 1 ] || wrong "not one line of a rank's rates"
"$opt" "model.onnx" --specs "$specs" --plan-only plan.json --devices 2 --topology links.json > /dev/null
grep -q '"measured-1x2"' plan.json || wrong "the plan is of another topology"

# What transfers take, by which a plan is then priced.
"${ranks[@]}" -np 2 "$run" --specs "$specs" --measure-links links.json --measure-collectives --largest-message 64 \
  --costs costs.sqlite > table
grep -q '^all_gather among 2 over shared memory' table || wrong "no table of transfers"
"$opt" "model.onnx" --specs "$specs" --plan-only timed.json --topology links.json --plan-cost time --transport mpi \
  --costs costs.sqlite > timed
grep -q 'of transfers by mpi; ' timed || wrong "transfers are not those that were measured"
"${ranks[@]}" -np 2 "$run" --specs "$specs" model.onnx --plan timed.json --repeat 2 > ran
grep -q '^predicted: .* by the times of kernels and messages of its file$' ran || wrong "nothing is predicted"

# A process alone is one rank.
"$run" --specs "$specs" --measure-links one.json -q > nothing
[ ! -s nothing ] || wrong "-q prints"
"$opt" "model.onnx" --specs "$specs" --plan-only one.plan.json --devices 1 --topology one.json > /dev/null

refused() { # refused CODE LINE ARGUMENT...
  local code=$1 line=$2 got=0
  shift 2
  "${ranks[@]}" -np 2 "$run" --specs "$specs" "$@" 2> message || got=$?
  [ $got = "$code" ] || { cat message; wrong "exit code $got, not $code"; }
  [ "$(grep -c '^taso-run: ' message)" = 1 ] || { cat message; wrong "not one line"; }
  grep -q "^taso-run: .*$line" message || { cat message; wrong "without '$line'"; }
}
refused 2 '--measure-links: no model is run; leave out MODEL' --measure-links a.json "model.onnx"
refused 2 '--measure-links: ranks on the processor are measured; leave out --device' --measure-links a.json --device reference
refused 2 '--ranks: mpirun says how many ranks there are; leave it out' --measure-links a.json --ranks 2
refused 2 'unknown option --nonsense' --nonsense
refused 3 '' --measure-links none/such/a.json
echo ok
