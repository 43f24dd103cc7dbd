#!/usr/bin/env bash
# cuda_launches.sh PROGRAMS TABLES DEVICE WORK STUB: launches that taso-run plans on a GPU that is only described, before and after taso-opt --cost launches, are
# what the tables of bench/gpu.md (TABLES) say. STUB: the folder of a stand-in for the driver's library, with which attention is one step; where it
# is empty that table is left out.
set -Eeuo pipefail
trap 'echo "line $LINENO ends the test: $BASH_COMMAND"' ERR
programs=$1 tables=$2 device=$3 work=$4 stub=$5
rm -rf "$work"
mkdir -p "$work"
cd "$work"
# launches MODEL MATH: as planned.
launches() { "$programs/taso-run" "$1" --device cuda --device-properties "$device" --math "$2" --no-measure | sed -nE 's/^[^ ]+: .* ([0-9]+) launches planned.*/\1/p'; }
# row SECTION MODEL: the numbers of its row in the table behind that line.
row() { awk -F ' *\\| *' -v section="$1" -v model="$2" 'index($0, section) { on = 1 } on && $2 == model { for (i = 3; i < NF; ++i) printf "%s ", $i; exit }' "$tables"; }
equal() { # equal WHAT SAID FOUND
  [ "$2" = "$3" ] || { echo "$1: $tables says '$2', and it is '$3'"; exit 1; }
}

for model in nasrnn gpt2_block llama_block unet_resize bert_base nasnet_a_mobile; do
  "$programs/build-models" $model $model.onnx > /dev/null
  "$programs/taso-opt" $model.onnx -o $model.searched.onnx --device cuda --device-properties "$device" --no-measure --cost launches -q --no-certificate
  read -r _ fused searched <<< "$(row '| model | step by step |' $model)"
  for math in fp32 tf32; do equal "$model, fused, $math" "$fused" "$(launches $model.onnx $math)"; done
  equal "$model, searched for" "$searched" "$(launches $model.searched.onnx fp32)"
done
if [ -e "$stub/libcuda.so.1" ]; then
  export LD_LIBRARY_PATH=$stub${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  for model in gpt2_block llama_block; do
    equal "attention of $model" "$(row '**Attention as one step**' $model)" \
      "$(launches $model.onnx tf32) $(launches $model.onnx fp16) $(launches $model.searched.onnx tf32) $(launches $model.searched.onnx bf16) "
  done
fi
