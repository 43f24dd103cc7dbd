#!/usr/bin/env python3
"""Random ONNX models over all element types and symbolic extents, through taso-opt and taso-run, against ONNX Runtime.

    random_models.py PROGRAMS WORK [--graphs N] [--seed S] [--first N] [--per-file N] [--steps N] [--seconds S] [--only WAYS] [--verbose]

Draws small graphs with onnx.helper from ONNX's operators, many of them side by side in one file, one file in two with symbolic extents. Each graph is run by
itself in ONNX Runtime (without its own optimizations); what that cannot load or run is left out and counted, and so are inputs at which ONNX leaves a node's
result open (a quotient by 0, a conversion beyond the type, ...). A file is optimized without rules and with the shipped ones (`--cost launches`); ONNX Runtime
runs the results at other sizes and with special values (NaN, infinities, -0, the least and greatest integers). taso-run runs the graphs that are understood as
a whole. Integers and truth values must be equal, floats within rounding: operators that jump (comparisons, rounding, conversions to integers)
are only drawn where numbers are exact. A difference is printed as the smallest graph that has it; the exit code is then 1. Equal arguments, equal graphs."""
import argparse
import collections
import math
import pathlib
import re
import subprocess
import sys
import time

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T
from onnx import helper, numpy_helper

ort.set_default_logger_severity(4)

NUMPY = {T.FLOAT: np.float32, T.DOUBLE: np.float64, T.FLOAT16: np.float16, T.BFLOAT16: ml_dtypes.bfloat16, T.BOOL: np.bool_,
         T.INT8: np.int8, T.INT16: np.int16, T.INT32: np.int32, T.INT64: np.int64,
         T.UINT8: np.uint8, T.UINT16: np.uint16, T.UINT32: np.uint32, T.UINT64: np.uint64}
FLOATS = [T.FLOAT, T.FLOAT16, T.DOUBLE, T.BFLOAT16]
SIGNED = [T.INT8, T.INT16, T.INT32, T.INT64]
INTEGERS = SIGNED + [T.UINT8, T.UINT16, T.UINT32, T.UINT64]
MANTISSA = {T.FLOAT: 24, T.DOUBLE: 53, T.FLOAT16: 11, T.BFLOAT16: 8}
LARGEST = {T.FLOAT: 1e30, T.DOUBLE: 1e200, T.FLOAT16: 3e4, T.BFLOAT16: 1e30}
# Extents of N and M at which every graph is evaluated while it is drawn; it is compared at these.
SIZES = [{"N": 3, "M": 4}, {"N": 5, "M": 7}, {"N": 1, "M": 2}]
OPSETS = [13, 14, 17, 18, 20, 21, 23]


class Dim(tuple):
    """An extent at each of SIZES; `text` is what the file says."""

    @property
    def text(self):
        if len(set(self)) == 1:
            return self[0]
        return next((n for n in ("N", "M") if all(s[n] == e for s, e in zip(SIZES, self))), None)


def dim(number):
    return Dim([number] * len(SIZES))


def symbol(name):
    return Dim([s[name] for s in SIZES])


def combine(function, *dims):
    return Dim(function(*each) for each in zip(*dims))


ONE, ZERO = dim(1), dim(0)


class Value:
    """A tensor: `bound` is a bound of its magnitudes, `fraction` the number of binary places if all its numbers are exact, else None."""

    def __init__(self, name, elem, shape, bound=None, fraction=None, constant=None):
        self.name, self.elem, self.shape, self.bound, self.fraction, self.constant = name, elem, list(shape), bound, fraction, constant

    @property
    def rank(self):
        return len(self.shape)

    @property
    def real(self):
        return self.elem in FLOATS

    @property
    def exact(self):
        return not self.real or self.fraction is not None

    def same(self):
        return dict(bound=self.bound, fraction=self.fraction)


class Unfit(Exception):
    """Nothing there fits the operator that was drawn."""


PROBED = {}


def loadable(node, operands, opset):
    """Whether ONNX Runtime has the operator for these element types."""
    key = (opset, node.op_type, tuple(v and v.elem for v in operands), tuple(
        (a.name, a.i) for a in node.attribute if a.name in ("to", "output_dtype", "saturate")))
    if key not in PROBED:
        inputs = {v.name: v for v in operands if v and v.constant is None}
        constants = {v.name: v for v in operands if v and v.constant is not None}
        graph = helper.make_graph([node], "probe", [helper.make_tensor_value_info(v.name, v.elem, [None] * v.rank) for v in inputs.values()],
                                  [onnx.ValueInfoProto(name=o) for o in node.output],
                                  [numpy_helper.from_array(v.constant, v.name) for v in constants.values()])
        PROBED[key] = session(assemble(graph, opset)) is not None
    return PROBED[key]


def assemble(graph, opset):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 21 else 10)


