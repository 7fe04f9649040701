#!/bin/bash
# usage: image.sh PYTHON3.13 SAM_VENV
# Builds the Lambda Python 3.13 image under the name that `sam local` looks for, for machines that reach no container
# registry: shell and libraries of this Linux, its CPython, the runtime client from PyPI, and the runtime emulator
# that SAM CLI carries. It stands in for AWS's image; libraries and patch level are this machine's.
set -euo pipefail
python=$1 sam_venv=$2
image=public.ecr.aws/lambda/python:3.13-x86_64

[[ $(uname -sm) == "Linux x86_64" ]] || { echo "the stand-in image can be built on Linux x86_64 only" >&2; exit 1; }
emulator=$(find "$sam_venv" -name aws-lambda-rie-x86_64 -print -quit)
prefix=$("$python" -c 'import sys; print(sys.base_prefix)')
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

into() { install -D "$(readlink -f "$1")" "$root/$2"; }

tools="bash sh cat cp mv rm ls mkdir chmod chown ln sleep env id dirname basename grep sed find"
libraries() { # of the tools, of CPython, and those that are only loaded at run time
  { for tool in $tools; do ldd "$(readlink -f "$(command -v "$tool")")"; done
    ldd "$prefix/bin/python3.13"
    find "$prefix/lib" -name '*.so*' ! -name '_tkinter*' -exec ldd {} +; } 2>/dev/null |
    grep -o '/[^ )]*\.so[^ )]*' | grep -v "^$prefix"
  for name in nss_dns nss_files resolv gcc_s stdc++ pthread dl rt util m anl; do # wheels load these by themselves
    find /lib/x86_64-linux-gnu/ -maxdepth 1 -name "lib$name.so.?"
  done
}

mkdir -p "$root"/{usr/bin,usr/lib64,usr/lib/x86_64-linux-gnu,etc/ssl/certs,tmp,var/tmp,proc,sys,dev,opt,root}
mkdir -p "$root"/var/{task,runtime,lang,rapid}
chmod 1777 "$root/tmp" "$root/var/tmp"
for tool in $tools; do into "$(command -v "$tool")" "usr/bin/$tool"; done
libraries | sort -u | while read -r library; do into "$library" "usr/lib/x86_64-linux-gnu/$(basename "$library")"; done
into /lib64/ld-linux-x86-64.so.2 usr/lib64/ld-linux-x86-64.so.2
ln -s usr/bin "$root/bin"
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"
into /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/ca-certificates.crt
printf 'root:x:0:0:root:/root:/bin/bash\nsbx_user1051:x:993:990::/tmp:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\nsbx_user1051:x:990:\n' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"

# CPython finds its library from its own place, so it may be moved; what no function needs stays out.
tar -C "$prefix" --exclude='*/test' --exclude='*/idlelib' --exclude='*/tkinter' --exclude='*/ensurepip' \
  --exclude='*/site-packages/*' --exclude='*/config-3*' --exclude='*.a' --exclude='./include' --exclude='./share' \
  --exclude='_tkinter*' -cf - . | tar -C "$root/var/lang" -xf -
"$python" -m pip install -qq --disable-pip-version-check --root-user-action=ignore --no-deps --require-hashes \
  --target "$root/var/runtime" --requirement "$(dirname "$0")/requirements-runtime.txt"
cat >"$root/var/runtime/bootstrap" <<'P'
#!/bin/bash
export AWS_EXECUTION_ENV=AWS_Lambda_python3.13
exec /var/lang/bin/python3.13 /var/runtime/bootstrap.py
P
cat >"$root/var/runtime/bootstrap.py" <<'P'
"""Starts the handler, with the search path that Lambda documents: function, layers, runtime."""
import os
import sys

task = os.environ.get("LAMBDA_TASK_ROOT", "/var/task")
first = [task, "/opt/python", "/opt/python/lib/python3.13/site-packages", "/var/runtime"]
sys.path[:] = first + [place for place in sys.path if place not in first]
from awslambdaric.__main__ import main

main(["bootstrap", os.environ["_HANDLER"]])
P
install -D -m 755 "$emulator" "$root/usr/local/bin/aws-lambda-rie"
cat >"$root/lambda-entrypoint.sh" <<'P'
#!/bin/sh
export _HANDLER="$1"
if [ -z "$AWS_LAMBDA_RUNTIME_API" ]; then exec /usr/local/bin/aws-lambda-rie /var/runtime/bootstrap; fi
exec /var/runtime/bootstrap
P
chmod 755 "$root/lambda-entrypoint.sh" "$root/var/runtime/bootstrap"

tar -C "$root" --owner=0 --group=0 -cf - . | docker import \
  --change 'ENV LANG=C.UTF-8 TZ=UTC PATH=/var/lang/bin:/usr/local/bin:/usr/bin:/bin:/opt/bin' \
  --change 'ENV LD_LIBRARY_PATH=/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/task:/opt/lib' \
  --change 'ENV LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime' \
  --change 'WORKDIR /var/task' --change 'ENTRYPOINT ["/lambda-entrypoint.sh"]' - "$image" >/dev/null
echo "built $image"
