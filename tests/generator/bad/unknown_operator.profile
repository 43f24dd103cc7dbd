# error: file:6:9: unknown operator 'frobnicate'
profile p
group g
  extent a: 1, 2
  activation x [a]
  apply frobnicate(activation)
