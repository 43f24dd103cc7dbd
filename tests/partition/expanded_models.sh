#!/usr/bin/env bash
# expanded_models.sh PYTHON DRAW_MODELS TASO_VERIFY SPECS FOLDER: more than 200 random graphs in random plans on 2 to 8
# devices, written out as models, of which taso-verify finds 98 % right at least; all compared in ONNX Runtime (expanded_models.py). Exits
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
# As in written_expansions_test: few right ones are refused, and compared in numbers like all.
if [ $((refused * 50)) -gt 226 ]; then
  echo "$refused right models refused, more than 2 %"
  exit 1
fi
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2> /dev/null; then
  echo "SKIP: $python has no numpy, onnx, onnxruntime (scripts/setup --oracles makes such a Python)"
  exit 77
fi
exec "$python" "$here/expanded_models.py" "$folder"
