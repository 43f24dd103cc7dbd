# An axis that is a literal in the profile becomes a variable; so do the sizes of a split.
profile elementwise
group concat
  max_ops 3
  max_weight_ops 0
  unconnected
  extent m: 4, 5
  extent j1: 2, 3
  extent j2: 3, 1
  activation x [m, j1]
  activation y [m, j2]
  apply concat(activation, activation) axis=-1
  apply split(activation) axis=-1 sizes=[j1, j2]
  apply relu(activation)
