#!/usr/bin/env bash
# The rules of a profile are the same bytes however the enumeration is spread: with a memory limit that sends fingerprints
# to files, after kill -9 and --resume, and from shards, merged twice and in another order. Arguments: PROGRAM PROFILE
# SPECS FOLDER.
set -euo pipefail
program=$1 profile=$2 specs=$3 folder=$4

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
command=("$program" --specs "$specs" --profile "$profile" --max-ops 5 -q)
generate() { "${command[@]}" "$@"; }
saved() { find saved -name '*.segment' | wc -l; }
same() {
  cmp reference.rules "$1" || { echo "$1 differs from the reference"; exit 1; }
}

generate -j 2 -o reference.rules
grep -q '=>' reference.rules || { echo "the reference has no rule"; exit 1; }

generate -j 1 -o one_thread.rules
same one_thread.rules

mkdir temporary
generate --memory-limit 1M --temporary "$folder/temporary" -o limited.rules
same limited.rules
[ -z "$(ls temporary)" ] || { echo "temporary files are left"; exit 1; }

# Killed as soon as something is saved, again and again; the last run goes to its end.
mkdir saved
for round in 1 2 3; do
  have=$(saved)
  "${command[@]}" -j 1 --checkpoint saved --resume -o resumed.rules &
  process=$!
  while kill -0 $process 2>/dev/null && [ "$(saved)" -le "$have" ]; do :; done
  kill -9 $process 2>/dev/null || true
  wait $process 2>/dev/null || true
  [ "$(saved)" -gt "$have" ] || { echo "round $round saved nothing"; exit 1; }
done
[ ! -e resumed.rules ] || { echo "no run was killed before its end"; exit 1; }
cp -r saved damaged
cp -r saved foreign
generate --checkpoint saved --resume -o resumed.rules
same resumed.rules

# A folder in use is not taken by mistake; a damaged file and one of another run are refused with its name.
if generate --checkpoint saved -o again.rules 2>message; then echo "took a folder in use"; exit 1; fi
grep -q 'give --resume' message
file=$(find damaged -name '*.segment' | sort | head -1)
printf 'x' | dd of="$file" bs=1 seek=40 conv=notrunc status=none
if generate --checkpoint damaged --resume -o again.rules 2>message; then echo "took a damaged file"; exit 1; fi
grep -q "$(basename "$file").*damaged" message
if generate --seed 2 --checkpoint foreign --resume -o again.rules 2>message; then echo "took a foreign file"; exit 1; fi
grep -q 'another profile' message

for i in 1 2 3; do generate --shard $i/3 -o part$i; done
generate --merge part3 part1 part2 part1 -o merged.rules
same merged.rules
if generate --merge part3 part1 -o again.rules 2>message; then echo "merged without a part"; exit 1; fi
grep -q 'is missing' message
for wrong in 0/3 4/3 1 a/b 1/3x; do
  if generate --shard $wrong -o again 2>message; then echo "took --shard $wrong"; exit 1; fi
  grep -q 'is not i/N' message
done
if generate --memory-limit 8X -o again 2>message; then echo "took --memory-limit 8X"; exit 1; fi
grep -q 'is not a size' message
[ ! -e again.rules ]
echo ok
