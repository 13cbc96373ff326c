# syntax=docker/dockerfile:1
ARG PYTHON=3.11

# Builds the virtual environment; nothing of this stage but /opt/agenteval reaches the image.
FROM python:${PYTHON}-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
COPY requirements/build.lock requirements/runtime.lock requirements/
# Wheels are built in an environment of their own, so that no build tool ends up in the image.
RUN python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --require-hashes --requirement requirements/build.lock \
 && /opt/build/bin/python -m pip wheel --no-build-isolation --require-hashes --requirement requirements/runtime.lock --wheel-dir /wheels
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY templates templates
RUN /opt/build/bin/python -m pip wheel --no-build-isolation --no-deps --wheel-dir /wheels . \
 && python -m venv --without-pip /opt/agenteval \
 && python -m pip --python /opt/agenteval/bin/python install --no-index --no-deps /wheels/*.whl \
 && /opt/agenteval/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/agenteval/lib

FROM python:${PYTHON}-slim-bookworm
LABEL org.opencontainers.image.title="agenteval-action" \
      org.opencontainers.image.description="Evaluate an LLM agent against its suite, compare with the base branch, and gate the merge." \
      org.opencontainers.image.licenses="Apache-2.0"
# WordNet 3.0, which the metric METEOR reads, what reads the text in images, and what checks out the base commit.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git tesseract-ocr wordnet-base \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/agenteval /opt/agenteval
# The end of the step, which GitHub starts by itself, without arguments. No shell: it would drop variables whose names
# hold dashes, such as INPUT_GITHUB-TOKEN.
RUN printf '#!/opt/agenteval/bin/python -I\nfrom agenteval.cli import main\n\nraise SystemExit(main(["action", "--clean-up"]))\n' \
        >/usr/local/bin/agenteval-clean-up \
 && chmod 755 /usr/local/bin/agenteval-clean-up
# Isolated mode: neither the job's PYTHONPATH nor the workspace can change what agenteval imports.
ENTRYPOINT ["/opt/agenteval/bin/python", "-I", "-m", "agenteval", "action"]
