#!/usr/bin/env bash
# mistakes_test.sh COMPILER INCLUDE: mistakes.cpp compiles as it is, and each of its parts fails for the reasons that
# stand in it, each as often as it stands there, and for no other.
set -euo pipefail
compiler=$1 include=$2
source=$(dirname -- "${BASH_SOURCE[0]}")/mistakes.cpp
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

compile() { # OUTPUT flag...
  local output=$1
  shift
  "$compiler" -std=c++20 -fsyntax-only -I "$include" "$@" "$source" >"$output" 2>&1
}

check_part() { # PART
  local log=$work/$1 sentence wanted found wrong=0 all
  if compile "$log" "-D$1" "$no_limit"; then
    echo "$1: its mistakes compile"
    return 1
  fi
  while read -r wanted sentence; do
    # clang says in a note why a constant is none.
    found=$(grep -E 'error:|note: non-constexpr function' "$log" | grep -cF -- "$sentence" || true)
    if ((found != wanted)); then
      echo "$1: '$sentence' is said $found times, expected $wanted"
      wrong=1
    fi
  done < <(sed -n "s|^ *// $1: ||p" "$source" | sort | uniq -c)
  wanted=$(grep -c "^ *// $1: " "$source")
  all=$(grep -c 'error:' "$log" || true)
  if ((all != wanted)); then
    echo "$1: $all errors, expected $wanted"
    wrong=1
  fi
  ((wrong == 0)) || cat "$log"
  return "$wrong"
}

no_limit=-fmax-errors=0
"$compiler" --version | grep -q clang && no_limit=-ferror-limit=0
compile "$work/sound" -Wall -Wextra -Wpedantic -Werror || {
  cat "$work/sound"
  exit 1
} &
sound=$!
check_part TABLES >"$work/tables.txt" &
tables=$!
failed=0
wait "$sound" || failed=1
check_part MEMBERS || failed=1
check_part HANDLES || failed=1
wait "$tables" || failed=1
cat "$work/tables.txt"
exit "$failed"
