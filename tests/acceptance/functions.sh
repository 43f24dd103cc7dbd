#!/bin/sh
# functions.sh PYTHON PROGRAMS WORK: operators of a folder of specifications, written as functions of a model, give in ONNX
# Runtime what their definitions give. Skipped (exit code 77) without ONNX Runtime.
set -eu
python=$1 programs=$2 work=$3
source=$(cd "$(dirname "$0")/../.." && pwd)
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
  echo "SKIP: $python has no onnxruntime; scripts/setup --oracles installs it"
  exit 77
fi
rm -rf "$work"
mkdir -p "$work"
cp -r "$source/tests/data/composition/operators" "$work"
specs="--add-specs $work"
"$programs/build-models" $specs "$source/tests/data/composition/functions.graph" "$work/m.onnx"
"$programs/taso-run" $specs -q "$work/m.onnx" --device reference --repeat 1 --save-inputs "$work/in" \
  --save-outputs "$work/out"
"$python" - "$work" <<'END'
import sys, numpy, onnx, onnxruntime
work = sys.argv[1]
onnx.checker.check_model(work + "/m.onnx")
session = onnxruntime.InferenceSession(work + "/m.onnx", providers=["CPUExecutionProvider"])
inputs = {i.name: numpy.load(f"{work}/in/{i.name}.npy") for i in session.get_inputs()}
outputs = session.run(None, inputs)
assert len(outputs) == 15, len(outputs)
for declared, value in zip(session.get_outputs(), outputs):
    expected = numpy.load(f"{work}/out/{declared.name}.npy")
    numpy.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6, err_msg=declared.name)
print(len(outputs), "outputs agree")
END
