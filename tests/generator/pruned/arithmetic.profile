profile arithmetic
group arithmetic
  max_ops 3
  max_weight_ops 0
  extent a: 2, 3
  extent b: 3, 2
  activation x [a, b]
  activation y [a, b]
  activation z [a, b]
  apply add(activation, activation)
  apply mul(activation, activation)
  apply relu(activation)
