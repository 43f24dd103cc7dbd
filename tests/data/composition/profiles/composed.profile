# Operators that apply others, as the generator sees any.
profile composed

group norms
  max_ops 3
  max_weight_ops 1
  extent m: 2, 3
  extent n: 3, 4
  activation x [m, n]
  weight w [n]
  weight v [n]
  apply acme_norm(activation, weight)
  apply neg(activation)
  on_weights mul(weight, weight)
  on_weights neg(weight)

group attention
  max_ops 3
  extent m: 2, 3
  extent p: 1, 2
  extent n: 3, 4
  extent d: 2, 3
  extent e: 3, 5
  activation q [m, d]
  activation r [p, d]
  activation k [n, d]
  activation v [n, e]
  apply attention(activation, activation, activation)
  apply concat(activation, activation) axis=-2
  apply split(activation) axis=-2 sizes=[m, p]
