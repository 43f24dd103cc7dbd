"""ONNX models as torch.fx graphs, for comparison: the same file that taso-opt reads, run by PyTorch.

    module = import_model("model.onnx")             # a torch.fx.GraphModule; floats are f32 parameters
    outputs = module(*inputs)                        # a tuple, inputs in the file's order (without initializers)

Every operator becomes the call that a person would write (torch.nn.functional.conv2d, torch.cat, ...), so that eager
execution carries no overhead of the importer and torch.compile sees a clean graph. What ONNX computes from constants
(shapes, Constant nodes, casts of them) is computed here, once. Operators of the default domain that the example models
and taso-opt's results use are covered; anything else is an error that names node and operator.
"""

import operator
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

DTYPES = {
    onnx.TensorProto.FLOAT: torch.float32,
    onnx.TensorProto.FLOAT16: torch.float16,
    onnx.TensorProto.DOUBLE: torch.float64,
    onnx.TensorProto.INT64: torch.int64,
    onnx.TensorProto.INT32: torch.int32,
    onnx.TensorProto.BOOL: torch.bool,
}


class Unsupported(Exception):
    """A node that cannot be imported."""


# What has no single call in torch.


def average_pool_without_pads(x, kernel, strides, pads, ceil_mode):
    """Averages over the elements inside the image, with different padding before and after."""
    ones = torch.ones_like(x[:1, :1])
    sums = F.avg_pool2d(F.pad(x, pads), kernel, strides, 0, ceil_mode, True, 1)
    counts = F.avg_pool2d(F.pad(ones, pads), kernel, strides, 0, ceil_mode, True, 1)
    return sums / counts



def onnx_lrn(x, size, alpha, beta, bias):
    """The sum runs over floor((size - 1) / 2) channels before and ceil((size - 1) / 2) after."""
    squares = (x * x).unsqueeze(1)
    before = (size - 1) // 2
    padded = F.pad(squares, (0, 0, 0, 0, before, size - 1 - before))
    mean = F.avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1)
    return x / torch.pow(bias + alpha * mean, beta)


def expand_to(x, shape):
    return x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(shape)))


def softmax_from(x, axis):
    """Before opset 13: over all axes from this one on."""
    return torch.softmax(torch.flatten(x, axis), -1).reshape(x.shape)


def flatten_at(x, axis):
    rows = 1
    for extent in x.shape[:axis]:
        rows *= extent
    return x.reshape(rows, -1)


