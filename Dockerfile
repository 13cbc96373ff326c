# syntax=docker/dockerfile:1
ARG PYTHON=3.11
# The time of all files, so that the same inputs give the same layers.
ARG SOURCE_DATE_EPOCH=1577836800

# This stage builds the virtual environment without agenteval. The image gets only /opt/agenteval from it.
FROM python:${PYTHON}-slim-bookworm AS libraries
ARG SOURCE_DATE_EPOCH
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
COPY requirements/build.lock requirements/runtime.lock requirements/
# Wheels are built in a separate environment, so that the image contains no build tool. Omitted: tests of packages, what
# only a C compiler reads, what only a debugger reads of compiled modules, AVIF pictures, and the bytecode of parts that
# nothing here imports.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends binutils \
 && python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --require-hashes --requirement requirements/build.lock \
 && /opt/build/bin/python -m pip wheel --no-build-isolation --no-deps --require-hashes --requirement requirements/runtime.lock --wheel-dir /wheels \
 && python -m venv --without-pip /opt/agenteval \
 && python -m pip --python /opt/agenteval/bin/python install --no-compile --no-index --no-deps /wheels/*.whl \
 && cd /opt/agenteval/lib/python*/site-packages \
 && find . -depth -type d \( -name tests -o -path ./nltk/test \) -exec rm -r {} + \
 && find . -type f \( -name '*.py[ix]' -o -name '*.pxd' -o -name '*.h' -o -name '*.a' -o -name '_avif.*' -o -name 'libavif-*' \) -delete \
 && find . -type f -name '*.so' ! -path '*.libs/*' -exec strip --strip-unneeded {} + \
 && /opt/agenteval/bin/python -m compileall -q --invalidation-mode unchecked-hash -x \
        '/(openai/(resources|types)/(admin|beta|live|realtime)|pydantic_ai/(durable_exec|realtime|ui)|numpy/(distutils|f2py|ma|polynomial)|nltk/(app|draw)|deepeval/(benchmarks|cli|integrations|optimizer|synthesizer)|pydantic/v1)/' \
        /opt/agenteval/lib \
 && find /opt/agenteval -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

# This stage adds agenteval.
FROM libraries AS build
ARG SOURCE_DATE_EPOCH
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY templates templates
COPY examples/quickstart examples/quickstart
RUN touch /tmp/before \
 && /opt/build/bin/python -m pip wheel --no-build-isolation --no-deps --wheel-dir /own . \
 && python -m pip --python /opt/agenteval/bin/python install --no-compile --no-index --no-deps /own/*.whl \
 && /opt/agenteval/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/agenteval/lib/python*/site-packages/agenteval \
 && find /opt/agenteval -newer /tmp/before -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

FROM python:${PYTHON}-slim-bookworm
ARG PYTHON
ARG SOURCE_DATE_EPOCH
LABEL org.opencontainers.image.title="agenteval-action" \
      org.opencontainers.image.description="Evaluate an LLM agent against its suite, compare with the base branch, and gate the merge." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.authors="The agenteval authors" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/python:${PYTHON}-slim-bookworm"
# Installs git (checks out the base commit), tesseract (reads text in images) and WordNet 3.0 (for the metric METEOR),
# without their documentation, the library of Perl, git's servers, tesseract's page orientation data, and the programs
# that train tesseract with the libraries that only these use. Also writes agenteval-clean-up, which GitHub starts without
# arguments at the end of the step. It is a Python script, because a shell would drop variables with hyphens, such as
# INPUT_GITHUB-TOKEN.
RUN touch /tmp/before \
 && for path in '/usr/share/doc/*' '/usr/share/man/*' '/usr/share/locale/*' '/usr/share/gitweb/*' \
        '/usr/share/fonts/*' '/usr/share/perl/*' '/usr/lib/*/perl/*' '/usr/lib/*/libperl.so*' \
        '/usr/lib/git-core/git-daemon' '/usr/lib/git-core/git-http-*' '/usr/lib/git-core/git-imap-send' \
        '/usr/lib/git-core/git-sh*' '/usr/lib/git-core/scalar' '/usr/bin/git-shell' '/usr/bin/scalar' \
        '/usr/share/tesseract-ocr/*/osd.traineddata' '/usr/bin/lstm*' '/usr/bin/text2image' '/usr/bin/*training' \
        '/usr/bin/*unicharset*' '/usr/lib/*/libcairo.so*' '/usr/lib/*/libgio-2.0.so*' '/usr/lib/*/libharfbuzz.so*' \
        '/usr/lib/*/libicui18n.so*' '/usr/lib/*/libpango*' '/usr/lib/*/libpixman-1.so*' '/usr/lib/*/libX11.so*'; do echo "path-exclude $path"; done >/etc/dpkg/dpkg.cfg.d/agenteval \
 && echo 'path-include /usr/share/doc/*/copyright' >>/etc/dpkg/dpkg.cfg.d/agenteval \
 && apt-get update \
 && apt-get install --yes --no-install-recommends git tesseract-ocr wordnet-base \
 && git --version && tesseract --version \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/cache/ldconfig/* \
        /var/log/apt /var/log/*.log /var/lib/dpkg/*-old \
 && printf '#!/opt/agenteval/bin/python -I\nfrom agenteval.cli.main import main\n\nraise SystemExit(main(["action", "--clean-up"]))\n' \
        >/usr/local/bin/agenteval-clean-up \
 && chmod 755 /usr/local/bin/agenteval-clean-up \
 && find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run \) -prune -o -newer /tmp/before \
        -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} + \
 && rm /tmp/before \
 && touch --date="@$SOURCE_DATE_EPOCH" /tmp
# COPY would set the time of the directory to the time of the build, so cp is used. A new version of agenteval with the
# same libraries changes only the second of these layers.
RUN --mount=type=bind,from=libraries,source=/opt,target=/mnt \
    cp --archive /mnt/agenteval /opt/ && touch --date="@$SOURCE_DATE_EPOCH" /opt
RUN --mount=type=bind,from=build,source=/opt,target=/mnt \
    cp --archive --update /mnt/agenteval /opt/ && touch --date="@$SOURCE_DATE_EPOCH" /opt
# The job's library paths refer to files that this image does not contain.
ENV AGENTEVAL_CONTAINER=1
# Isolated mode: neither the job's PYTHONPATH nor the workspace can change what agenteval imports.
ENTRYPOINT ["/opt/agenteval/bin/python", "-I", "-m", "agenteval", "action"]
