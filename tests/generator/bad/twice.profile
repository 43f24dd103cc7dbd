# error: file:5:14: 'a' is declared twice
profile p
group g
  extent a: 1, 2
  activation a [a]
