# error: file:3:1: group 'g' needs symbols with values for at least two worlds
profile p
group g
  extent a: 1
  activation x [a]
  apply relu(activation)
