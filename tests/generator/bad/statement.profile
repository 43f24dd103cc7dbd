# error: file:4:3: expected 'extent', 'param', 'activation', 'weight', 'apply', 'on_weights', 'max_ops', 'max_weight_ops', 'source_weight_ops', 'unconnected', 'lowering', 'ordered', 'group' or 'include', found 'tensor'
profile p
group g
  tensor x
