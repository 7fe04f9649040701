#!/bin/sh
# usage: sam_build.sh SAM_BIN_DIR [sam build options]
# Builds with Python 3.13, the Lambda runtime; sam wants that interpreter first on PATH.
set -eu
sam_bin=$1
shift

runs_313() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; }

candidates() {
  echo "${PYTHON313:-}"
  command -v python3.13
  # a pyenv shim fails while another version is selected, so ask pyenv for the real one
  command -v pyenv >/dev/null && echo "$(pyenv prefix "$(pyenv latest 3.13)")/bin/python3.13"
  command -v uv >/dev/null && uv python find --no-project 3.13
}

find_313() {
  { candidates 2>/dev/null || true; } | while read -r python; do
    if runs_313 "$python"; then
      "$python" -c 'import os, sys; print(os.path.realpath(sys.executable))'
      return
    fi
  done
}

python=$(find_313)
if [ -z "$python" ]; then
  echo "make build needs Python 3.13, the Lambda runtime, and found none on PATH, in pyenv or in uv." >&2
  echo "Install it (uv python install 3.13, or pyenv install 3.13), or name it: make build PYTHON313=/path/to/python3.13" >&2
  exit 1
fi
PATH="$(dirname "$python"):$sam_bin:$PATH"
sam validate --lint
sam build "$@"