def session(model):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return ort.InferenceSession(model if isinstance(model, str) else model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return None


class Graph:
    """One graph that is drawn: its nodes and values have names that begin with its own."""

    def __init__(self, name, rng, opset, symbolic):
        self.name, self.rng, self.opset, self.symbolic = name, rng, opset, symbolic
        self.nodes, self.inputs, self.constants, self.values = [], [], [], []
        self.used = set()
        self.count = 0

    # Drawing.
    def chance(self, p):
        return self.rng.random() < p

    def choose(self, items):
        items = list(items)
        if not items:
            raise Unfit
        return items[int(self.rng.integers(len(items)))]

    def fresh(self, letter):
        self.count += 1
        return f"{self.name}_{letter}{self.count}"

    def extent(self):
        if self.symbolic and self.chance(0.5):
            return symbol(self.choose("NM"))
        return dim(int(self.rng.choice([0, 1, 2, 3, 4, 5], p=[0.03, 0.2, 0.27, 0.2, 0.2, 0.1])))

    def numbers(self, elem, shape, special=False, low=None):
        """Numbers of a type; small ones that are exact, or special ones."""
        kind, rng = NUMPY[elem], self.rng
        if elem == T.BOOL:
            return np.asarray(rng.integers(0, 2, shape)).astype(bool)
        if elem in FLOATS:
            most = 3 if MANTISSA[elem] < 12 else 16
            data = np.asarray(rng.integers(-most, most + 1, shape) / (1 if MANTISSA[elem] < 12 else 4)).astype(kind)
            if special and data.size:
                spots = np.asarray(rng.random(shape)) < 0.25
                data[spots] = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0]), int(spots.sum())).astype(kind)
            return data
        info = np.iinfo(kind)
        data = np.asarray(rng.integers(0 if info.min == 0 else -5, 8, shape)).astype(kind)
        if special and data.size:
            spots = np.asarray(rng.random(shape)) < 0.2
            data[spots] = rng.choice(np.array([info.min, info.max], kind), int(spots.sum()))
        return data

    def input(self, elem, shape):
        # What Python cannot give to ONNX Runtime comes through a Cast.
        kind = T.FLOAT if elem == T.BFLOAT16 else elem
        value = Value(self.fresh("x"), kind, shape)
        if kind in FLOATS:
            value.bound, value.fraction = (3, 0) if MANTISSA[elem] < 12 else (4, 2)
        self.inputs.append(value)
        if kind != elem:
            return self.emit("Cast", [value], elem, shape, to=elem, **value.same())
        self.values.append(value)
        return value

    def constant(self, array):
        array = np.asarray(array)
        elem = helper.np_dtype_to_tensor_dtype(array.dtype)
        value = Value(self.fresh("c"), elem, [dim(n) for n in array.shape], constant=array)
        if elem in FLOATS:
            wide = array.astype(np.float64)
            value.bound = float(np.abs(wide).max(initial=0))
            value.fraction = next((f for f in range(5) if np.all(wide * 2**f == np.round(wide * 2**f))), None)
        self.constants.append(value)
        return value

    def numbers_of(self, elem, shape):
        return self.constant(self.numbers(elem, shape))

    def integers(self, numbers, elem=T.INT64):
        return self.constant(np.array(numbers, NUMPY[elem]))

    def fixed(self, shape):
        """Extents as numbers, where they are."""
        if any(len(set(d)) > 1 for d in shape):
            raise Unfit
        return [d[0] for d in shape]

    def pick(self, fits=lambda v: True):
        """A value that fits, a late one rather than an early one; not a constant."""
        found = [v for v in self.values if fits(v)]
        if not found:
            raise Unfit
        weights = np.arange(1, len(found) + 1, dtype=float)
        return found[int(self.rng.choice(len(found), p=weights / weights.sum()))]

    def partner(self, value, bounded=None):
        """Another operand of the same type that broadcasts with a value."""
        if self.chance(0.5):
            found = [v for v in self.values if v.elem == value.elem and broadcast(v.shape, value.shape) is not None]
            if found:
                return self.choose(found)
        shape = [d if self.chance(0.7) else ONE for d in value.shape[int(self.rng.integers(value.rank + 1)) if self.chance(0.4) else 0:]]
        if self.chance(0.5) and all(len(set(d)) == 1 for d in shape):
            return self.numbers_of(value.elem, self.fixed(shape))
        return self.input(value.elem, shape)

    def emit(self, op, operands, elem, shape, bound=None, fraction=None, outputs=None, **attributes):
        """A node with one output, or with `outputs`: (elem, shape, bound, fraction) of each."""
        results = [Value(self.fresh("t"), *each) for each in (outputs or [(elem, shape, bound, fraction)])]
        for v in results:
            if v.real:
                if v.bound is None or not v.bound <= LARGEST[v.elem]:
                    raise Unfit
                if v.fraction is not None and math.log2(max(v.bound, 1)) + v.fraction > MANTISSA[v.elem] - 1:
                    v.fraction = None
            if v.rank > 5 or any(math.prod(each) > 4096 for each in zip(*v.shape)):
                raise Unfit
        node = helper.make_node(op, [v.name if v else "" for v in operands], [v.name for v in results], self.fresh("n"), **attributes)
        if not loadable(node, operands, self.opset):
            raise Unfit
        self.nodes.append(node)
        self.used.update(v.name for v in operands if v)
        self.values.extend(results)
        return results[0] if outputs is None else results

    def draw(self, count):
        for _ in range(int(self.rng.integers(1, 4))):
            elem = self.choose([T.FLOAT] * 5 + [T.FLOAT16, T.DOUBLE, T.BFLOAT16] * 2 + INTEGERS + [T.INT32, T.INT64, T.INT64, T.BOOL, T.BOOL])
            self.try_to(lambda: self.input(elem, [self.extent() for _ in range(int(self.rng.choice([0, 1, 2, 3, 4], p=[0.05, 0.2, 0.4, 0.25, 0.1])))]))
        for _ in range(8 * count):
            if len(self.nodes) >= count:
                break
            self.try_to(lambda: self.choose(OPERATORS)(self))
        # What nothing reads is an output; bfloat16 leaves as float.
        self.outputs = []
        for value in [v for v in self.values if v.name not in self.used and v not in self.inputs]:
            if value.elem == T.BFLOAT16:
                if not self.try_to(lambda: self.emit("Cast", [value], T.FLOAT, value.shape, to=T.FLOAT, **value.same())):
                    continue
                value = self.values[-1]
            self.outputs.append(value)
        self.trim()
        return bool(self.outputs)

    def try_to(self, action):
        """Undoes what an operator that does not fit has left."""
        kept = len(self.nodes), len(self.inputs), len(self.constants), len(self.values), set(self.used)
        try:
            action()
            return True
        except Unfit:
            for items, length in zip((self.nodes, self.inputs, self.constants, self.values), kept):
                del items[length:]
            self.used = kept[4]
            return False

    def trim(self):
        """Only what the outputs follow from."""
        needed = {v.name for v in self.outputs}
        nodes = []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                needed.update(node.input)
                nodes.append(node)
        self.nodes = nodes[::-1]
        self.inputs = [v for v in self.inputs if v.name in needed]
        self.constants = [v for v in self.constants if v.name in needed]

    def until(self, node):
        """The graph of what one node makes."""
        part = Graph(self.name, self.rng, self.opset, self.symbolic)
        part.nodes, part.inputs, part.constants, part.values = list(self.nodes), self.inputs, self.constants, self.values
        part.outputs = [v for v in self.values if v.name in node.output and v.elem != T.BFLOAT16]
        part.trim()
        return part

    def has(self, *elems):
        return any(v.elem in elems for v in self.values)

    def feeds(self):
        """(what is particular, name -> array): at each size, and at the first with special values."""
        rounds = [(i, False) for i in range(len(SIZES) if self.symbolic else 2)] + [(0, True)]
        return [(("special values " if special else "") + (f"at {SIZES[i]}" if self.symbolic else f"set {i}"),
                 {v.name: self.numbers(v.elem, [d[i] for d in v.shape], special) for v in self.inputs}) for i, special in rounds]


def info(value):
    return helper.make_tensor_value_info(value.name, value.elem, [d.text for d in value.shape])


def model_of(graphs, outputs=None, more=()):
    """One file with several graphs; `outputs` instead of theirs, and more nodes."""
    return assemble(helper.make_graph(
        [n for g in graphs for n in g.nodes] + list(more), "random", [info(v) for g in graphs for v in g.inputs],
        [info(v) for g in graphs for v in (outputs or g.outputs)],
        [numpy_helper.from_array(v.constant, v.name) for g in graphs for v in g.constants]), graphs[0].opset)


# Shapes.
def broadcast(a, b):
    result = []
    for i in range(max(len(a), len(b))):
        x = a[len(a) - 1 - i] if i < len(a) else ONE
        y = b[len(b) - 1 - i] if i < len(b) else ONE
        if x != y and x != ONE and y != ONE:
            return None
        result.append(y if x == ONE else x)
    return result[::-1]


def fits(*values):
    shape = []
    for v in values:
        shape = broadcast(shape, v.shape)
        if shape is None:
            raise Unfit
    return shape


def most(dims):
    """The most elements that these extents can hold."""
    return max(1, max(math.prod(each) for each in zip(*dims)) if dims else 1)


OPERATORS = []


def operator(weight=1):
    def add(function):
        OPERATORS.extend([function] * weight)
        return function
    return add


def places(*values):
    """Binary places of a sum of these, if they are exact."""
    return max(v.fraction for v in values) if all(v.fraction is not None for v in values) else None


@operator(5)
def arithmetic(g):
    a = g.pick(lambda v: v.elem != T.BOOL)
    b = g.partner(a)
    op = g.choose(["Add", "Sub", "Mul"])
    if g.chance(0.5):
        a, b = b, a
    if not a.real:
        return g.emit(op, [a, b], a.elem, fits(a, b))
    if op == "Mul":
        exact = a.fraction + b.fraction if places(a, b) is not None else None
        return g.emit(op, [a, b], a.elem, fits(a, b), a.bound * b.bound, exact)
    return g.emit(op, [a, b], a.elem, fits(a, b), a.bound + b.bound, places(a, b))


@operator(2)
def divide(g):
    a = g.pick(lambda v: v.elem != T.BOOL)
    if a.real:
        b = g.constant(np.array(g.choose([0.5, 2, 4, -2, 3, -1.5]), NUMPY[a.elem]))
        power = abs(float(b.constant)) in (0.5, 2, 4)
        return g.emit("Div", [a, b], a.elem, a.shape, a.bound * 2, a.fraction + 2 if power and a.exact else None)
    shape = g.fixed(a.shape[-1:]) if g.chance(0.5) and a.shape and len(set(a.shape[-1])) == 1 else []
    # Never 0 or -1, which processors do not divide all integers by.
    choices = [1, 2, 3, 5] + ([-2, -3] if a.elem in SIGNED else [])
    b = g.constant(g.rng.choice(choices, shape).astype(NUMPY[a.elem])) if g.chance(0.7) else clipped(g, g.partner(a), 1, 9)
    return g.emit(g.choose(["Div", "Mod"]), [a, b], a.elem, fits(a, b))


