# error: file:4:10: 'relu' is the name of a function
profile p
group g
  extent relu: 1, 2
