# What the generator of the original TASO (SOSP 2019) enumerates: up to three of matmul, add, mul, convolutions with 3x3 and
# 1x3 kernels (stride 1, SAME), average and max pooling 3x3, enlarge to 3x3, scalar multiples, relu, concat of two, split into
# two, transpose, and the constants C_pool, I_conv, I_matmul, I_ewmul.
#
# There, two matrices or kernels of one list are always of one shape, and weights are tensors like others. Here tensors that
# need not be of one shape are not, which makes a group of each way in which shapes may agree. No operator leads from
# matrices to images, so that no rule is lost between groups of either.
profile sosp19

# ------------------------------------------------------------------------------------------------- matrices

group elementwise
  max_ops 3
  max_weight_ops 1
  extent a: 2, 3
  extent b: 3, 2
  activation x [a, b]
  activation y [a, b]
  activation z [a, b]
  weight s []
  weight t []
  apply add(activation, activation)
  apply mul(activation, activation)
  apply smul(activation, weight)
  apply relu(activation)
  on_weights mul(input, input)

group elementwise_units
  max_ops 2
  max_weight_ops 1
  source_weight_ops 1
  extent a: 2, 3
  extent b: 3, 2
  activation x [a, b]
  activation y [a, b]
  weight s []
  apply add(activation, activation)
  apply mul(activation, any)
  apply smul(activation, weight)
  on_weights ones() shape=[a, b]

group products
  max_ops 3
  max_weight_ops 1
  extent m: 3, 2
  extent k: 2, 3
  extent j: 4, 5
  extent l: 5, 4
  activation x [m, k]
  activation y [m, k]
  activation w [k, j]
  activation v [k, j]
  activation u [j, l]
  weight s []
  apply matmul(activation, activation)
  apply add(activation, activation)
  apply smul(activation, weight)

group products_with_identity
  max_ops 1
  max_weight_ops 1
  source_weight_ops 1
  extent m: 3, 2
  extent k: 2, 3
  activation x [m, k]
  activation y [k, m]
  apply matmul(any, any)
  apply transpose(any) perm=[1, 0]
  on_weights matrix_identity() size=k

group transposes
  max_ops 3
  max_weight_ops 0
  extent m: 3, 2
  extent k: 2, 3
  extent j: 4, 5
  activation x [m, k]
  activation y [m, k]
  activation w [k, j]
  weight s []
  apply matmul(activation, activation)
  apply add(activation, activation)
  apply mul(activation, activation)
  apply smul(activation, weight)
  apply relu(activation)
  apply transpose(activation) perm=[1, 0]

# Columns side by side, rows above each other.
group columns
  max_ops 3
  max_weight_ops 0
  unconnected
  extent m: 3, 2
  extent k: 4, 5
  extent j1: 2, 1
  extent j2: 1, 3
  activation x [m, k]
  activation w [k, j1]
  activation v [k, j2]
  apply matmul(activation, activation)
  apply relu(activation)
  apply concat(activation, activation) axis=-1
  apply split(activation) axis=-1 sizes=[j1, j2]

group rows
  max_ops 3
  max_weight_ops 0
  unconnected
  extent m1: 3, 2
  extent m2: 1, 3
  extent k: 4, 5
  extent j: 2, 4
  activation x [m1, k]
  activation y [m2, k]
  activation w [k, j]
  apply matmul(activation, activation)
  apply relu(activation)
  apply concat(activation, activation) axis=-2
  apply split(activation) axis=-2 sizes=[m1, m2]

# A sum of products is a product of longer sums.
group inner
  max_ops 3
  max_weight_ops 0
  extent m: 3, 2
  extent k1: 4, 1
  extent k2: 2, 5
  extent j: 5, 4
  activation x [m, k1]
  activation y [m, k2]
  activation w [k1, j]
  activation v [k2, j]
  apply matmul(activation, activation)
  apply add(activation, activation)
  apply concat(input, input) axis=-1
  apply concat(input, input) axis=-2