class Importer:
    def __init__(self, model):
        self.proto = model.graph
        self.opset = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        self.graph = torch.fx.Graph()
        self.root = torch.nn.Module()
        self.values = {}  # name -> fx node
        self.constants = {}  # name -> numpy array, for what is known at import
        self.fetched = {}  # name -> fx node of a parameter
        self.shapes = {}
        inferred = onnx.shape_inference.infer_shapes(model).graph
        for info in list(inferred.input) + list(inferred.value_info) + list(inferred.output):
            dims = info.type.tensor_type.shape.dim
            if info.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in dims):
                self.shapes[info.name] = [d.dim_value for d in dims]
        for tensor in self.proto.initializer:
            self.constants[tensor.name] = numpy_helper.to_array(tensor)

    def run(self):
        for value in self.proto.input:
            if value.name not in self.constants:
                self.values[value.name] = self.graph.placeholder(self.identifier(value.name))
        for node in self.proto.node:
            self.add(node)
        self.graph.output(tuple(self.use(o.name) for o in self.proto.output))
        module = torch.fx.GraphModule(self.root, self.graph)
        module.eval()
        return module

    @staticmethod
    def identifier(name):
        return "v_" + "".join(c if c.isalnum() else "_" for c in name)

    # ---- Operands.

    def use(self, name):
        """The fx node of a tensor; a constant becomes a parameter (floats) or a buffer."""
        if name in self.values:
            return self.values[name]
        if name not in self.fetched:
            if name not in self.constants:
                raise Unsupported(f"tensor '{name}' is used before it is made")
            array = self.constants[name]
            attribute = f"constant_{len(self.fetched)}"
            tensor = torch.from_numpy(np.ascontiguousarray(array).copy()).reshape(array.shape)
            if tensor.is_floating_point():
                self.root.register_parameter(attribute, torch.nn.Parameter(tensor, requires_grad=False))
            else:
                self.root.register_buffer(attribute, tensor)
            self.fetched[name] = self.graph.get_attr(attribute)
        return self.fetched[name]

    def constant(self, node, position, default=None):
        """The value of an operand that must be known at import."""
        if position >= len(node.input) or not node.input[position]:
            return default
        name = node.input[position]
        if name not in self.constants:
            raise Unsupported(f"{node.op_type} '{node.name}': operand '{name}' is not constant")
        return self.constants[name]

    def integers(self, node, position, default=None):
        value = self.constant(node, position)
        return default if value is None else [int(v) for v in np.asarray(value).reshape(-1)]

    def axes(self, node, attributes, position):
        """Axes are an attribute in old opsets, an operand in newer ones."""
        if "axes" in attributes:
            return list(attributes["axes"])
        return self.integers(node, position)

    def rank(self, name):
        if name in self.shapes:
            return len(self.shapes[name])
        if name in self.constants:
            return self.constants[name].ndim
        raise Unsupported(f"the rank of '{name}' is not known")

    def shape(self, name):
        if name in self.constants:
            return list(self.constants[name].shape)
        if name not in self.shapes:
            raise Unsupported(f"the shape of '{name}' is not known")
        return self.shapes[name]

    # ---- Nodes.

    def call(self, function, *args, **kwargs):
        return self.graph.call_function(function, args, kwargs)

    def method(self, name, *args):
        return self.graph.call_method(name, args)

    def add(self, node):
        if node.domain not in ("", "ai.onnx"):
            raise Unsupported(f"{node.domain}.{node.op_type} '{node.name}'")
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if self.fold(node, attributes):
            return
        handler = getattr(self, "op_" + node.op_type, None)
        if handler is None and node.op_type in SIMPLE:
            result = self.call(SIMPLE[node.op_type], *[self.use(name) for name in node.input])
        elif handler is None:
            raise Unsupported(f"{node.op_type} '{node.name}' has no translation")
        else:
            result = handler(node, attributes)
        outputs = [name for name in node.output if name]
        if isinstance(result, list):
            for name, value in zip(node.output, result):
                if name:
                    self.values[name] = value
        else:
            self.values[outputs[0]] = result

    def fold(self, node, attributes):
        """Constants made of constants. Weights stay as they are: only integers and scalars are folded."""
        out = node.output[0]
        if node.op_type == "Constant":
            if "value" in attributes:
                self.constants[out] = numpy_helper.to_array(attributes["value"])
            else:
                kind, value = next(iter(attributes.items()))
                dtype = np.float32 if "float" in kind else np.int64
                self.constants[out] = np.array(value, dtype)
            return True
        if node.op_type == "Shape":
            shape = self.shape(node.input[0])
            self.constants[out] = np.array(shape[attributes.get("start", 0) : attributes.get("end", len(shape))], np.int64)
            return True
        if not node.input or any(name and name not in self.constants for name in node.input):
            return False
        inputs = [self.constants[name] if name else None for name in node.input]
        if any(i is not None and i.size > 4096 for i in inputs):
            return False
        folded = fold_constant(node.op_type, inputs, attributes, self.opset)
        if folded is None:
            return False
        self.constants[out] = folded
        return True

    # ---- Convolutions and poolings.

    def spatial_pads(self, node, attributes, kernel, strides, dilations):
        """(before..., after...) per spatial axis."""
        rank = len(kernel)
        auto = attributes.get("auto_pad", b"NOTSET").decode()
        if auto in ("NOTSET", ""):
            return list(attributes.get("pads", [0] * 2 * rank))
        if auto == "VALID":
            return [0] * 2 * rank
        before, after = [], []
        for extent, k, s, d in zip(self.shape(node.input[0])[2:], kernel, strides, dilations):
            total = max(0, (-(-extent // s) - 1) * s + (k - 1) * d + 1 - extent)
            small, large = total // 2, total - total // 2
            before.append(small if auto == "SAME_UPPER" else large)
            after.append(large if auto == "SAME_UPPER" else small)
        return before + after

    @staticmethod
    def torch_pads(pads):
        """As F.pad wants them: last axis first, before and after."""
        rank = len(pads) // 2
        return [p for axis in reversed(range(rank)) for p in (pads[axis], pads[axis + rank])]

    def op_Conv(self, node, attributes):
        kernel = self.shape(node.input[1])[2:]
        strides = list(attributes.get("strides", [1] * len(kernel)))
        dilations = list(attributes.get("dilations", [1] * len(kernel)))
        pads = self.spatial_pads(node, attributes, kernel, strides, dilations)
        half = len(kernel)
        x = self.use(node.input[0])
        if pads[:half] != pads[half:]:
            x, padding = self.call(F.pad, x, self.torch_pads(pads)), [0] * half
        else:
            padding = pads[:half]
        bias = self.use(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[half]
        return self.call(function, x, self.use(node.input[1]), bias, strides, padding, dilations, attributes.get("group", 1))

    def op_ConvTranspose(self, node, attributes):
        kernel = self.shape(node.input[1])[2:]
        half = len(kernel)
        pads = list(attributes.get("pads", [0] * 2 * half))
        auto = attributes.get("auto_pad", b"NOTSET").decode()
        if pads[:half] != pads[half:] or "output_shape" in attributes or auto not in ("NOTSET", "", "VALID") or half != 2:
            raise Unsupported(f"ConvTranspose '{node.name}' with these pads")
        bias = self.use(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        return self.call(
            F.conv_transpose2d, self.use(node.input[0]), self.use(node.input[1]), bias,
            list(attributes.get("strides", [1] * half)), pads[:half],
            list(attributes.get("output_padding", [0] * half)), attributes.get("group", 1),
            list(attributes.get("dilations", [1] * half)),
        )

    def op_MaxPool(self, node, attributes):
        kernel = list(attributes["kernel_shape"])
        half = len(kernel)
        if half != 2 or (len(node.output) > 1 and node.output[1]):
            raise Unsupported(f"MaxPool '{node.name}' of rank {half} or with indices")
        strides = list(attributes.get("strides", [1] * half))
        dilations = list(attributes.get("dilations", [1] * half))
        pads = self.spatial_pads(node, attributes, kernel, strides, dilations)
        x = self.use(node.input[0])
        symmetric = pads[:half] == pads[half:] and all(2 * p <= k for p, k in zip(pads, kernel))
        if not symmetric:
            x, padding = self.call(F.pad, x, self.torch_pads(pads), "constant", float("-inf")), [0] * half
        else:
            padding = pads[:half]
        return self.call(F.max_pool2d, x, kernel, strides, padding, dilations, bool(attributes.get("ceil_mode", 0)))

    def op_AveragePool(self, node, attributes):
        kernel = list(attributes["kernel_shape"])
        half = len(kernel)
        if half != 2 or any(d != 1 for d in attributes.get("dilations", [])):
            raise Unsupported(f"AveragePool '{node.name}' of rank {half} or dilated")
        strides = list(attributes.get("strides", [1] * half))
        pads = self.spatial_pads(node, attributes, kernel, strides, [1] * half)
        include = bool(attributes.get("count_include_pad", 0))
        ceil_mode = bool(attributes.get("ceil_mode", 0))
        x = self.use(node.input[0])
        if pads[:half] == pads[half:] and all(2 * p <= k for p, k in zip(pads, kernel)):
            return self.call(F.avg_pool2d, x, kernel, strides, pads[:half], ceil_mode, include)
        if include:
            return self.call(F.avg_pool2d, self.call(F.pad, x, self.torch_pads(pads)), kernel, strides, 0, ceil_mode)
        return self.call(average_pool_without_pads, x, kernel, strides, self.torch_pads(pads), ceil_mode)

    def op_GlobalAveragePool(self, node, attributes):
        return self.call(torch.mean, self.use(node.input[0]), list(range(2, self.rank(node.input[0]))), True)

    def op_GlobalMaxPool(self, node, attributes):
        return self.call(torch.amax, self.use(node.input[0]), list(range(2, self.rank(node.input[0]))), True)

    def op_LRN(self, node, attributes):
        return self.call(
            onnx_lrn, self.use(node.input[0]), attributes["size"], attributes.get("alpha", 1e-4),
            attributes.get("beta", 0.75), attributes.get("bias", 1.0),
        )

    def op_Resize(self, node, attributes):
        mode = attributes.get("mode", b"nearest").decode()
        transform = attributes.get("coordinate_transformation_mode", b"half_pixel").decode()
        rounding = attributes.get("nearest_mode", b"round_prefer_floor").decode()
        source, target = self.shape(node.input[0]), self.shape(node.output[0])
        x, size = self.use(node.input[0]), target[2:]
        if source[:2] != target[:2] or len(source) != 4:
            raise Unsupported(f"Resize '{node.name}' of other axes than height and width")
        whole = all(t % s == 0 for s, t in zip(source[2:], size))
        if mode == "nearest" and ((transform == "asymmetric" and rounding == "floor") or whole):
            return self.call(F.interpolate, x, size, mode="nearest")
        if mode == "linear" and transform in ("half_pixel", "pytorch_half_pixel"):
            return self.call(F.interpolate, x, size, mode="bilinear", align_corners=False)
        if mode == "linear" and transform == "align_corners":
            return self.call(F.interpolate, x, size, mode="bilinear", align_corners=True)
        raise Unsupported(f"Resize '{node.name}' with {mode}, {transform}, {rounding}")

    # ---- Normalizations.

    def op_BatchNormalization(self, node, attributes):
        x, scale, bias, mean, variance = [self.use(name) for name in node.input]
        return self.call(F.batch_norm, x, mean, variance, scale, bias, False, 0.0, attributes.get("epsilon", 1e-5))

    def op_InstanceNormalization(self, node, attributes):
        x, scale, bias = [self.use(name) for name in node.input]
        return self.call(F.instance_norm, x, None, None, scale, bias, True, 0.0, attributes.get("epsilon", 1e-5))

    def op_LayerNormalization(self, node, attributes):
        if len(node.output) > 1 and any(node.output[1:]):
            raise Unsupported(f"LayerNormalization '{node.name}' with mean or deviation")
        shape = self.shape(node.input[0])
        axis = attributes.get("axis", -1) % len(shape)
        bias = self.use(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        return self.call(
            F.layer_norm, self.use(node.input[0]), shape[axis:], self.use(node.input[1]), bias,
            attributes.get("epsilon", 1e-5),
        )

    def op_Softmax(self, node, attributes):
        if self.opset < 13:
            rank = self.rank(node.input[0])
            axis = attributes.get("axis", 1) % rank
            if axis != rank - 1:
                return self.call(softmax_from, self.use(node.input[0]), axis)
        return self.call(torch.softmax, self.use(node.input[0]), attributes.get("axis", -1 if self.opset >= 13 else 1))

    # ---- Arithmetic.

    def op_Gemm(self, node, attributes):
        a, b = self.use(node.input[0]), self.use(node.input[1])
        alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
        if attributes.get("transA", 0):
            a = self.call(torch.t, a)
        has_bias = len(node.input) > 2 and node.input[2]
        if alpha == 1.0 and beta == 1.0 and attributes.get("transB", 0) and (not has_bias or self.rank(node.input[2]) == 1):
            return self.call(F.linear, a, b, self.use(node.input[2]) if has_bias else None)
        if attributes.get("transB", 0):
            b = self.call(torch.t, b)
        if has_bias:
            return self.call(torch.addmm, self.use(node.input[2]), a, b, beta=beta, alpha=alpha)
        product = self.call(torch.mm, a, b)
        return product if alpha == 1.0 else self.call(operator.mul, product, alpha)

    def op_Gelu(self, node, attributes):
        return self.call(F.gelu, self.use(node.input[0]), approximate=attributes.get("approximate", b"none").decode())

    def op_Clip(self, node, attributes):
        low, high = self.constant(node, 1), self.constant(node, 2)
        low = attributes.get("min", None) if low is None else float(low)
        high = attributes.get("max", None) if high is None else float(high)
        return self.call(torch.clamp, self.use(node.input[0]), low, high)

    def op_LeakyRelu(self, node, attributes):
        return self.call(F.leaky_relu, self.use(node.input[0]), attributes.get("alpha", 0.01))

    def op_HardSigmoid(self, node, attributes):
        scaled = self.call(operator.mul, self.use(node.input[0]), attributes.get("alpha", 0.2))
        return self.call(torch.clamp, self.call(operator.add, scaled, attributes.get("beta", 0.5)), 0.0, 1.0)

    def op_Pow(self, node, attributes):
        exponent = self.constants.get(node.input[1])
        if exponent is not None and exponent.size == 1:
            return self.call(torch.pow, self.use(node.input[0]), float(exponent.reshape(())))
        return self.call(torch.pow, self.use(node.input[0]), self.use(node.input[1]))

    def nary(self, node, function):
        result = self.use(node.input[0])
        for name in node.input[1:]:
            result = self.call(function, result, self.use(name))
        return result

    def op_Sum(self, node, attributes):
        return self.nary(node, operator.add)

    def op_Max(self, node, attributes):
        return self.nary(node, torch.maximum)

    def op_Min(self, node, attributes):
        return self.nary(node, torch.minimum)

    def reduce(self, node, attributes, function):
        axes = self.axes(node, attributes, 1)
        if axes is None:
            if attributes.get("noop_with_empty_axes", 0):
                return self.use(node.input[0])
            axes = list(range(self.rank(node.input[0])))
        return self.call(function, self.use(node.input[0]), axes, bool(attributes.get("keepdims", 1)))

    def op_ReduceMean(self, node, attributes):
        return self.reduce(node, attributes, torch.mean)

    def op_ReduceSum(self, node, attributes):
        return self.reduce(node, attributes, torch.sum)

    def op_ReduceMax(self, node, attributes):
        return self.reduce(node, attributes, torch.amax)

    def op_ReduceMin(self, node, attributes):
        return self.reduce(node, attributes, torch.amin)

    def op_ReduceL2(self, node, attributes):
        axes = self.axes(node, attributes, 1)
        return self.call(torch.linalg.vector_norm, self.use(node.input[0]), 2, axes, bool(attributes.get("keepdims", 1)))

    # ---- Moving.

    def op_Concat(self, node, attributes):
        return self.call(torch.cat, [self.use(name) for name in node.input], attributes["axis"])

    def op_Split(self, node, attributes):
        axis = attributes.get("axis", 0)
        sizes = list(attributes["split"]) if "split" in attributes else self.integers(node, 1)
        if sizes is None:
            extent, parts = self.shape(node.input[0])[axis], len(node.output)
            size = -(-extent // parts)
            sizes = [min(size, extent - i * size) for i in range(parts)]
        split = self.call(torch.split, self.use(node.input[0]), sizes, axis)
        return [self.call(operator.getitem, split, i) for i in range(len(sizes))]

    def op_Slice(self, node, attributes):
        if "starts" in attributes:
            starts, ends = list(attributes["starts"]), list(attributes["ends"])
            axes, steps = list(attributes.get("axes", range(len(starts)))), [1] * len(starts)
        else:
            starts, ends = self.integers(node, 1), self.integers(node, 2)
            axes, steps = self.integers(node, 3, list(range(len(starts)))), self.integers(node, 4, [1] * len(starts))
        rank = self.rank(node.input[0])
        x = self.use(node.input[0])
        index = [slice(None)] * rank
        flipped = []
        for start, end, axis, step in zip(starts, ends, axes, steps):
            axis %= rank
            if step < 0:
                # torch has no negative steps: the axis is reversed first.
                extent = self.shape(node.input[0])[axis]
                first = min(start + extent if start < 0 else start, extent - 1)
                last = -1 if end < -extent else (end + extent if end < 0 else end)
                flipped.append(axis)
                index[axis] = slice(extent - 1 - first, extent - 1 - last, -step)
            else:
                index[axis] = slice(start, None if end >= sys.maxsize // 2 else end, step)
        if flipped:
            x = self.call(torch.flip, x, flipped)
        return self.call(operator.getitem, x, tuple(index))

    def op_Pad(self, node, attributes):
        pads = list(attributes["pads"]) if "pads" in attributes else self.integers(node, 1)
        value = self.constant(node, 2)
        value = attributes.get("value", 0.0) if value is None else float(np.asarray(value).reshape(()))
        mode = attributes.get("mode", b"constant").decode()
        axes = self.integers(node, 3)
        rank = self.rank(node.input[0])
        if axes is not None:
            full = [0] * 2 * rank
            for i, axis in enumerate(axes):
                full[axis % rank], full[axis % rank + rank] = pads[i], pads[i + len(axes)]
            pads = full
        if mode == "constant":
            return self.call(F.pad, self.use(node.input[0]), self.torch_pads(pads), "constant", value)
        raise Unsupported(f"Pad '{node.name}' by {mode}")

    def op_Transpose(self, node, attributes):
        order = attributes.get("perm", list(reversed(range(self.rank(node.input[0])))))
        return self.call(torch.permute, self.use(node.input[0]), list(order))

    def op_Reshape(self, node, attributes):
        shape = self.integers(node, 1)
        if 0 in shape and not attributes.get("allowzero", 0):
            source = self.shape(node.input[0])
            shape = [source[i] if extent == 0 else extent for i, extent in enumerate(shape)]
        return self.call(torch.reshape, self.use(node.input[0]), shape)

    def op_Flatten(self, node, attributes):
        axis = attributes.get("axis", 1)
        rank = self.rank(node.input[0])
        axis = axis + rank if axis < 0 else axis
        if axis == 1:
            return self.call(torch.flatten, self.use(node.input[0]), 1)
        return self.call(flatten_at, self.use(node.input[0]), axis)

    def op_Squeeze(self, node, attributes):
        axes = self.axes(node, attributes, 1)
        x = self.use(node.input[0])
        return self.call(torch.squeeze, x) if axes is None else self.call(torch.squeeze, x, tuple(axes))

    def op_Unsqueeze(self, node, attributes):
        axes = self.axes(node, attributes, 1)
        rank = self.rank(node.input[0]) + len(axes)
        x = self.use(node.input[0])
        for axis in sorted(axis % rank for axis in axes):
            x = self.call(torch.unsqueeze, x, axis)
        return x

    def op_Expand(self, node, attributes):
        return self.call(expand_to, self.use(node.input[0]), self.integers(node, 1))

    def op_Tile(self, node, attributes):
        return self.call(torch.tile, self.use(node.input[0]), self.integers(node, 1))

    def op_Gather(self, node, attributes):
        axis = attributes.get("axis", 0) % self.rank(node.input[0])
        index = self.constants.get(node.input[1])
        if index is not None and index.ndim == 0:
            return self.call(torch.select, self.use(node.input[0]), axis, int(index))
        indices = self.use(node.input[1])
        if axis == 0 and self.rank(node.input[0]) == 2:
            return self.call(F.embedding, indices, self.use(node.input[0]))
        return self.call(operator.getitem, self.use(node.input[0]), (slice(None),) * axis + (indices,))

    def op_Cast(self, node, attributes):
        return self.method("to", self.use(node.input[0]), DTYPES[attributes["to"]])

    def op_Identity(self, node, attributes):
        return self.use(node.input[0])

    def op_Dropout(self, node, attributes):
        return [self.use(node.input[0])]


SIMPLE = {
    "Relu": F.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Erf": torch.erf, "Sqrt": torch.sqrt,
    "Reciprocal": torch.reciprocal, "Exp": torch.exp, "Log": torch.log, "Neg": torch.neg, "Abs": torch.abs,
    "HardSwish": F.hardswish, "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv,
    "MatMul": torch.matmul, "Where": torch.where, "Equal": torch.eq, "Greater": torch.gt, "Less": torch.lt,
    "Not": torch.logical_not, "And": torch.logical_and, "Or": torch.logical_or, "Sin": torch.sin, "Cos": torch.cos,
}


def fold_constant(op, inputs, attributes, opset):
    """The value of a node of small constants, or None."""
    simple = {
        "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Neg": np.negative, "Sqrt": np.sqrt,
        "Equal": np.equal, "Where": np.where,
    }
    if op in simple:
        return np.asarray(simple[op](*inputs))
    if op == "Div":
        return np.floor_divide(*inputs) if inputs[0].dtype.kind == "i" else np.divide(*inputs)
    if op == "Cast":
        return inputs[0].astype(onnx.helper.tensor_dtype_to_np_dtype(attributes["to"]))
    if op == "Concat":
        return np.concatenate(inputs, attributes["axis"])
    if op == "Gather":
        return np.take(inputs[0], inputs[1], attributes.get("axis", 0))
    if op in ("Unsqueeze", "Squeeze"):
        axes = attributes.get("axes", inputs[1].tolist() if len(inputs) > 1 and inputs[1] is not None else None)
        if op == "Squeeze":
            return np.squeeze(inputs[0], None if axes is None else tuple(axes))
        return np.expand_dims(inputs[0], tuple(axes))
    if op == "Reshape":
        return inputs[0].reshape([int(v) for v in inputs[1]])
    if op == "ConstantOfShape":
        value = attributes.get("value")
        fill = numpy_helper.to_array(value).reshape(()) if value is not None else np.float32(0)
        return np.full([int(v) for v in inputs[0]], fill)
    if op == "Slice" and len(inputs) >= 3 and inputs[0].ndim == 1:
        step = int(inputs[4][0]) if len(inputs) > 4 and inputs[4] is not None else 1
        return inputs[0][int(inputs[1][0]) : int(inputs[2][0]) : step]
    return None


def import_model(path):
    """The model of a file as a torch.fx.GraphModule in evaluation mode."""
    return Importer(onnx.load(path)).run()


def input_names(path):
    """Names of the inputs that are not initializers, and of the outputs, in the file's order."""
    graph = onnx.load(path, load_external_data=False).graph
    initializers = {tensor.name for tensor in graph.initializer}
    return [i.name for i in graph.input if i.name not in initializers], [o.name for o in graph.output]
