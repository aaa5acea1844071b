# PostgreSQL's official image with gpusort, which sorts on all CPU cores:
#
#   docker build -t gpusort:18 .
#   docker run -e POSTGRES_PASSWORD=secret --shm-size 1g gpusort:18
#
# Another PostgreSQL: --build-arg PG_MAJOR=17 --build-arg PG_MINOR=12, say.
# Dockerfile.cuda has the engine on GPUs as well.

# A release of PostgreSQL, with its minor number, and of Debian, so that the base is the same until this is changed.
# Tags can be moved; a digest cannot: `docker buildx imagetools inspect postgres:18.6-trixie` prints it, for
# --build-arg BASE=postgres:18.6-trixie@sha256:...
ARG PG_MAJOR=18
ARG PG_MINOR=6
ARG DEBIAN=trixie
ARG BASE=postgres:${PG_MAJOR}.${PG_MINOR}-${DEBIAN}

FROM ${BASE} AS build
RUN apt-get update \
	&& apt-get install -y --no-install-recommends gcc libc6-dev liblz4-dev make "postgresql-server-dev-${PG_MAJOR}" \
	&& rm -rf /var/lib/apt/lists/*
COPY . /gpusort
RUN make -C /gpusort -j "$(nproc)" PG_CONFIG="/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config" NVCC= \
	&& make -C /gpusort PG_CONFIG="/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config" NVCC= DOCUMENTS= DESTDIR=/image install

FROM ${BASE}
LABEL org.opencontainers.image.title="gpusort" \
	org.opencontainers.image.description="PostgreSQL with gpusort, which sorts on all CPU cores" \
	org.opencontainers.image.source="https://gpusort.invalid/repository" \
	org.opencontainers.image.version="0.2.1" \
	org.opencontainers.image.licenses="PostgreSQL"
COPY --from=build /image/ /
# for clusters that the image makes; one that is there has its own postgresql.conf
RUN echo "shared_preload_libraries = 'gpusort'" >>/usr/share/postgresql/postgresql.conf.sample \
	&& mkdir -p /docker-entrypoint-initdb.d \
	&& echo "CREATE EXTENSION gpusort;" >/docker-entrypoint-initdb.d/gpusort.sql
