#!/usr/bin/env bash
# One process, one rank and four ranks write the same bytes; what is wrong is said once. Arguments: PROGRAM PROFILE SPECS
# FOLDER MPIRUN (empty: built without MPI).
set -euo pipefail
program=$1 profile=$2 specs=$3 folder=$4 mpirun=$5
if [ -z "$mpirun" ] || [ ! -x "$mpirun" ]; then
  echo "skipped: built without MPI, or no mpirun"
  exit 77
fi
options=()
if "$mpirun" --version | grep -q 'Open MPI\|OpenRTE'; then
  options=(--oversubscribe --bind-to none)
  if [ "$(id -u)" = 0 ]; then options+=(--allow-run-as-root); fi
fi
if ! "$mpirun" "${options[@]}" -np 2 true > /dev/null 2>&1; then
  echo "skipped: mpirun starts nothing here"
  exit 77
fi

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
command=("$program" --specs "$specs" --max-ops 5 -q)
ranks() { "$mpirun" "${options[@]}" -np "$1" "${command[@]}" "${@:2}"; }
same() {
  cmp "$1" "$2" || { echo "$2 differs from $1"; exit 1; }
}

"${command[@]}" --profile "$profile" -o reference.rules --json reference.json
grep -q '=>' reference.rules || { echo "the reference has no rule"; exit 1; }
for count in 1 2 4; do
  ranks $count --profile "$profile" -o $count.rules --json $count.json
  same reference.rules $count.rules
  same reference.json $count.json
done

# Each rank did its part: what one left in a folder for checkpoints, the same ranks need not do again.
ranks 3 --profile "$profile" --checkpoint saved -o saved.rules
same reference.rules saved.rules
ranks 2 --profile "$profile" --checkpoint saved --resume --memory-limit 48M --temporary "$folder" -o resumed.rules
same reference.rules resumed.rules

refused() {
  local code=$1 line=$2
  shift 2
  set +e
  ranks 3 "$@" -o refused.rules 2> message
  local got=$?
  set -e
  [ $got = "$code" ] || { cat message; echo "exit code $got, not $code: $*"; exit 1; }
  [ "$(grep -c '^taso-gen: ' message)" = 1 ] || { cat message; echo "not one line: $*"; exit 1; }
  grep -q "^taso-gen: .*$line" message || { cat message; echo "without '$line': $*"; exit 1; }
  [ ! -e refused.rules ]
}
refused 3 'cannot open' --profile "$folder/none.profile"
refused 2 'leave out --shard' --profile "$profile" --shard 1/2
refused 2 'unknown option --nonsense' --profile "$profile" --nonsense
refused 3 'more than 3000 terms' --profile "$profile" --max-terms 3000
# A fault of one rank only: it cannot read what it saved.
file=$(ls saved/*-000001.segment | head -1)
printf 'x' | dd of="$file" bs=1 seek=40 conv=notrunc status=none
refused 3 'rank 1: .*damaged' --profile "$profile" --checkpoint saved --resume
echo ok
