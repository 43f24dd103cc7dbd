# The operators and kinds of inputs of the original generator in one space: matrices, images, kernels of three shapes, a
# depth-wise kernel, a scalar, constants.
profile original
group original
  max_ops 3
  max_weight_ops 1
  extent m: 2, 3
  extent k: 3, 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 3, 4
  extent w: 4, 3
  activation x1 [m, k]
  activation x2 [m, k]
  activation x3 [m, k]
  activation w1 [k, k]
  activation w2 [k, k]
  activation w3 [k, k]
  activation i1 [n, c, h, w]
  activation i2 [n, c, h, w]
  activation i3 [n, c, h, w]
  weight k1 [c, c, 3, 3]
  weight k2 [c, c, 3, 3]
  weight k3 [c, c, 3, 3]
  weight k4 [c, c, 1, 3]
  weight k5 [c, c, 1, 3]
  weight k6 [c, c, 1, 3]
  weight k7 [c, c, 1, 1]
  weight k8 [c, c, 1, 1]
  weight k9 [c, c, 1, 1]
  weight d [c, 1, 3, 3]
  weight s []
  apply matmul(activation, any)
  apply add(activation, activation)
  apply mul(activation, any)
  apply smul(activation, weight)
  apply relu(activation)
  apply transpose(activation) perm=[1, 0]
  apply conv2d(activation, weight) pads=[1, 1, 1, 1]
  apply conv2d(activation, weight) pads=[0, 1, 0, 1]
  apply conv2d(activation, weight)
  apply avg_pool2d_include(activation) kernel=[3, 3] pads=[1, 1, 1, 1]
  apply max_pool2d(activation) kernel=[3, 3] pads=[1, 1, 1, 1]
  apply concat(activation, activation) axis=-1
  apply concat(activation, activation) axis=-2
  apply concat(activation, activation) axis=-3
  apply concat(activation, activation) axis=-4
  apply split(activation) axis=-1 sizes=[k, k]
  apply split(activation) axis=-2 sizes=[m, m]
  apply split(activation) axis=-3 sizes=[c, c]
  apply split(activation) axis=-4 sizes=[n, n]
  on_weights concat(weight, weight) axis=-3
  on_weights concat(weight, weight) axis=-4
  on_weights enlarge(weight) margin=[1, 0, 1, 0]
  on_weights enlarge(weight) margin=[1, 1, 1, 1]
  on_weights pool_kernel() channels=c kernel=[3, 3]
  on_weights conv_identity() channels=c kernel=[3, 3]
  on_weights matrix_identity() size=k
  on_weights ones() shape=[m, k]
