#!/usr/bin/env bash
# exports.sh PYTHON PROGRAMS SPECS FOLDER FORM...: plans of small examples in the form of other programs compute what the models
# compute. sharding, ort-ranks, tensorrt-ranks: in ONNX Runtime, collectives done by a script; jax: in JAX, beside
# taso-run. Skipped (exit code 77) without the Python packages.
set -euo pipefail
python=$1 programs=$2 specs=$3 folder=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
packages="numpy, onnx, onnxruntime"
[ "$*" = jax ] && packages="numpy, jax"
if ! "$python" -c "import $packages" 2> /dev/null; then
  echo "SKIP: $python has no $packages; scripts/setup --oracles installs them"
  exit 77
fi
emit=()
for form in "$@"; do emit+=(--emit "$form"); done
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
count=0
# Models, meshes and what operators cost: products and convolutions, cut evenly and not, with halos and partial sums.
while read -r model mesh cost uneven; do
  name=$model.$mesh
  devices=$((${mesh//x/*}))
  "$programs/build-models" "$model" "$model.onnx" --small > /dev/null
  "$programs/taso-opt" "$model.onnx" -o "$name.onnx" --specs "$specs" --cost flops --plan-cost "$cost" --devices $devices \
    --mesh "$mesh" "${emit[@]}" -q
  if [ "$*" = jax ]; then
    "$programs/taso-run" "$name.onnx" --specs "$specs" --repeat 1 -q --save-inputs "$name.in" --save-outputs "$name.out"
    echo "$name:"
    "$python" "$name.jax/program.py" --inputs "$name.in" --expect "$name.out"
  else
    "$python" "$here/sharding_file.py" "$name.onnx" "$name.sharding.onnx" $devices $uneven
    "$python" "$here/rank_files.py" "$name.onnx" "$name.ort" "$name.tensorrt"
  fi
  count=$((count + 1))
done <<'END'
squeezenet1_1 2x2 flops
resnet50 3 flops uneven
bert_base 2 roofline
bert_base 4 flops
gpt2_block 2x2 flops
resnext50_32x4d 2 flops
nasrnn 2 flops
END
# A difference is noticed: other inputs, or models of ranks in another order.
if [ "$*" = jax ]; then
  if "$python" "$name.jax/program.py" --expect "$name.out" > /dev/null; then
    echo "FAIL $name.jax: other inputs give the same outputs"
    exit 1
  fi
else
  for form in ort tensorrt; do
    mkdir swapped
    mv "$name.$form/rank0.onnx" swapped/rank1.onnx
    mv "$name.$form/rank1.onnx" swapped/rank0.onnx
    if "$python" "$here/rank_files.py" "$name.onnx" swapped > /dev/null; then
      echo "FAIL $name.$form: ranks in another order compute the same"
      exit 1
    fi
    rm -r swapped
  done
fi
echo "$count plans"
