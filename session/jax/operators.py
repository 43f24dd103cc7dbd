# Every operator as its definition says; axes count as there.


def op_identity(x):
    return x


def op_square(x):
    return x * x


def op_add(x, y):
    return x + y


def op_sub(x, y):
    return x - y


def op_mul(x, y):
    return x * y


def op_div(x, y):
    return x / y


def op_pow(x, y):
    return jnp.power(x, y)


def op_maximum(x, y):
    return jnp.maximum(x, y)


def op_smul(x, s):
    return x * s


def op_neg(x):
    return -x


def op_abs(x):
    return jnp.abs(x)


def op_sqrt(x):
    return jnp.sqrt(x)


def op_exp(x):
    return jnp.exp(x)


def op_log(x):
    return jnp.log(x)


def op_erf(x):
    return lax.erf(x)


def op_sin(x):
    return jnp.sin(x)


def op_cos(x):
    return jnp.cos(x)


def op_tan(x):
    return jnp.tan(x)


def op_atan(x):
    return jnp.arctan(x)


def op_sinh(x):
    return jnp.sinh(x)


def op_cosh(x):
    return jnp.cosh(x)


def op_asinh(x):
    return jnp.arcsinh(x)


def op_floor(x):
    return jnp.floor(x)


def op_ceil(x):
    return jnp.ceil(x)


def op_round(x):
    return jnp.round(x)


def op_sign(x):
    return jnp.sign(x)


def op_tanh(x):
    return jnp.tanh(x)


def op_sigmoid(x):
    return 1 / (1 + jnp.exp(-x))


def op_relu(x):
    return jnp.maximum(x, 0)


def op_gelu(x):
    return 0.5 * x * (1 + lax.erf(x / 1.4142135623730951))


def op_gelu_tanh(x):
    return 0.5 * x * (1 + jnp.tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))))


def op_silu(x):
    return x * op_sigmoid(x)


def op_quick_gelu(x):
    return x * op_sigmoid(1.702 * x)


def op_hard_sigmoid(x):
    return jnp.clip(x / 6 + 0.5, 0, 1)


def op_hard_swish(x):
    return x * op_hard_sigmoid(x)


def op_clip(x, min, max):
    return jnp.minimum(jnp.maximum(x, min), max)


def op_apply(x, act):
    return act(x)


def op_matmul(a, b):
    return jnp.matmul(a, b)


def op_matmul_bias_act(a, b, bias, act):
    return act(jnp.matmul(a, b) + bias)


def op_conv2d(x, k, strides, pads, dilations):
    top, left, bottom, right = pads
    return lax.conv_general_dilated(x, k, strides, ((top, bottom), (left, right)), rhs_dilation=dilations,
                                    dimension_numbers=("NCHW", "OIHW", "NCHW"),
                                    feature_group_count=x.shape[1] // k.shape[1])


def op_conv2d_bias_act(x, k, bias, strides, pads, dilations, act):
    return act(op_conv2d(x, k, strides, pads, dilations) + bias[:, None, None])


def op_conv2d_bias_add_act(x, k, bias, residual, strides, pads, dilations, act):
    return act(op_conv2d(x, k, strides, pads, dilations) + bias[:, None, None] + residual)


def op_enlarge(k, margin):
    top, left, bottom, right = margin
    return jnp.pad(k, ((0, 0), (0, 0), (top, bottom), (left, right)))


def op_pad_channels(k, outputs, inputs):
    return jnp.pad(k, ((0, outputs), (0, inputs), (0, 0), (0, 0)))


def op_regroup(k, groups, factor):
    outputs, channels, r, s = k.shape
    blocks = k.reshape(groups, factor, outputs // (groups * factor), 1, channels, r, s)
    same = jnp.eye(factor, dtype=k.dtype).reshape(1, factor, 1, factor, 1, 1, 1)
    return (blocks * same).reshape(outputs, factor * channels, r, s)


def windows(x, first, combine, kernel, strides, pads, dilations=(1, 1)):
    top, left, bottom, right = pads
    return lax.reduce_window(x, first, combine, (1, 1, *kernel), (1, 1, *strides),
                             ((0, 0), (0, 0), (top, bottom), (left, right)), window_dilation=(1, 1, *dilations))


def op_max_pool2d(x, kernel, strides, pads, dilations):
    return windows(x, -jnp.inf, lax.max, kernel, strides, pads, dilations)


def op_avg_pool2d_include(x, kernel, strides, pads):
    return windows(x, 0.0, lax.add, kernel, strides, pads) / (kernel[0] * kernel[1])


def op_avg_pool2d_exclude(x, kernel, strides, pads):
    return windows(x, 0.0, lax.add, kernel, strides, pads) / windows(jnp.ones_like(x), 0.0, lax.add, kernel, strides,
                                                                     pads)


def op_global_avg_pool(x):
    return jnp.mean(x, axis=tuple(range(2, x.ndim)), keepdims=True)


def op_reduce_sum(x, axes):
    return jnp.sum(x, axis=axes, keepdims=True)


def op_reduce_mean(x, axes):
    return jnp.mean(x, axis=axes, keepdims=True)


def op_reduce_prod(x, axes):
    return jnp.prod(x, axis=tuple(axes), keepdims=True)


def op_cumulative_sum(x, axis):
    return jnp.cumsum(x, axis=axis)


def recurrent_layer(x, w, r, bias, states, forward, step):
    """The states of all steps, then the last ones: step(given, states, r, bias of the state) makes those of a step."""
    rows = w.shape[1]
    made = []
    for e in range(w.shape[0]):
        def advance(state, given, e=e):
            new = step(given, state, r[e], bias[e, rows:])
            return new, new[0]
        last, all_steps = lax.scan(advance, tuple(s[e] for s in states), x @ w[e].T + bias[e, :rows],
                                   reverse=e >= forward)
        made.append((all_steps, *last))
    return (jnp.stack([m[0] for m in made], axis=1),
            *(jnp.stack([m[1 + i] for m in made])[None] for i in range(len(states))))


def op_lstm(x, w, r, bias, h0, c0, forward):
    def step(given, state, r, bias):
        h, c = state
        i, o, f, new = jnp.split(given + h @ r.T + bias, 4, axis=-1)
        c = op_sigmoid(f) * c + op_sigmoid(i) * jnp.tanh(new)
        return op_sigmoid(o) * jnp.tanh(c), c
    return recurrent_layer(x, w, r, bias, (h0, c0), forward, step)


def op_gru(x, w, r, bias, h0, forward, linear_before_reset):
    def step(given, state, r, bias):
        h = state[0]
        n = h.shape[-1]
        z, reset = jnp.split(op_sigmoid(given[:, :2 * n] + h @ r[:2 * n].T + bias[:2 * n]), 2, axis=-1)
        if linear_before_reset:
            again = reset * (h @ r[2 * n:].T + bias[2 * n:])
        else:
            again = (reset * h) @ r[2 * n:].T + bias[2 * n:]
        return (z * h + (1 - z) * jnp.tanh(given[:, 2 * n:] + again),)
    return recurrent_layer(x, w, r, bias, (h0,), forward, step)


def op_rnn(x, w, r, bias, h0, forward, act):
    return recurrent_layer(x, w, r, bias, (h0,), forward,
                           lambda given, state, r, bias: (act(given + state[0] @ r.T + bias),))


def op_reduce_max(x, axes):
    return jnp.max(x, axis=axes, keepdims=True)


def op_softmax(x, axis):
    power = jnp.exp(x - jnp.max(x, axis=axis, keepdims=True))
    return power / jnp.sum(power, axis=axis, keepdims=True)


def op_layer_norm(x, scale, bias, epsilon):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + epsilon) * scale + bias


def op_rms_norm(x, scale, epsilon):
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon) * scale


