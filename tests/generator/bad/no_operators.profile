# error: file:3:1: group 'g' has no operators
profile p
group g
  extent a: 1, 2
  activation x [a]
