# The profile from which specs/rules/default.rules is generated (scripts/make-rules).
#
# Each group is enumerated by itself: its operators at the given attribute values over its tensors. Symbols take one
# value per world; axes that play different roles have different extents, so that a coincidence of shapes is not taken
# for a law. Grammar: docs/generation.md.
profile default

# ---------------------------------------------------------------------------------------------- convolutions

# Siblings that read one tensor: one product with the kernels side by side.
group conv_siblings
  max_ops 2
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 5, 4
  extent w: 4, 6
  extent o1: 4, 2
  extent o2: 1, 5
  extent r in 1..3: 2, 3
  extent t in 1..3: 3, 1
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [1, 2]
  param f in identity relu tanh sigmoid: relu, tanh
  activation x [n, c, h, w]
  weight w1 [o1, c, r, t]
  weight w2 [o2, c, r, t]
  weight b1 [o1]
  weight b2 [o2]
  apply conv2d(input, weight) strides=s pads=p dilations=d
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=f
  apply split(activation) axis=-3 sizes=[o1, o2]
  on_weights concat(input, input) axis=-4
  on_weights concat(input, input) axis=-1

# Siblings with kernels of different extents: the smaller kernel gets a margin of zeros.
group conv_siblings_enlarged
  max_ops 2
  max_weight_ops 3
  extent n: 1, 2
  extent c: 2, 3
  extent h: 5, 4
  extent w: 4, 6
  extent o1: 4, 2
  extent o2: 1, 5
  extent r in 1..3: 1, 2
  extent t in 1..3: 2, 1
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..1: [1, 0, 0, 1], [0, 0, 1, 0]
  param m in 0..1: [1, 0, 1, 0], [0, 1, 1, 1]
  param q = p + m
  param f in identity relu tanh sigmoid: relu, tanh
  extent r2 = r + q[0] - p[0] + q[2] - p[2]
  extent t2 = t + q[1] - p[1] + q[3] - p[3]
  activation x [n, c, h, w]
  weight w1 [o1, c, r, t]
  weight w2 [o2, c, r2, t2]
  weight b1 [o1]
  weight b2 [o2]
  apply conv2d(input, weight) strides=s pads=p
  apply conv2d(input, weight) strides=s pads=q
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p act=f
  apply conv2d_bias_act(input, weight, weight) strides=s pads=q act=f
  apply split(activation) axis=-3 sizes=[o1, o2]
  apply split(activation) axis=-3 sizes=[o2, o1]
  on_weights enlarge(input) margin=q - p
  on_weights concat(weight, weight) axis=-4
  on_weights concat(input, input) axis=-1

# ... and kernels neither of which contains the other, such as 1x3 and 3x1: both get a margin.
group conv_siblings_crossed
  max_ops 2
  max_weight_ops 4
  extent n: 1, 1
  extent c: 2, 1
  extent h: 4, 3
  extent w: 3, 4
  extent o1: 3, 2
  extent o2: 2, 4
  extent r in 1..2: 1, 1
  extent t in 1..2: 1, 1
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..1: [0, 1, 0, 1], [0, 0, 1, 0]
  param q in 0..1: [1, 0, 1, 0], [0, 1, 0, 1]
  param f in identity relu tanh sigmoid: relu, tanh
  extent r1 = r + p[0] + p[2]
  extent t1 = t + p[1] + p[3]
  extent r2 = r + q[0] + q[2]
  extent t2 = t + q[1] + q[3]
  activation x [n, c, h, w]
  weight w1 [o1, c, r1, t1]
  weight w2 [o2, c, r2, t2]
  weight b1 [o1]
  weight b2 [o2]
  apply conv2d(input, weight) strides=s pads=p
  apply conv2d(input, weight) strides=s pads=q
  apply conv2d(input, weight) strides=s pads=p + q
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p act=f
  apply conv2d_bias_act(input, weight, weight) strides=s pads=q act=f
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p + q act=f
  apply split(activation) axis=-3 sizes=[o1, o2]
  on_weights enlarge(input) margin=q
  on_weights enlarge(input) margin=p
  on_weights concat(weight, weight) axis=-4
  on_weights concat(input, input) axis=-1

# Bias and activation join the convolution.
group conv_fusion
  max_ops 2
  max_weight_ops 3
  source_weight_ops 1
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o: 3, 4
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  extent h1 = (h + p[0] + p[2] - d[0] * (r - 1) - 1) // s[0] + 1
  extent w1 = (w + p[1] + p[3] - d[1] * (t - 1) - 1) // s[1] + 1
  activation x [n, c, h, w]
  weight k [o, c, r, t]
  weight b [o]
  weight v [o, 1, 1]
  apply conv2d(input, input) strides=s pads=p dilations=d
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=identity
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=relu
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=sigmoid
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=tanh
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=gelu
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=hard_swish
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=gelu_tanh
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=silu
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=quick_gelu
  apply relu(activation)
  apply sigmoid(activation)
  apply tanh(activation)
  apply gelu(activation)
  apply hard_swish(activation)
  apply gelu_tanh(activation)
  apply silu(activation)
  apply quick_gelu(activation)
  apply add(activation, weight)
  apply sub(activation, weight)
  on_weights broadcast(input) shape=[n, o, h1, w1]
  on_weights reshape(input) shape=[o]
  on_weights add(input, weight)
  on_weights sub(input, weight)

