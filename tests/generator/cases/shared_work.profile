# Two or three values from one graph that shares work: each alone would run more operators that way.
# What exchanges of one value lead to is not a rule of its own.
# Nothing is gained where the concatenations are one operator anyway.
profile shared_work

group transposed
  max_ops 4
  max_weight_ops 0
  extent m: 3, 2
  extent k: 4, 3
  extent n: 2, 4
  activation x [m, k]
  activation y [m, n]
  apply matmul(activation, activation)
  apply transpose(activation) perm=[1, 0]

group distributed
  max_ops 4
  max_weight_ops 0
  extent m: 3, 2
  extent k: 4, 3
  extent n: 2, 4
  activation x [m, k]
  activation w [k, n]
  activation v [k, n]
  apply matmul(activation, activation)
  apply add(activation, activation)

group elements
  max_ops 4
  max_weight_ops 0
  extent m: 3, 2
  extent k: 4, 3
  activation x [m, k]
  activation y [m, k]
  activation z [m, k]
  apply mul(activation, activation)
  apply add(activation, activation)

group concatenations
  max_ops 3
  max_weight_ops 0
  extent m: 3, 2
  extent k: 4, 3
  extent n: 2, 4
  extent j: 1, 5
  activation x [m, k]
  activation y [m, n]
  activation z [m, j]
  apply concat(activation, activation) axis=-1
