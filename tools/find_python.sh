#!/bin/sh
# usage: find_python.sh 3.13 [path to try first]
# Prints the path of a working CPython of that minor version: from PATH, pyenv or uv. Exit code 1 if there is none.
set -eu
version=$1
first=${2:-}

is_wanted() { "$1" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1])' "$version" 2>/dev/null; }

candidates() {
  [ -z "$first" ] || echo "$first"
  command -v "python$version" || true
  # a pyenv shim fails while another version is selected, so ask pyenv for the real one
  if command -v pyenv >/dev/null; then echo "$(pyenv prefix "$(pyenv latest "$version")")/bin/python$version"; fi
  if command -v uv >/dev/null; then uv python find --no-project "$version"; fi
}

for python in $(candidates 2>/dev/null || true); do
  if is_wanted "$python"; then
    "$python" -c 'import os, sys; print(os.path.realpath(sys.executable))'
    exit 0
  fi
done
exit 1
