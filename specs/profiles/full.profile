# The whole breadth: what the shipped rules are made from, Table 2.1, transformers, and groups for what none of these has:
# strides 1 and 2 with SAME and VALID padding and all small kernels at once, depth-wise convolutions, splits into three,
# element-wise operators on four axes, reductions, scalar functions, broadcasts.
profile full
include default
include table21
include transformer

# Convolutions as networks have them: kernels 1x1, 3x3, 1x3 and 3x1, strides 1 and 2, SAME (pads of half the kernel) and VALID.
group conv_kinds
  max_ops 3
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 5
  extent w: 5, 4
  extent o1: 3, 2
  extent o2: 1, 4
  activation x [n, c, h, w]
  weight k11 [o1, c, 1, 1]
  weight l11 [o2, c, 1, 1]
  weight k33 [o1, c, 3, 3]
  weight l13 [o2, c, 1, 3]
  weight l31 [o2, c, 3, 1]
  apply conv2d(input, weight) strides=[1, 1] pads=[0, 0, 0, 0]
  apply conv2d(input, weight) strides=[1, 1] pads=[1, 1, 1, 1]
  apply conv2d(input, weight) strides=[1, 1] pads=[0, 1, 0, 1]
  apply conv2d(input, weight) strides=[1, 1] pads=[1, 0, 1, 0]
  apply conv2d(input, weight) strides=[2, 2] pads=[0, 0, 0, 0]
  apply conv2d(input, weight) strides=[2, 2] pads=[1, 1, 1, 1]
  apply split(activation) axis=-3 sizes=[o1, o2]
  on_weights concat(weight, input) axis=-4
  on_weights enlarge(input) margin=[1, 1, 1, 1]
  on_weights enlarge(input) margin=[1, 0, 1, 0]
  on_weights enlarge(input) margin=[0, 1, 0, 1]

# One channel per group, and a product of channels after it.
group depthwise
  max_ops 3
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o: 3, 4
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..1: [1, 0, 0, 1], [1, 1, 0, 1]
  activation x [n, c, h, w]
  activation y [n, c, h, w]
  weight k [c, 1, 3, 2]
  weight l [c, 1, 3, 2]
  weight u [o, c, 1, 1]
  weight t []
  apply conv2d(activation, weight) strides=s pads=p
  apply conv2d(activation, weight)
  apply add(activation, activation)
  apply smul(activation, weight)
  on_weights add(weight, weight)
  on_weights smul(weight, weight)

group split_in_three
  max_ops 3
  max_weight_ops 0
  extent m: 4, 5
  extent j1: 2, 3
  extent j2: 3, 1
  extent j3: 1, 4
  activation x [m, j1]
  activation y [m, j2]
  activation z [m, j3]
  activation a [m, j1 + j2 + j3]
  apply concat(activation, activation, activation) axis=-1
  apply split(activation) axis=-1 sizes=[j1, j2, j3]
  apply relu(activation)

group elementwise_of_images
  max_ops 3
  max_weight_ops 0
  extent n: 1, 2
  extent c: 2, 3
  extent h: 3, 1
  extent w: 1, 2
  activation x [n, c, h, w]
  activation y [n, c, h, w]
  activation z [n, c, h, w]
  apply add(activation, activation)
  apply sub(activation, activation)
  apply mul(activation, activation)
  apply neg(activation)

group reductions
  max_ops 3
  max_weight_ops 0
  extent a: 2, 3
  extent b: 3, 2
  extent c: 4, 5
  activation x [a, b, c]
  activation y [a, b, c]
  weight s []
  apply reduce_sum(activation) axes=[-1]
  apply reduce_sum(activation) axes=[-2]
  apply reduce_sum(activation) axes=[-2, -1]
  apply reduce_mean(activation) axes=[-1]
  apply reduce_mean(activation) axes=[-2, -1]
  apply reduce_max(activation) axes=[-1]
  apply reduce_max(activation) axes=[-2]
  apply add(activation, activation)
  apply smul(activation, weight)
  apply transpose(activation) perm=[0, 2, 1]
  apply relu(activation)

group scalar_functions
  max_ops 3
  max_weight_ops 0
  extent a: 2, 3
  extent b: 3, 2
  activation x [a, b]
  activation y [a, b]
  apply abs(activation)
  apply neg(activation)
  apply relu(activation)
  apply exp(activation)
  apply sqrt(activation)
  apply tanh(activation)
  apply mul(activation, activation)
  apply div(activation, activation)

group broadcasts
  max_ops 3
  max_weight_ops 0
  extent a: 2, 3
  extent b: 3, 2
  activation x [b]
  activation y [b]
  activation z [a, b]
  apply broadcast(activation) shape=[a, b]
  apply add(activation, activation)
  apply mul(activation, activation)
  apply relu(activation)
  apply transpose(activation) perm=[1, 0]

# What holds of the real relu and max only.
group ordered_pools
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

group ordered_reductions
  ordered
  max_ops 2
  max_weight_ops 0
  extent a: 2, 3
  extent b: 3, 2
  activation x [a, b]
  apply relu(activation)
  apply exp(activation)
  apply tanh(activation)
  apply sigmoid(activation)
  apply reduce_max(activation) axes=[-1]
