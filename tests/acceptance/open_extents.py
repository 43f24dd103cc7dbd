#!/usr/bin/env python3
"""Random ONNX models in which extents depend on elements, through taso-opt, against ONNX Runtime.

    open_extents.py PROGRAMS WORK [--graphs N] [--seed S] [--verbose]

At the head of each model are nodes that make as many rows as a mask or a number chooses, none included (NonZero, Compress, TopK, NonMaxSuppression, Unique, Slice,
Reshape, Expand, Range, ..., branches of an If of different extents, a Loop), behind them products, chains, concatenations, reductions along and across these rows, reshapes by lists that are computed from
them. The result of `taso-opt --cost launches` must compute what the model does, whatever the number of rows; where the model itself does not run in ONNX
Runtime, nothing is asked. The exit code is 1 if one differs."""
import argparse
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T
from onnx import helper, numpy_helper

ort.set_default_logger_severity(4)
WIDTH = 6  # Columns of what the heads make.


class Drawn:
    """A model on its way: `rows` are tensors of [rows, columns], by what says how many rows there are."""

    def __init__(self, rng):
        self.rng, self.nodes, self.constants, self.inputs, self.rows, self.count = rng, [], [], {}, [], 0
        self.outputs = []

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def add(self, op, inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def floats(self, *shape):
        return self.constant(self.rng.uniform(-1, 1, shape).astype(np.float32))

    def integers(self, *values):
        return self.constant(np.array(values, np.int64))

    def input(self, kind, element, shape):
        name = f"{kind}{len(self.inputs)}"
        self.inputs[name] = (element, shape)
        return name

    def extent(self, value, axis):
        return self.add("Gather", [self.add("Shape", [value]), self.integers(axis)], axis=0)

    def columns(self, value, columns, rows):
        self.rows.append((value, columns, rows))

    # What makes the rows.
    def head(self):
        kind = self.rng.integers(16)
        x = self.input("x", T.FLOAT, (8, WIDTH))
        rows = f"rows{len(self.rows)}"
        if kind == 0:
            places = self.add("NonZero", [self.input("mask", T.FLOAT, (3, 7))])
            return self.columns(self.add("Transpose", [self.add("Cast", [places], to=T.FLOAT)], perm=[1, 0]), 2, rows)
        if kind == 1:
            return self.columns(self.add("Compress", [x, self.input("chosen", T.BOOL, (8,))], axis=0), WIDTH, rows)
        if kind == 2:
            largest, places = self.add("TopK", [x, self.input("k", T.INT64, (1,))], 2, axis=0)
            self.columns(self.add("Cast", [places], to=T.FLOAT), WIDTH, rows)
            return self.columns(largest, WIDTH, rows)
        if kind == 3:
            boxes, scores = self.input("boxes", T.FLOAT, (1, 9, 4)), self.input("scores", T.FLOAT, (1, 1, 9))
            chosen = self.add("NonMaxSuppression", [boxes, scores, self.integers(9), self.floats(1), self.constant(np.array([0.5], np.float32))])
            index = self.add("Gather", [chosen, self.constant(np.int64(2))], axis=1)
            return self.columns(self.add("Gather", [self.add("Squeeze", [boxes, self.integers(0)]), index], axis=0), 4, rows)
        if kind == 4:
            # Never none: it reads some.
            x = self.input("mask", T.FLOAT, (8, WIDTH))
            return self.columns(self.add("Unsqueeze", [self.add("Unique", [x]), self.integers(1)]), 1, rows)
        if kind == 5:
            return self.columns(self.add("Slice", [x, self.integers(0), self.input("k", T.INT64, (1,)), self.integers(0)]), WIDTH, rows)
        if kind == 6:
            count = self.add("Squeeze", [self.input("k", T.INT64, (1,)), self.integers(0)])
            line = self.add("Range", [self.constant(np.int64(0)), count, self.constant(np.int64(1))])
            return self.columns(self.add("Unsqueeze", [self.add("Cast", [line], to=T.FLOAT), self.integers(1)]), 1, rows)
        if kind == 7:
            shape = self.add("Concat", [self.input("k", T.INT64, (1,)), self.integers(WIDTH)], axis=0)
            row = self.add("Slice", [x, self.integers(0), self.integers(1), self.integers(0)])
            return self.columns(self.add("Expand", [row, shape]), WIDTH, rows)
        if kind == 8:
            # Some of the rows, then as many again by a reshape of what is left.
            kept = self.add("Compress", [x, self.input("chosen", T.BOOL, (8,))], axis=0)
            shape = self.add("Concat", [self.extent(kept, 0), self.integers(WIDTH)], axis=0)
            return self.columns(self.add("Reshape", [self.add("Flatten", [kept], axis=0), shape]), WIDTH, rows)
        if kind == 9:
            pads = self.add("Concat", [self.integers(0, 0), self.input("k", T.INT64, (1,)), self.integers(0)], axis=0)
            return self.columns(self.add("Pad", [x, pads]), WIDTH, rows)
        if kind == 10:  # Behind a carried node of fixed extents.
            _, order = self.add("TopK", [self.input("mask", T.FLOAT, (8, 3)), self.integers(2)], 2, axis=1)
            places = self.add("Cast", [self.add("Transpose", [self.add("NonZero", [order])], perm=[1, 0])], to=T.FLOAT)
            return self.columns(places, 2, rows)
        if kind in (12, 13):  # Branches of different extents; of what is found there may be none.
            few = self.input("k", T.INT64, (1,))
            condition = self.add("Squeeze", [self.add("Less", [few, self.integers(int(self.rng.integers(1, 9)))])])
            fixed = int(self.rng.integers(3))
            with_none = lambda: self.constant(np.zeros((fixed, WIDTH), np.float32))
            chosen = self.input("chosen", T.BOOL, (8,))
            some = lambda: self.add("Relu", [self.add("Neg", [self.add("Compress", [x, chosen], axis=0)])])
            made = self.branch(condition, [None, WIDTH], *((with_none, some) if kind == 12 else (some, lambda: self.add("Tanh", [self.add("Neg", [x])]))))
            return self.columns(made, WIDTH, rows)
        if kind == 14:  # As detectors have it: where there are boxes, their numbers after suppression.
            kept = self.add("Compress", [self.input("boxes", T.FLOAT, (8, 4)), self.input("chosen", T.BOOL, (8,))], axis=0)
            score = self.add("ReduceMax", [kept], axes=[1], keepdims=0)
            none = self.add("Equal", [self.add("ReduceProd", [self.add("Shape", [kept])], keepdims=0), self.constant(np.int64(0))])

            def suppressed():
                scores = self.add("Unsqueeze", [score, self.integers(0, 1)])
                boxes = self.add("Unsqueeze", [kept, self.integers(0)])
                found = self.add("NonMaxSuppression", [boxes, scores, self.integers(9), self.constant(np.array([0.5], np.float32))])
                return self.add("Squeeze", [self.add("Gather", [found, self.integers(2)], axis=1), self.integers(1)])

            index = self.branch(none, [None], lambda: self.constant(np.zeros(0, np.int64)), suppressed, T.INT64)
            if self.rng.random() < 0.5:
                index = self.add("Slice", [index, self.integers(0), self.integers(3), self.integers(0)])
            found = self.add("Gather", [kept, index], axis=0)
            if self.rng.random() < 0.5:  # Each second coordinate.
                self.columns(self.add("Slice", [found, self.integers(int(self.rng.integers(2))), self.integers(2**62), self.integers(1), self.integers(2)]), 2, rows)
            mask = self.add("And", [self.add("Greater", [found, self.floats(1)]), self.add("Less", [found, self.floats(1)])])
            self.columns(self.add("Where", [mask, found, self.floats(4)]), 4, rows)
            return self.columns(found, 4, rows)
        if kind == 15:  # Rows that a loop adds, and the last of them.
            times = self.add("Squeeze", [self.input("k", T.INT64, (1,)), self.integers(0)])
            outer, self.nodes = self.nodes, []
            turn, go, state, last = (self.name() for _ in range(4))
            row = self.add("Slice", [self.add("Tanh", [self.add("Neg", [x])]), self.add("Unsqueeze", [turn, self.integers(0)]), self.add("Unsqueeze", [self.add("Add", [turn, self.constant(np.int64(1))]), self.integers(0)]), self.integers(0)])
            outputs = [self.add("Identity", [go]), self.add("Concat", [state, row], axis=0), self.add("Add", [last, row])]
            scalar = lambda name, element: helper.make_tensor_value_info(name, element, [])
            floats = lambda name, extents: helper.make_tensor_value_info(name, T.FLOAT, extents)
            body = helper.make_graph(self.nodes, "body", [scalar(turn, T.INT64), scalar(go, T.BOOL), floats(state, [None, WIDTH]), floats(last, [1, WIDTH])],
                                     [scalar(outputs[0], T.BOOL), floats(outputs[1], [None, WIDTH]), floats(outputs[2], [1, WIDTH])])
            self.nodes = outer
            first = self.constant(np.zeros((int(self.rng.integers(2)), WIDTH), np.float32))
            made, last = self.add("Loop", [times, "", first, self.floats(1, WIDTH)], 2, body=body)
            self.columns(last, WIDTH, f"last of {rows}")
            return self.columns(made, WIDTH, rows)
        places = self.add("Transpose", [self.add("NonZero", [self.input("mask", T.FLOAT, (8, 3))])], perm=[1, 0])
        return self.columns(self.add("GatherND", [self.floats(8, 3, WIDTH), places]), WIDTH, rows)

    def branch(self, condition, extents, then, other, element=T.FLOAT):
        """An If whose branches are what two functions add; what they give is named anew there."""
        branches = {}
        for branch, make in (("then_branch", then), ("else_branch", other)):
            outer, self.nodes = self.nodes, []
            made = self.add("Identity", [make()])
            branches[branch] = helper.make_graph(self.nodes, branch, [], [helper.make_tensor_value_info(made, element, extents)])
            self.nodes = outer
        return self.add("If", [condition], **branches)

    def pick(self):
        return self.rows[self.rng.integers(len(self.rows))]

    # What is done with them.
    def step(self):
        value, columns, rows = self.pick()
        kind = self.rng.integers(22)
        if kind <= 1:  # Siblings, which one product may be.
            for _ in range(int(self.rng.integers(1, 4))):
                width = int(self.rng.integers(1, 5))
                made = self.add("MatMul", [value, self.floats(columns, width)])
                if self.rng.random() < 0.4:
                    made = self.add("Add", [made, self.floats(width)])
                if self.rng.random() < 0.3:
                    made = self.add("Relu", [made])
                self.columns(made, width, rows)
        elif kind == 2:
            op = ["Relu", "Sigmoid", "Tanh", "Neg", "Abs"][self.rng.integers(5)]
            self.columns(self.add(op, [value]), columns, rows)
        elif kind == 3:
            self.columns(self.add("Mul", [value, self.constant(np.float32(self.rng.uniform(-1, 1)))]), columns, rows)
        elif kind == 4:
            others = [one for one in self.rows if one[2] == rows]
            other = others[self.rng.integers(len(others))]
            self.columns(self.add("Concat", [value, other[0]], axis=1), columns + other[1], rows)
        elif kind == 5:
            others = [one for one in self.rows if one[1] == columns]
            other = others[self.rng.integers(len(others))]
            both = tuple(sorted((str(rows), str(other[2]))))
            self.columns(self.add("Concat", [value, other[0]], axis=0), columns, (str(rows), str(other[2])) if both[0] != both[1] else both)
        elif kind == 6:
            others = [one for one in self.rows if one[1:] == (columns, rows)]
            other = others[self.rng.integers(len(others))]
            self.columns(self.add(["Add", "Sub", "Mul"][self.rng.integers(3)], [value, other[0]]), columns, rows)
        elif kind == 7:
            self.columns(self.add("ReduceSum", [value, self.integers(1)], keepdims=1), 1, rows)
        elif kind == 8:  # Of no rows: zeros.
            total = self.add("ReduceSum", [value, self.integers(0)], keepdims=1)
            if self.rng.random() < 0.5:
                return self.columns(self.add("Add", [value, total]), columns, rows)
            self.columns(total, columns, "one")
        elif kind == 9:
            others = [one for one in self.rows if one[2] == rows]
            other = others[self.rng.integers(len(others))]
            self.columns(self.add("MatMul", [self.add("Transpose", [value], perm=[1, 0]), other[0]]), other[1], f"{columns} rows")
        elif kind == 10:
            self.columns(self.add("Softmax", [value], axis=int(self.rng.integers(2))), columns, rows)
        elif kind == 11 and columns % 2 == 0:
            shape = self.add("Concat", [self.extent(value, 0), self.integers(2, columns // 2)], axis=0)
            halves = self.add("Transpose", [self.add("Reshape", [value, shape])], perm=[1, 0, 2])
            part = self.add("MatMul", [halves, self.floats(2, columns // 2, 3)])
            back = self.add("Transpose", [part], perm=[1, 0, 2])
            shape = self.add("Concat", [self.extent(back, 0), self.integers(6)], axis=0)
            self.columns(self.add("Reshape", [back, shape]), 6, rows)
        elif kind == 12:
            line = self.add("Reshape", [value, self.integers(-1)])
            line = self.add("Tanh", [line])
            shape = self.add("Shape", [value])
            self.columns(self.add("Reshape", [line, shape]), columns, rows)
        elif kind == 13 and columns > 1:
            first, second = self.add("Split", [value, self.integers(1, columns - 1)], 2, axis=1)
            self.columns(first, 1, rows)
            self.columns(second, columns - 1, rows)
        elif kind == 14:
            mean = self.add("ReduceMean", [value], axes=[1], keepdims=1)
            less = self.add("Sub", [value, mean])
            square = self.add("ReduceMean", [self.add("Mul", [less, less])], axes=[1], keepdims=1)
            root = self.add("Sqrt", [self.add("Add", [square, self.constant(np.float32(0.1))])])
            self.columns(self.add("Mul", [self.add("Div", [less, root]), self.floats(columns)]), columns, rows)
        elif kind == 15:
            turned = self.add("Transpose", [value], perm=[1, 0])
            self.columns(self.add("Transpose", [self.add("Relu", [turned])], perm=[1, 0]), columns, rows)
        elif kind == 17:  # A subgraph reads them, of which nothing is known there.
            total = self.add("Squeeze", [self.add("Size", [self.add("Flatten", [value])])])
            condition = self.add("Less", [total, self.constant(np.int64(12))])
            branches = {}
            for branch, op in (("then_branch", "Tanh"), ("else_branch", "Relu")):
                outer, self.nodes = self.nodes, []
                line = self.add("Squeeze", [self.add("Unsqueeze", [value, self.integers(0)]), self.integers(0)])
                made = self.add(op, [self.add("Neg", [self.add("Neg", [line])])])
                output = helper.make_tensor_value_info(made, T.FLOAT, [None, columns])
                branches[branch] = helper.make_graph(self.nodes, branch, [], [output])
                self.nodes = outer
            self.columns(self.add("If", [condition], **branches), columns, rows)
        elif kind == 18 and columns > 1:
            # Pairs in a row, and as a square again: a list of two zeros copies an extent.
            pairs = self.add("Mul", [self.add("Unsqueeze", [value, self.integers(0)]), self.add("Unsqueeze", [value, self.integers(1)])])
            line = self.add("Reshape", [pairs, self.integers(-1, columns)])
            rows_again = self.add("Unsqueeze", [self.add("Squeeze", [self.extent(value, 0)]), self.integers(0)])
            shape = self.add("Concat", [rows_again, rows_again, self.integers(columns)], axis=0)
            square = self.add("Identity", [self.add("Reshape", [line, shape])])
            self.outputs.append((square, T.FLOAT, [None, None, columns]))
        elif kind == 19:  # Choices by masks of integers and reals.
            whole = self.add("Cast", [self.add("Mul", [value, self.constant(np.float32(7))])], to=T.INT64)
            rest = self.add("Sub", [whole, self.add("Mul", [self.add("Div", [whole, self.constant(np.int64(2))]), self.constant(np.int64(2))])])
            odd = self.add("Not", [self.add("Equal", [rest, self.constant(np.int64(0))])])
            self.columns(self.add("Where", [odd, value, self.add("Neg", [value])]), columns, rows)
            self.columns(self.add("Cast", [self.add("Concat", [whole, rest], axis=1)], to=T.FLOAT), 2 * columns, rows)
        elif kind == 20:  # Every so many columns, and rows.
            step = int(self.rng.integers(2, 4))
            start = int(self.rng.integers(columns))
            self.columns(self.add("Slice", [value, self.integers(start), self.integers(2**62), self.integers(1), self.integers(step)]), len(range(start, columns, step)), rows)
            if self.rng.random() < 0.5:
                start = int(self.rng.integers(-3, 3))
                self.columns(self.add("Slice", [value, self.integers(start), self.integers(2**62), self.integers(0), self.integers(step)]), columns, f"{rows} from {start} by {step}")
        elif kind == 21:  # The row's place, which a list of integers says.
            best = self.add("ArgMax", [value], axis=1, keepdims=1)
            self.columns(self.add("Cast", [best], to=T.FLOAT), 1, rows)
            taken = self.add("GatherElements", [value, best], axis=1)
            self.columns(self.add("Split", [self.add("Cast", [self.add("Cast", [taken], to=T.FLOAT)], to=T.FLOAT)], 1, axis=1), 1, rows)
        elif kind == 16 and not self.outputs:
            self.outputs.append((self.add("Shape", [value]), T.INT64, [2]))

    def model(self):
        for value, columns, _ in self.rows:
            if self.rng.random() < 0.5 or value == self.rows[-1][0]:
                self.outputs.append((value, T.FLOAT, [None, columns]))
        graph = helper.make_graph(
            self.nodes, "open", [helper.make_tensor_value_info(n, *kind) for n, kind in self.inputs.items()],
            [helper.make_tensor_value_info(*output) for output in self.outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def feed(self, density, rng):
        """Inputs that choose about this share of the rows."""
        values = {}
        for name, (element, shape) in self.inputs.items():
            if element == T.BOOL:
                values[name] = rng.random(shape) < density
            elif element == T.INT64:
                values[name] = np.array([round(density * 8)], np.int64)
            else:
                array = rng.uniform(-1, 1, shape).astype(np.float32)
                if name.startswith("mask"):
                    array *= rng.random(shape) < density
                if name.startswith("scores"):
                    array = (rng.random(shape) * (0.4 if density == 0 else 0.5 + density)).astype(np.float32)
                if name.startswith("boxes"):
                    array[..., 2:] = array[..., :2] + np.abs(array[..., 2:])
                values[name] = array
        return values


def run(session, feed):
    try:
        return session.run(None, feed)
    except Exception as error:  # pylint: disable=broad-except
        return str(error)


def equal(a, b):
    if a.shape != b.shape:
        return False
    if a.dtype.kind == "i":
        return np.array_equal(a, b)
    scale = max(1.0, float(np.nanmax(np.abs(a), initial=0.0)))
    return np.allclose(a, b, 1e-4, 1e-5 * scale, equal_nan=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("work")
    parser.add_argument("--graphs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    work = pathlib.Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    before, after = work / "model.onnx", work / "out.onnx"
    compared = rewritten = without_rows = wrong = 0
    for number in range(options.graphs):
        rng = np.random.default_rng([options.seed, number])
        drawn = Drawn(rng)
        for _ in range(int(rng.integers(1, 3))):
            drawn.head()
        for _ in range(int(rng.integers(2, 9))):
            drawn.step()
        onnx.save(drawn.model(), before)
        try:
            original = ort.InferenceSession(str(before))
        except Exception as error:  # pylint: disable=broad-except
            if options.verbose:
                print(f"graph {number}: ONNX Runtime does not load it: {error}")
            continue
        process = subprocess.run([f"{options.programs}/taso-opt", str(before), "-o", str(after), "--cost", "launches", "--steps", "20", "-q", "--json", str(work / "r.json"),
                                  "--costs", str(work / "costs.sqlite")], capture_output=True, text=True, check=False)
        if process.returncode != 0:
            wrong += 1
            print(f"graph {number}: taso-opt ends with {process.returncode}: {process.stderr.strip()}")
            continue
        changed = before.read_bytes() != after.read_bytes()
        rewritten += changed
        if not changed:
            continue
        result = ort.InferenceSession(str(after))
        for density in (0, 0.15, 0.5, 1):
            feed = drawn.feed(density, rng)
            expected, got = run(original, feed), run(result, feed)
            if isinstance(expected, str):
                continue
            compared += 1
            without_rows += any(value.size == 0 for value in expected)
            if isinstance(got, str) or not all(equal(a, b) for a, b in zip(expected, got)):
                wrong += 1
                kept = work / f"wrong_{number}.onnx"
                kept.write_bytes(before.read_bytes())
                (work / f"wrong_{number}.out.onnx").write_bytes(after.read_bytes())
                print(f"graph {number} differs with {density} of the rows: {got if isinstance(got, str) else ''} {kept}")
                break
    print(f"{options.graphs} graphs, {rewritten} rewritten, compared {compared} times, {without_rows} of them without rows; {wrong} wrong")
    # So few that nothing would be shown are a failure, too.
    return 1 if wrong or 4 * rewritten < options.graphs or 8 * without_rows < compared else 0


if __name__ == "__main__":
    sys.exit(main())
