# units.mk - which source files make up what; every Makefile here includes it.
#
# A room (folder) is the list: a file that is put there is built.  Paths are from the top of the
# repository; $(GPUSORT_TOP) is how the including Makefile gets there, and ends with a slash or is
# empty.

gpusort_units = $(foreach room,$(1),$(patsubst $(GPUSORT_TOP)%,%,$(sort $(wildcard $(GPUSORT_TOP)$(room)/*.$(2)))))

# The extension, the service, and the engine that is built into it (also alone, for its tests).
EXTENSION_UNITS = $(call gpusort_units,src src/facts src/plan src/plan/offer src/plan/model src/plan/finish src/plan/check src/plan/tell src/index src/cluster src/exec src/form src/pages src/parallel src/sort src/keys src/keys/fixed src/keys/bytes src/shards src/client src/server src/views,c)
MACHINE_UNITS = $(call gpusort_units,src/service/machine,c)
HOST_ENGINE_UNITS = $(call gpusort_units,src/service/host,c) $(MACHINE_UNITS) src/service/errors.c
STORAGE_UNITS = $(call gpusort_units,src/service/external/storage,c)
EXTERNAL_SORT_UNITS = $(call gpusort_units,src/service/external,c) $(STORAGE_UNITS)
SERVICE_UNITS = $(sort $(call gpusort_units,src/service src/service/session src/service/job,c) $(EXTERNAL_SORT_UNITS) $(HOST_ENGINE_UNITS))

# LZ4, for runs in files: where it is found, but for LZ4=no.
LZ4 ?= $(shell if pkg-config --exists liblz4 2>/dev/null || cc -E -include lz4.h -x c /dev/null >/dev/null 2>&1; \
	then echo yes; else echo no; fi)
LZ4 := $(LZ4)
LZ4_CFLAGS := $(if $(filter yes,$(LZ4)),-DGPUSORT_LZ4 $(shell pkg-config --cflags liblz4 2>/dev/null))
LZ4_LIBS := $(if $(filter yes,$(LZ4)),$(or $(shell pkg-config --libs liblz4 2>/dev/null),-llz4))

# The sort library on the device, and the engine on top of it.
DEVICE_SORT_UNITS = $(call gpusort_units,cuda/sort cuda/sort/radix,cu)
CUDA_ENGINE_UNITS = $(call gpusort_units,cuda/engine,cu)

# The id of what is built, as build/build_id.h.
$(shell $(GPUSORT_TOP)script/lib/id-of-build)
BUILD_ID_INCLUDE = -I$(GPUSORT_TOP)build

# What is not shipped: sorts of arrays and over several devices, and the published sorts.
RESEARCH_UNITS = $(call gpusort_units,bench/device/array bench/device/multi bench/device/published,cu)

# Dependencies come with the objects; there is no other way to make them.
%.d: ;
