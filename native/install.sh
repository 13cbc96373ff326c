#!/usr/bin/env bash
# Installs agenteval and its locked dependencies, with uv if it is on PATH, else with pip.
set -euo pipefail

home=$RUNNER_TEMP/agenteval packages=$RUNNER_TEMP/agenteval-packages
checkout=$(cd "$GITHUB_ACTION_PATH/.." && pwd)
cd "$checkout"
# With these, pip would install elsewhere.
unset PYTHONHOME PYTHONPATH PIP_PREFIX PIP_REQUIRE_VIRTUALENV PIP_ROOT PIP_TARGET PIP_USER UV_PYTHON

install() {
  if command -v uv >/dev/null; then
    UV_CACHE_DIR=$packages uv pip install --quiet --no-config --python "$home/bin/python" --no-build-isolation "$@"
  else
    PIP_CACHE_DIR=$packages "$home/bin/python" -I -m pip install --disable-pip-version-check --quiet --no-compile --no-build-isolation "$@"
  fi
}

# Some dependencies are built from source, by tools of the lock.
install --require-hashes --requirement requirements/build.lock
# Without the packages of requirements/unused.txt, which others require.
install --require-hashes --no-deps --requirement requirements/runtime.lock
if [[ -f native/release.lock ]]; then
  install --no-deps --require-hashes --requirement native/release.lock
else
  # No release: the checkout itself.
  install --no-cache-dir --no-deps "$checkout"
fi
"$home/bin/python" -I -m agenteval --version
