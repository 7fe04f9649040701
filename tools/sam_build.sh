#!/bin/sh
# usage: sam_build.sh SAM_BIN_DIR ARCHITECTURE [sam build options]
# Builds with Python 3.13, the Lambda runtime, and checks what came out; sam wants that interpreter first on PATH.
set -eu
sam_bin=$1
architecture=$2
shift 2

if ! python=$(sh "$(dirname "$0")/find_python.sh" 3.13 "${PYTHON313:-}"); then
  echo "make build needs Python 3.13, the Lambda runtime, and found none on PATH, in pyenv or in uv." >&2
  echo "Install it (uv python install 3.13, or pyenv install 3.13), or name it: make build PYTHON313=/path/to/python3.13" >&2
  exit 1
fi
PATH="$(dirname "$python"):$sam_bin:$PATH"
sam validate --lint
sam build --parameter-overrides "Architecture=$architecture" "$@"
# The library for custom rules brings a command line along, which is a third of the layer and which nothing uses.
for package in annotated_doc markdown_it mdurl prompt_toolkit pygments rich shellingham typer wcwidth; do
  rm -rf ".aws-sam/build/Layer/python/$package"
done
# sam leaves bytecode out and Lambda cannot write it, so every cold start would compile the whole layer.
"$python" -m compileall -q --invalidation-mode unchecked-hash .aws-sam/build/Layer
"$python" tools/sharewarden_tools/artefacts.py .aws-sam/build layers/sharewarden/requirements.txt "$architecture"
