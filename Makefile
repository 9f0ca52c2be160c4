# Kochab - the whole build. GNU make, no configure step, no recursion. `make help` lists the targets.
#
# BUILD=dir      where everything is written (default build, or build-<what> for the variants below)
# SAN=address|thread|undefined          a sanitizer build, in a directory of its own
# CROSS=aarch64-linux-gnu-              a cross build; KBI_ARCH=generic takes the portable switch
# CC CXX CPPFLAGS CFLAGS CXXFLAGS LDFLAGS PREFIX DESTDIR WERROR=1 as usual; flags that the library cannot have are set
#                back (KEEP_src below)
# MAP_PATHS=     debug information with the paths of this folder (by default without: the same source, the same bytes)

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
ifeq ($(filter -j% --jobs%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

# ---- what is asked for needs its packages first (quick when nothing is missing) ----
DEPS_SET := $(strip $(if $(filter test demo soak,$(MAKECMDGOALS)),test) $(if $(filter test-programs,$(MAKECMDGOALS)),programs) $(if $(filter soak,$(MAKECMDGOALS)),soak) $(if $(filter bench,$(MAKECMDGOALS)),build) $(if $(filter report,$(MAKECMDGOALS)),$(if $(QUICK),report,laboratory)) $(if $(filter bench-servers,$(MAKECMDGOALS)),servers) $(if $(filter deb,$(MAKECMDGOALS)),deb))
ifneq ($(DEPS_SET),)
ifeq ($(NODEPS)$(CROSS),)
ifneq ($(shell dev/deps $(DEPS_SET) >&2 || echo failed),)
$(error dev/deps: packages are missing, see above (NODEPS=1 skips this check))
endif
endif
endif

# ---- tools and directories ----
ifeq ($(origin CC),default)
CC := $(CROSS)gcc
endif
ifeq ($(origin CXX),default)
CXX := $(CROSS)g++
endif
ifeq ($(origin AR),default)
AR := $(CROSS)ar
endif

MACHINE := $(shell $(CC) -dumpmachine | cut -d- -f1)
KBI_ARCH ?= $(MACHINE)
ARCH := $(if $(wildcard src/arch/$(KBI_ARCH)/ctx.h),$(KBI_ARCH),generic)

VARIANT := $(if $(CROSS),-$(CROSS:-=))$(if $(filter command environment,$(firstword $(origin KBI_ARCH))),-$(ARCH))$(if $(SAN),-$(SAN))
BUILD ?= build$(VARIANT)
O := $(BUILD)

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/kochab
DATADIR ?= $(PREFIX)/share/kochab

VERSION := $(shell sed -n 's/^.define KOCHAB_VERSION "\(.*\)"$$/\1/p' include/kochab/version.h)
SOVERSION := 0

# ---- flags ----
CFLAGS ?= -O2 -g
CXXFLAGS ?= -O2 -g
WARN := -Wall -Wextra $(if $(WERROR),-Werror)
# x86-64: our switch goes on by jmp, so objects must not be marked shadow-stack ready; and it leaves no red zone.
ARCHFLAGS := $(if $(filter x86_64,$(MACHINE)),-fcf-protection=none -mno-red-zone -momit-leaf-frame-pointer)
# No object tells where it was built; debuggers find src/... under the folder that they are started in.
MAP_PATHS ?= -ffile-prefix-map=$(CURDIR)=.
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) $(if $(filter undefined,$(SAN)),-fno-sanitize-recover=undefined))
INCLUDES := -Isrc -Iinclude -Isrc/arch/$(ARCH)
# Unwind tables for C, too, are not everywhere the default (riscv64): backtraces of parked threads need them.
COMMON := -fPIC -fno-omit-frame-pointer -fasynchronous-unwind-tables -pthread $(ARCHFLAGS) $(SANFLAGS) $(MAP_PATHS) $(WARN) $(INCLUDES) -MMD -MP
# gcc clears a record of some hundred bytes by `rep stos`, which takes longer to begin than stores take (x86-64).
MEMSET := $(shell f=-mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign; \
	$(CC) $$f -c -x c /dev/null -o /dev/null 2>/dev/null && echo $$f)
