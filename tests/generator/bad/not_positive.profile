# error: file:4:10: extent 'a' must be a positive integer, is 0
profile p
group g
  extent a: 0, 2