# An activation alone needs a bias of zeros.
group conv_activation
  max_ops 2
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o: 3, 4
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  activation x [n, c, h, w]
  weight k [o, c, r, t]
  apply conv2d(input, input) strides=s pads=p dilations=d
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=relu
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=sigmoid
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=tanh
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=gelu
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=hard_swish
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=gelu_tanh
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=silu
  apply conv2d_bias_act(input, input, weight) strides=s pads=p dilations=d act=quick_gelu
  apply relu(activation)
  apply sigmoid(activation)
  apply tanh(activation)
  apply gelu(activation)
  apply hard_swish(activation)
  apply gelu_tanh(activation)
  apply silu(activation)
  apply quick_gelu(activation)
  on_weights ones() shape=[o]
  on_weights sub(weight, weight)

# A tensor that is added to the result, and the activation after it, join the convolution.
group conv_residual
  max_ops 2
  max_weight_ops 3
  source_weight_ops 1
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o: 3, 4
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  extent h1 = (h + p[0] + p[2] - d[0] * (r - 1) - 1) // s[0] + 1
  extent w1 = (w + p[1] + p[3] - d[1] * (t - 1) - 1) // s[1] + 1
  activation x [n, c, h, w]
  activation y [n, o, h1, w1]
  weight k [o, c, r, t]
  weight b [o]
  weight v [o, 1, 1]
  apply conv2d_bias_act(input, input, input) strides=s pads=p dilations=d act=identity
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=identity
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=relu
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=sigmoid
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=tanh
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=gelu
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=hard_swish
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=gelu_tanh
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=silu
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=quick_gelu
  apply relu(activation)
  apply sigmoid(activation)
  apply tanh(activation)
  apply gelu(activation)
  apply hard_swish(activation)
  apply gelu_tanh(activation)
  apply silu(activation)
  apply quick_gelu(activation)
  apply add(activation, activation)
  apply add(activation, weight)
  apply sub(activation, weight)
  on_weights broadcast(input) shape=[n, o, h1, w1]
  on_weights reshape(input) shape=[o]
  on_weights add(input, weight)
  on_weights sub(input, weight)

# A residual alone needs a bias of zeros.
group conv_residual_unbiased
  max_ops 2
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o: 3, 4
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  extent h1 = (h + p[0] + p[2] - d[0] * (r - 1) - 1) // s[0] + 1
  extent w1 = (w + p[1] + p[3] - d[1] * (t - 1) - 1) // s[1] + 1
  activation x [n, c, h, w]
  activation y [n, o, h1, w1]
  weight k [o, c, r, t]
  apply conv2d(input, input) strides=s pads=p dilations=d
  apply conv2d_bias_add_act(input, input, weight, input) strides=s pads=p dilations=d act=identity
  apply add(activation, activation)
  on_weights ones() shape=[o]
  on_weights sub(weight, weight)

# Of two convolutions that are added either may be the residual of the other. (Each has weights of its own, by their roles.)
group conv_residual_orders
  max_ops 2
  max_weight_ops 0
  extent n: 1, 2
  extent c1: 2, 1
  extent c2: 1, 3
  extent h1: 5, 4
  extent w1: 3, 4
  extent o: 3, 2
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  extent r2 in 1..3: 1, 2
  extent t2 in 1..3: 3, 1
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  param s2 in 1..2: [1, 1], [2, 1]
  param p2 in 0..2: [1, 1, 1, 0], [1, 1, 2, 0]
  param d2 in 1..2: [1, 1], [1, 2]
  param f in identity relu tanh sigmoid: relu, tanh
  extent h = (h1 - 1) * s[0] + d[0] * (r - 1) + 1 - p[0] - p[2]
  extent w = (w1 - 1) * s[1] + d[1] * (t - 1) + 1 - p[1] - p[3]
  extent h2 = (h1 - 1) * s2[0] + d2[0] * (r2 - 1) + 1 - p2[0] - p2[2]
  extent w2 = (w1 - 1) * s2[1] + d2[1] * (t2 - 1) + 1 - p2[1] - p2[3]
  activation x [n, c1, h, w]
  activation y [n, c2, h2, w2]
  weight k [o, c1, r, t]
  activation l [o, c2, r2, t2]
  weight b [o]
  activation b2 [o]
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=identity
  apply conv2d_bias_act(input, activation, activation) strides=s2 pads=p2 dilations=d2 act=identity
  apply conv2d_bias_add_act(input, weight, weight, activation) strides=s pads=p dilations=d act=f
  apply conv2d_bias_add_act(input, activation, activation, activation) strides=s2 pads=p2 dilations=d2 act=f

