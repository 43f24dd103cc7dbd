# The operators of Table 2.1 of Jia's thesis in one space, as far as one group goes: every term of up to --max-ops operators (at
# most four) over matrices, images and their weights, stride 1, SAME.
profile table21

group matrices
  max_ops 4
  max_weight_ops 1
  extent m: 3, 2
  extent k: 4, 3
  extent j: 2, 5
  activation x [m, k]
  activation y [m, k]
  activation z [k, m]
  weight w [k, j]
  weight v [k, j]
  weight s []
  apply add(activation, activation)
  apply mul(activation, activation)
  apply smul(activation, weight)
  apply transpose(activation) perm=[1, 0]
  apply matmul(activation, any)
  apply relu(activation)
  apply concat(activation, activation) axis=-2
  apply concat(activation, activation) axis=-1
  apply split(activation) axis=-2 sizes=[m, m]
  apply split(activation) axis=-1 sizes=[k, k]
  apply split(activation) axis=-1 sizes=[j, j]
  on_weights concat(weight, weight) axis=-1
  on_weights concat(weight, weight) axis=-2
  on_weights add(weight, weight)
  on_weights smul(weight, weight)
  on_weights matrix_identity() size=k
  on_weights ones() shape=[m, k]

group images
  max_ops 4
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 4
  extent o1: 2, 4
  extent o2: 1, 2
  extent i: 1, 1
  param p = [i, i, i, i]
  param q in 0..0: [0, 0, 0, 0], [0, 0, 0, 0]
  activation x [n, c, h, w]
  activation y [n, c, h, w]
  weight k1 [o1, c, 3, 3]
  weight k2 [o2, c, 3, 3]
  weight k3 [o2, c, 1, 1]
  weight s []
  apply conv2d(activation, weight) pads=p
  apply conv2d(activation, weight) pads=q
  apply add(activation, activation)
  apply mul(activation, activation)
  apply smul(activation, weight)
  apply relu(activation)
  apply max_pool2d(activation) kernel=[3, 3] pads=p
  apply avg_pool2d_include(activation) kernel=[3, 3] pads=p
  apply avg_pool2d_exclude(activation) kernel=[3, 3] pads=p
  apply concat(activation, activation) axis=-3
  apply split(activation) axis=-3 sizes=[c, c]
  apply split(activation) axis=-3 sizes=[o1, o2]
  on_weights concat(weight, weight) axis=-4
  on_weights enlarge(weight) margin=p - q
  on_weights smul(weight, weight)
  on_weights pool_kernel() channels=c kernel=[3, 3]
  on_weights conv_identity() channels=c kernel=[3, 3]
