#!/usr/bin/env bash
# expanded_models.sh PYTHON DRAW_MODELS TASO_VERIFY SPECS FOLDER: more than 200 random graphs in random plans on 2 to 8
# devices, written out as models, all of which taso-verify finds right; compared in ONNX Runtime (expanded_models.py). Exits
# 77 without that.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$1 draw=$2 verify=$3 specs=$4 folder=$5
rm -rf "$folder"
"$draw" "$folder" 226 2 3 4 8 2x2 3x2 2x2x2
refused=0
for model in "$folder"/*; do
  "$verify" --specs "$specs" --plan "$model/model.plan.json" --expanded "$model/model.expanded.onnx" > /dev/null || refused=$((refused + 1))
done
if [ $refused != 0 ]; then
  echo "$refused right models refused"
  exit 1
fi
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2> /dev/null; then
  echo "SKIP: $python has no numpy, onnx, onnxruntime (scripts/setup --oracles makes such a Python)"
  exit 77
fi
exec "$python" "$here/expanded_models.py" "$folder"