# ... and both may be one: of both images, or of one image by the sum of the kernels.
group conv_residual_sums
  max_ops 2
  max_weight_ops 3
  extent n: 1, 2
  extent c1: 2, 1
  extent c2: 1, 3
  extent h: 5, 4
  extent w: 3, 4
  extent o: 3, 2
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  param f in identity relu tanh sigmoid: relu, tanh
  activation x [n, c1, h, w]
  activation y [n, c2, h, w]
  weight k [o, c1, r, t]
  weight k2 [o, c1, r, t]
  weight l [o, c2, r, t]
  weight b [o]
  weight b2 [o]
  apply conv2d(input, input) strides=s pads=p dilations=d
  apply conv2d_bias_act(activation, weight, weight) strides=s pads=p dilations=d act=identity
  apply conv2d_bias_act(activation, weight, weight) strides=s pads=p dilations=d act=f
  apply conv2d_bias_add_act(input, input, input, activation) strides=s pads=p dilations=d act=f
  apply concat(input, input) axis=-3
  on_weights concat(input, input) axis=-3
  on_weights add(input, input)

# Two convolutions of two images are one in two groups.
group conv_groups
  max_ops 3
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o: 3, 2
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  param f in identity relu tanh sigmoid: relu, tanh
  activation x [n, c, h, w]
  activation y [n, c, h, w]
  weight k [o, c, r, t]
  weight l [o, c, r, t]
  weight b [o]
  weight a [o]
  apply conv2d(activation, weight) strides=s pads=p dilations=d
  apply conv2d_bias_act(activation, weight, weight) strides=s pads=p dilations=d act=f
  apply concat(activation, activation) axis=-3
  on_weights concat(input, input) axis=-4
  on_weights concat(input, input) axis=-1

# Narrow groups become fewer, wider ones: block-diagonal kernels, two, four or eight groups in one, or all.
group conv_regrouping
  max_ops 1
  max_weight_ops 1
  extent n: 1, 2
  extent g: 2, 1
  extent c: 1, 2
  extent h: 4, 3
  extent w: 3, 5
  extent o: 2, 1
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  param f in identity relu tanh sigmoid: relu, tanh
  extent c1 = 8 * g * c
  extent o1 = 8 * g * o
  extent h1 = (h + p[0] + p[2] - d[0] * (r - 1) - 1) // s[0] + 1
  extent w1 = (w + p[1] + p[3] - d[1] * (t - 1) - 1) // s[1] + 1
  activation x [n, c1, h, w]
  activation y [n, o1, h1, w1]
  weight k [o1, c, r, t]
  weight b [o1]
  apply conv2d(activation, weight) strides=s pads=p dilations=d
  apply conv2d_bias_act(activation, weight, input) strides=s pads=p dilations=d act=f
  apply conv2d_bias_add_act(input, weight, input, input) strides=s pads=p dilations=d act=f
  on_weights regroup(input) groups=c1 // (2 * c) factor=2
  on_weights regroup(input) groups=c1 // (4 * c) factor=4
  on_weights regroup(input) groups=c1 // (8 * c) factor=8
  on_weights regroup(input) groups=1 factor=c1 // c

