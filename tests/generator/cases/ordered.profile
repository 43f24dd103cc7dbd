# What holds of the real relu and max, and of no other functions: it is found over ordered integers, and proved from
# what functions are declared to be.
profile ordered
group pools
  ordered
  max_ops 2
  max_weight_ops 0
  extent n: 1, 2
  extent c: 2, 3
  extent h: 5, 4
  extent w: 4, 6
  param k in 1..3: [2, 3], [3, 1]
  param s in 1..2: [2, 1], [1, 2]
  param p in 0..1: [1, 0, 0, 1], [0, 0, 1, 0]
  activation x [n, c, h, w]
  apply relu(activation)
  apply sigmoid(activation)
  apply abs(activation)
  apply max_pool2d(activation) kernel=k strides=s pads=p
group reductions
  ordered
  max_ops 2
  max_weight_ops 0
  extent m: 3, 2
  extent n: 2, 4
  activation x [m, n]
  apply relu(activation)
  apply tanh(activation)
  apply reduce_max(activation) axes=[-1]
