#!/usr/bin/env bash
# The checks find exactly the violations that are planted in bad/ (bad/expected has one file per check).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
failures=0
for expected in bad/expected/*.txt; do
  check=$(basename "$expected" .txt)
  found=$(./check.sh "$check" bad "$PWD/bad")
  status=$?
  if [ $status = 77 ]; then continue; fi
  if [ $status != 1 ]; then echo "$check: exit $status instead of 1"; failures=$((failures + 1)); fi
  if ! diff -u "$expected" - <<< "$found"; then echo "$check: finds something else"; failures=$((failures + 1)); fi
done
if [ $failures != 0 ]; then exit 1; fi
