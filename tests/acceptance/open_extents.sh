#!/bin/sh
# open_extents.sh PYTHON PROGRAMS WORK OPTION...: open_extents.py. Skipped (exit code 77) without ONNX Runtime.
set -eu
python=$1 programs=$2 work=$3
shift 3
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
  echo "SKIP: $python has no onnxruntime; scripts/setup --oracles installs it"
  exit 77
fi
rm -rf "$work"
exec "$python" "$(dirname "$0")/open_extents.py" "$programs" "$work" "$@"
