# Which of two weights of one type stands where is no matter of cost; of two tensors that are computed it may be.
profile weights
group computed
  max_ops 2
  extent m: 2, 3
  extent n: 3, 2
  activation x [m, n]
  activation y [m, n]
  activation z [m, n]
  apply mul(activation, input)
group weights
  max_ops 2
  extent m: 2, 3
  extent n: 3, 2
  activation x [m, n]
  weight v [m, n]
  weight w [m, n]
  apply add(activation, weight)
