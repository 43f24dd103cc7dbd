#!/usr/bin/env bash
# take_back.sh [NAME...]: the test of the attack. Takes back one mend of the verifier after the other
# (tests/attack/taken_back/NAME.patch; all of them by default) in a copy of the committed tree under build/taken_back, builds
# attack_rules there, and expects it to find a rule that is proved and false. Exit code 1 where it finds none. Takes minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
patches=$PWD/tests/attack/taken_back
copy=$PWD/build/taken_back
if [ $# = 0 ]; then set -- $(cd "$patches" && ls | sed 's/\.patch$//'); fi
mkdir -p "$copy"
git archive HEAD | tar -x -C "$copy"
cd "$copy"
[ -f build/release/build.ninja ] || cmake --preset release > /dev/null
failed=0
for name in "$@"; do
  patch -s -p1 < "$patches/$name.patch"
  found=no
  if cmake --build --preset release --target attack_rules > build/log 2>&1; then
    # Short rules first: their proofs are quick, and most mistakes need no long one.
    if build/release/bin/attack_rules --from tests/attack/seeds.rules --full-every 4 --count 6000 --expect-falsehood > build/found 2> /dev/null; then found=yes; fi
  else
    tail -20 build/log
  fi
  patch -s -R -p1 < "$patches/$name.patch"
  if [ $found = yes ]; then
    echo "== $name: found"
    cat build/found
  else
    echo "== $name: NOT found"
    failed=1
  fi
done
exit $failed
