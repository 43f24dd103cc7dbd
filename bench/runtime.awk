# Tables of bench/runtime.sh. A line: model, threads, times in us (comma-separated, or "-") of original, baseline, optimized, optimized
# again, ONNX Runtime, ONNX Runtime on the optimized file, OpenVINO; then predicted seconds of original, baseline, optimized.

function sorted(values, n,    i, j, v) {
  for (i = 2; i <= n; ++i) {
    v = values[i]
    for (j = i - 1; j > 0 && values[j] > v; --j) values[j + 1] = values[j]
    values[j + 1] = v
  }
}
# The quantile q of 1..n, interpolated; values are sorted.
function quantile(values, n, q,    at, low) {
  at = 1 + q * (n - 1)
  low = int(at)
  return low >= n ? values[n] : values[low] + (at - low) * (values[low + 1] - values[low])
}
function median_of(text,    values, n, i) {
  n = split(text, values, ",")
  for (i = 1; i <= n; ++i) values[i] += 0
  sorted(values, n)
  spread = (quantile(values, n, 0.75) - quantile(values, n, 0.25)) / quantile(values, n, 0.5)
  return quantile(values, n, 0.5)
}
function cell(text,    median) {
  if (text == "-") return "-"
  median = median_of(text)
  return sprintf("%.3f (%.0f)", median / 1000, 100 * spread)
}
# The median of a's times over b's, round by round.
function ratio(a, b,    x, y, n, i, text) {
  if (a == "-" || b == "-") return "-"
  n = split(a, x, ",")
  if (split(b, y, ",") != n) return "-"
  for (i = 1; i <= n; ++i) text = text (i > 1 ? "," : "") x[i] / y[i]
  return median_of(text)
}
function number(value, digits) { return value == "-" ? "-" : sprintf("%.*f", digits, value) }
function collected(list, value) { return list == "" ? value : list "," value }
function error_of(predicted, times) {
  return predicted == "-" || times == "-" ? "-" : predicted * 1e6 / median_of(times) - 1
}
function error_cell(error) { return error == "-" ? "-" : sprintf("%+.1f %%", 100 * error) }
function predicted_cell(seconds) { return seconds == "-" ? "-" : sprintf("%.3f", seconds * 1000) }

BEGIN {
  print ""
  print "| model | threads | original | baseline | optimized | ONNX Runtime | ONNX Runtime, optimized | OpenVINO | optimized / baseline | A/A | best peer / optimized |"
  print "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
}
{
  gain = ratio($5, $4)
  # The spread of the A/A pair says what a single ratio of medians may be off by; its median should be 1.
  noise = ratio($6, $5)
  noise_text = "-"
  if (noise != "-") {
    beyond = noise > 1 ? noise - 1 : 1 - noise
    if (spread > beyond) beyond = spread
    noise_text = sprintf("%.3f (%.1f %%)", noise, 100 * beyond)
  }
  best = $7 == "-" ? $9 : $9 == "-" ? $7 : median_of($7) <= median_of($9) ? $7 : $9
  ahead = ratio(best, $5)
  printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", $1, $2, cell($3), cell($4), cell($5), cell($7), cell($8),
    cell($9), number(gain, 3), noise_text, number(ahead, 3)
  if (gain != "-") {
    gains[$2] = collected(gains[$2], gain)
    if (noise != "-" && gain > 1 + beyond) losses[$2] = losses[$2] " " $1
    if (noise != "-" && gain < 1 - beyond) better[$2] = better[$2] " " $1
  }
  if (ahead != "-") {
    ++compared[$2]
    peers[$2] = collected(peers[$2], ahead)
    if (ahead > 1) ++wins[$2]
  }
  row = sprintf("| %s | %s |", $1, $2)
  for (i = 0; i < 3; ++i) {
    error = error_of($(10 + i), $(3 + i))
    row = row sprintf(" %s | %s | %s |", predicted_cell($(10 + i)), $(3 + i) == "-" ? "-" : sprintf("%.3f", median_of($(3 + i)) / 1000),
                      error_cell(error))
    if (error == "-") continue
    size = error < 0 ? -error : error
    errors[$2] = collected(errors[$2], size)
    if (size > worst[$2]) {
      worst[$2] = size
      worst_at[$2] = $1 ", " (i == 0 ? "original" : i == 1 ? "baseline" : "optimized")
    }
  }
  predictions = predictions row "\n"
  if (!($2 in seen)) order[++counts] = $2
  seen[$2] = 1
}
END {
  print ""
  for (i = 1; i <= counts; ++i) {
    t = order[i]
    printf "%s thread%s:", t, t == 1 ? "" : "s"
    if (t in gains)
      printf " optimized / baseline %.3f in the median; faster beyond the noise:%s; slower beyond the noise:%s.", median_of(gains[t]),
        t in better ? better[t] : " none", t in losses ? losses[t] : " none"
    if (t in compared) printf " Best peer / optimized %.3f in the median; ahead on %d of %d.", median_of(peers[t]), wins[t], compared[t]
    print ""
    print ""
  }
  print "Predicted (the sum of the recorded costs of kernels) against measured time of the whole graph, ms:"
  print ""
  print "| model | threads | original: predicted | measured | error | baseline: predicted | measured | error | optimized: predicted | measured | error |"
  print "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
  printf "%s", predictions
  print ""
  for (i = 1; i <= counts; ++i)
    if (order[i] in errors)
      printf "%s thread%s: median error %.1f %%, the worst %.1f %% (%s).\n\n", order[i], order[i] == 1 ? "" : "s",
        100 * median_of(errors[order[i]]), 100 * worst[order[i]], worst_at[order[i]]
}
