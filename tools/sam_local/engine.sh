#!/bin/bash
# usage: engine.sh start FOLDER | stop FOLDER
# A Docker engine of our own where none runs (Linux, root): all of it in FOLDER, its ports on loopback, without rules
# in the firewall. `start` prints the address for DOCKER_HOST.
set -euo pipefail
action=$1 folder=$(mkdir -p "$2" && cd "$2" && pwd)
socket=unix://$folder/docker.sock

start() {
  command -v dockerd >/dev/null || { echo "no dockerd on PATH (Debian, Ubuntu: apt install docker.io)" >&2; exit 1; }
  setsid dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/dockerd.pid" \
    --host "$socket" --ip 127.0.0.1 --iptables=false --ip-forward=false >"$folder/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 60); do
    if docker --host "$socket" version >/dev/null 2>&1; then echo "$socket"; return; fi
    sleep 0.5
  done
  echo "dockerd did not start:" >&2
  tail -n 5 "$folder/dockerd.log" >&2
  exit 1
}

stop() {
  if [ -f "$folder/dockerd.pid" ]; then kill "$(cat "$folder/dockerd.pid")"; fi
  for _ in $(seq 40); do [ -f "$folder/dockerd.pid" ] || break; sleep 0.25; done
  ip link delete docker0 2>/dev/null || true # the engine leaves its bridge behind
}

"$action"
