# error: file:5:17: 'b' is neither a declared symbol nor a function
profile p
group g
  extent a: 1, 2
  activation x [b]
