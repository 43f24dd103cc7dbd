# error: file:4:3: max_ops must be in 1..8
profile p
group g
  max_ops 9
