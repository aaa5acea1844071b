# PostgreSQL's official image with gpusort, which sorts on all CPU cores:
#
#   docker build --build-arg PG_MAJOR=18 -t gpusort:18 .
#   docker run -e POSTGRES_PASSWORD=secret --shm-size 1g gpusort:18
#
# Dockerfile.cuda has the engine on GPUs as well.

ARG PG_MAJOR=18
ARG DEBIAN=trixie
# A release, to build the same image again, or --build-arg BASE=postgres@sha256:...
ARG BASE=postgres:${PG_MAJOR}-${DEBIAN}

FROM ${BASE} AS build
RUN apt-get update \
	&& apt-get install -y --no-install-recommends gcc libc6-dev liblz4-dev make "postgresql-server-dev-${PG_MAJOR}" \
	&& rm -rf /var/lib/apt/lists/*
COPY . /gpusort
RUN make -C /gpusort -j "$(nproc)" PG_CONFIG="/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config" NVCC= with_llvm=no \
	&& make -C /gpusort PG_CONFIG="/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config" NVCC= with_llvm=no DOCUMENTS= DESTDIR=/image install

FROM ${BASE}
LABEL org.opencontainers.image.title="gpusort" \
	org.opencontainers.image.description="PostgreSQL with gpusort, which sorts on all CPU cores" \
	org.opencontainers.image.source="https://gpusort.invalid/repository" \
	org.opencontainers.image.licenses="PostgreSQL"
COPY --from=build /image/ /
# for clusters that the image makes; one that is there has its own postgresql.conf
RUN echo "shared_preload_libraries = 'gpusort'" >>/usr/share/postgresql/postgresql.conf.sample \
	&& mkdir -p /docker-entrypoint-initdb.d \
	&& echo "CREATE EXTENSION gpusort;" >/docker-entrypoint-initdb.d/gpusort.sql
