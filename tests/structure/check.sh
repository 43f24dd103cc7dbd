#!/usr/bin/env bash
# check.sh CHECK ROOT [BIN]: one check of the source tree at ROOT; prints each violation as "file:line: message". Exits
# 0 if there is none, 1 if there are, 77 if the check's tool is missing. BIN is where built programs lie (check commands).
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
check=$1
cd "$2" || exit 2
programs=${3:-}
violations=0

violation() { echo "$1"; violations=$((violations + 1)); }

# The project's source files under the given folders that exist.
sources() { # sources PATTERN FOLDER...
  local pattern=$1; shift
  local folders=()
  for folder in "$@"; do if [ -d "$folder" ]; then folders+=("$folder"); fi; done
  if [ ${#folders[@]} -gt 0 ]; then
    find "${folders[@]}" -type f -regextype posix-extended -regex ".*\.($pattern)" -not -path 'tests/structure/bad/*' | sort
  fi
}
libraries=(support elimination graph operators gradients partition rule_io verifier generator onnx_io runtime certificate optimizer targets session)
everything=("${libraries[@]}" tools examples bench tests)

# "file:line:header" of all #include "..." (kind quote) or <...> (kind angle) in the given files.
includes() { # includes KIND FILE...
  local kind=$1; shift
  if [ $# = 0 ]; then return; fi
  case $kind in
    quote) grep -HnoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]+"' "$@" ;;
    angle) grep -HnoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<[^>]+>' "$@" ;;
  esac | sed -E 's/^([^:]+:[0-9]+:).*["<]([^">]+)[">]$/\1\2/'
}

