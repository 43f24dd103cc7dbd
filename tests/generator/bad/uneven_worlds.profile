# error: file:5:10: 'b' has 3 values, but there are 2 worlds
profile p
group g
  extent a: 1, 2
  extent b: 1, 2, 3