# The canary is off in the library: it lies behind the thread pointer, which the switch changes. Exceptions and
# cancellations of the program pass through our frames (pthread_once cleans up after them).
CFLAGS_src := -std=gnu17 -D_GNU_SOURCE= -fvisibility=hidden -fexceptions -fno-tree-slp-vectorize -ftls-model=initial-exec -fno-plt $(MEMSET)
CFLAGS_bench := -std=gnu17 -D_GNU_SOURCE= -fvisibility=hidden -fno-plt -Itool -Ibench -DKBI_ARCH_NAME='"$(ARCH)"'
# What dev/hardening lists: the command reads files of other users. FORTIFY wants an optimizing compiler, and 3 a newer one.
OPTIMIZES := $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS))))
FORTIFY := $(shell $(CC) -O -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -Werror -include stdio.h -c -x c /dev/null -o /dev/null 2>/dev/null && echo 3 || echo 2)
has_flag = $(shell $(CC) -Werror $(1) -c -x c /dev/null -o /dev/null 2>/dev/null && echo $(1))
CLASH := $(call has_flag,-fstack-clash-protection)
CFLAGS_tool := $(CFLAGS_bench) $(if $(SAN),,-fstack-protector-strong $(CLASH))
CFLAGS_src += $(if $(SAN),,$(CLASH))
CFLAGS_test := -std=gnu17 -D_GNU_SOURCE= -Itest
CFLAGS_example := -std=gnu17 -D_GNU_SOURCE=
CFLAGS_dev := -std=gnu17 -D_GNU_SOURCE=
# Behind CFLAGS, which distributions fill: it takes back the flags that the library must not be built with (doc/packages.md).
# And -O1 at least: a switch in line needs all registers.
KEEP_src := $(if $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS)))),,-O1) -fno-stack-protector $(if $(filter x86_64,$(MACHINE)),-fcf-protection=none) -fno-lto -U_FORTIFY_SOURCE -Wp,-U_FORTIFY_SOURCE
comma := ,
KEEP_tool := $(if $(SAN),,-U_FORTIFY_SOURCE -Wp,-U_FORTIFY_SOURCE$(if $(OPTIMIZES),$(comma)-D_FORTIFY_SOURCE=$(FORTIFY)))
LDLIBS := -pthread -ldl
LIBS_test := -lm -lrt -lutil # libraries of their own before glibc 2.34
LINK := $(SANFLAGS) -pthread -Wl,-z,now
# Once loaded the runtime stays: its threads may stand anywhere.
LINK_SO := -shared $(LINK) -Wl,-z,nodelete $(if $(SAN),,-Wl,-z,defs)

# ---- what is built: src/ORDER lists the units bottom first; a unit is .c, .S or only .h ----
UNITS := $(shell sed 's/\#.*//' src/ORDER)
unit_sources = $(wildcard $(if $(filter arch/%,$(1)),src/arch/$(ARCH)/$(notdir $(1)).c src/arch/$(ARCH)/$(notdir $(1)).S,\
	src/$(1).c src/$(1).S))