group concat_elementwise
  max_ops 3
  max_weight_ops 0
  unconnected
  extent m: 4, 5
  extent j1: 2, 3
  extent j2: 3, 1
  activation x [m, j1]
  activation x2 [m, j1]
  activation y [m, j2]
  activation y2 [m, j2]
  weight s []
  apply concat(activation, activation) axis=-1
  apply split(activation) axis=-1 sizes=[j1, j2]
  apply relu(activation)
  apply smul(activation, weight)
  apply add(activation, activation)
  apply mul(activation, activation)

group blocks
  max_ops 3
  max_weight_ops 0
  extent m1: 2, 3
  extent m2: 1, 2
  extent j1: 3, 4
  extent j2: 4, 1
  activation x [m1, j1]
  activation y [m1, j2]
  activation z [m2, j1]
  activation u [m2, j2]
  apply concat(activation, activation) axis=-1
  apply concat(activation, activation) axis=-2

group image_blocks
  max_ops 3
  max_weight_ops 0
  extent n1: 1, 2
  extent n2: 2, 1
  extent c1: 3, 2
  extent c2: 1, 3
  extent h: 1, 2
  extent w: 2, 1
  activation x [n1, c1, h, w]
  activation y [n1, c2, h, w]
  activation z [n2, c1, h, w]
  activation u [n2, c2, h, w]
  apply concat(activation, activation) axis=-3
  apply concat(activation, activation) axis=-4

group concat_transpose
  max_ops 3
  max_weight_ops 0
  extent m: 4, 5
  extent j1: 2, 3
  extent j2: 3, 1
  activation x [m, j1]
  activation y [m, j2]
  apply transpose(activation) perm=[1, 0]
  apply concat(activation, activation) axis=-1
  apply concat(activation, activation) axis=-2

# --------------------------------------------------------------------------------------------------- images

# The same laws along the axes of images.
group images
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

# A convolution is linear in both arguments.
group conv_linear
  max_ops 3
  max_weight_ops 1
  extent n: 1, 2
  extent c: 2, 1
  extent h: 3, 4
  extent w: 4, 3
  extent o: 3, 2
  extent r in 1..3: 1, 3
  extent t in 1..3: 3, 1
  param p in 0..1: [0, 1, 0, 1], [1, 0, 1, 0]
  activation x [n, c, h, w]
  activation y [n, c, h, w]
  activation k [o, c, r, t]
  activation l [o, c, r, t]
  weight s []
  apply conv2d(activation, activation) pads=p
  apply add(activation, activation)
  apply smul(activation, weight)

# Convolutions side by side: images, output channels, input channels (a sum), groups.
group conv_images
  max_ops 3
  max_weight_ops 0
  extent n1: 1, 2
  extent n2: 2, 1
  extent c: 2, 3
  extent h: 3, 4
  extent w: 4, 3
  extent o: 3, 2
  extent r in 1..3: 1, 3
  extent t in 1..3: 3, 1
  param p in 0..1: [0, 1, 0, 1], [1, 0, 1, 0]
  activation x [n1, c, h, w]
  activation y [n2, c, h, w]
  activation k [o, c, r, t]
  apply conv2d(activation, activation) pads=p
  apply concat(activation, activation) axis=-4
  apply split(activation) axis=-4 sizes=[n1, n2]

group conv_outputs
  max_ops 3
  max_weight_ops 0
  extent n: 1, 2
  extent c: 2, 3
  extent h: 3, 4
  extent w: 4, 3
  extent o1: 3, 2
  extent o2: 1, 4
  extent r in 1..3: 1, 3
  extent t in 1..3: 3, 1
  param p in 0..1: [0, 1, 0, 1], [1, 0, 1, 0]
  activation x [n, c, h, w]
  activation k [o1, c, r, t]
  activation l [o2, c, r, t]
  apply conv2d(activation, activation) pads=p
  apply concat(activation, activation) axis=-4
  apply concat(activation, activation) axis=-3
  apply split(activation) axis=-3 sizes=[o1, o2]

