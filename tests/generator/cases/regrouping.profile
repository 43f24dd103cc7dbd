# A kernel of narrow groups becomes one of wider groups, its blocks on the diagonal; how many groups there are follows from
# the shapes.
profile regrouping
group regrouping
  max_ops 1
  max_weight_ops 1
  extent n: 1, 2
  extent g: 2, 1
  extent c: 1, 2
  extent h: 4, 3
  extent w: 3, 5
  extent o: 2, 1
  extent r in 1..3: 2, 1
  extent t in 1..3: 1, 3
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..2: [1, 0, 0, 1], [1, 1, 0, 2]
  param d in 1..2: [1, 1], [2, 1]
  extent c1 = 4 * g * c
  extent o1 = 4 * g * o
  activation x [n, c1, h, w]
  weight k [o1, c, r, t]
  apply conv2d(activation, weight) strides=s pads=p dilations=d
  on_weights regroup(input) groups=c1 // (2 * c) factor=2
  on_weights regroup(input) groups=1 factor=c1 // c