@operator()
def fmod(g):
    a = g.pick(lambda v: v.elem != T.BOOL and v.exact)
    b = g.constant(np.array(g.choose([1, 2, 3]), NUMPY[a.elem])) if g.chance(0.7) else g.partner(a)
    if not b.exact:
        raise Unfit
    if not a.real and b.constant is None:
        b = clipped(g, b, 1, 9)
    if a.real:
        return g.emit("Mod", [a, b], a.elem, fits(a, b), a.bound, places(a, b), fmod=1)
    return g.emit("Mod", [a, b], a.elem, fits(a, b), fmod=1)


@operator(2)
def power(g):
    a = g.pick(lambda v: v.elem != T.BOOL)
    exponent = g.choose([0, 1, 2, 3] + ([0.5, -1] if a.real else []))
    kind = g.choose([T.FLOAT, T.INT32, T.INT64, a.elem]) if float(exponent).is_integer() and exponent >= 0 else a.elem
    b = g.constant(np.array(exponent, NUMPY[kind]))
    if not a.real:
        return g.emit("Pow", [a, b], a.elem, a.shape)
    if exponent < 0 or exponent == 0.5:
        positive = g.emit("Abs", [a], a.elem, a.shape, **a.same())
        one = g.constant(np.array(1, NUMPY[a.elem]))
        a = g.emit("Add", [positive, one], a.elem, a.shape, a.bound + 1, a.fraction)
    if a.bound > 1e60:
        raise Unfit
    return g.emit("Pow", [a, b], a.elem, a.shape, max(1, a.bound)**max(1, exponent),
                  a.fraction * exponent if a.exact and exponent in (0, 1, 2, 3) else None)


