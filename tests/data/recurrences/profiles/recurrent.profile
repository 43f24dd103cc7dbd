# Operators with recurrences, as the generator sees any.
profile recurrent

group sums
  max_ops 3
  extent m: 2, 3
  extent n: 3, 4
  activation x [m, n]
  activation y [m, n]
  apply cumsum(activation)
  apply add(activation, activation)
  apply neg(activation)

group products
  max_ops 3
  extent m: 2, 3
  extent n: 3, 4
  extent p: 4, 2
  activation x [m, n]
  weight w [n, p]
  weight v [n, p]
  apply cumsum(activation)
  apply matmul(activation, weight)
  on_weights add(weight, weight)
