#!/usr/bin/env python3
"""Writes the operator tests of the installed onnx package, as its distributions hold them (onnx/backend/test/data/node).

    operator-tests.py FOLDER

A folder for each test: model.onnx, test_data_set_N/input_M.pb, output_M.pb. FOLDER is made; it must not be there.
"""
import pathlib
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def message(value, declared):
    """A value as the message that its type in the model asks for."""
    if isinstance(value, onnx.TensorProto):
        return value
    if declared.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, declared.name)
    if declared.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, declared.name)
    return numpy_helper.from_array(numpy.asarray(value), declared.name)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: operator-tests.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    for case in collect_testcases(None):
        test = folder / case.name
        test.mkdir()
        (test / "model.onnx").write_bytes(case.model.SerializeToString())
        for number, (inputs, outputs) in enumerate(case.data_sets):
            data = test / f"test_data_set_{number}"
            data.mkdir()
            for kind, values, declared in (
                ("input", inputs, case.model.graph.input),
                ("output", outputs, case.model.graph.output),
            ):
                for i, value in enumerate(values):
                    (data / f"{kind}_{i}.pb").write_bytes(message(value, declared[i]).SerializeToString())


if __name__ == "__main__":
    main()
