#!/usr/bin/env bash
# tutorial.sh DOCUMENT PROGRAMS WORK: runs the commands of a tutorial, the ```sh blocks of a markdown file, in an empty
# folder WORK, and looks for the lines of the ```text block after each of them in what it printed, in this order. In such
# lines "..." stands for anything.
set -uo pipefail
document=$(readlink -f "$1") programs=$(readlink -f "$2") work=$3
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export PATH=$programs:$PATH
unset GITHUB_ACTIONS

mkdir blocks
# blocks/NNN.sh are commands, blocks/NNN.text what the commands before it print.
awk '/^```/ { if (kind != "") { close(file); kind = ""; next }
              kind = substr($0, 4); if (kind == "") kind = "other"
              if (kind == "sh") number++
              file = sprintf("blocks/%03d.%s", number, kind); next }
     kind != "" { print > file }' "$document"

failures=0 commands=0 lines=0
for block in blocks/*.sh; do
  commands=$((commands + 1))
  # As a reader would: one command after the other in the same folder, stopping where one fails.
  bash -eu "$block" > "$block.out" 2>&1
  code=$?
  if [ $code != 0 ]; then
    echo "$document: this block failed (exit code $code):"; cat "$block" "$block.out"; exit 1
  fi
  text=${block%.sh}.text
  if [ ! -f "$text" ]; then continue; fi
  exec 3< "$block.out"
  while IFS= read -r expected; do
    lines=$((lines + 1)) found=0
    pattern=$(sed -e 's/[][\\*?]/\\&/g' -e 's/\.\.\./*/g' <<< "$expected")
    while IFS= read -r actual <&3; do
      # shellcheck disable=SC2053 # a pattern on purpose
      if [[ $actual == $pattern ]]; then found=1; break; fi
    done
    if [ $found = 0 ]; then
      echo "$document: not printed, or not in this order: $expected"; echo "by:"; cat "$block"; echo "which printed:"; cat "$block.out"
      failures=$((failures + 1))
      break
    fi
  done < "$text"
  exec 3<&-
done
echo "$commands blocks of commands, $lines lines of output looked for"
[ $failures = 0 ] && [ $commands -gt 0 ] && [ $lines -gt 0 ]
