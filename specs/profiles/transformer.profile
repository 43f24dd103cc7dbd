# The operators of attention blocks: batched products, transposes, softmax, the pieces of normalisation, bias and activation.
profile transformer

# Heads: products of stacks of matrices, and what moves past them.
group attention
  max_ops 5
  max_weight_ops 0
  extent b: 2, 1
  extent m: 3, 2
  extent d: 2, 4
  activation q [b, m, d]
  activation k [b, m, d]
  weight s []
  apply matmul(activation, activation)
  apply transpose(activation) perm=[0, 2, 1]
  apply softmax(activation) axis=-1
  apply smul(activation, weight)

# Projections that read one tensor, with and without bias.
group projections
  max_ops 3
  max_weight_ops 2
  extent b: 2, 1
  extent m: 3, 2
  extent d: 2, 3
  extent j1: 4, 1
  extent j2: 1, 5
  param f in identity relu tanh gelu: relu, tanh
  activation x [b, m, d]
  weight w1 [d, j1]
  weight w2 [d, j2]
  weight b1 [j1]
  weight b2 [j2]
  apply matmul(activation, weight)
  apply matmul_bias_act(activation, weight, weight) act=f
  apply split(activation) axis=-1 sizes=[j1, j2]
  on_weights concat(weight, weight) axis=-1

group three_projections
  max_ops 3
  max_weight_ops 2
  extent b: 2, 1
  extent m: 3, 2
  extent d: 2, 3
  extent j1: 4, 1
  extent j2: 1, 5
  extent j3: 5, 2
  activation x [b, m, d]
  weight w1 [d, j1]
  weight w2 [d, j2]
  weight w3 [d, j3]
  apply matmul(activation, weight)
  apply split(activation) axis=-1 sizes=[j1, j2, j3]
  on_weights concat(weight, input) axis=-1

group associativity
  max_ops 2
  max_weight_ops 1
  extent b: 2, 1
  extent m: 3, 2
  extent d: 2, 3
  extent e: 4, 5
  extent j: 5, 4
  activation x [b, m, d]
  activation y [b, d, e]
  weight w [e, j]
  weight v [j, d]
  weight s []
  apply matmul(activation, any)
  apply smul(activation, weight)
  on_weights matmul(input, input)
  on_weights smul(input, input)

# Bias, residual, activation.
group bias
  max_ops 2
  max_weight_ops 2
  source_weight_ops 1
  extent b: 2, 1
  extent m: 3, 2
  extent d: 4, 3
  extent j: 5, 4
  activation x [b, m, d]
  activation y [b, m, j]
  weight w [d, j]
  weight c [j]
  apply matmul(input, input)
  apply matmul_bias_act(input, input, input) act=identity
  apply matmul_bias_act(input, input, input) act=gelu
  apply gelu(activation)
  apply add(activation, any)
  on_weights broadcast(input) shape=[b, m, j]

# Normalisation: what scales and shifts moves into the product that follows.
group norm_scale
  max_ops 3
  max_weight_ops 2
  source_weight_ops 1
  extent b: 2, 1
  extent m: 3, 2
  extent d: 4, 3
  extent j: 2, 5
  activation x [b, m, d]
  weight g [d]
  weight w [d, j]
  apply reduce_mean(activation) axes=[-1]
  apply sub(activation, activation)
  apply mul(activation, weight)
  apply matmul(activation, weight)
  apply broadcast(activation) shape=[b, m, d]
  on_weights broadcast(input) shape=[b, m, d]
  on_weights reshape(input) shape=[d, 1]
  on_weights broadcast(weight) shape=[d, j]
  on_weights mul(input, weight)

group softmax_transposes
  max_ops 2
  max_weight_ops 0
  extent b: 2, 1
  extent m: 3, 2
  extent d: 4, 3
  activation x [b, m, d]
  apply softmax(activation) axis=-1
  apply exp(activation)
  apply transpose(activation) perm=[1, 0, 2]
  apply transpose(activation) perm=[0, 2, 1]
  apply softmax(activation) axis=-2

group stacked_views
  max_ops 2
  max_weight_ops 0
  extent b: 2, 3
  extent m: 3, 4
  extent d: 5, 2
  activation x [b, m, d]
  apply reshape(activation) shape=[b, m, d]
  apply reshape(activation) shape=[b * m, d]
  apply reshape(activation) shape=[b, m * d]
  apply transpose(activation) perm=[0, 2, 1]
  apply transpose(activation) perm=[1, 0, 2]
  apply gelu(activation)
