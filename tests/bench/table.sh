#!/usr/bin/env bash
# table.sh PROGRAM.awk ROWS EXPECTED: the tables of ROWS are those of EXPECTED.
set -euo pipefail
awk -f "$1" "$2" | diff - "$3"
