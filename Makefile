# gpusort: the extension (src), its sort service (src/service) and, where there
# is a CUDA toolkit, the cuda engine (cuda).
#
#   make                    builds what can be built
#   make install            puts it where pg_config says
#   make installcheck       the pgTAP suite, on a running server (PGHOST, PGPORT, PGUSER)
#   make dist               gpusort-VERSION.zip of what is committed, as PGXN takes it
#   make gpusortd-faults    the service with fault points, for test/t, as build-faults/gpusortd
#   make check-service      the service, without PostgreSQL
#   make check-engine       the engines alone; ENGINE=cuda on a GPU host
#   make check-engine-host  the host engine alone
#   make check-libc         the keys of the C library's collations
#   make check-device       the device library, emulated; ENGINE=cuda on a GPU host
#   make check-research     what is not shipped, in bench/device: likewise
#   make tests-service tests-engine tests-engine-host tests-libc tests-device tests-research    compiles what
#                           these run, so that they can run side by side (CUDA emulated; with ENGINE=cuda the last two for a GPU)
#
#   NVCC=                   without the cuda engine
#   DOCUMENTS=              without README.md, documents and benchmarks: into documentdir, else below docdir
#   LZ4=no                  without compression of temporary files; by default with it where liblz4 is found
#   SANITIZE=address,undefined | thread    for the check targets

EXTENSION = gpusort
MODULE_big = gpusort
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" gpusort.control)

GPUSORT_TOP =
include units.mk

OBJS = $(EXTENSION_UNITS:.c=.o)
DATA = $(wildcard sql/gpusort--*.sql)

REGRESS = $(shell sed 's/\#.*//' test/schedule)
# pg_regress looks for sql/ below inputdir, and for expected/ below outputdir (PostgreSQL 15) or
# expecteddir (16 and later), both of which are here unless told otherwise.
REGRESS_OPTS = --inputdir=test --launcher=test/lib/psql-failures
ENCODING = UTF8
NO_LOCALE = 1

# src/keys/unicode stands in for ICU's own headers, which need not be there.
PG_CPPFLAGS = -Isrc -Isrc/keys $(BUILD_ID_INCLUDE) -I$(libpq_srcdir) -DGPUSORT_VERSION='"$(EXTVERSION)"'
# PostgreSQL's headers and callbacks leave parameters unused.
PG_CFLAGS = -fvisibility=hidden -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -MMD -MP

NVCC ?= $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)

SERVICE_OBJS = $(SERVICE_UNITS:.c=.o)
EXTRA_CLEAN = gpusortd $(SERVICE_OBJS) $(OBJS:.o=.d) $(SERVICE_OBJS:.o=.d)

PG_CONFIG ?= pg_config
# No bitcode, which takes as long again: gpusort has no function that an expression is compiled with.
override with_llvm = no

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The service is a program of its own: PostgreSQL's flags and headers are not for it.
SERVICE_CC = gcc
SERVICE_CFLAGS = -std=gnu11 -O2 -g -fno-omit-frame-pointer -pthread -Wall -Wextra -Isrc $(BUILD_ID_INCLUDE) -MMD -MP $(LZ4_CFLAGS) $(COPT) $(SERVICE_COPT)

$(SERVICE_OBJS): %.o: %.c
	$(SERVICE_CC) $(SERVICE_CFLAGS) -c -o $@ $<

gpusortd: $(SERVICE_OBJS)
	$(SERVICE_CC) $(SERVICE_CFLAGS) -o $@ $^ -ldl $(LZ4_LIBS)

# The service with fault points (src/service/fault.h).
FAULT_POINTS = build-faults/fault.o build-faults/fault_spoil.o
FAULT_OBJS = $(SERVICE_UNITS:src/%.c=build-faults/%.o) $(FAULT_POINTS)

build-faults/%.o: src/%.c
	@mkdir -p $(@D)
	$(SERVICE_CC) $(SERVICE_CFLAGS) -DGPUSORT_FAULTS -c -o $@ $<

