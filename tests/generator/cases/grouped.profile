# Merging two convolutions of one input is right only if there is one group.
profile grouped
group siblings
  max_ops 2
  max_weight_ops 1
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o1: 4, 2
  extent o2: 1, 5
  extent r in 1..3: 2, 3
  extent t in 1..3: 3, 1
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [1, 2]
  activation x [n, c, h, w]
  weight w1 [o1, c, r, t]
  weight w2 [o2, c, r, t]
  apply conv2d(activation, weight) strides=s pads=p dilations=d
  apply split(activation) axis=-3 sizes=[o1, o2]
  on_weights concat(weight, weight) axis=-4
