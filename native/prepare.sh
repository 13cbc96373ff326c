#!/usr/bin/env bash
# Creates the environment of agenteval, and writes the key of the packages that are installed into it.
set -euo pipefail

fail() {
  echo "::error title=agenteval::$1"
  exit 2
}

case $RUNNER_OS in
  Linux | macOS) ;;
  *) fail "the native action runs on Linux and macOS, not on $RUNNER_OS; use another runner, such as ubuntu-latest" ;;
esac
# Files of the workspace, such as .python-version, do not choose the Python.
cd "$GITHUB_ACTION_PATH"
# Nor do variables of the job.
unset PYTHONHOME PYTHONPATH VIRTUAL_ENV UV_PYTHON PYENV_VERSION
home=$RUNNER_TEMP/agenteval packages=$RUNNER_TEMP/agenteval-packages
# An earlier step's agent could have changed them.
rm -rf "$home" "$packages"

is_suitable() { "$1" -I -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

if command -v uv >/dev/null; then
  installer=uv
  uv venv --quiet --no-config --no-project --python '>=3.11' "$home" ||
    fail 'uv cannot create an environment with Python 3.11 or newer; see the lines above'
else
  installer=pip python=
  for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
    if is_suitable "$name"; then
      python=$name
      break
    fi
  done
  [[ -n $python ]] || fail 'neither uv nor Python 3.11 or newer with venv is on PATH; add a step with astral-sh/setup-uv or actions/setup-python before'
  "$python" -I -m venv "$home" || fail "$python cannot create a virtual environment; see the lines above"
fi

key=$("$home/bin/python" -I - "$installer" "$GITHUB_ACTION_PATH"/../requirements/{build,runtime}.lock <<'END'
import hashlib, platform, sys
installer, *files = sys.argv[1:]
locks = hashlib.sha256(b"".join(open(file, "rb").read() for file in files)).hexdigest()[:16]
libc = platform.libc_ver()[0] or sys.platform
print(f"agenteval-native-{installer}-{platform.machine()}-{libc}-{sys.version_info[0]}.{sys.version_info[1]}-{locks}")
END
)
{
  echo "installer=$installer"
  echo "packages=$packages"
  echo "key=$key"
} >>"$GITHUB_OUTPUT"
