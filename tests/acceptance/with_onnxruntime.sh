#!/bin/sh
# with_onnxruntime.sh SCRIPT PYTHON PROGRAMS WORK OPTION...: a script of this folder, with an empty WORK. Skipped (exit code 77)
# without ONNX Runtime.
set -eu
script=$1 python=$2 programs=$3 work=$4
shift 4
if ! "$python" -c 'import ml_dtypes, numpy, onnx, onnxruntime' 2>/dev/null; then
  echo "SKIP: $python has no onnxruntime; scripts/setup --oracles installs it"
  exit 77
fi
rm -rf "$work"
mkdir -p "$work"
exec "$python" "$(dirname "$0")/$script" "$programs" "$work" "$@"
