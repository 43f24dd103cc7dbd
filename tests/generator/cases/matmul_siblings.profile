# Products that read one matrix merge; the sizes of the split are those of the weights.
profile matmul_siblings
group siblings
  max_ops 2
  max_weight_ops 1
  extent m: 3, 2
  extent k: 4, 3
  extent j1: 2, 1
  extent j2: 1, 5
  activation x [m, k]
  weight w1 [k, j1]
  weight w2 [k, j2]
  apply matmul(activation, weight)
  apply split(activation) axis=-1 sizes=[j1, j2]
  on_weights concat(weight, weight) axis=-1
