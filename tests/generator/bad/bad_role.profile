# error: file:6:14: expected 'any', 'activation', 'weight' or 'input', found 'tensor'
profile p
group g
  extent a: 1, 2
  activation x [a]
  apply relu(tensor)
