# The operator and kubectl-vlm on plain Python. It runs as any user and writes nothing, not even to /tmp.
# With a package index of your own: docker build --secret id=pip.conf,src=$HOME/.config/pip/pip.conf .

FROM python:3.11-slim AS dependencies
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements/run.txt requirements/
RUN python3 -m venv --without-pip /opt/vlm-operator
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    python3 -m pip --python /opt/vlm-operator/bin/python3 install \
      --no-compile --only-binary=:all: --require-hashes -r requirements/run.txt \
 && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/vlm-operator/lib

FROM dependencies AS build
COPY requirements/build.txt requirements/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    python3 -m pip install --only-binary=:all: --require-hashes -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
RUN python3 -m pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
 && python3 -m pip --python /opt/vlm-operator/bin/python3 install \
      --no-compile --no-deps --no-index --root /installed wheels/*.whl \
 && python3 -m compileall -q --invalidation-mode unchecked-hash -s /installed /installed

FROM python:3.11-slim
# Nothing installs packages from here on. The standard library comes without byte code, and cannot write its own later.
RUN python3 -m pip uninstall --quiet --yes wheel setuptools pip \
 && stdlib=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') \
 && rm -r "$stdlib/ensurepip" \
 && python3 -m compileall -q -f --invalidation-mode unchecked-hash "$stdlib"
COPY --from=dependencies /opt/vlm-operator /opt/vlm-operator
COPY --from=build /installed /
# Libraries ask for the name and the home of the user, and a user id alone has neither.
ENV HOME=/ USER=vlm-operator PATH=/opt/vlm-operator/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 8080
LABEL org.opencontainers.image.title="vlm-operator" \
      org.opencontainers.image.description="Kubernetes operator that serves vision-language models on GPUs" \
      org.opencontainers.image.licenses="Apache-2.0"
ENTRYPOINT ["vlm-operator"]
CMD ["run"]
