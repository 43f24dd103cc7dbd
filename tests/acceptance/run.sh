#!/usr/bin/env bash
# run.sh small|full|all PYTHON PROGRAMS WORK [compare.py option...]: builds example models and gives them to compare.py. small: every
# example, small; full: those that launches.txt lists, and of the models of TASO_MODELS_DIR (*.onnx, and *.skel.onnx with a
# materialize.py beside them) those that it lists and that are no examples, of at most 300 MB; all: every example and model. Exits 77 without PYTHON.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
size=$1 python=$2 programs=$3 work=$4
shift 4

if ! "$python" -c 'import numpy, onnx, onnxruntime' 2> /dev/null; then
  echo "SKIP: $python has no numpy, onnx, onnxruntime (scripts/setup --oracles makes such a Python)"
  exit 77
fi
mkdir -p "$work/models"
models=()
listed() { [ "$size" != full ] || grep -q "^$1:" "$here/launches.txt"; }
# Full models: those of moderate size.
names=$("$programs/build-models" $([ "$size" = small ] && echo --list || echo --list-below 201))
for model in $names; do
  file=$work/models/$model.onnx
  if [ "$size" = small ]; then
    file=$work/models/small_$model.onnx
    "$programs/build-models" "$model" "$file" --small
  else
    listed "$model" || continue
    "$programs/build-models" "$model" "$file"
  fi
  models+=("$file")
done
if [ "$size" != small ] && [ -n "${TASO_MODELS_DIR:-}" ]; then
  mkdir -p "$work/more"
  while IFS= read -r file; do
    name=$(basename "$file" .onnx)
    listed "${name%.skel}" || continue
    # An example of that name is the same network.
    if [ "$size" = full ] && [ -e "$work/models/${name%.skel}.onnx" ]; then continue; fi
    if [ -f "$TASO_MODELS_DIR/materialize.py" ]; then
      # Skeletons are filled with seeded weights once.
      out=$work/more/${name%.skel}.onnx
      if [ ! -f "$out" ]; then "$python" "$TASO_MODELS_DIR/materialize.py" "$file" "$out"; fi
      file=$out
    fi
    if [ "$size" = full ] && [ "$(stat -c %s "$file")" -gt 300000000 ]; then continue; fi
    models+=("$file")
  done < <(find "$TASO_MODELS_DIR" -name '*.onnx' | sort)
fi
exec "$python" "$here/compare.py" --programs "$programs" --work "$work" "$@" "${models[@]}"
