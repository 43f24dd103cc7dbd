# An axis that is a literal in the profile becomes a variable; so do the sizes of a split.
#expect concat(relu(x), relu(y); axis=a) => relu(concat(x, y; axis=a))
#expect concat(s.0, s.1; axis=a) => x where s = split(x; axis=a, sizes=z)
#expect split(concat(x, y; axis=a); axis=a, sizes=z).0, split(concat(x, y; axis=a); axis=a, sizes=z).1 => x, y
#expect relu(x), relu(y) => s.0, s.1 where s = split(relu(concat(x, y; axis=-1)); axis=-1, sizes=[dim(x, -1), dim(y, -1)])
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
