# error: file:4:10: the range of 'a' is empty
profile p
group g
  extent a in 3..1: 1, 2
