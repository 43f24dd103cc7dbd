# error: file:7:1: group 'g' is defined twice
profile p
group g
  extent a: 1, 2
  activation x [a]
  apply relu(activation)
group g
