#!/bin/sh
# control_flow.sh PYTHON PROGRAMS SPECS WORK: control_flow.py. Skipped (exit code 77) without ONNX Runtime.
set -eu
python=$1 programs=$2 specs=$3 work=$4
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
  echo "SKIP: $python has no onnxruntime; scripts/setup --oracles installs it"
  exit 77
fi
rm -rf "$work"
mkdir -p "$work"
"$python" "$(dirname "$0")/control_flow.py" "$programs" "$specs" "$work"
