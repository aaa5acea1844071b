# flags.mk - how sources are compiled against the emulation; GPUSORT_TOP as in units.mk.

CXX = g++
WERROR = -Werror
comma = ,
BUILD = build$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))
# With sanitizers gcc 12 no longer sees that a plain value's key has one word, and warns of others.
UNSURE = -Wno-array-bounds
# For sanitizers' reports; a fifth of the time to compile, and so for a debugger only by make DEBUG=-g.
DEBUG = $(if $(SANITIZE),-g)
EMULATED_FLAGS = -std=c++17 -O2 $(DEBUG) -fno-omit-frame-pointer -pthread -fPIC -U_FORTIFY_SOURCE \
	-Wall -Wextra $(WERROR) -Wno-unknown-pragmas -MMD -MP \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all $(UNSURE)) \
	-I$(GPUSORT_TOP)test/emulate -I$(GPUSORT_TOP)cuda -I$(GPUSORT_TOP)src -I$(GPUSORT_TOP)bench/device $(BUILD_ID_INCLUDE)

# The emulation itself, as objects in $(BUILD) of this folder.
EMULATION = $(patsubst $(GPUSORT_TOP)test/emulate/%.cc,%.o,$(wildcard $(GPUSORT_TOP)test/emulate/*.cc))
