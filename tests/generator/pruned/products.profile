profile products
group products
  max_ops 3
  max_weight_ops 1
  extent m: 3, 2
  extent k: 2, 3
  extent j: 4, 1
  activation x [m, k]
  activation y [m, k]
  activation w [k, j]
  activation v [k, j]
  weight s []
  apply matmul(activation, activation)
  apply add(activation, activation)
  apply transpose(activation) perm=[1, 0]
  apply smul(activation, weight)
