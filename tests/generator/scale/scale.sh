#!/usr/bin/env bash
# The rules of a profile are the same bytes however the enumeration is spread: with a memory limit that sends fingerprints
# to files, after kill -9 at any moment and --resume, and from shards, merged twice and in another order. Arguments:
# PROGRAM PROFILE (whose enumeration takes the time) LAWS (a profile whose rules do) SPECS FOLDER.
set -euo pipefail
program=$1 profile=$2 laws=$3 specs=$4 folder=$5

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
command=("$program" --specs "$specs" --profile "$profile" --max-ops 5 -q)
generate() { "${command[@]}" "$@"; }
# What is saved so far: files and their sizes.
saved() { find saved -type f ! -name '*.tmp*' -printf '%f %s\n' | sort; }
same() {
  cmp reference.rules "$1" || { echo "$1 differs from the reference"; exit 1; }
}

generate -j 2 -o reference.rules
grep -q '=>' reference.rules || { echo "the reference has no rule"; exit 1; }

generate -j 1 -o one_thread.rules
same one_thread.rules

mkdir temporary
generate --memory-limit 48M --temporary "$folder/temporary" -o limited.rules
same limited.rules
[ -z "$(ls temporary)" ] || { echo "temporary files are left"; exit 1; }
# With that limit files were needed; what cannot go to files is refused.
if generate --memory-limit 48M --temporary "$folder/none" -o again.rules 2>message; then echo "used no files"; exit 1; fi
grep -q "cannot make a folder for temporary files in '.*none'" message
if generate --memory-limit 16M -o again.rules 2>message; then echo "took 16M"; exit 1; fi
grep -q "group 'powers': .* beyond --memory-limit (17 MB), and cannot go to files" message

# Killed as soon as something is saved, again and again; the last run goes to its end.
kill_when_saved() {
  local have process
  have=$(saved)
  "$@" &
  process=$!
  while kill -0 $process 2>/dev/null && [ "$(saved)" = "$have" ]; do :; done
  kill -9 $process 2>/dev/null || true
  wait $process 2>/dev/null || true
  [ "$(saved)" != "$have" ] || { echo "a round saved nothing"; exit 1; }
}
mkdir saved
for round in 1 2 3 4 5 6; do
  kill_when_saved "${command[@]}" -j 1 --checkpoint saved --resume -o resumed.rules
done
ls saved/powers-2ops.level > /dev/null
while [ ! -e saved/powers-5ops-000000.segment ]; do
  kill_when_saved "${command[@]}" -j 1 --checkpoint saved --resume -o resumed.rules
done
kill_when_saved "${command[@]}" -j 1 --checkpoint saved --resume -o resumed.rules
[ ! -e resumed.rules ] || { echo "no run was killed before its end"; exit 1; }
cp -r saved damaged
cp -r saved foreign
generate --checkpoint saved --resume -o resumed.rules
same resumed.rules

# ... and at any moment, also while rules are made and proved: later in each round, until a run ends by itself.
proving=("$program" --specs "$specs" --profile "$laws" --max-ops 4 --verify -q)
"${proving[@]}" -o proved.rules
grep -q 'proof' proved.rules || { echo "nothing is proved"; exit 1; }
mv saved saved.terms
mkdir saved
kill_when_saved "${proving[@]}" -j 1 --checkpoint saved --resume -o resumed_proved.rules
while [ ! -e saved/outcomes.journal ] || [ "$(stat -c %s saved/outcomes.journal)" -lt 1000 ]; do
  kill_when_saved "${proving[@]}" -j 2 --checkpoint saved --resume -o resumed_proved.rules
done
[ ! -e resumed_proved.rules ] || { echo "no run was killed while rules were made"; exit 1; }
for ((delay = 50; ; delay += delay / 4 + RANDOM % 50)); do
  code=0
  timeout -s KILL "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))" \
    "${proving[@]}" --checkpoint saved --resume -o resumed_proved.rules || code=$?
  if [ $code = 0 ]; then break; fi
  [ $code = 137 ] || { echo "exit code $code after a kill"; exit 1; }
done
cmp proved.rules resumed_proved.rules || { echo "other rules after kills"; exit 1; }
# All that is known is used: nothing is proved again.
have=$(saved)
"${proving[@]}" --checkpoint saved --resume -o resumed_proved.rules
cmp proved.rules resumed_proved.rules
[ "$(saved)" = "$have" ] || { echo "candidates were considered again"; exit 1; }
# An entry that was cut off is found again; a journal of other options is refused.
truncate -s -7 saved/outcomes.journal
"${proving[@]}" --checkpoint saved --resume -o resumed_proved.rules
cmp proved.rules resumed_proved.rules
[ "$(stat -c %s saved/outcomes.journal)" = "$(sed -n 's/^outcomes.journal //p' <<< "$have")" ]
if "${proving[@]}" --seed 3 --checkpoint saved --resume -o again.rules 2>message; then echo "took a journal"; exit 1; fi
grep -q 'outcomes.journal.*another profile' message
mv saved saved.proofs
mv saved.terms saved

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
