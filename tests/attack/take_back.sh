#!/usr/bin/env bash
# take_back.sh [NAME...]: the test of the attack. Takes back one mend after the other (tests/attack/taken_back/NAME.patch, which
# begins with what is taken back and the attack that must notice; all of them by default) in a copy of the committed tree
# under build/taken_back, builds the attack there, and expects it to find something that is believed and false. Exit code 1
# where it finds nothing. Takes minutes. With --check it only asks whether every patch still fits the tree: what a patch
# takes back must stay in reach as the code around it changes. Exit code 77 without the program `patch`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
patches=$PWD/tests/attack/taken_back
if [ "${1:-}" = --check ]; then
  command -v patch > /dev/null || exit 77
  failed=0
  for file in "$patches"/*.patch; do
    patch --dry-run --forward -s -p1 < "$file" || { echo "$file does not fit any more"; failed=1; }
  done
  exit $failed
fi
copy=$PWD/build/taken_back
if [ $# = 0 ]; then set -- $(cd "$patches" && ls | sed 's/\.patch$//'); fi
mkdir -p "$copy"
git archive HEAD | tar -x -C "$copy"
cd "$copy"
[ -f build/release/build.ninja ] || cmake --preset release > /dev/null
failed=0
for name in "$@"; do
  attack=$(sed -n 's/^attack: //p' "$patches/$name.patch")
  program=${attack%% *}
  patch -s -p1 < "$patches/$name.patch"
  found=no
  if cmake --build --preset release --target "$program" > build/log 2>&1; then
    # shellcheck disable=SC2086  # a command line
    if build/release/bin/$attack --expect-falsehood > build/found 2> /dev/null; then found=yes; fi
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