@operator(3)
def compare(g):
    a = g.pick(lambda v: v.exact)
    b = g.partner(a)
    if not b.exact:
        raise Unfit
    op = "Equal" if a.elem == T.BOOL else g.choose(["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
    return g.emit(op, [a, b], T.BOOL, fits(a, b))


@operator(2)
def logic(g):
    a = g.pick(lambda v: v.elem == T.BOOL)
    if g.chance(0.3):
        return g.emit("Not", [a], T.BOOL, a.shape)
    b = g.partner(a)
    return g.emit(g.choose(["And", "Or", "Xor"]), [a, b], T.BOOL, fits(a, b))


@operator(3)
def where(g):
    a = g.pick()
    b = g.partner(a)
    found = [v for v in g.values if v.elem == T.BOOL and broadcast(v.shape, a.shape) is not None]
    c = g.choose(found) if found and g.chance(0.7) else g.partner(Value("", T.BOOL, a.shape))
    if g.chance(0.5):
        a, b = b, a
    return g.emit("Where", [c, a, b], a.elem, fits(a, b, c), max(a.bound, b.bound) if a.real else None, places(a, b) if a.real else None)


@operator(6)
def cast(g):
    a = g.pick()
    to = g.choose(FLOATS + INTEGERS + [T.BOOL])
    if to in FLOATS:
        if a.real:
            fraction = a.fraction
        else:
            narrow = a.elem in (T.BOOL, T.INT8, T.UINT8)
            # Integers may be anything: of few bits they are what they are, others are not exact in all types.
            fraction = 0 if a.elem == T.BOOL or narrow and MANTISSA[to] > 8 or to == T.DOUBLE and a.elem not in (T.INT64, T.UINT64) else None
        bound = a.bound if a.real else 1 if a.elem == T.BOOL else float(np.iinfo(NUMPY[a.elem]).max)
        if not a.real and a.elem not in (T.BOOL, T.INT8, T.UINT8) and g.chance(0.7):
            # Small integers are exact in any type.
            a = clipped(g, a, -9, 9)
            bound, fraction = 9, 0
        return g.emit("Cast", [a], to, a.shape, bound, fraction, to=to)
    if a.real:
        if not a.exact:
            raise Unfit
        limits = (0, 1) if to == T.BOOL else (np.iinfo(NUMPY[to]).min, np.iinfo(NUMPY[to]).max)
        if to != T.BOOL and (a.bound > limits[1] or limits[0] == 0):
            a = clipped(g, a, 0, 100)
    return g.emit("Cast", [a], to, a.shape, to=to)


def clipped(g, a, low, high):
    low = max(low, np.iinfo(NUMPY[a.elem]).min) if not a.real else low
    operands = [a, g.constant(np.array(low, NUMPY[a.elem])), g.constant(np.array(high, NUMPY[a.elem]))]
    return g.emit("Clip", operands, a.elem, a.shape, max(abs(low), abs(high)), a.fraction)


@operator()
def cast_like(g):
    a, like = g.pick(lambda v: v.exact), g.pick(lambda v: v.real)
    if g.opset < 15 or not a.real:
        raise Unfit
    return g.emit("CastLike", [a, like], like.elem, a.shape, **a.same())


@operator()
def is_special(g):
    a = g.pick(lambda v: v.real)
    if g.chance(0.5):
        return g.emit("IsNaN", [a], T.BOOL, a.shape)
    return g.emit("IsInf", [a], T.BOOL, a.shape, detect_negative=int(g.chance(0.7)), detect_positive=int(g.chance(0.7)))


@operator(2)
def clip(g):
    a = g.pick(lambda v: v.elem != T.BOOL)
    low, high = sorted(int(n) for n in g.rng.integers(0 if a.elem not in SIGNED + FLOATS else -4, 6, 2))
    operands = [a, g.constant(np.array(low, NUMPY[a.elem])) if g.chance(0.8) else None,
                g.constant(np.array(high, NUMPY[a.elem])) if g.chance(0.8) else None]
    if g.chance(0.15):
        scalars = [v for v in g.values if v.elem == a.elem and not v.rank]
        operands[1] = g.choose(scalars)
        if operands[2] and a.real:
            raise Unfit
    if a.real:
        if any(v and not v.exact for v in operands[1:]):
            raise Unfit
        bound = max([a.bound] + [v.bound for v in operands[1:] if v])
        return g.emit("Clip", operands, a.elem, a.shape, bound, places(*[v for v in operands if v]))
    return g.emit("Clip", operands, a.elem, a.shape)


@operator(3)
def of_many(g):
    a = g.pick(lambda v: v.elem != T.BOOL)
    operands = [a] + [g.partner(a) for _ in range(int(g.rng.integers(0, 4)))]
    g.rng.shuffle(operands)
    op = g.choose(["Min", "Max", "Sum", "Mean"])
    if not a.real:
        return g.emit(op, operands, a.elem, fits(*operands))
    bound = sum(v.bound for v in operands) if op in ("Sum", "Mean") else max(v.bound for v in operands)
    return g.emit(op, operands, a.elem, fits(*operands), bound, None if op == "Mean" else places(*operands))


@operator(2)
def bits(g):
    a = g.pick(lambda v: v.elem in INTEGERS)
    if g.chance(0.4):
        direction = g.choose(["LEFT", "RIGHT"])
        b = g.constant(np.array(g.choose([0, 1, 3, 7]), NUMPY[a.elem]))
        return g.emit("BitShift", [a, b], a.elem, a.shape, direction=direction)
    if g.chance(0.3):
        return g.emit("BitwiseNot", [a], a.elem, a.shape)
    b = g.partner(a)
    return g.emit(g.choose(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [a, b], a.elem, fits(a, b))


@operator(3)
def unary(g):
    a = g.pick(lambda v: v.elem != T.BOOL)
    op = g.choose(["Abs", "Neg", "Sign"] + (["Floor", "Ceil", "Round", "Relu"] if a.real else []))
    if not a.real:
        return g.emit(op, [a], a.elem, a.shape)
    if op in ("Sign", "Floor", "Ceil", "Round"):
        if not a.exact:
            raise Unfit
        return g.emit(op, [a], a.elem, a.shape, a.bound + 1 if op != "Sign" else 1, 0)
    return g.emit(op, [a], a.elem, a.shape, **a.same())


@operator(3)
def smooth(g):
    a = g.pick(lambda v: v.real)
    op = g.choose(["Exp", "Tanh", "Sigmoid", "Erf", "Softplus", "Softsign", "Sin", "Cos", "Atan", "Elu", "Selu", "LeakyRelu", "HardSigmoid",
                   "HardSwish", "Celu", "Gelu", "Mish", "Sqrt", "Log", "Reciprocal", "ThresholdedRelu", "Shrink"])
    if op in ("ThresholdedRelu", "Shrink") and not a.exact:
        raise Unfit
    if op in ("Exp", "Sin", "Cos") and a.bound > (8 if a.exact else 4):
        a = clipped(g, a, -4, 4)
    if op in ("Sqrt", "Log", "Reciprocal") and not (a.exact and g.chance(0.3) and op == "Sqrt"):
        a = g.emit("Abs", [a], a.elem, a.shape, **a.same())
        a = g.emit("Add", [a, g.constant(np.array(1, NUMPY[a.elem]))], a.elem, a.shape, a.bound + 1, a.fraction)
    bound = {"Exp": math.exp(min(a.bound, 8)), "Tanh": 1, "Sigmoid": 1, "Erf": 1, "Sin": 1, "Cos": 1}.get(op, 2 * a.bound + 2)
    return g.emit(op, [a], a.elem, a.shape, bound)


@operator(2)
def arg(g):
    a = g.pick(lambda v: v.elem != T.BOOL and v.rank > 0 and v.exact)
    axis, keep = int(g.rng.integers(-a.rank, a.rank)), int(g.chance(0.5))
    shape = reduced(a.shape, [axis], keep)
    last = {"select_last_index": int(g.chance(0.5))}
    return g.emit(g.choose(["ArgMax", "ArgMin"]), [a], T.INT64, shape, axis=axis, keepdims=keep, **last)


def reduced(shape, axes, keep):
    axes = {x % len(shape) for x in axes}
    if any(0 in shape[x] for x in axes):
        raise Unfit
    return [ONE if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]


@operator(4)
def reduce(g):
    op = g.choose(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"])
    a = g.pick(lambda v: v.elem != T.BOOL and v.rank > 0)
    axes = [int(x) for x in g.rng.choice(a.rank, int(g.rng.integers(1, a.rank + 1)), replace=False)]
    axes = [x - a.rank if g.chance(0.5) else x for x in axes]
    keep = int(g.chance(0.5))
    shape = reduced(a.shape, axes, keep)
    length = most([a.shape[x] for x in axes])
    operands, attributes = [a], {"keepdims": keep}
    if g.opset >= 18 or op == "ReduceSum":
        if g.chance(0.1):
            axes, shape, length = [], reduced(a.shape, range(a.rank), keep), most(a.shape)
            if g.chance(0.5):
                attributes["noop_with_empty_axes"] = 1
                if op != "ReduceSum":
                    raise Unfit
                shape, length = a.shape, 1
        else:
            operands.append(g.integers(axes))
    else:
        attributes["axes"] = axes
    if not a.real:
        if op in ("ReduceMean", "ReduceL2", "ReduceLogSumExp"):
            raise Unfit
        return g.emit(op, operands, a.elem, shape, **attributes)
    if length * math.log(max(1, a.bound)) > 600:
        raise Unfit
    bound = {"ReduceMax": a.bound, "ReduceMin": a.bound, "ReduceMean": a.bound, "ReduceProd": max(1, a.bound)**length,
             "ReduceSumSquare": length * a.bound**2, "ReduceLogSumExp": a.bound + math.log(length)}.get(op, length * a.bound)
    if op == "ReduceLogSumExp" and a.bound > 8:
        raise Unfit
    fraction = {"ReduceSum": a.fraction, "ReduceL1": a.fraction, "ReduceMax": a.fraction, "ReduceMin": a.fraction,
                "ReduceSumSquare": a.fraction and 2 * a.fraction, "ReduceProd": a.fraction and a.fraction * length}.get(op)
    return g.emit(op, operands, a.elem, shape, bound, fraction, **attributes)


@operator()
def cumulative(g):
    a = g.pick(lambda v: v.elem != T.BOOL and v.rank > 0)
    axis = int(g.rng.integers(-a.rank, a.rank))
    attributes = dict(exclusive=int(g.chance(0.3)), reverse=int(g.chance(0.3)))
    bound = a.bound * most([a.shape[axis]]) if a.real else None
    return g.emit("CumSum", [a, g.integers(axis)], a.elem, a.shape, bound, a.fraction, **attributes)


@operator(3)
def gather(g):
    a = g.pick(lambda v: v.rank > 0)
    kind = g.choose(["Gather", "Gather", "GatherElements", "GatherND", "ScatterND", "ScatterElements"])
    axis = int(g.rng.integers(-a.rank, a.rank))
    index = g.choose([T.INT32, T.INT64])
    at = axis % a.rank
    if kind == "Gather":
        length = min(a.shape[at])
        if length == 0:
            raise Unfit
        indices = g.integers(g.rng.integers(-length, length, [int(n) for n in g.rng.integers(0, 4, int(g.rng.integers(0, 3)))]), index)
        return g.emit("Gather", [a, indices], a.elem, a.shape[:at] + indices.shape + a.shape[at + 1:], axis=axis, **a.same())
    shape = g.fixed(a.shape)
    if 0 in shape:
        raise Unfit
    if kind in ("GatherElements", "ScatterElements"):
        own = [int(g.rng.integers(1, n + 1)) for n in shape]
        indices = g.rng.integers(-shape[at], shape[at], own)
        if kind == "GatherElements":
            own[at] = int(g.rng.integers(1, 5))
            indices = g.integers(g.rng.integers(-shape[at], shape[at], own), index)
            return g.emit(kind, [a, indices], a.elem, indices.shape, axis=axis, **a.same())
        order = np.argsort(g.rng.random([n if i != at else shape[at] for i, n in enumerate(own)]), axis=at)
        indices = g.integers(np.take(order, range(own[at]), axis=at), index)
        updates = g.numbers_of(a.elem, own) if g.chance(0.5) else g.input(a.elem, indices.shape)
        return g.emit(kind, [a, indices, updates], a.elem, a.shape, max(a.bound, updates.bound) if a.real else None,
                      places(a, updates) if a.real else None, axis=axis)
    depth = int(g.rng.integers(1, a.rank + 1))
    if kind == "GatherND":
        outer = [int(n) for n in g.rng.integers(1, 4, int(g.rng.integers(1, 3)))]
        indices = g.integers(np.stack([g.rng.integers(-n, n, outer) for n in shape[:depth]], -1))
        return g.emit(kind, [a, indices], a.elem, indices.shape[:-1] + a.shape[depth:], **a.same())
    cells = g.rng.permutation(math.prod(shape[:depth]))[:int(g.rng.integers(1, 5))]
    indices = g.integers(np.stack(np.unravel_index(cells, shape[:depth]), -1))
    own = indices.shape[:-1] + a.shape[depth:]
    updates = g.numbers_of(a.elem, g.fixed(own)) if g.chance(0.5) else g.input(a.elem, own)
    return g.emit(kind, [a, indices, updates], a.elem, a.shape, max(a.bound, updates.bound) if a.real else None,
                  places(a, updates) if a.real else None)


@operator()
def gather_computed(g):
    """Rows at positions that an input gives: of truth values, so that they are within."""
    a = g.pick(lambda v: v.rank > 0 and min(v.shape[0]) > 1)
    b = g.pick(lambda v: v.elem == T.BOOL and v.rank <= 2)
    indices = g.emit("Cast", [b], T.INT64, b.shape, to=T.INT64)
    return g.emit("Gather", [a, indices], a.elem, b.shape + a.shape[1:], axis=0, **a.same())


@operator()
def one_hot(g):
    depth, elem = int(g.rng.integers(1, 5)), g.choose([T.FLOAT, T.INT64, T.INT32, T.DOUBLE, T.FLOAT16])
    if g.chance(0.5):
        index = g.choose([T.INT64, T.INT32, T.FLOAT])
        indices = g.constant(g.rng.integers(-depth, depth, [int(n) for n in g.rng.integers(1, 4, int(g.rng.integers(0, 3)))]).astype(NUMPY[index]))
    else:
        indices = g.pick(lambda v: v.elem in (T.INT64, T.INT32) and v.rank < 4)
    axis = int(g.rng.integers(-indices.rank - 1, indices.rank + 1))
    values = g.constant(np.array([g.choose([0, 1, -1]), g.choose([1, 2, 0])], NUMPY[elem]))
    shape = list(indices.shape)
    shape.insert(axis % (indices.rank + 1), dim(depth))
    return g.emit("OneHot", [indices, g.integers(depth if g.chance(0.5) else [depth]), values], elem, shape, values.bound, values.fraction, axis=axis)


@operator()
def expand(g):
    a = g.pick(lambda v: v.rank < 5)
    target = [ONE if g.chance(0.3) else d if d != ONE else dim(int(g.rng.integers(1, 4))) for d in a.shape]
    target = [dim(int(g.rng.integers(1, 4))) for _ in range(int(g.rng.integers(0, 2)))] + target
    shape = broadcast(target, a.shape)
    if all(len(set(d)) == 1 for d in target):
        to = g.integers(g.fixed(target))
    else:
        other = g.input(g.choose([T.FLOAT, T.INT64, T.BOOL]), target)
        to = g.emit("Shape", [other], T.INT64, [dim(len(target))])
    return g.emit("Expand", [a, to], a.elem, shape, **a.same())


@operator()
def tile(g):
    a = g.pick(lambda v: v.rank > 0)
    repeats = [int(n) for n in g.rng.choice([0, 1, 2, 3], a.rank, p=[0.03, 0.5, 0.37, 0.1])]
    return g.emit("Tile", [a, g.integers(repeats)], a.elem, [combine(lambda d: d * r, e) for e, r in zip(a.shape, repeats)], **a.same())


@operator(2)
def pad(g):
    a = g.pick(lambda v: v.rank > 0)
    mode = g.choose(["constant", "constant", "reflect", "edge"] + (["wrap"] if g.opset >= 19 else []))
    before, after = g.rng.integers(0, 3, a.rank), g.rng.integers(0, 3, a.rank)
    if mode == "constant" and g.chance(0.3):
        before = g.rng.integers(-1, 2, a.rank)
    if mode == "reflect":
        before, after = np.minimum(before, 1), np.minimum(after, 1)
        if any(min(d) < 2 for d in a.shape):
            raise Unfit
    if any(min(d) < 3 for d in a.shape) and mode != "constant" or any(min(d) + b + c < 1 for d, b, c in zip(a.shape, before, after)):
        raise Unfit
    operands = [a, g.integers([int(n) for n in [*before, *after]])]
    value = None
    if mode == "constant" and g.chance(0.5):
        value = g.numbers_of(a.elem, [])
        operands.append(value)
    shape = [combine(lambda d: d + int(b) + int(c), d) for d, b, c in zip(a.shape, before, after)]
    bound = a.bound if value is None or not a.real else max(a.bound, value.bound)
    fraction = a.fraction if value is None or not a.real else places(a, value)
    return g.emit("Pad", operands, a.elem, shape, bound, fraction, mode=mode)


def sliced(extent, start, end, step):
    """How many elements ONNX takes of so many: beginnings and ends that are outside are moved inside."""
    low, high = (0, extent) if step > 0 else (0, extent - 1)
    first = min(max(start + extent * (start < 0), low), high)
    last = min(max(end + extent * (end < 0), low if step > 0 else -1), high)
    return max(0, -(-(last - first) // step))


@operator(4)
def slice_(g):
    a = g.pick(lambda v: v.rank > 0)
    axes = [int(x) for x in g.rng.choice(a.rank, int(g.rng.integers(1, min(a.rank, 2) + 1)), replace=False)]
    shape, starts, ends, named, steps = list(a.shape), [], [], [], []
    for x in axes:
        step = int(g.choose([1, 1, 1, 2, -1, -2]))
        least = min(a.shape[x])
        start = int(g.choose([0, 0, 1, -1, -2, least, 2, 100, -100]))
        end = int(g.choose([1000, 2**31 - 1, 2**63 - 1, least, -1, 2, 1, -2, -1000, -2**63 + 1]))
        if step < 0 and end >= 2**31 - 1:
            continue  # Runtimes differ.
        shape[x] = combine(lambda d: sliced(d, start, end, step), a.shape[x])
        named.append(x - a.rank if g.chance(0.5) else x)
        starts.append(start), ends.append(end), steps.append(step)
    if not starts:
        raise Unfit
    kind = T.INT64 if any(abs(e) > 2**31 for e in ends) or g.chance(0.7) else T.INT32
    operands = [a] + [g.integers(n, kind) for n in (starts, ends, named, steps)]
    return g.emit("Slice", operands, a.elem, shape, **a.same())


@operator(2)
def concat(g):
    a = g.pick(lambda v: v.rank > 0)
    at = int(g.rng.integers(a.rank))
    alike = [v for v in g.values if v.elem == a.elem and v.rank == a.rank
             and all(x == y for i, (x, y) in enumerate(zip(a.shape, v.shape)) if i != at)]
    operands = [a]
    for _ in range(int(g.rng.integers(0, 3))):
        if g.chance(0.6):
            operands.append(g.choose(alike))
        else:
            shape = a.shape[:at] + [g.extent()] + a.shape[at + 1:]
            operands.append(g.input(a.elem, shape))
    g.rng.shuffle(operands)
    shape = list(a.shape)
    shape[at] = combine(lambda *d: sum(d), *[v.shape[at] for v in operands])
    bound = max(v.bound for v in operands) if a.real else None
    return g.emit("Concat", operands, a.elem, shape, bound, places(*operands) if a.real else None, axis=at - a.rank if g.chance(0.5) else at)


@operator(2)
def split(g):
    a = g.pick(lambda v: v.rank > 0 and len(set(v.shape[-1])) == 1 and v.shape[-1][0] > 0 or v.rank > 0 and len(set(v.shape[0])) == 1 and v.shape[0][0] > 0)
    at = g.choose([i for i, d in enumerate(a.shape) if len(set(d)) == 1 and d[0] > 0])
    extent = a.shape[at][0]
    first = int(g.rng.integers(0, extent + 1))
    sizes = [first, extent - first] if g.chance(0.8) else [extent]
    outputs = [(a.elem, a.shape[:at] + [dim(n)] + a.shape[at + 1:], a.bound, a.fraction) for n in sizes]
    return g.emit("Split", [a, g.integers(sizes)], None, None, outputs=outputs, axis=at - a.rank if g.chance(0.5) else at)


@operator(4)
def reshape(g):
    a = g.pick()
    if all(len(set(d)) == 1 for d in a.shape) and g.chance(0.6):
        # Other factors.
        total, sizes = math.prod(g.fixed(a.shape)), []
        if total == 0:
            raise Unfit
        while total > 1 and len(sizes) < 3:
            divisor = g.choose([n for n in range(1, total + 1) if total % n == 0])
            sizes.append(divisor)
            total //= divisor
        sizes.append(total)
        shape = [dim(n) for n in sizes]
        numbers = list(sizes)
        if g.chance(0.5):
            numbers[int(g.rng.integers(len(numbers)))] = -1
        return g.emit("Reshape", [a, g.integers(numbers)], a.elem, shape, **a.same())
    if not a.rank:
        raise Unfit
    # The first axes stay (0), the others become one (-1).
    keep = int(g.rng.integers(0, a.rank))
    if any(0 in d for d in a.shape):
        raise Unfit
    shape = a.shape[:keep] + [combine(lambda *d: math.prod(d), *a.shape[keep:])]
    return g.emit("Reshape", [a, g.integers([0] * keep + [-1])], a.elem, shape, **a.same())


@operator(2)
def axes_of_one(g):
    if g.chance(0.3):
        a = g.pick()
        at = int(g.rng.integers(0, a.rank + 1))
        shape = [combine(lambda *d: math.prod(d), *(part or [ONE])) for part in (a.shape[:at], a.shape[at:])]
        return g.emit("Flatten", [a], a.elem, shape, axis=at, **a.same())
    if g.chance(0.5):
        a = g.pick(lambda v: ONE in v.shape)
        ones = [i for i, d in enumerate(a.shape) if d == ONE]
        axes = [i for i in ones if g.chance(0.6)] or ones[:1]
        shape = [d for i, d in enumerate(a.shape) if i not in axes]
        return g.emit("Squeeze", [a, g.integers([i - a.rank if g.chance(0.4) else i for i in axes])], a.elem, shape, **a.same())
    a = g.pick(lambda v: v.rank < 4)
    at = int(g.rng.integers(0, a.rank + 1))
    shape = a.shape[:at] + [ONE] + a.shape[at:]
    return g.emit("Unsqueeze", [a, g.integers([at - a.rank - 1 if g.chance(0.4) else at])], a.elem, shape, **a.same())


@operator(3)
def transpose(g):
    a = g.pick(lambda v: v.rank > 1)
    order = [int(i) for i in g.rng.permutation(a.rank)]
    return g.emit("Transpose", [a], a.elem, [a.shape[i] for i in order], perm=order, **a.same())


@operator(3)
def matmul(g):
    a = g.pick(lambda v: v.elem != T.BOOL and v.rank > 0)
    inner = a.shape[-1]
    found = [v for v in g.values if v.elem == a.elem and v.rank > 1 and v.shape[-2] == inner and broadcast(v.shape[:-2], a.shape[:-2]) is not None]
    if found and g.chance(0.4):
        b = g.choose(found)
    elif len(set(inner)) == 1 and g.chance(0.7):
        b = g.numbers_of(a.elem, [inner[0], int(g.rng.integers(1, 5))] if g.chance(0.85) else [inner[0]])
    else:
        b = g.input(a.elem, [inner, g.extent()])
    bound = a.bound * b.bound * most([inner]) if a.real else None
    fraction = a.fraction + b.fraction if a.real and places(a, b) is not None else None
    if g.chance(0.3) and a.rank == 2 and b.rank == 2:
        shape = [a.shape[0], b.shape[1]]
        operands, alpha, beta = [a, b], g.choose([1.0, 1.0, 2.0, 0.5]), g.choose([1.0, 1.0, 0.5, 0.0])
        if g.chance(0.6):
            c = g.partner(Value("", a.elem, [ONE, shape[1]]))
            if broadcast(c.shape, shape) != shape:
                raise Unfit
            operands.append(c)
            if a.real:
                bound, fraction = 2 * bound + c.bound, None if fraction is None or not c.exact else max(fraction, c.fraction) + 1
        elif a.real:
            bound, fraction = 2 * bound, None if fraction is None else fraction + 1
        return g.emit("Gemm", operands, a.elem, shape, bound, fraction, alpha=alpha, beta=beta)
    if b.rank == 1:
        shape = a.shape[:-1]
    elif a.rank == 1:
        shape = b.shape[:-2] + b.shape[-1:]
    else:
        shape = broadcast(a.shape[:-2], b.shape[:-2]) + [a.shape[-2], b.shape[-1]]
    return g.emit("MatMul", [a, b], a.elem, shape, bound, fraction)


@operator(2)
def normalize(g):
    a = g.pick(lambda v: v.real and v.rank > 0 and 0 not in v.shape[-1])
    axis = int(g.rng.integers(-a.rank, 0))
    if any(0 in d for d in a.shape[axis:]):
        raise Unfit
    op = g.choose(["Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "Hardmax"])
    if op in ("LayerNormalization", "RMSNormalization"):
        if g.opset < 17 or op == "RMSNormalization" and g.opset < 23:
            raise Unfit
        axis = -1
        extent = g.fixed(a.shape[-1:])
        operands = [a, g.numbers_of(a.elem, extent)]
        if op == "LayerNormalization" and g.chance(0.6):
            operands.append(g.numbers_of(a.elem, extent))
        # A large epsilon: rows that are all but equal amplify no rounding.
        return g.emit(op, operands, a.elem, a.shape, 40, axis=axis, epsilon=g.choose([0.1, 0.5]))
    if op == "Hardmax":
        if not a.exact:
            raise Unfit
        return g.emit(op, [a], a.elem, a.shape, 1, 0, axis=axis)
    return g.emit(op, [a], a.elem, a.shape, 1 if op == "Softmax" else 2 * a.bound + 10, axis=axis)


@operator(2)
def quantize(g):
    if g.chance(0.5):
        a = g.pick(lambda v: v.real and v.exact)
        to = g.choose([T.INT8, T.UINT8, T.INT16, T.UINT16])
        scale = g.constant(np.array(g.choose([0.25, 0.5, 1]), NUMPY[a.elem]))
        operands = [a, scale, g.constant(np.array(g.choose([0, 1, 3]), NUMPY[to]))]
        return g.emit("QuantizeLinear", operands, to, a.shape)
    a = g.pick(lambda v: v.elem in (T.INT8, T.UINT8, T.INT32, T.INT16, T.UINT16))
    to = g.choose([T.FLOAT, T.FLOAT, T.FLOAT16]) if g.opset >= 19 else T.FLOAT
    scale = g.constant(np.array(g.choose([0.25, 0.5, 1]), NUMPY[to]))
    operands = [a, scale]
    if a.elem != T.INT32 and g.chance(0.7):
        operands.append(g.constant(np.array(g.choose([0, 1, 3]), NUMPY[a.elem])))
    narrow = a.elem in (T.INT8, T.UINT8)
    return g.emit("DequantizeLinear", operands, to, a.shape, 300 if narrow else 7e4 if a.elem != T.INT32 else 3e9,
                  2 if narrow and to == T.FLOAT else None)


# Extents as numbers.
def extents(g, a):
    """The shape of a value as a tensor, with its numbers at each size."""
    return g.emit("Shape", [a], T.INT64, [dim(a.rank)])


def extent_of(g, a, axis, rank=0):
    shape = extents(g, a)
    return g.emit("Gather", [shape, g.integers(axis if rank == 0 else [axis])], T.INT64, [ONE] * rank, axis=0)


@operator(2)
def size(g):
    a = g.pick()
    if g.chance(0.3):
        return g.emit("Size", [a], T.INT64, [])
    if g.opset >= 15 and a.rank > 1 and g.chance(0.3):
        start = int(g.rng.integers(0, a.rank))
        return g.emit("Shape", [a], T.INT64, [dim(a.rank - start)], start=start)
    return extents(g, a)


@operator(2)
def filled(g):
    a = g.pick(lambda v: v.rank > 0)
    elem = g.choose([T.FLOAT, T.INT64, T.INT32, T.BOOL, T.DOUBLE, T.UINT8, T.FLOAT16])
    number = np.array([g.choose([0, 1, 1, 3 if elem != T.BOOL else 1])], NUMPY[elem])
    return g.emit("ConstantOfShape", [extents(g, a)], elem, a.shape, float(number[0]) if elem in FLOATS else None, 0,
                  value=numpy_helper.from_array(number))


@operator(2)
def counted(g):
    a = g.pick(lambda v: v.rank > 0)
    axis = int(g.rng.integers(a.rank))
    length = extent_of(g, a, axis)
    start, step = g.choose([(0, 1), (1, 1), (0, 2), (0, -1)])
    shape = combine(lambda d: max(0, -(-(d - start) // step)), a.shape[axis])
    return g.emit("Range", [g.integers(start), length, g.integers(step)], T.INT64, [shape])


@operator(2)
def reshaped_by_extents(g):
    a = g.pick(lambda v: v.rank > 1 and not any(0 in d for d in v.shape))
    parts = [extent_of(g, a, 0, 1), g.integers([-1])]
    shape = [a.shape[0], combine(lambda *d: math.prod(d), *a.shape[1:])]
    if g.chance(0.4):
        product = g.emit("Mul", [parts[0], extent_of(g, a, 1, 1)], T.INT64, [ONE])
        parts[0], shape = product, [combine(lambda x, y: x * y, *a.shape[:2]), combine(lambda *d: math.prod(d), *(a.shape[2:] or [ONE]))]
    to = g.emit("Concat", parts, T.INT64, [dim(2)], axis=0)
    return g.emit("Reshape", [a, to], a.elem, shape, **a.same())


@operator(2)
def sliced_by_extents(g):
    a = g.pick(lambda v: v.rank > 0 and min(v.shape[0]) > 0)
    length = extent_of(g, a, 0, 1)
    if g.chance(0.5):
        end = g.emit("Div", [length, g.integers([2])], T.INT64, [ONE])
        shape = combine(lambda d: d // 2, a.shape[0])
    else:
        end = g.emit("Sub", [length, g.integers([1])], T.INT64, [ONE])
        shape = combine(lambda d: d - 1, a.shape[0])
    bounds = [g.integers([0]), end]
    if g.chance(0.3):
        bounds, shape = [end, g.integers([2**63 - 1])], combine(lambda d, e: d - e, a.shape[0], shape)
    return g.emit("Slice", [a, *bounds, g.integers([0])], a.elem, [shape] + a.shape[1:], **a.same())


@operator()
def expanded_like(g):
    a = g.pick(lambda v: v.rank > 0)
    other = g.pick(lambda v: broadcast(v.shape, a.shape) is not None)
    return g.emit("Expand", [a, extents(g, other)], a.elem, broadcast(a.shape, other.shape), **a.same())


@operator()
def triangle(g):
    a = g.pick(lambda v: v.rank > 1 and (v.real or v.elem in (T.INT64, T.BOOL)))
    if g.opset < 14:
        raise Unfit
    operands = [a] + ([g.integers(int(g.rng.integers(-2, 3)))] if g.chance(0.6) else [])
    return g.emit("Trilu", operands, a.elem, a.shape, upper=int(g.chance(0.5)), **a.same())


@operator()
def identity(g):
    a = g.pick()
    return g.emit(g.choose(["Identity", "Dropout"]) if a.real and a.elem != T.BFLOAT16 else "Identity", [a], a.elem, a.shape, **a.same())


# What taso-run computes otherwise where operands are not finite, or may once a node is rewritten (docs/testing.md).
NOT_AT_INFINITY = {"Trilu", "LogSoftmax", "ReduceLogSumExp", "Sign", "Max", "Min", "ReduceMax", "ReduceMin", "Shrink", "ThresholdedRelu"}


# Whose Relu, in one kernel of taso-run, makes 0 of NaN (docs/testing.md).
PRODUCTS = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"}


# Where ONNX says what a node computes.
def defined(node, operands, varying, multiplied):
    """Whether ONNX defines the node's result for these operands; `varying` are the names of what depends on inputs, `multiplied` of what
    depends on products."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    op, a = node.op_type, operands[0]
    with np.errstate(all="ignore"):
        if op in ("Cast", "CastLike"):
            to = NUMPY[attributes["to"]] if op == "Cast" else operands[1].dtype
            if a.dtype.kind != "f" or not np.issubdtype(to, np.integer):
                return True
            wide = np.trunc(a.astype(np.float64))
            return bool(np.all((wide >= float(np.iinfo(to).min)) & (wide <= float(np.iinfo(to).max)) & (np.abs(wide) < 2.0**63)))
        if op in ("Div", "Mod") and a.dtype.kind in "iu":
            b = operands[1]
            overflow = a.dtype.kind == "i" and np.any(a == np.iinfo(a.dtype).min) and np.any(b == -1)
            return not np.any(b == 0) and not overflow
        if op == "BitShift":
            return bool(np.all((operands[1] >= 0) & (operands[1] < 8 * a.dtype.itemsize)))
        if op == "Pow" and a.dtype.kind in "iu":
            result = np.power(a.astype(np.float64), operands[1].astype(np.float64))
            return bool(np.all(np.abs(result) <= min(2.0**53, float(np.iinfo(a.dtype).max))) and np.all(operands[1] >= 0))
        if op == "QuantizeLinear":
            return bool(np.all(np.isfinite(a.astype(np.float64))))
        if op in ("ArgMax", "ArgMin", "Hardmax") and a.dtype.kind not in "iu":
            return not np.any(np.isnan(a.astype(np.float64)))
        # Known differences at what is not finite (docs/testing.md).
        if (op in NOT_AT_INFINITY or op == "Clip" and (len(operands) < 3 or operands[1] is None or operands[2] is None)
                or op == "Where" and node.input[0] not in varying or op == "Relu" and node.input[0] in multiplied):
            return all(np.all(np.isfinite(x.astype(np.float64))) for x in operands if x is not None and x.dtype.kind not in "iub")
    return True


class Trial:
    """A graph with inputs, and what ONNX Runtime makes of them."""

    def __init__(self, graph):
        self.graph, self.feeds, self.results, self.defined, self.scales, self.reason = graph, graph.feeds(), [], [], [], None
        known = {v.name: v for v in graph.values}
        # What Python has no type for is looked at as float.
        made = [n for node in graph.nodes for n in node.output]
        wide = {n: Value(f"{n}_wide", T.FLOAT, known[n].shape) for n in made if known[n].elem == T.BFLOAT16}
        inner = session(model_of([graph], [wide.get(n, known[n]) for n in made],
                                 [helper.make_node("Cast", [n], [v.name], to=T.FLOAT) for n, v in wide.items()]))
        # ONNX Runtime computes several nodes of 16 bits in 32: what is between is then rounded only if it is an output.
        narrow = graph.has(T.FLOAT16, T.BFLOAT16)
        runner = session(model_of([graph])) if narrow else inner
        if runner is None or inner is None:
            self.reason = "not loaded"
            return
        asked = [v.name for v in graph.outputs]
        varying, multiplied = {v.name for v in graph.inputs}, set()
        for node in graph.nodes:
            if node.op_type not in ("Shape", "Size") and varying & set(node.input):
                varying.update(node.output)
            if node.op_type in PRODUCTS or multiplied & set(node.input):
                multiplied.update(node.output)
        for _, feed in self.feeds:
            try:
                values = dict(zip(made, inner.run(None, feed)))
                self.results.append(runner.run(asked, feed) if narrow else [values[n] for n in asked])
            except Exception:
                self.reason = "not run"
                return
            values.update(feed)
            values.update({v.name: v.constant for v in graph.constants})
            self.defined.append(all(defined(node, [values.get(n) for n in node.input], varying, multiplied) for node in graph.nodes))
            self.scales.append(max([1.0] + [float(np.max(np.abs(x[np.isfinite(x)]), initial=0)) for x in values.values()
                                            if x.dtype.kind == "f"]))
        if not any(self.defined):
            self.reason = "not defined"


def precision(graph):
    kinds = {v.elem for v in graph.values}
    return 2**-5 if T.BFLOAT16 in kinds else 2**-7 if T.FLOAT16 in kinds else 2**-15


def unequal(graph, expected, actual, scale):
    """What is different, in words, or None."""
    for value, a, b in zip(graph.outputs, expected, actual):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{value.name}: {b.dtype}{list(b.shape)} instead of {a.dtype}{list(a.shape)}"
        if a.dtype.kind != "f":
            if not np.array_equal(a, b):
                return f"{value.name}: {b.ravel()[(a != b).ravel()][:4]} instead of {a.ravel()[(a != b).ravel()][:4]}"
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.abs(x - y) <= precision(graph) * scale
        same = np.where(np.isfinite(x) & np.isfinite(y), near, (x == y) | np.isnan(x) & np.isnan(y))
        if not np.all(same):
            return f"{value.name}: {y[~same].ravel()[:4]} instead of {x[~same].ravel()[:4]}"
    return None


def spoil(path):
    """Makes another operator of a node."""
    model = onnx.load(path)
    others = {"Add": "Sub", "Max": "Min", "And": "Or", "Less": "Greater", "Mul": "Add", "ReduceMax": "ReduceMin"}
    node = next((n for n in model.graph.node if n.op_type in others), None)
    if node is not None:
        node.op_type = others[node.op_type]
        onnx.save(model, path)


class Programs:
    def __init__(self, options):
        self.folder, self.work, self.steps = pathlib.Path(options.programs), pathlib.Path(options.work), options.steps
        self.plant_fault = options.plant_fault
        self.none = self.work / "none.rules"
        self.none.write_text("# none\n")

    def run(self, *words, limit=100):
        try:
            return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, -1, "", "takes too long")

    def optimized(self, model, how, name="model"):
        """The result's path, or what was said."""
        path, out = self.work / f"{name}.onnx", self.work / f"{name}.optimized.onnx"
        onnx.save(model, path)
        out.unlink(missing_ok=True)
        words = ["--rules", self.none, "--no-check"] if how == "no rules" else ["--steps", self.steps]
        done = self.run(self.folder / "taso-opt", path, "-o", out, "--cost", "launches", "--no-certificate", "-q", *words)
        if done.returncode:
            return None, f"exit code {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}"
        if self.plant_fault:
            spoil(out)
        return out, None

    def carried(self, model):
        """Names of the graphs of a file that taso-run does not understand as a whole, or None for all."""
        path = self.work / "asked.onnx"
        onnx.save(model, path)
        done = self.run(self.folder / "taso-run", path, "--print-graph", "--as-is", "-q")
        if done.returncode:
            return None
        return {m.group(1) for line in done.stdout.splitlines() if " opaque " in line and (m := re.search(r"'(g\d+)_", line))}

    def executed(self, model, feed):
        path, folder = self.work / "executed.onnx", self.work / "values"
        onnx.save(model, path)
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.npy"):
            old.unlink()
        words = []
        for name, data in feed.items():
            np.save(folder / f"in.{name}.npy", data)
            words += ["--input", f"{name}={folder / f'in.{name}.npy'}"]
        done = self.run(self.folder / "taso-run", path, "--repeat", "1", "-q", "--save-outputs", folder / "out", *words)
        if done.returncode:
            return None, f"exit code {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}"
        return {v.name: np.load(folder / "out" / f"{v.name}.npy") for v in model.graph.output}, None


LACKING = "ONNX Runtime lacks operators of the result"


def judged(path, trials):
    """What differs in a file's result: trial -> words."""
    runner = session(str(path))
    if runner is None:
        if len(trials) > 1:
            return None
        # ONNX Runtime has few operators of bfloat16 on a CPU: not always those that others consist of.
        return {trials[0]: LACKING if trials[0].graph.has(T.BFLOAT16) else "ONNX Runtime does not load the result"}
    found = {}
    for number, (where, _) in enumerate(trials[0].feeds):
        try:
            outputs = runner.run(None, {name: data for t in trials for name, data in t.feeds[number][1].items()})
        except Exception as error:
            if len(trials) > 1:
                return None
            return {trials[0]: f"ONNX Runtime does not run the result {where}: {str(error).splitlines()[0][:200]}"}
        results = dict(zip([o.name for o in runner.get_outputs()], outputs))
        for t in trials:
            if t.defined[number] and (what := unequal(t.graph, t.results[number], [results[v.name] for v in t.graph.outputs], t.scales[number])):
                found.setdefault(t, f"{what}, {where}")
    return found


def optimized_otherwise(programs, how, trials):
    """What differs between originals and results: trial -> words. A file that is refused is cut in two."""
    out, said = programs.optimized(model_of([t.graph for t in trials]), how)
    if said and len(trials) == 1:
        return {trials[0]: said}
    found = judged(out, trials) if not said else None
    if found is None:
        half = len(trials) // 2
        found = {**optimized_otherwise(programs, how, trials[:half]), **optimized_otherwise(programs, how, trials[half:])}
    return found


def executed_otherwise(programs, trials, counts):
    """The same for taso-run, of the graphs that are understood."""
    carried = programs.carried(model_of([t.graph for t in trials]))
    half = len(trials) // 2
    if carried is None:
        if len(trials) == 1:
            return {trials[0]: "taso-run does not read it"}
        return {**executed_otherwise(programs, trials[:half], counts), **executed_otherwise(programs, trials[half:], counts)}
    trials = [t for t in trials if t.graph.name not in carried]
    if not trials:
        return {}
    counts["run by taso-run"] += len(trials)
    found = {}
    model = model_of([t.graph for t in trials])
    for number, (where, _) in enumerate(trials[0].feeds):
        results, said = programs.executed(model, {name: data for t in trials for name, data in t.feeds[number][1].items()})
        if said:
            if len(trials) == 1:
                return {trials[0]: said}
            half = len(trials) // 2
            return {**executed_otherwise(programs, trials[:half], collections.Counter()),
                    **executed_otherwise(programs, trials[half:], collections.Counter())}
        for t in trials:
            if t.defined[number] and (what := unequal(t.graph, t.results[number], [results[v.name] for v in t.graph.outputs], t.scales[number])):
                found.setdefault(t, f"{what}, {where}")
    return found


def smallest(trial, check):
    """The least part of a graph, up to one node, in which a difference shows."""
    for node in trial.graph.nodes:
        part = trial.graph.until(node)
        if not part.outputs or len(part.nodes) == len(trial.graph.nodes):
            continue
        smaller = Trial.__new__(Trial)
        part.rng = np.random.default_rng(0)
        part.feeds = lambda: [(where, {v.name: feed[v.name] for v in part.inputs}) for where, feed in trial.feeds]
        smaller.__init__(part)
        if smaller.reason is None and (found := check([smaller])):
            return smaller, found[smaller]
    return trial, None


def draw(seed, number, name, options):
    """The graph of a number; files have one opset, and are symbolic or not."""
    file = number // options.per_file
    return Graph(name, np.random.default_rng([seed, number]), OPSETS[file // 2 % len(OPSETS)], file % 2 == 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs")
    parser.add_argument("work")
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    parser.add_argument("--per-file", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no file after so many")
    parser.add_argument("--only", default="no rules,shipped rules,taso-run")
    parser.add_argument("--plant-fault", action="store_true", help="make one node of each result another: differences must be found")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    pathlib.Path(options.work).mkdir(parents=True, exist_ok=True)
    programs = Programs(options)
    begun = time.monotonic()
    counts, drawn, ways = collections.Counter(), collections.Counter(), options.only.split(",")
    file = options.first
    while counts["compared"] < options.graphs and time.monotonic() - begun < options.seconds:
        trials = []
        for place in range(options.per_file):
            graph = draw(options.seed, file * options.per_file + place, f"g{place}", options)
            if not graph.draw(int(graph.rng.integers(3, 11))):
                counts["without a node"] += 1
                continue
            trial = Trial(graph)
            if trial.reason:
                counts[trial.reason] += 1
                if options.verbose:
                    print(trial.reason, onnx.printer.to_text(model_of([graph]).graph), flush=True)
            else:
                trials.append(trial)
                counts["compared"] += 1
                drawn.update(n.op_type for n in graph.nodes)
        if not trials:
            file += 1
            continue
        for how in ways:
            if how == "taso-run":
                if trials[0].graph.symbolic:
                    continue
                check = lambda some: executed_otherwise(programs, some, counts)
            else:
                check = lambda some, how=how: optimized_otherwise(programs, how, some)
            for trial, what in check(trials).items():
                if what == LACKING:
                    counts["with results of bfloat16 that it lacks"] += 1
                    continue
                counts["differences"] += 1
                kept = dict(counts)
                least, again = smallest(trial, check)
                counts.clear(), counts.update(kept)
                print(f"DIFFERENT: seed {options.seed} file {file} {trial.graph.name}, {how}, opset {trial.graph.opset}: {again or what}\n"
                      + onnx.printer.to_text(model_of([least.graph]).graph), flush=True)
        file += 1
        if options.verbose and file % 10 == 0:
            print(f"{file} files, {dict(counts)}, {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{counts['compared']} graphs in {file - options.first} files, {sum(drawn.values())} nodes of {len(drawn)} operators: "
          f"{counts['differences']} differences; {counts['run by taso-run']} run by taso-run; left out: "
          + (", ".join(f"{n} {what}" for what, n in counts.items() if what in ("not loaded", "not run", "not defined", "without a node", "with results of bfloat16 that it lacks")) or "none"))
    if options.verbose:
        print(", ".join(f"{op} {n}" for op, n in drawn.most_common()))
    return int((counts["differences"] == 0) == options.plant_fault)


if __name__ == "__main__":
    sys.exit(main())
