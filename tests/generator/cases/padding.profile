# Channels between two convolutions become a multiple of 8; channels of zeros behind a convolution become part of its kernel:
# elements of a list that the profile gives by symbols are variables.
profile padding
group padding
  max_ops 2
  max_weight_ops 2
  extent n: 1, 2
  extent c: 2, 3
  extent h: 4, 3
  extent w: 3, 5
  extent o in 1..12: 3, 2
  extent o2: 2, 4
  extent m: 2, 1
  extent r in 1..2: 1, 2
  extent t in 1..2: 2, 1
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..1: [1, 0, 0, 1], [1, 1, 0, 1]
  param d in 1..2: [1, 1], [2, 1]
  activation x [n, c, h, w]
  weight k [o, c, r, t]
  weight l [o2, o, t, r]
  apply conv2d(activation, weight) strides=s pads=p dilations=d
  apply pad(activation) before=[0, 0, 0, 0] after=[0, m, 0, 0]
  on_weights pad_channels(input) outputs=(o + 7) // 8 * 8 - o inputs=0
  on_weights pad_channels(input) outputs=0 inputs=(o + 7) // 8 * 8 - o
  on_weights pad_channels(input) outputs=m inputs=0
