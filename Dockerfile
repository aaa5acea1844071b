# PostgreSQL's official image with gpusort, which sorts on all CPU cores:
#
#   docker build --build-arg PG_MAJOR=18 -t gpusort:18 .
#   docker run -e POSTGRES_PASSWORD=secret --shm-size 1g gpusort:18
#
# Dockerfile.cuda has the engine on GPUs as well.

ARG PG_MAJOR=18
ARG DEBIAN=trixie

FROM postgres:${PG_MAJOR}-${DEBIAN} AS build
RUN apt-get update \
	&& apt-get install -y --no-install-recommends gcc libc6-dev liblz4-dev make "postgresql-server-dev-${PG_MAJOR}" \
	&& rm -rf /var/lib/apt/lists/*
COPY . /gpusort
RUN make -C /gpusort -j "$(nproc)" PG_CONFIG="/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config" NVCC= with_llvm=no \
	&& make -C /gpusort PG_CONFIG="/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config" NVCC= with_llvm=no DOCUMENTS= DESTDIR=/image install

FROM postgres:${PG_MAJOR}-${DEBIAN}
COPY --from=build /image/ /
# for clusters that the image makes; one that is there has its own postgresql.conf
RUN echo "shared_preload_libraries = 'gpusort'" >>/usr/share/postgresql/postgresql.conf.sample