# Channels between two convolutions become a multiple of 8 by channels of zeros.
group conv_padding
  max_ops 2
  max_weight_ops 3
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o in 1..12: 3, 2
  extent o2: 2, 4
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  extent r2 in 1..2: 1, 2
  extent t2 in 1..2: 2, 1
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  param s2 in 1..2: [1, 1], [2, 1]
  param p2 in 0..2: [1, 1, 1, 0], [1, 1, 2, 0]
  param d2 in 1..2: [1, 1], [1, 2]
  param f in identity relu tanh sigmoid: relu, tanh
  param f2 in identity relu tanh sigmoid: tanh, relu
  extent h1 = (h + p[0] + p[2] - d[0] * (r - 1) - 1) // s[0] + 1
  extent w1 = (w + p[1] + p[3] - d[1] * (t - 1) - 1) // s[1] + 1
  extent h2 = (h1 + p2[0] + p2[2] - d2[0] * (r2 - 1) - 1) // s2[0] + 1
  extent w2 = (w1 + p2[1] + p2[3] - d2[1] * (t2 - 1) - 1) // s2[1] + 1
  activation x [n, c, h, w]
  activation y [n, o2, h2, w2]
  weight k [o, c, r, t]
  weight l [o2, o, r2, t2]
  weight b [o]
  weight b2 [o2]
  apply conv2d(any, weight) strides=s pads=p dilations=d
  apply conv2d(any, weight) strides=s2 pads=p2 dilations=d2
  apply conv2d_bias_act(any, weight, weight) strides=s pads=p dilations=d act=f
  apply conv2d_bias_act(any, weight, input) strides=s2 pads=p2 dilations=d2 act=f2
  apply conv2d_bias_add_act(any, weight, input, input) strides=s2 pads=p2 dilations=d2 act=f2
  on_weights pad_channels(input) outputs=(o + 7) // 8 * 8 - o inputs=0
  on_weights pad_channels(input) outputs=0 inputs=(o + 7) // 8 * 8 - o
  on_weights pad(input) before=[0] after=[(o + 7) // 8 * 8 - o]

# Channels of zeros that are added to what a convolution makes are added to its kernel instead.
group conv_padded
  max_ops 2
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o: 3, 2
  extent m: 2, 1
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  activation x [n, c, h, w]
  weight k [o, c, r, t]
  weight b [o]
  apply conv2d(input, weight) strides=s pads=p dilations=d
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=identity
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=relu
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=tanh
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=gelu
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=hard_swish
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=gelu_tanh
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=silu
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=quick_gelu
  apply pad(activation) before=[0, 0, 0, 0] after=[0, m, 0, 0]
  on_weights pad_channels(input) outputs=m inputs=0
  on_weights pad(input) before=[0] after=[m]

# A function of each element behind a normalization of groups is part of it.
group group_norm_activation
  max_ops 2
  max_weight_ops 0
  extent n: 1, 2
  extent g in 1..3: 2, 3
  extent c: 3, 2
  extent h: 2, 4
  activation x [n, g * c, h]
  weight w [g * c]
  weight b [g * c]
  apply group_norm(input, weight, weight) groups=g
  apply group_norm(input, weight, weight) groups=g act=relu
  apply group_norm(input, weight, weight) groups=g act=gelu
  apply group_norm(input, weight, weight) groups=g act=gelu_tanh
  apply group_norm(input, weight, weight) groups=g act=silu
  apply relu(activation)
  apply gelu(activation)
  apply gelu_tanh(activation)
  apply silu(activation)

# Scaling by channel, or of all elements, joins the weights: batch normalisation disappears.
group conv_scaling
  max_ops 2
  max_weight_ops 5
  source_weight_ops 1
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o: 3, 4
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  extent h1 = (h + p[0] + p[2] - d[0] * (r - 1) - 1) // s[0] + 1
  extent w1 = (w + p[1] + p[3] - d[1] * (t - 1) - 1) // s[1] + 1
  activation x [n, c, h, w]
  weight k [o, c, r, t]
  weight b [o]
  weight v [o, 1, 1]
  weight e []
  apply conv2d(input, weight) strides=s pads=p dilations=d
  apply conv2d_bias_act(input, weight, weight) strides=s pads=p dilations=d act=identity
  apply mul(activation, weight)
  on_weights broadcast(weight) shape=[n, o, h1, w1]
  on_weights broadcast(weight) shape=[o, c, r, t]
  on_weights broadcast(input) shape=[o]
  on_weights reshape(input) shape=[o]
  on_weights reshape(input) shape=[o, 1, 1, 1]
  on_weights mul(input, weight)

# Scaling of the input channels joins the weights.
group conv_input_scaling
  max_ops 2
  max_weight_ops 2
  source_weight_ops 1
  extent n: 1, 2
  extent c: 2, 3
  extent h: 5, 4
  extent w: 4, 6
  extent o: 3, 4
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  param f in identity relu tanh sigmoid: relu, tanh
  extent h1 = (h + p[0] + p[2] - d[0] * (r - 1) - 1) // s[0] + 1
  extent w1 = (w + p[1] + p[3] - d[1] * (t - 1) - 1) // s[1] + 1
  activation x [n, c, h, w]
  activation y [n, o, h1, w1]
  weight k [o, c, r, t]
  weight b [o]
  weight v [c, 1, 1]
  apply conv2d(activation, weight) strides=s pads=p dilations=d
  apply conv2d_bias_act(activation, weight, weight) strides=s pads=p dilations=d act=f
  apply conv2d_bias_add_act(activation, weight, input, input) strides=s pads=p dilations=d act=f
  apply mul(input, weight)
  on_weights broadcast(input) shape=[n, c, h, w]
  on_weights broadcast(input) shape=[o, c, r, t]
  on_weights mul(input, weight)

# A convolution is linear in both arguments.
group conv_sums
  lowering
  max_ops 3
  max_weight_ops 2
  extent n: 1, 2
  extent c1: 2, 1
  extent h: 5, 4
  extent w: 3, 4
  extent o: 3, 2
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  activation x [n, c1, h, w]
  activation x2 [n, c1, h, w]
  weight k [o, c1, r, t]
  weight k2 [o, c1, r, t]
  weight b [o]
  weight b2 [o]
  apply conv2d(activation, weight) strides=s pads=p dilations=d
  apply conv2d_bias_act(activation, weight, weight) strides=s pads=p dilations=d act=identity
  apply add(activation, activation)
  on_weights add(input, input)

# Sums over input channels: one convolution of the concatenated images.
group conv_input_channels
  lowering
  max_ops 3
  max_weight_ops 2
  extent n: 1, 2
  extent c1: 2, 1
  extent c2: 1, 3
  extent h: 5, 4
  extent w: 3, 4
  extent o: 3, 2
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  activation x [n, c1, h, w]
  activation y [n, c2, h, w]
  weight k [o, c1, r, t]
  weight l [o, c2, r, t]
  weight b [o]
  weight b2 [o]
  apply conv2d(activation, weight) strides=s pads=p dilations=d
  apply conv2d_bias_act(activation, weight, weight) strides=s pads=p dilations=d act=identity
  apply add(activation, activation)
  apply concat(input, input) axis=-3
  on_weights concat(input, input) axis=-3
  on_weights add(input, input)

# One kernel applied to several images.
group conv_shared_weights
  max_ops 3
  max_weight_ops 0
  extent n1: 1, 2
  extent n2: 2, 1
  extent c: 2, 3
  extent h: 5, 4
  extent w: 3, 4
  extent o: 3, 2
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  param f in identity relu tanh sigmoid: relu, tanh
  activation x [n1, c, h, w]
  activation y [n2, c, h, w]
  weight k [o, c, r, t]
  weight b [o]
  apply conv2d(activation, weight) strides=s pads=p dilations=d
  apply conv2d_bias_act(activation, weight, weight) strides=s pads=p dilations=d act=f
  apply concat(activation, activation) axis=-4
  apply split(activation) axis=-4 sizes=[n1, n2]

# A shortcut around a convolution is a convolution by the identity.
group conv_identity
  max_ops 2
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 5, 4
  extent w: 4, 6
  extent r in 1..3: 3, 2
  extent t in 1..3: 2, 1
  param p = [(r - 1) // 2, (t - 1) // 2, r - 1 - (r - 1) // 2, t - 1 - (t - 1) // 2]
  activation x [n, c, h, w]
  weight k [c, c, r, t]
  weight b [c]
  apply conv2d(input, weight) pads=p
  apply conv2d_bias_act(input, weight, weight) pads=p act=identity
  apply add(activation, activation)
  on_weights add(input, weight)
  on_weights conv_identity() channels=c kernel=[r, t]

# Pooling by averages is a convolution.
group pooling
  max_ops 2
  max_weight_ops 1
  source_weight_ops 1
  extent n: 1, 2
  extent c: 2, 3
  extent c2: 3, 1
  extent h: 5, 4
  extent w: 4, 6
  param k in 1..3: [2, 3], [3, 2]
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..1: [1, 0, 0, 1], [1, 1, 0, 1]
  activation x [n, c, h, w]
  activation y [n, c2, h, w]
  apply avg_pool2d_include(activation) kernel=k strides=s pads=p
  apply conv2d(activation, weight) strides=s pads=p
  on_weights pool_kernel() channels=c kernel=k

group pooling_concat
  max_ops 3
  max_weight_ops 0
  extent n: 1, 2
  extent c: 2, 3
  extent c2: 3, 1
  extent h: 5, 4
  extent w: 4, 6
  param k in 1..3: [2, 3], [3, 2]
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..1: [1, 0, 0, 1], [1, 1, 0, 1]
  activation x [n, c, h, w]
  activation y [n, c2, h, w]
  apply avg_pool2d_include(activation) kernel=k strides=s pads=p
  apply avg_pool2d_exclude(activation) kernel=k strides=s pads=p
  apply max_pool2d(activation) kernel=k strides=s pads=p
  apply concat(activation, activation) axis=-3

# ------------------------------------------------------------------------------------------ matrix products

# Siblings that read one matrix.
group matmul_siblings
  max_ops 2
  max_weight_ops 2
  extent g: 2, 3
  extent m: 3, 2
  extent k: 4, 3
  extent j1: 2, 1
  extent j2: 1, 5
  param f in identity relu tanh gelu: relu, tanh
  activation x [g, m, k]
  weight w1 [k, j1]
  weight w2 [k, j2]
  weight b1 [j1]
  weight b2 [j2]
  apply matmul(activation, weight)
  apply matmul_bias_act(activation, weight, weight) act=f
  apply split(activation) axis=-1 sizes=[j1, j2]
  on_weights concat(weight, weight) axis=-1

# Products with one matrix.
group matmul_shared_weights
  max_ops 3
  max_weight_ops 0
  extent g: 2, 3
  extent m1: 3, 2
  extent m2: 1, 3
  extent k: 4, 3
  extent j: 2, 5
  param f in identity relu tanh gelu: relu, tanh
  activation x [g, m1, k]
  activation y [g, m2, k]
  weight w [k, j]
  weight b [j]
  apply matmul(activation, weight)
  apply matmul_bias_act(activation, weight, weight) act=f
  apply concat(activation, activation) axis=-2
  apply split(activation) axis=-2 sizes=[m1, m2]

# Bias and activation join the product.
group matmul_fusion
  max_ops 2
  max_weight_ops 2
  source_weight_ops 1
  extent g: 2, 3
  extent m: 3, 2
  extent k: 4, 3
  extent j: 5, 4
  activation x [g, m, k]
  weight w [k, j]
  weight b [j]
  weight v [j]
  apply matmul(input, input)
  apply matmul_bias_act(input, input, weight) act=identity
  apply matmul_bias_act(input, input, weight) act=relu
  apply matmul_bias_act(input, input, weight) act=sigmoid
  apply matmul_bias_act(input, input, weight) act=tanh
  apply matmul_bias_act(input, input, weight) act=gelu
  apply matmul_bias_act(input, input, weight) act=hard_swish
  apply matmul_bias_act(input, input, weight) act=gelu_tanh
  apply matmul_bias_act(input, input, weight) act=silu
  apply matmul_bias_act(input, input, weight) act=quick_gelu
  apply relu(activation)
  apply sigmoid(activation)
  apply tanh(activation)
  apply gelu(activation)
  apply hard_swish(activation)
  apply gelu_tanh(activation)
  apply silu(activation)
  apply quick_gelu(activation)
  apply add(activation, weight)
  apply sub(activation, weight)
  on_weights broadcast(input) shape=[g, m, j]
  on_weights add(input, weight)
  on_weights sub(input, weight)

# An activation alone needs a bias of zeros.
group matmul_activation
  max_ops 2
  max_weight_ops 2
  extent g: 2, 3
  extent m: 3, 2
  extent k: 4, 3
  extent j: 5, 4
  activation x [g, m, k]
  weight w [k, j]
  apply matmul(input, input)
  apply matmul_bias_act(input, input, weight) act=relu
  apply matmul_bias_act(input, input, weight) act=sigmoid
  apply matmul_bias_act(input, input, weight) act=tanh
  apply matmul_bias_act(input, input, weight) act=gelu
  apply matmul_bias_act(input, input, weight) act=hard_swish
  apply matmul_bias_act(input, input, weight) act=gelu_tanh
  apply matmul_bias_act(input, input, weight) act=silu
  apply matmul_bias_act(input, input, weight) act=quick_gelu
  apply relu(activation)
  apply sigmoid(activation)
  apply tanh(activation)
  apply gelu(activation)
  apply hard_swish(activation)
  apply gelu_tanh(activation)
  apply silu(activation)
  apply quick_gelu(activation)
  on_weights ones() shape=[j]
  on_weights sub(weight, weight)

# Scaling joins the weights.
group matmul_scaling
  max_ops 2
  max_weight_ops 4
  source_weight_ops 1
  extent g: 2, 3
  extent m: 3, 2
  extent k: 4, 3
  extent j: 5, 4
  activation x [g, m, k]
  weight w [k, j]
  weight b [j]
  weight v [j]
  weight e []
  apply matmul(input, weight)
  apply matmul_bias_act(input, weight, weight) act=identity
  apply mul(activation, weight)
  apply div(activation, weight)
  on_weights broadcast(input) shape=[g, m, j]
  on_weights broadcast(input) shape=[k, j]
  on_weights broadcast(input) shape=[j]
  on_weights mul(input, weight)
  on_weights div(input, weight)

group matmul_input_scaling
  max_ops 2
  max_weight_ops 3
  source_weight_ops 1
  extent g: 2, 3
  extent m: 3, 2
  extent k: 4, 3
  extent j: 5, 4
  param f in identity relu tanh gelu: relu, tanh
  activation x [g, m, k]
  weight w [k, j]
  weight b [j]
  weight v [k]
  weight e []
  apply matmul(activation, weight)
  apply matmul_bias_act(activation, weight, weight) act=f
  apply mul(input, weight)
  apply div(input, weight)
  on_weights broadcast(weight) shape=[g, m, k]
  on_weights broadcast(weight) shape=[k, j]
  on_weights reshape(input) shape=[k, 1]
  on_weights mul(input, weight)
  on_weights div(input, weight)

# A product is linear in both arguments, and associative.
group matmul_sums
  lowering
  max_ops 3
  max_weight_ops 2
  extent m: 3, 2
  extent k1: 4, 3
  extent k2: 2, 5
  extent j: 5, 4
  activation x [m, k1]
  activation x2 [m, k1]
  activation y [m, k2]
  weight w [k1, j]
  weight w2 [k1, j]
  weight v [k2, j]
  weight b [j]
  weight b2 [j]
  apply matmul(activation, weight)
  apply matmul_bias_act(activation, weight, weight) act=identity
  apply add(activation, activation)
  apply concat(input, input) axis=-1
  on_weights concat(input, input) axis=-2
  on_weights add(input, input)

group matmul_algebra
  max_ops 3
  max_weight_ops 1
  extent g: 2, 3
  extent m: 3, 2
  extent k: 4, 5
  extent j: 5, 4
  extent i: 2, 6
  activation x [g, m, k]
  activation y [g, k, j]
  activation y2 [g, k, j]
  activation z [g, j, i]
  weight w [j, i]
  apply matmul(activation, any)
  apply transpose(activation) perm=[0, 2, 1]
  apply add(activation, activation)

group matmul_weights_chain
  max_ops 2
  max_weight_ops 1
  source_weight_ops 1
  extent g: 2, 3
  extent m: 3, 2
  extent k: 4, 5
  extent j: 5, 4
  extent i: 2, 6
  activation x [g, m, k]
  weight w [k, j]
  weight v [j, i]
  weight b [i]
  param f in identity relu tanh gelu: relu, tanh
  apply matmul(activation, weight)
  apply matmul_bias_act(activation, weight, weight) act=f
  on_weights matmul(weight, weight)
  on_weights matrix_identity() size=k

# ------------------------------------------------------------------------------------- element-wise algebra

group elementwise
  max_ops 3
  max_weight_ops 0
  extent a: 2, 3
  extent b: 3, 2
  activation x [a, b]
  activation y [a, b]
  activation z [a, b]
  apply add(activation, activation)
  apply mul(activation, activation)

group elementwise_differences
  lowering
  max_ops 2
  max_weight_ops 0
  extent a: 2, 3
  extent b: 3, 2
  activation x [a, b]
  activation y [a, b]
  apply add(activation, activation)
  apply sub(activation, activation)
  apply neg(activation)

group elementwise_units
  max_ops 2
  max_weight_ops 1
  source_weight_ops 1
  extent a: 2, 3
  extent b: 3, 2
  activation x [a, b]
  activation y [a, b]
  weight s []
  weight t []
  apply add(activation, activation)
  apply mul(activation, any)
  apply div(activation, weight)
  apply smul(activation, weight)
  on_weights ones() shape=[a, b]
  on_weights broadcast(input) shape=[a, b]
  on_weights mul(input, input)

# Scalars come out of products.
group scalar_multiples
  max_ops 2
  max_weight_ops 1
  extent g: 2, 3
  extent m: 3, 2
  extent k: 4, 5
  extent j: 5, 4
  activation x [g, m, k]
  activation y [g, k, j]
  weight w [k, j]
  weight s []
  apply matmul(activation, any)
  apply smul(activation, weight)
  on_weights smul(weight, weight)

group conv_scalar_multiples
  max_ops 2
  max_weight_ops 1
  extent n: 1, 2
  extent c: 2, 3
  extent h: 5, 4
  extent w: 4, 6
  extent o: 3, 4
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param q in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  activation x [n, c, h, w]
  weight k [o, c, r, t]
  weight s []
  apply conv2d(activation, weight) strides=q pads=p dilations=d
  apply smul(activation, weight)
  on_weights smul(weight, weight)

# ------------------------------------------------------------------------------------------ largest elements

# Functions that keep the order of numbers, and the largest of several: which is first is a matter of cost. These laws hold
# of the functions themselves, not of any function in their place.
group monotone_pools
  ordered
  max_ops 2
  max_weight_ops 0
  extent n: 1, 2
  extent c: 2, 3
  extent h: 5, 4
  extent w: 4, 6
  param k in 1..3: [2, 3], [3, 1]
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..1: [1, 0, 0, 1], [0, 0, 1, 0]
  activation x [n, c, h, w]
  apply relu(activation)
  apply sigmoid(activation)
  apply tanh(activation)
  apply max_pool2d(activation) kernel=k strides=s pads=p

group monotone_reductions
  ordered
  max_ops 2
  max_weight_ops 0
  extent m: 3, 2
  extent n: 2, 4
  activation x [m, n]
  apply relu(activation)
  apply sigmoid(activation)
  apply tanh(activation)
  apply reduce_max(activation) axes=[-1]

# ---------------------------------------------------------------------------------------------------- layout

# Concatenation and its inverse.
group concat_split
  max_ops 2
  max_weight_ops 0
  extent m: 4, 5
  extent j1: 2, 3
  extent j2: 3, 1
  activation x [m, j1]
  activation y [m, j2]
  activation z [m, j1 + j2]
  apply concat(activation, activation) axis=-1
  apply split(activation) axis=-1 sizes=[j1, j2]

# Element-wise operators move out of concatenations and into splits.
group concat_elementwise
  max_ops 3
  max_weight_ops 0
  extent m: 4, 5
  extent j1: 2, 3
  extent j2: 3, 1
  activation x [m, j1]
  activation x2 [m, j1]
  activation y [m, j2]
  activation y2 [m, j2]
  apply concat(activation, activation) axis=-1
  apply relu(activation)
  apply sigmoid(activation)
  apply tanh(activation)
  apply gelu(activation)
  apply hard_swish(activation)
  apply gelu_tanh(activation)
  apply silu(activation)
  apply quick_gelu(activation)
  apply add(activation, activation)
  apply mul(activation, activation)

group split_elementwise
  max_ops 3
  max_weight_ops 0
  extent m: 4, 5
  extent j1: 2, 3
  extent j2: 3, 1
  activation x [m, j1]
  activation y [m, j2]
  activation z [m, j1 + j2]
  activation z2 [m, j1 + j2]
  apply concat(input, input) axis=-1
  apply split(activation) axis=-1 sizes=[j1, j2]
  apply relu(activation)
  apply sigmoid(activation)
  apply tanh(activation)
  apply gelu(activation)
  apply hard_swish(activation)
  apply gelu_tanh(activation)
  apply silu(activation)
  apply quick_gelu(activation)
  apply add(activation, activation)
  apply mul(activation, activation)

# Independent operators of one kind become one.
group unconnected_siblings
  max_ops 3
  max_weight_ops 0
  unconnected
  extent n: 2, 3
  extent c1: 2, 3
  extent c2: 3, 1
  activation x [n, c1]
  activation y [n, c2]
  apply concat(input, input) axis=-1
  apply split(activation) axis=-1 sizes=[c1, c2]
  apply relu(activation)

group unconnected_siblings_of_images
  max_ops 3
  max_weight_ops 0
  unconnected
  extent n: 1, 2
  extent c1: 2, 3
  extent c2: 3, 1
  extent h: 4, 5
  extent w: 5, 4
  activation x [n, c1, h, w]
  activation y [n, c2, h, w]
  apply concat(input, input) axis=-3
  apply split(activation) axis=-3 sizes=[c1, c2]
  apply relu(activation)

# Other functions of parts are functions of the whole.
group concat_functions
  max_ops 3
  max_weight_ops 0
  extent a: 2, 3
  extent c1: 2, 3
  extent c2: 3, 1
  activation x [a, c1]
  activation y [a, c2]
  apply concat(activation, activation) axis=-1
  apply sin(activation)
  apply cos(activation)
  apply tan(activation)
  apply atan(activation)
  apply sinh(activation)
  apply cosh(activation)
  apply asinh(activation)
  apply floor(activation)
  apply ceil(activation)
  apply round(activation)
  apply sign(activation)

# Sums and means along axes of two tensors are those of their sum.
group sums_along_axes
  max_ops 3
  max_weight_ops 0
  lowering
  extent a: 2, 3
  extent b: 3, 2
  activation x [a, b]
  activation y [a, b]
  apply add(activation, activation)
  apply mul(activation, activation)
  apply cumulative_sum(activation) axis=-1
  apply reduce_prod(activation) axes=[-1]
  apply reduce_sum(activation) axes=[-1]
  apply reduce_mean(activation) axes=[-1]

# Operators that change nothing, undo each other, or move past each other.
group views
  max_ops 2
  max_weight_ops 0
  extent a: 2, 3
  extent b: 3, 4
  extent c: 5, 2
  activation x [a, b, c]
  activation y [a, b, c]
  apply reshape(activation) shape=[a, b, c]
  apply reshape(activation) shape=[a * b, c]
  apply reshape(activation) shape=[a, b * c]
  apply broadcast(activation) shape=[a, b, c]
  apply slice(activation) starts=[0, 0, 0] sizes=[a, b, c] steps=[1, 1, 1]
  apply transpose(activation) perm=[0, 2, 1]
  apply transpose(activation) perm=[1, 0, 2]
  apply transpose(activation) perm=[0, 1, 2]
  apply relu(activation)
  apply gelu(activation)
  apply gelu_tanh(activation)
  apply silu(activation)
  apply quick_gelu(activation)

group views_of_images
  max_ops 2
  max_weight_ops 0
  extent n: 2, 3
  extent c: 3, 4
  extent h: 5, 2
  extent w: 4, 5
  activation x [n, c, h, w]
  apply transpose(activation) perm=[0, 2, 1, 3]
  apply transpose(activation) perm=[0, 1, 3, 2]
  apply transpose(activation) perm=[0, 2, 3, 1]
  apply transpose(activation) perm=[0, 3, 1, 2]