def op_group_norm(x, scale, bias, groups, epsilon, act):
    rows = x.reshape(x.shape[0], groups, -1)
    centred = rows - jnp.mean(rows, axis=-1, keepdims=True)
    unit = (centred / jnp.sqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + epsilon)).reshape(x.shape)
    scale, bias = (v.reshape(-1, *[1] * (x.ndim - 2)) for v in (scale, bias))
    return act(unit * scale + bias)


def op_rotary_embedding(x, cosines, sines, axis, columns):
    pairs = cosines.shape[-1] // columns
    # The axis of heads stands before the positions or behind them.
    heads = lambda table: jnp.expand_dims(table, -3 if axis == -2 else -2)
    first, second = (lambda table: heads(table)[..., :pairs]), (lambda table: heads(table)[..., -pairs:])
    a, b, rest = x[..., :pairs], x[..., pairs:2 * pairs], x[..., 2 * pairs:]
    return jnp.concatenate([a * first(cosines) - b * first(sines), b * second(cosines) + a * second(sines), rest], axis=-1)


def op_batch_norm(x, scale, bias, mean, variance, epsilon):
    scale, bias, mean, variance = (v.reshape(-1, *[1] * (x.ndim - 2)) for v in (scale, bias, mean, variance))
    return (x - mean) / jnp.sqrt(variance + epsilon) * scale + bias


def op_lrn(x, size, alpha, beta, bias):
    before = (size - 1) // 2
    square = jnp.pad(x * x, ((0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)))
    energy = sum(square[:, t:t + x.shape[1]] for t in range(size))
    return x / jnp.power(bias + alpha / size * energy, beta)


def op_transpose(x, perm):
    return jnp.transpose(x, perm)


def op_concat(*x, axis):
    return jnp.concatenate(x, axis=axis)


def op_split(x, axis, sizes):
    ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
    pieces = tuple(lax.slice_in_dim(x, end - size, end, axis=axis) for size, end in zip(sizes, ends))
    return pieces if len(pieces) > 1 else pieces[0]


def op_broadcast(x, shape):
    return jnp.broadcast_to(x, shape)


def op_reshape(x, shape):
    return jnp.reshape(x, shape)


def op_slice(x, starts, sizes, steps):
    cuts = []
    for start, size, step in zip(starts, sizes, steps):
        end = start + size * step
        cuts.append(slice(start, end if end >= 0 else None, step) if size > 0 else slice(0, 0))
    return x[tuple(cuts)]


def op_pad(x, before, after, value):
    return lax.pad(x, jnp.asarray(value, x.dtype), [(b, a, 0) for b, a in zip(before, after)])


def op_gather_elements(x, index, axis):
    return jnp.take_along_axis(x, index % x.shape[axis], axis=axis)


def op_gather(x, index, axis, before, after):
    axis = axis + x.ndim
    place = index % (before + x.shape[axis] + after) - before
    found = jnp.take(x, jnp.clip(place, 0, max(x.shape[axis] - 1, 0)), axis=axis)
    inside = ((place >= 0) & (place < x.shape[axis])).reshape(*[1] * axis, *index.shape, *[1] * (x.ndim - axis - 1))
    return jnp.where(inside, found, 0)
