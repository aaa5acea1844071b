# units.mk - which source files make up what; every Makefile here includes it.
#
# A room (folder) is the list: a file that is put there is built.  Paths are from the top of the
# repository; $(GPUSORT_TOP) is how the including Makefile gets there, and ends with a slash or is
# empty.

gpusort_units = $(foreach room,$(1),$(patsubst $(GPUSORT_TOP)%,%,$(sort $(wildcard $(GPUSORT_TOP)$(room)/*.$(2)))))

# The extension, the service, and the engine that is built into it (also alone, for its tests).
EXTENSION_UNITS = $(call gpusort_units,src src/plan src/exec src/keys src/client src/server,c)
HOST_ENGINE_UNITS = $(call gpusort_units,src/service/host,c)
SERVICE_UNITS = $(call gpusort_units,src/service,c) $(HOST_ENGINE_UNITS)

# The sort library on the device; the engine on top of it; sorts over several devices, host to host.
DEVICE_SORT_UNITS = $(call gpusort_units,cuda/sort cuda/sort/radix,cu)
CUDA_ENGINE_UNITS = $(call gpusort_units,cuda/engine,cu)
MULTI_SORT_UNITS = $(call gpusort_units,cuda/multi,cu)

# The id of what is built, as build/build_id.h.
$(shell $(GPUSORT_TOP)script/id-of-build)
BUILD_ID_INCLUDE = -I$(GPUSORT_TOP)build

# The published sorts, for tests and the device benchmark.
REFERENCE_UNITS = $(call gpusort_units,bench/device/reference,cu)

# Dependencies come with the objects; there is no other way to make them.
%.d: ;
