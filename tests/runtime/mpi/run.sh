#!/usr/bin/env bash
# run.sh MPIRUN RANKS PROGRAM WORK EXIT_CODE LINE: so many ranks of the program do this work. They end within 20 seconds,
# with this exit code; one line of the ranks is LINE (on stdout with exit code 0, else on stderr, where lines of mpirun
# may stand, too: a LINE that begins with "mpi" is a regular expression for one of these).
set -euo pipefail
mpirun=$1 count=$2 program=$3 work=$4 exit_code=$5 line=$6
. "$(dirname "${BASH_SOURCE[0]}")/mpirun.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
begin=$SECONDS
got=0
timeout --kill-after=5 20 "${ranks[@]}" -np "$count" "$program" "$work" \
  > "$folder/stdout" 2> "$folder/stderr" < /dev/null || got=$?
wrong() {
  echo "$1"
  sed 's/^/stdout: /' "$folder/stdout"
  sed 's/^/stderr: /' "$folder/stderr"
  exit 1
}
[ $got != 124 ] && [ $got != 137 ] || [ "$exit_code" = $got ] || wrong "not over after $((SECONDS - begin)) s"
[ $got = "$exit_code" ] || wrong "exit code $got, not $exit_code"
if [ "$exit_code" = 0 ]; then
  [ "$(cat "$folder/stdout")" = "$line" ] || wrong "stdout is not '$line'"
elif [[ $line = mpi* ]]; then
  grep -qE "^$line" "$folder/stderr" || wrong "stderr has no line '$line'"
else
  [ "$(grep '^ranks: ' "$folder/stderr")" = "ranks: $line" ] || wrong "stderr has not the one line 'ranks: $line'"
fi
