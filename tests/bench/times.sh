#!/usr/bin/env bash
# times.sh SCRIPT WORK: what scripts/times prints of logs that are made up, and that it refuses a folder without any.
set -euo pipefail
script=$1 work=$2
rm -rf "$work"
mkdir -p "$work/Testing/Temporary"

if "$script" "$work" > "$work/printed" 2>&1; then
  echo "times.sh: a folder without a log was accepted"
  exit 1
fi
grep -qF "times: $work has no .ninja_log; build there first (cmake --build)" "$work/printed"

# b.cpp was compiled twice; what was linked does not count.
printf '%s\t%s\t0\t%s\thash\n' 0 9000 b.cpp.o 0 2500 a.cpp.o 100 1600 b.cpp.o 0 7000 bin/a > "$work/.ninja_log"
printf '%s\n' 'Small.Test 3 0.04' 'Large.Test 1 12.5' 'Other.Test 2 1.46' --- 'Small.Test 0 0' > "$work/Testing/Temporary/CTestCostData.txt"
cat > "$work/expected" <<'EOT'
compilations: 4 s in 2; the slowest:
     2.5  a.cpp.o
     1.5  b.cpp.o
tests: 14 s in 3; the slowest:
    12.5  Large.Test
     1.5  Other.Test
EOT
"$script" "$work" 2 > "$work/printed"
diff "$work/expected" "$work/printed"
