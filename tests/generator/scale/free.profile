# Many terms and few laws: enumeration takes the time, not what follows it.
profile free
group powers
  max_ops 5
  max_weight_ops 0
  extent k: 2, 3
  activation x [k, k]
  activation y [k, k]
  activation z [k, k]
  activation w [k, k]
  apply pow(activation, activation)
  apply tanh(activation)
  apply exp(activation)
  apply sigmoid(activation)
group products
  max_ops 3
  max_weight_ops 0
  extent m: 2, 3
  extent k: 3, 2
  activation a [m, k]
  activation b [k, k]
  activation c [k, m]
  apply matmul(activation, activation)
  apply transpose(activation) perm=[1, 0]