SRC := $(foreach u,$(UNITS),$(call unit_sources,$(u)))
# The heap is in neither library that runs threads; tests reach it in libkochab.a.
SRC_heap := $(filter-out src/mem/heap_door.c,$(filter src/mem/heap%,$(SRC)))
SRC_malloc := src/base/cpulist.c src/base/option.c src/os/sys.c src/os/random.c src/libc/names.c src/libc/redirect.c $(SRC_heap) src/posix/malloc.c
# The drop-in is for glibc (doc/portability.md); with another libc there is the native interface. sed reads to the end: a
# compiler whose reader stops sooner complains about its pipe.
IS_GLIBC := $(shell $(CC) -include features.h -dM -E -x c /dev/null | sed -n 's/^.define __GLIBC__ .*/yes/p')
SRC_posix := $(if $(IS_GLIBC),$(filter-out src/posix/malloc.c,$(filter src/posix/%,$(SRC))))
SRC_core := $(filter-out src/posix/% $(SRC_heap),$(SRC))
SRC_tool := $(sort $(filter-out $(if $(IS_GLIBC),,tool/bench%),$(wildcard tool/*.c $(if $(IS_GLIBC),bench/*.c))))
objects = $(addprefix $(O)/,$(addsuffix .o,$(1)))
OBJ_core := $(call objects,$(SRC_core))
OBJ_heap := $(call objects,$(SRC_heap))
OBJ_malloc := $(call objects,$(SRC_malloc))
OBJ_posix := $(call objects,$(SRC_posix))
OBJ_tool := $(call objects,$(SRC_tool))

# The layer over MPI, once for each MPI that is here; with sanitizers, other machines and other libcs not.
MPI_openmpi := mpicc.openmpi
MPI_mpich := mpicc.mpich
MPIS := $(if $(SAN)$(CROSS),,$(if $(SRC_posix),$(if $(filter $(MACHINE),$(shell uname -m)),\
	$(foreach m,openmpi mpich,$(if $(shell command -v $(MPI_$(m))),$(m))))))
SRC_mpi := $(wildcard mpi/*.c)
LIBS_mpi := $(foreach m,$(MPIS),$(O)/libkochab-mpi-$(m).so.$(SOVERSION))
LOADS_mpi := $(foreach m,$(MPIS),$(O)/bench/mpi/load.$(m))
TESTS_mpi := $(foreach m,$(MPIS),$(patsubst %.c,$(O)/%.$(m),$(wildcard test/mpi/*.c)))

TESTS_c := $(filter-out test/mpi/%,$(wildcard test/*/*.c))
TESTS_cc := $(wildcard test/*/*.cc)
TESTS := $(addprefix $(O)/,$(TESTS_c:.c=) $(TESTS_cc:.cc=))
EXAMPLES := $(addprefix $(O)/,$(basename $(wildcard example/*.c example/*.cc example/lecture/*.c)))
# One source, plain POSIX threads: as it is, and linked with the drop-in. What talks to it is a test's and the bench's.
OBJ_kvstore_space := $(call objects,$(addprefix example/kvstore/,line.c space.c))
OBJ_kvstore := $(filter-out $(OBJ_kvstore_space),$(call objects,$(wildcard example/kvstore/*.c)))
KVSTORE := $(addprefix $(O)/,example/kvstore/kvstore example/kvstore/ask/ask \
	$(if $(SRC_posix),example/kvstore/kvstore-posix) \
	test/programs/kvstore/talk bench/servers/load)

LIB_so := $(O)/libkochab.so.$(SOVERSION)
LIB_a := $(O)/libkochab.a
LIB_posix := $(if $(SRC_posix),$(O)/libkochab-posix.so.$(SOVERSION))
# A sanitizer brings an allocator of its own.
LIB_malloc := $(if $(SAN),,$(O)/libkochab-malloc.so.$(SOVERSION))
LINKS := $(LIBS_mpi:.$(SOVERSION)=) $(O)/libkochab.so $(if $(LIB_malloc),$(O)/libkochab-malloc.so) $(if $(LIB_posix),$(O)/libkochab-posix.so)
COMMAND := $(O)/kochab

MAN_SRC := $(wildcard doc/man/*.[0-9])
MAN := $(addprefix $(O)/man/,$(notdir $(MAN_SRC)))

ALLOC_LOADS := $(addprefix $(O)/,$(basename $(wildcard bench/alloc/*.c)))

.PHONY: all lib tool tests examples man
all: lib tool man $(LOADS_mpi) ## libraries, command, man pages (the default)
ifeq ($(MPIS)$(SAN)$(CROSS),)
lib: without-mpi
.PHONY: without-mpi
without-mpi:
	@echo "  no MPI here (mpicc.openmpi, mpicc.mpich): libkochab-mpi is left out"
endif
lib: $(LIB_so) $(LIB_a) $(LIB_posix) $(LIB_malloc) $(LIBS_mpi) $(LINKS)
tool: $(COMMAND)
tests: $(TESTS) $(TESTS_mpi) $(if $(SAN)$(CROSS),,$(O)/sim/sim)
examples: $(EXAMPLES) $(KVSTORE)
man: $(MAN)

# ---- rules ----
# The stamp changes when the compiler or a flag does; then everything is built again.
FLAGS := $(CC) $(CXX) $(ARCH) $(COMMON) $(CPPFLAGS) $(CFLAGS) $(CXXFLAGS) $(LDFLAGS) $(foreach r,src tool test,$(CFLAGS_$(r))) $(KEEP_src) $(KEEP_tool)
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$FLAGS" | cmp -s - $@ || printf '%s\n' "$$FLAGS" >$@
export FLAGS
.PHONY: FORCE
FORCE:

# The command remembers where the library is installed; a stamp of its own, so that another PREFIX for
# `make install` builds one file again and not all.
$(O)/libdir: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBDIR)' | cmp -s - $@ || echo '$(LIBDIR)' >$@
$(O)/tool/run.c.o: $(O)/libdir
$(O)/tool/run.c.o: OWN_FLAGS := -DKOCHAB_LIBDIR='"$(LIBDIR)"'

room = $(firstword $(subst /, ,$(1)))
room_flags = $(CFLAGS_$(call room,$(1)))
users_flags = $(CPPFLAGS) $(CFLAGS) $(KEEP_$(call room,$(1)))

$(O)/%.c.o: %.c $(O)/flags
	@mkdir -p $(@D)
	@echo "  cc    $<"
	@$(CC) $(COMMON) $(call room_flags,$<) $(OWN_FLAGS) $(call users_flags,$<) -c -o $@ $<

$(O)/%.cc.o: %.cc $(O)/flags
	@mkdir -p $(@D)
	@echo "  c++   $<"
	@$(CXX) -std=c++17 $(COMMON) -Itest $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

$(O)/%.S.o: %.S $(O)/flags
	@mkdir -p $(@D)
	@echo "  as    $<"
	@$(CC) $(COMMON) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# All code of this one is in a section of its own: it knows its own code from that of the program that it is linked into
# (libc/context).
OBJCOPY ?= $(CROSS)objcopy
TEXTS := .text .text.unlikely .text.hot .text.startup .text.exit
$(LIB_a): $(OBJ_core) $(OBJ_heap) src/ORDER
	@echo "  ar    $@"
	@rm -f $@
	@$(AR) rcsD $@ $(OBJ_core) $(OBJ_heap)
	@$(OBJCOPY) -D $(addprefix --rename-section ,$(addsuffix =kbi_text,$(TEXTS))) $@

$(LIB_so): $(OBJ_core) src/kochab.map src/ORDER
	@echo "  link  $@"
	@$(CC) $(LINK_SO) $(LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=src/kochab.map -o $@ $(OBJ_core) $(LDLIBS)

# The drop-in has no version definitions: with them it would miss pthread_cond_*@GLIBC_2.3.2.
$(O)/libkochab-posix.so.$(SOVERSION): $(OBJ_core) $(OBJ_posix) src/posix/kochab-posix.map src/ORDER
	@echo "  link  $@"
	@$(CC) $(LINK_SO) $(LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=src/posix/kochab-posix.map \
		-o $@ $(OBJ_core) $(OBJ_posix) $(LDLIBS)

# The names of libc that it defines are the compiler's built-ins, too.
$(O)/src/posix/malloc.c.o: OWN_FLAGS := -fno-builtin
$(O)/libkochab-malloc.so.$(SOVERSION): $(OBJ_malloc) src/ORDER
	@echo "  link  $@"
	@$(CC) $(LINK_SO) $(LDFLAGS) -Wl,-soname,$(@F) -o $@ $(OBJ_malloc) $(LDLIBS)

# gcc takes MPICH's MPI_STATUSES_IGNORE, the address 1, for an array of none (-Wno-stringop-overflow, which clang does not know).
# MPI's compiler brings its headers and library; the library's name, asked of the linked file, is what the layer opens and
# what `kochab run` compares with the program's.
mpi_compiler = OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(MPI_$(1))
define mpi_rules
$(O)/mpi/$(1)/%.c.o: mpi/%.c $(O)/flags $(O)/mpi/$(1)/library
	@mkdir -p $$(@D)
	@echo "  mpicc $$< ($(1))"
	@$(call mpi_compiler,$(1)) $(COMMON) $(CFLAGS_src) -Impi/include -Impi -DKBM_LIBRARY='"'$$$$(cat $(O)/mpi/$(1)/library)'"' \
		$(call users_flags,src) -c -o $$@ $$<
$(O)/mpi/$(1)/library:
	@mkdir -p $$(@D)
	@$(call mpi_compiler,$(1)) -Wl,--no-as-needed -shared -o $$@.so -x c /dev/null
	@readelf -d $$@.so | sed -n 's/.*(NEEDED).*\[\(libmpi.*\)\]/\1/p' | head -n 1 >$$@
$(O)/libkochab-mpi-$(1).so.$(SOVERSION): $(patsubst mpi/%,$(O)/mpi/$(1)/%.o,$(SRC_mpi)) mpi/layer.map
	@echo "  link  $$@"
	@$(call mpi_compiler,$(1)) -shared $(LINK) -Wl,-z,nodelete $(LDFLAGS) -Wl,-soname,$$(@F) -Wl,--version-script=mpi/layer.map \
		-Wl,--no-as-needed -o $$@ $$(filter %.o,$$^) $(LDLIBS)
$(O)/test/mpi/%.$(1): test/mpi/%.c $(O)/flags $(wildcard test/mpi/*.h test/*.h)
	@mkdir -p $$(@D)
	@$(call mpi_compiler,$(1)) $(COMMON) $(CFLAGS_test) -Wno-unknown-warning-option -Wno-stringop-overflow -Impi/include $(CPPFLAGS) $(CFLAGS) -o $$@ $$< $(LDLIBS)
$(O)/bench/mpi/load.$(1): $(wildcard bench/mpi/*.c bench/mpi/*.h) bench/gomp.h $(O)/flags
	@mkdir -p $$(@D)
	@echo "  mpicc $$@"
	@$(call mpi_compiler,$(1)) $(COMMON) $(CFLAGS_example) -Wno-unknown-warning-option -Wno-stringop-overflow $(CPPFLAGS) $(CFLAGS) -o $$@ $$(filter %.c,$$^) $(LDLIBS)
endef
$(foreach m,$(MPIS),$(eval $(call mpi_rules,$(m))))

$(O)/%.so: $(O)/%.so.$(SOVERSION)
	@ln -sf $(<F) $@

$(COMMAND): $(OBJ_tool) $(LIB_a)
	@echo "  link  $@"
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $(OBJ_tool) $(LIB_a) $(LDLIBS) -lrt -lm

$(O)/man/%: doc/man/% dev/man-page src/base/option.def $(wildcard include/kochab/*.h)
	@mkdir -p $(@D)
	@dev/man-page $< >$@

# The allocation loads are plain programs of libc's; compilers must not know what malloc does.
$(O)/bench/alloc/%.c.o: OWN_FLAGS := -fno-builtin
$(O)/bench/alloc/%: $(O)/bench/alloc/%.c.o
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $< $(LDLIBS)

# The simulator: the runtime's own scheduling units, compiled so that each access to a shared word is told to a machine on
# paper (bench/sim/machine.h), with what there is instead of threads, the kernel and stacks. Sections that need more are
# never called and left out.
SIM_UNITS := base/cpulist base/option base/heap sched/sched sched/waiver sched/link sched/packet sched/rotator \
	sched/rotator_paper sched/lb2 sched/steal sched/table sched/board sched/source core/vp \
	core/deadline core/domain core/meter core/run core/wait core/steal_request core/agent sync/event
OBJ_sim := $(patsubst %,$(O)/sim/src/%.c.o,$(SIM_UNITS)) \
	$(patsubst %.c,$(O)/sim/%.c.o,$(wildcard bench/sim/*.c)) \
	$(patsubst %,$(O)/sim/%.o,$(filter src/arch/%/ctx.c src/arch/%/ctx.S,$(call unit_sources,arch/ctx)))
$(O)/sim/%.c.o: %.c $(O)/flags
	@mkdir -p $(@D)
	@echo "  sim   $<"
	@$(CC) -Ibench/sim/hook -Ibench/sim $(filter-out -fPIC,$(COMMON)) $(CFLAGS_src) -ffunction-sections -fdata-sections \
		$(OWN_FLAGS) $(call users_flags,src) -c -o $@ $<
$(O)/sim/%.S.o: %.S $(O)/flags
	@mkdir -p $(@D)
	@$(CC) $(COMMON) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
# bench/sim/runtime.c has another one
$(O)/sim/src/core/run.c.o: OWN_FLAGS := -Dkbi_run_task=kbi_run_task_of_threads
$(O)/sim/sim: $(OBJ_sim)
	@echo "  link  $@"
	@$(CC) $(LINK) $(LDFLAGS) -Wl,--gc-sections -o $@ $(OBJ_sim) $(LDLIBS) -lm
$(O)/sim/probe: $(O)/bench/sim/probe/probe.c.o
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $< $(LDLIBS)

# The library as one test wants it: each store is told to the program, which is killed there (test/core/points.h).
NO_ENTRIES := --param tsan-instrument-func-entry-exit=0
HAS_POINTS := $(if $(SAN)$(CROSS),,$(if $(filter x86_64,$(ARCH)),$(shell $(CC) --version | sed -n '/Free Software/p' | grep -q . && \
	$(CC) $(NO_ENTRIES) -include features.h -dM -E -x c /dev/null 2>/dev/null | sed -n 's/^.define __GLIBC__ .*/yes/p')))
OBJ_points := $(patsubst $(O)/%,$(O)/points/%,$(filter $(O)/src/sched/% $(O)/src/core/% $(O)/src/sync/% $(O)/src/io/% $(O)/src/mem/% \
	$(O)/src/libc/broadcast.c.o,$(OBJ_core)))
$(O)/points/%.c.o: %.c $(O)/flags
	@mkdir -p $(@D)
	@echo "  points $<"
	@$(CC) $(COMMON) $(CFLAGS_src) -fsanitize=thread -DKBI_NO_SAN -U__SANITIZE_THREAD__ $(NO_ENTRIES) \
		$(OWN_FLAGS) $(call users_flags,src) -c -o $@ $<
	@$(OBJCOPY) --redefine-sym __tsan_init=points_init $@
$(O)/libkochab-points.a: $(OBJ_points) $(OBJ_core) src/ORDER
	@rm -f $@
	@$(AR) rcsD $@ $(OBJ_points) $(filter-out $(OBJ_points:$(O)/points/%=$(O)/%),$(OBJ_core))
	@$(OBJCOPY) -D $(addprefix --rename-section ,$(addsuffix =kbi_text,$(TEXTS))) $@
# Its heap, too, in a library of its own, as programs have it: what the compiler calls there is the test's.
OBJ_points_malloc := $(patsubst $(O)/%,$(O)/points/%,$(OBJ_malloc))
$(O)/points/src/posix/malloc.c.o: OWN_FLAGS := -fno-builtin
$(O)/points/libkochab-malloc.so.$(SOVERSION): $(OBJ_points_malloc) src/ORDER
	@$(CC) -shared $(LINK) -Wl,-z,nodelete $(LDFLAGS) -Wl,-soname,$(@F) -o $@ $(OBJ_points_malloc) $(LDLIBS)
ifneq ($(HAS_POINTS),)
$(O)/test/core/contain_points.c.o: OWN_FLAGS := -DKB_TEST_POINTS
$(O)/test/core/contain_points: $(O)/test/core/contain_points.c.o $(O)/libkochab-points.a $(O)/points/libkochab-malloc.so.$(SOVERSION)
	@$(CC) $(LINK) $(LDFLAGS) -rdynamic -Wl,-rpath,'$$ORIGIN/../../points' -o $@ $^ $(LDLIBS) -lm
endif

# Coroutines; and a program that no unwinder comes through.
$(O)/test/sync/hpp_coroutine.cc.o: CXXFLAGS += -std=c++20
$(O)/test/posix/once_left.c.o: OWN_FLAGS := -fno-exceptions -fno-asynchronous-unwind-tables -fno-unwind-tables

# Tests stand on the static library, so that they reach what it hides; test/posix/ are plain
# pthread programs, linked with nothing of ours.
$(O)/test/posix/%: $(O)/test/posix/%.c.o
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $< $(LDLIBS) $(LIBS_test)
$(O)/test/posix/%: $(O)/test/posix/%.cc.o
	@$(CXX) $(LINK) $(LDFLAGS) -o $@ $< $(LDLIBS) $(LIBS_test)
$(O)/test/%: $(O)/test/%.c.o $(LIB_a)
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $< $(LIB_a) $(LDLIBS) $(LIBS_test)
$(O)/test/%: $(O)/test/%.cc.o $(LIB_a)
	@$(CXX) $(LINK) $(LDFLAGS) -o $@ $< $(LIB_a) $(LDLIBS) $(LIBS_test)
$(O)/example/%: $(O)/example/%.c.o $(LIB_a)
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $< $(LIB_a) $(LDLIBS) $(LIBS_test)
$(O)/example/%: $(O)/example/%.cc.o $(LIB_a)
	@$(CXX) $(LINK) $(LDFLAGS) -o $@ $< $(LIB_a) $(LDLIBS) $(LIBS_test)
$(O)/example/kvstore/kvstore: $(OBJ_kvstore)
	@echo "  link  $@"
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $(OBJ_kvstore) $(LDLIBS) -lm
$(O)/example/kvstore/kvstore-posix: $(OBJ_kvstore) $(OBJ_kvstore_space) $(LIB_posix) $(O)/libkochab-posix.so
	@echo "  link  $@"
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $(OBJ_kvstore) $(OBJ_kvstore_space) -L$(O) -lkochab-posix -Wl,-rpath,'$$ORIGIN/../..' $(LDLIBS) -lm
$(O)/example/kvstore/ask/ask: $(O)/example/kvstore/ask/ask.c.o $(O)/example/kvstore/line.c.o $(LIB_a)
	@echo "  link  $@"
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $< $(O)/example/kvstore/line.c.o $(LIB_a) $(LDLIBS)
$(O)/test/programs/kvstore/talk $(O)/bench/servers/load: %: %.c.o
	@echo "  link  $@"
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $< $(LDLIBS)
.PRECIOUS: $(O)/%.c.o $(O)/%.cc.o $(O)/%.S.o

# A kernel that lacks something, for dev/test-kernels; the numbers of calls in it are x86-64's.
REFUSE := $(if $(filter x86_64,$(MACHINE)),$(O)/dev/kernel/refuse)
$(O)/dev/kernel/refuse: $(O)/dev/kernel/refuse.c.o
	@echo "  link  $@"
	@$(CC) $(LINK) $(LDFLAGS) -o $@ $<

# ---- the things to do ----
.PHONY: demo test test-programs bench report simulator bench-servers bench-alloc soak soak-kill check-house check-packages dist deb test-cross test-guest test-kernels test-distros models litmus fuzz install uninstall clean \
	format help
demo: all ## the paper's experiment on this machine, then a real program
	@BUILD=$(O) dev/demo $(FILE)

test: all tests examples ## build everything, run every test (ONLY="room room/name")
	@BUILD=$(O) SAN=$(SAN) CC='$(CC)' CXX='$(CXX)' test/run $(ONLY)

bench: all ## measure everything, quickly, against the limits and the peers (ARGS="NAME --threads ...")
	@bench/shim/build $(O)/shim
	@$(COMMAND) bench $(or $(ARGS),all --quick --peers)

report: all $(KVSTORE) $(ALLOC_LOADS) ## measures all, in turns and several times: out/report.html and report.jsonl (QUICK=1, ARGS="--only NAME ...")
	$(if $(QUICK),,@bench/shim/build $(O)/shim)
	@BUILD=$(O) $(COMMAND) bench report $(if $(QUICK),--quick) $(ARGS)

simulator: tool $(O)/sim/sim $(O)/sim/probe ## the schedulers on up to 1,024 virtual processors, on paper (bench/simulate)

bench-servers: all examples ## kvstore, redis-server and memcached under load (ARGS="-r 3 kvstore")
	@BUILD=$(O) bench/servers/run $(ARGS)

bench-alloc: all $(ALLOC_LOADS) ## the allocator's loads against libc's and the peers' (ARGS="--full --rounds 3 ...")
	@BUILD=$(O) bench/alloc/run $(ARGS)

soak: all tests ## the long runs (SOAK_SECONDS=600; POSIX_SUITE=directory: dev/conformance, six times)
	@BUILD=$(O) SAN=$(SAN) test/run --soak $(ONLY)
	@$(if $(SAN)$(ONLY),true,BUILD=$(O) CC='$(CC)' CXX='$(CXX)' dev/test-programs)
	@$(if $(SAN)$(ONLY),true,BUILD=$(O) CC='$(CC)' dev/conformance --six)
	@$(if $(SAN)$(ONLY),true,BUILD=$(O) dev/fuzz/run -s $(or $(SOAK_SECONDS),600))

soak-kill: all tests ## kills processes of a program at random (KILLS=10000; VPS=2 SCHED=rotator)
	@timeout $$(($(or $(KILLS),10000) / 10 + 300)) env KILLS=$(or $(KILLS),10000) $(if $(VPS),KOCHAB_VPS=$(VPS)) \
		$(if $(SCHED),KOCHAB_SCHED=$(SCHED)) $(O)/test/core/contain_kills
	@timeout $$(($(or $(KILLS),10000) / 50 + 300)) env KILLS=$$(($(or $(KILLS),10000) / 5)) $(if $(VPS),KOCHAB_VPS=$(VPS)) \
		$(if $(SCHED),KOCHAB_SCHED=$(SCHED)) LD_PRELOAD=$(O)/libkochab-malloc.so.$(SOVERSION) $(O)/test/core/contain_kills
	@for s in rotator rotator-paper lb2 steal; do for n in 1 2 4; do \
		POINTS=all KOCHAB_SCHED=$$s KOCHAB_VPS=$$n timeout 700 $(O)/test/core/contain_points || exit; done; done
	@BUILD=$(O) test/soak/kill_programs.py $$(($(or $(KILLS),10000) / 25))
	@BUILD=$(O) KOCHAB_MALLOC=kochab test/soak/kill_programs.py $$(($(or $(KILLS),10000) / 100))

test-programs: all ## programs nobody here wrote, plain and under `kochab run` (ARGS="--quick", ARGS="NAME ...")
	@BUILD=$(O) CC='$(CC)' CXX='$(CXX)' dev/test-programs $(ARGS)

test-distros: ## this commit on other distributions, in folders (ARGS="--quick", ARGS="--list", ARGS="NAME ...")
	@BUILD=$(O) dev/test-distros $(ARGS)
test-kernels: all tests examples $(REFUSE) ## the tests on kernels that lack something (ARGS="--quick", ARGS="FEATURES TEST ...")
	@BUILD=$(O) SAN=$(SAN) CC='$(CC)' CXX='$(CXX)' dev/test-kernels $(ARGS)

check-house: lib $(REFUSE) ## layers, exports, sizes, headers
	@BUILD=$(O) CC='$(CC)' dev/check-house

test-cross: ## the arch, sched, core, sync, io and some posix tests on other machines, by emulation
	@dev/test-cross
test-guest: ## os, libc, sched, core, posix and programs on emulated computers with kernels of their own (slow; ARGS="aarch64 posix/NAME ...")
	@dev/test-guest $(or $(ARGS),aarch64)
fuzz: lib ## fuzzes what reads others' bytes, by libFuzzer (ARGS="-s SECONDS NAME ...")
	@BUILD=$(O) dev/fuzz/run $(ARGS)

litmus: ## the shared protocols under C's memory model, by herd7
	@dev/litmus

dist: ## the source as one tarball, kochab-VERSION.tar.gz
	@dev/dist $(O)

deb: ## the Debian packages, in BUILD/deb (DEB_BUILD_OPTIONS= runs all tests, too)
	@dev/deb $(O)/deb

check-packages: ## the tarball and the packages: the same bytes twice, and they work
	@dev/check-packages

models: ## the protocol models, checked with SPIN
	@if [ -x dev/models ]; then dev/models; else echo "no models"; echo "0 passed, 0 failed, 1 skipped"; fi

format: ## apply .clang-format to the sources named by FILES=
	@clang-format -i $(FILES)

clean: ## remove what was built
	rm -rf $(O)

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

# ---- installing ----
INSTALL ?= install
CMAKEDIR := $(LIBDIR)/cmake/Kochab
D := $(DESTDIR)
FILL = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
	-e 's|@VERSION@|$(VERSION)|g' -e 's|@SOVERSION@|$(SOVERSION)|g' \
	-e "s|@INCLUDE_FROM_LIB@|$$(realpath -ms --relative-to='$(LIBDIR)' '$(INCLUDEDIR)')|g"
# names of the functions that a page of section 3 describes
PAGE_NAMES = sed -n 's/^\.B ".*[ *]\(kb_[a-z0-9_]*\)(.*/\1/p'

# as README's links name them
DOCS = $(wildcard doc/*.md doc/*.svg doc/why/*.md example/*.c example/*.cc example/openmp/* example/mpi/* example/ucx/* example/lecture/* example/kvstore/*.* example/kvstore/ask/*)

install: all ## under PREFIX (/usr/local), in front of it DESTDIR
	$(INSTALL) -d $(D)$(BINDIR) $(D)$(LIBDIR)/pkgconfig $(D)$(CMAKEDIR) $(D)$(INCLUDEDIR)/kochab $(D)$(DOCDIR) \
		$(D)$(DATADIR)/bench \
		$(D)$(MANDIR)/man1 $(D)$(MANDIR)/man3 $(D)$(MANDIR)/man7
	$(INSTALL) -m 755 $(COMMAND) $(D)$(BINDIR)/
	$(INSTALL) -m 644 $(LIB_a) $(D)$(LIBDIR)/
	$(INSTALL) -m 755 $(LIB_so) $(LIB_posix) $(LIB_malloc) $(LIBS_mpi) $(D)$(LIBDIR)/
	for l in $(notdir $(LINKS)); do ln -sf $$l.$(SOVERSION) $(D)$(LIBDIR)/$$l || exit; done
	$(INSTALL) -m 644 include/kochab/*.h include/kochab/*.hpp $(if $(MPIS),mpi/include/kochab/mpi.h) $(D)$(INCLUDEDIR)/kochab/
	for m in $(MPIS); do $(FILL) -e "s|@MPI@|$$m|g" pkg/kochab-mpi.pc.in >$(D)$(LIBDIR)/pkgconfig/kochab-mpi-$$m.pc || exit; done
	$(if $(MPIS),ln -sf kochab-mpi-$(firstword $(MPIS)).pc $(D)$(LIBDIR)/pkgconfig/kochab-mpi.pc)
	for f in kochab kochab-posix kochab-malloc; do $(FILL) pkg/$$f.pc.in >$(D)$(LIBDIR)/pkgconfig/$$f.pc || exit; done
	for f in KochabConfig KochabConfigVersion; do $(FILL) pkg/cmake/$$f.cmake.in >$(D)$(CMAKEDIR)/$$f.cmake || exit; done
	for m in $(MAN); do $(INSTALL) -m 644 $$m $(D)$(MANDIR)/man$${m##*.}/ || exit; done
	for m in $(filter %.3,$(MAN)); do for f in $$($(PAGE_NAMES) $$m); do \
		echo ".so man3/$${m##*/}" >$(D)$(MANDIR)/man3/$$f.3 || exit; done; done
	$(INSTALL) -m 644 README.md LICENSE CHANGELOG.md $(D)$(DOCDIR)/
	for f in $(DOCS); do $(INSTALL) -D -m 644 $$f $(D)$(DOCDIR)/$$f || exit; done
	$(INSTALL) -m 644 dev/kochab-gdb.py pkg/kochab.supp $(D)$(DATADIR)/
	$(INSTALL) -m 755 bench/report bench/machine $(D)$(DATADIR)/bench/
	$(INSTALL) -m 644 bench/report_list.py bench/report_page.py bench/simulate_charts.py bench/limits.def $(D)$(DATADIR)/bench/
	if [ -z "$(D)" ] && [ "$$(id -u)" = 0 ]; then ldconfig || true; fi

uninstall: man ## removes what install put there
	rm -f $(D)$(BINDIR)/kochab $(D)$(LIBDIR)/libkochab.a
	rm -f $(addprefix $(D)$(LIBDIR)/,$(foreach l,libkochab.so libkochab-posix.so libkochab-malloc.so libkochab-mpi-openmpi.so libkochab-mpi-mpich.so,$(l) $(l).$(SOVERSION)))
	rm -f $(addprefix $(D)$(LIBDIR)/pkgconfig/,kochab.pc kochab-posix.pc kochab-malloc.pc kochab-mpi.pc kochab-mpi-openmpi.pc kochab-mpi-mpich.pc)
	for m in $(filter %.3,$(MAN)); do for f in $$($(PAGE_NAMES) $$m); do rm -f $(D)$(MANDIR)/man3/$$f.3; done; done
	for m in $(MAN); do rm -f $(D)$(MANDIR)/man$${m##*.}/$${m##*/}; done
	rm -rf $(D)$(CMAKEDIR) $(D)$(INCLUDEDIR)/kochab $(D)$(DOCDIR) $(D)$(DATADIR)

# ---- what depends on which header ----
-include $(foreach m,$(MPIS),$(patsubst mpi/%,$(O)/mpi/$(m)/%.d,$(SRC_mpi)))
-include $(patsubst %.o,%.d,$(if $(REFUSE),$(REFUSE).c.o) $(OBJ_sim) $(OBJ_points) $(OBJ_points_malloc) $(OBJ_core) $(OBJ_posix) $(OBJ_malloc) $(OBJ_tool) $(OBJ_kvstore) $(OBJ_kvstore_space)) $(patsubst %,%.c.d,$(TESTS) $(EXAMPLES)) \
	$(patsubst %,%.cc.d,$(TESTS) $(EXAMPLES))
