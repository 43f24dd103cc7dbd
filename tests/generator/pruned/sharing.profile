# Two sums from one graph that shares work: what associativity leads to as well.
profile sharing
group sums
  max_ops 4
  max_weight_ops 0
  extent m: 3, 2
  extent k: 4, 3
  activation x [m, k]
  activation y [m, k]
  activation z [m, k]
  activation w [m, k]
  apply add(activation, activation)
