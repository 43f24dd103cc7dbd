# What holds of the real relu and max, and of no other functions: it is found over ordered integers, and proved from
# what functions are declared to be.
#expect relu(relu(x)) => relu(x)
#expect max_pool2d(relu(x); kernel=k, strides=s, pads=p, dilations=d) => relu(max_pool2d(x; kernel=k, strides=s, pads=p, dilations=d))
#expect max_pool2d(sigmoid(x); kernel=k, strides=s, pads=p, dilations=d) => sigmoid(max_pool2d(x; kernel=k, strides=s, pads=p, dilations=d))
#expect reduce_max(relu(x); axes=a) => relu(reduce_max(x; axes=a))
#expect relu(tanh(x)) => tanh(relu(x))
#absent relu(sigmoid(x)) => sigmoid(relu(x))
#absent max_pool2d(abs(x); kernel=k, strides=s, pads=p, dilations=d) => abs(max_pool2d(x; kernel=k, strides=s, pads=p, dilations=d))
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
