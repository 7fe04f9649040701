#!/bin/bash
# usage: run.sh PYTHON SAM_VENV
# `make sam-local`: finds or starts a Docker engine, finds or builds the runtime image, runs the functions, and stops
# what it started.
set -euo pipefail
here=$(dirname "$0") python=$1 sam_venv=$2
image=public.ecr.aws/lambda/python:3.13-x86_64
folder=.sharewarden/docker
without="What works without: make e2e (the same functions as processes), make demo, sharewarden react FILE."

give_up() { # REASON
  echo "sam local $1. $without" >&2
  exit 1
}
docker_answers() { command -v docker >/dev/null && docker version >/dev/null 2>&1; }

PATH=$PATH:/usr/sbin
[[ $(uname) == Linux ]] || give_up "is set up here for Docker on Linux only: containers reach this machine otherwise elsewhere"
if ! docker_answers; then
  [[ $EUID -eq 0 ]] && command -v dockerd >/dev/null || give_up "needs Docker, and none answers here"
  trap 'bash "$here/engine.sh" stop "$folder"' EXIT
  DOCKER_HOST=$(bash "$here/engine.sh" start "$folder")
  export DOCKER_HOST
fi

if ! docker image inspect "$image" >/dev/null 2>&1; then
  # what AWS publishes is better than a stand-in, where the registry can be reached
  timeout 300 docker pull --quiet "$image" 2>/dev/null ||
    bash "$here/image.sh" "$(sh tools/find_python.sh 3.13 "${PYTHON313:-}")" "$sam_venv"
fi

# where containers find servers of this machine: the bridge's own address, which no other machine reaches
bridge=$(docker network inspect bridge --format '{{(index .IPAM.Config 0).Gateway}}')
if [[ -z $bridge ]]; then # the first run of an engine leaves it out: it is the subnet's first address
  subnet=$(docker network inspect bridge --format '{{(index .IPAM.Config 0).Subnet}}')
  bridge=$("$python" -c 'import ipaddress, sys; print(next(ipaddress.ip_network(sys.argv[1]).hosts()))' "$subnet")
fi
"$python" -m sharewarden_tools.emulator.sam_local "$bridge"
