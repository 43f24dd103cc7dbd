# Element-wise operators, matmul, transpose, relu, concat, split over two kinds of matrices, in one space.
profile reduced
group reduced
  max_ops 5
  max_weight_ops 0
  extent m: 2, 3
  extent k: 3, 2
  activation x [m, k]
  activation y [m, k]
  activation z [m, k]
  activation w1 [k, k]
  activation w2 [k, k]
  activation w3 [k, k]
  apply add(activation, activation)
  apply mul(activation, activation)
  apply matmul(activation, activation)
  apply transpose(activation) perm=[1, 0]
  apply relu(activation)
  apply concat(activation, activation) axis=-2
  apply concat(activation, activation) axis=-1
  apply split(activation) axis=-2 sizes=[m, m]
  apply split(activation) axis=-1 sizes=[k, k]