# Includes point from right to left, and are spelled from the root. A tree with its own layers.txt allows nothing that no
# source does.
check_layers() {
  local -A allowed=() used=()
  local line folder target layers=tests/structure/layers.txt
  if [ ! -f $layers ]; then layers=$here/layers.txt; fi
  while read -r line; do
    line=${line%%#*}
    if [ -z "$line" ]; then continue; fi
    allowed[${line%%:*}]=${line#*:}
  done < "$layers"
  local files; mapfile -t files < <(sources 'h|cpp|cu' "${libraries[@]}")
  while IFS=: read -r file number header; do
    folder=$(dirname "$file")
    while [ "$folder" != . ] && [ -z "${allowed[$folder]+set}" ]; do folder=$(dirname "$folder"); done
    if [ "$folder" = . ]; then violation "$file:$number: folder has no line in layers.txt"; continue; fi
    if [ ! -f "$header" ]; then violation "$file:$number: \"$header\" is no file when spelled from the root"; continue; fi
    case "$header" in "$folder"/*) continue ;; esac
    target=${header%%/*}
    case " ${allowed[$folder]} " in
      *" $target "*) used[$folder:$target]=1 ;;
      *) violation "$file:$number: $folder must not include \"$header\"" ;;
    esac
  done < <(includes quote "${files[@]}")
  if [ "$layers" != tests/structure/layers.txt ]; then return; fi
  for folder in $(printf '%s\n' "${!allowed[@]}" | sort); do
    for target in ${allowed[$folder]}; do
      if [ -z "${used[$folder:$target]+set}" ]; then
        violation "$layers:$(grep -n "^$folder:" $layers | cut -d: -f1): $folder includes nothing of $target"
      fi
    done
  done
}

# Each third-party library is included in one place.
check_doors() {
  local files; mapfile -t files < <(sources 'h|cpp|cu' "${everything[@]}")
  local line pattern
  local angle; angle=$(includes angle "${files[@]}"; includes quote "${files[@]}")
  while read -r line; do
    line=${line%%#*}
    if [ -z "$line" ]; then continue; fi
    pattern=${line%:*}
    while IFS=: read -r file number header; do
      local ok=0
      # Tests may look behind any door.
      for folder in ${line##*:} tests; do case "$file" in "$folder"/*) ok=1 ;; esac; done
      if [ $ok = 0 ]; then violation "$file:$number: <$header> belongs to ${line##*: }"; fi
    done < <(grep -E "^[^:]+:[0-9]+:($pattern)$" <<< "$angle")
  done < "$here/doors.txt"
}

check_headers() {
  local files; mapfile -t files < <(sources h "${everything[@]}")
  local file
  for file in "${files[@]}"; do
    if [ "$(grep -m1 -E '^[[:space:]]*#' "$file")" != '#pragma once' ]; then violation "$file:1: the first directive is not #pragma once"; fi
    while IFS=: read -r number _; do violation "$file:$number: using namespace in a header"; done \
      < <(grep -nE '^[[:space:]]*using namespace' "$file")
  done
  # Two types of one name are one type to the linker, which takes the functions of either for both.
  mapfile -t files < <(sources h "${libraries[@]}")
  if [ ${#files[@]} = 0 ]; then return; fi
  while IFS= read -r line; do violation "$line"; done < <(awk '
    FNR == 1 { scope = "" }
    /^namespace [a-z_:]+ \{/ { scope = $2 }
    /^(struct|class) [A-Za-z_]+ ?(final )?(: .*)?\{/ {
      type = scope "::" $2
      if (type in seen && seen[type] != FILENAME) print FILENAME ":" FNR ": " type " is a type of " seen[type] ", too"
      else seen[type] = FILENAME
    }' "${files[@]}")
}

# Every source file is named in a CMakeLists.txt of its folder or one above.
check_cmake() {
  local files; mapfile -t files < <(sources 'cpp|cu' "${everything[@]}")
  local file folder relative found
  for file in "${files[@]}"; do
    folder=$(dirname "$file"); found=0
    while [ $found = 0 ]; do
      relative=${file#"$folder"/}
      if [ -f "$folder/CMakeLists.txt" ] && grep -qE "(^|[^A-Za-z0-9_])${relative%.*}(\.${relative##*.})?([^A-Za-z0-9_.]|$)" "$folder/CMakeLists.txt"; then found=1; fi
      if [ "$folder" = . ]; then break; fi
      folder=$(dirname "$folder")
    done
    if [ $found = 0 ]; then violation "$file:1: no CMakeLists.txt builds this file"; fi
  done
}

# Libraries return errors, take options as arguments, and give the same result for the same seed. (Where the user's home
# is, and whether mpirun started the process, may be asked of the environment.)
check_habits() {
  local files; mapfile -t files < <(sources 'h|cpp|cu' "${libraries[@]}")
  if [ ${#files[@]} = 0 ]; then return; fi
  while IFS=: read -r file number text; do
    violation "$file:$number: not in our libraries: $(sed -E 's/^[[:space:]]+//' <<< "$text")"
  done < <(grep -HnE '\b(getenv|secure_getenv|srand|rand|exit|_exit|quick_exit)[[:space:]]*\(|\bassert[[:space:]]*\(|std::random_device|\bNDEBUG\b' \
             "${files[@]}" | grep -vE '^[^:]+:[0-9]+:[[:space:]]*(//|\*)' | grep -vE 'static_assert|getenv\("(HOME|XDG_[A-Z_]+|(OMPI|PMIX?)_[A-Z_]+)"\)')
}

check_format() {
  if ! command -v clang-format > /dev/null; then echo "SKIP: no clang-format (scripts/setup --developer)"; exit 77; fi
  # Versions disagree on details; the tree follows the one of Debian 12.
  if ! clang-format --version | grep -q 'version 14\.'; then echo "SKIP: not clang-format 14"; exit 77; fi
  local files; mapfile -t files < <(sources 'h|cpp|cu' "${everything[@]}")
  while IFS= read -r line; do violation "$line"; done \
    < <(clang-format --dry-run --ferror-limit=1 "${files[@]}" 2>&1 | grep -E 'warning:|error:' | sed -E 's/: (warning|error): .*/: not formatted (clang-format -i)/')
}

# Commands in the code blocks of documents name scripts and programs that exist; relative links lead to files.
check_documents() {
  local documents; mapfile -t documents < <(find . -maxdepth 2 -name '*.md' -not -path './build*' | sed 's|^\./||' | sort)
  local file number word link
  for file in "${documents[@]}"; do
    while IFS=: read -r number word; do
      case $word in
        build/release/bin/*)
          if [ -n "$programs" ] && [ ! -x "$programs/${word##*/}" ]; then violation "$file:$number: no program ${word##*/}"; fi ;;
        *) if [ ! -x "$word" ]; then violation "$file:$number: no such executable: $word"; fi ;;
      esac
    done < <(awk '
        /^```/ { code = !code; next }
        code { line = $0; sub(/^[[:space:]]*(\$ )?/, "", line); split(line, words, /[[:space:]]/)
               if (words[1] ~ /^(\.\/)?(scripts|bench|\.ci)\/[A-Za-z0-9_.-]+$/ || words[1] ~ /^(\.\/)?build\/release\/bin\/[A-Za-z0-9_-]+$/) {
                 sub(/^\.\//, "", words[1]); print FNR ":" words[1] } }' "$file")
    while IFS=: read -r number link; do
      if [ ! -e "$(dirname "$file")/$link" ]; then violation "$file:$number: broken link: $link"; fi
    done < <(grep -noE '\]\([^)#: ]+[)#]' "$file" | sed -E 's/[)#]$//' | sed -E 's/^([0-9]+):\]\(/\1:/')
  done
}

case $check in
  layers | doors | headers | cmake | habits | format | documents) "check_$check" ;;
  *) echo "check.sh: no check '$check'" >&2; exit 2 ;;
esac
if [ $violations != 0 ]; then echo "$violations violation(s)"; exit 1; fi