group conv_inputs
  max_ops 3
  max_weight_ops 0
  extent n: 1, 2
  extent c1: 2, 1
  extent c2: 1, 3
  extent h: 3, 4
  extent w: 4, 3
  extent o: 3, 2
  extent r in 1..3: 1, 3
  extent t in 1..3: 3, 1
  param p in 0..1: [0, 1, 0, 1], [1, 0, 1, 0]
  activation x [n, c1, h, w]
  activation y [n, c2, h, w]
  activation k [o, c1, r, t]
  activation l [o, c2, r, t]
  apply conv2d(activation, activation) pads=p
  apply add(activation, activation)
  apply concat(input, input) axis=-3

# Concatenations of concatenations: the order of the input channels, where images and kernels have the same.
group conv_three_inputs
  max_ops 3
  max_weight_ops 0
  extent n: 1, 2
  extent c1: 2, 1
  extent c2: 1, 3
  extent c3: 3, 2
  extent h: 3, 2
  extent w: 2, 3
  extent o: 2, 1
  extent r in 1..3: 1, 2
  extent t in 1..3: 2, 1
  param p in 0..1: [0, 1, 0, 1], [1, 0, 1, 0]
  activation x [n, c1, h, w]
  activation y [n, c2, h, w]
  activation z [n, c3, h, w]
  activation k [o, c1, r, t]
  activation l [o, c2, r, t]
  activation m [o, c3, r, t]
  apply conv2d(activation, activation) pads=p
  apply concat(input, input, input) axis=-3

group conv_groups
  max_ops 3
  max_weight_ops 0
  extent n: 1, 2
  extent c: 2, 3
  extent h: 3, 4
  extent w: 4, 3
  extent o: 3, 2
  extent r in 1..3: 1, 3
  extent t in 1..3: 3, 1
  param p in 0..1: [0, 1, 0, 1], [1, 0, 1, 0]
  activation x [n, c, h, w]
  activation y [n, c, h, w]
  activation k [o, c, r, t]
  activation l [o, c, r, t]
  apply conv2d(activation, activation) pads=p
  apply concat(activation, activation) axis=-3
  apply concat(input, input) axis=-4

# A kernel with zeros around it, the identity, the mean as a kernel.
group conv_enlarge
  max_ops 2
  max_weight_ops 1
  extent n: 1, 2
  extent c: 2, 3
  extent h: 3, 4
  extent w: 4, 3
  extent o: 3, 2
  extent t in 1..3: 3, 1
  param p in 0..1: [0, 1, 0, 1], [0, 0, 0, 0]
  param q in 0..2: [1, 1, 1, 1], [1, 0, 1, 1]
  activation x [n, c, h, w]
  weight k [o, c, 1, t]
  apply conv2d(activation, weight) pads=p
  apply conv2d(activation, weight) pads=q
  apply relu(activation)
  on_weights enlarge(input) margin=q - p

group conv_constants
  max_ops 2
  max_weight_ops 1
  source_weight_ops 1
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 5
  extent w: 5, 4
  activation x [n, c, h, w]
  activation y [n, c, h, w]
  weight s []
  apply conv2d(activation, weight) pads=[1, 1, 1, 1]
  apply avg_pool2d_include(activation) kernel=[3, 3] pads=[1, 1, 1, 1]
  apply max_pool2d(activation) kernel=[3, 3] pads=[1, 1, 1, 1]
  apply add(activation, activation)
  apply smul(activation, weight)
  apply relu(activation)
  on_weights pool_kernel() channels=c kernel=[3, 3]
  on_weights conv_identity() channels=c kernel=[3, 3]

group pooling_concat
  max_ops 3
  max_weight_ops 0
  extent n: 1, 2
  extent c1: 2, 3
  extent c2: 3, 1
  extent h: 3, 4
  extent w: 4, 3
  activation x [n, c1, h, w]
  activation y [n, c2, h, w]
  apply avg_pool2d_include(activation) kernel=[3, 3] pads=[1, 1, 1, 1]
  apply max_pool2d(activation) kernel=[3, 3] pads=[1, 1, 1, 1]
  apply concat(activation, activation) axis=-3