$(FAULT_POINTS): build-faults/%.o: test/service/%.c
	@mkdir -p $(@D)
	$(SERVICE_CC) $(SERVICE_CFLAGS) -DGPUSORT_FAULTS -c -o $@ $<

build-faults/gpusortd: $(FAULT_OBJS)
	$(SERVICE_CC) $(SERVICE_CFLAGS) -o $@ $^ -ldl $(LZ4_LIBS)

gpusortd-faults: build-faults/gpusortd

# the version is compiled in
src/gpusort.o src/gpusort.bc: gpusort.control

-include $(OBJS:.o=.d) $(SERVICE_OBJS:.o=.d) $(FAULT_OBJS:.o=.d)

all: gpusortd $(if $(NVCC),cuda-engine)

cuda-engine:
	$(MAKE) -C cuda NVCC=$(NVCC)

# Programs and links of documents work where they are installed.
DOCUMENTS = $(shell script/lib/documents)
documentdir = $(docdir)/extension/gpusort

install: install-documents
install-documents:
	for file in $(DOCUMENTS); do \
		test -x "$$file" && mode=755 || mode=644; \
		install -D -m "$$mode" "$$file" '$(DESTDIR)$(documentdir)'/"$$file" || exit 1; \
	done

uninstall: uninstall-documents
uninstall-documents:
	rm -rf '$(DESTDIR)$(documentdir)'

install: install-service
install-service: gpusortd $(if $(NVCC),cuda-engine)
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_PROGRAM) gpusortd '$(DESTDIR)$(pkglibdir)/gpusortd'
	$(if $(NVCC),$(INSTALL_SHLIB) cuda/gpusort_cuda.so '$(DESTDIR)$(pkglibdir)/gpusort_cuda.so')
	$(MKDIR_P) '$(DESTDIR)$(mandir)/man8'
	$(INSTALL_DATA) doc/gpusortd.8 '$(DESTDIR)$(mandir)/man8/gpusortd.8'

uninstall: uninstall-service
uninstall-service:
	rm -f '$(DESTDIR)$(pkglibdir)/gpusortd' '$(DESTDIR)$(pkglibdir)/gpusort_cuda.so' '$(DESTDIR)$(mandir)/man8/gpusortd.8'

# .gitattributes says what is left out
dist:
	git archive --format=zip --prefix=gpusort-$(EXTVERSION)/ -o gpusort-$(EXTVERSION).zip HEAD

check-service:
	$(MAKE) -C test/service check

check-engine:
	$(MAKE) -C test/engine check

check-engine-host:
	$(MAKE) -C test/engine check-host

check-libc:
	$(MAKE) -C test/libc check

check-device:
	$(MAKE) -C test/device check

check-research:
	$(MAKE) -C bench/device check

tests-service:
	$(MAKE) -C test/service all

tests-libc:
	$(MAKE) -C test/libc all

# test/engine, test/device and bench/device share the emulation
tests-emulate:
	$(MAKE) -C test/emulate all

tests-engine-host:
	$(MAKE) -C test/engine host

tests-engine: tests-emulate
	$(MAKE) -C test/engine all

ifeq ($(ENGINE),cuda)
tests-device:
	$(MAKE) -C test/device tests-cuda
tests-research:
	$(MAKE) -C bench/device tests-cuda
else
tests-device: tests-emulate
	$(MAKE) -C test/device tests-emulated
tests-research: tests-emulate
	$(MAKE) -C bench/device emulated
endif

clean: clean-parts
clean-parts:
	rm -rf build-faults
	for d in cuda test/service test/engine test/libc test/device bench/device; do $(MAKE) -C $$d clean; done

.PHONY: dist install-documents uninstall-documents gpusortd-faults cuda-engine install-service uninstall-service check-service check-engine check-engine-host check-libc check-device check-research \
	tests-service tests-emulate tests-engine tests-engine-host tests-libc tests-device tests-research clean-parts
