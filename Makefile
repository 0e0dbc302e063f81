# Builds, tests and installs libgasnet: a thin layer over cargo and the scripts in ci/.
# The build tree `build` has the form of an installed prefix.
#
#   make                          builds the library, the launcher and the tools
#   make demo                     builds, then runs testsmall and testexit as jobs of two ranks
#   make check [SEED=n]           runs all tests, with a sample of the large matrices
#   make soak FOR=minutes [ONLY=word]
#                                 walks the whole matrices, from where the last soak stopped.
#                                 ONLY selects the cases with that word in their names.
#                                 The tally is soak/tally.txt
#   make install [PREFIX=] [DESTDIR=] [LIBDIR=] [BINDIR=] [INCLUDEDIR=] [MANDIR=] [DOCDIR=]
#                                 copies what `make` built; `make uninstall` removes it.
#                                 KEEP_DEBUG=1: programs keep their debug information
#   make portals                  builds libportals3, the C interface of our Portals 3.3
#   make install-portals [PREFIX=] ...
#                                 copies what `make portals` built; `make uninstall-portals`
#   make lib PORTALS_PREFIX=dir   builds over a libportals too (docs/guide/libportals.md)
#   make cross TARGET=name [CC="compiler options"] [PORTALS_PREFIX=dir] [PREFIX=dir] [DESTDIR=]
#                                 builds for another machine, such as a Cray XT, into
#                                 build-TARGET (docs/guide/porting.md); lists the targets
#   make cross-check TARGET=name  builds for it, and checks and runs what can be run here
#   make check-programs DIR=folder [NP=2] [MODE=par] [TREE=prefix] [ARGS=table] [ONLY="names"]
#                       [SECONDS=120] [BUILT=folder] [THROUGH=emulator]
#                                 compiles and runs each program of a folder: one verdict each
#   make bench [PEER="prefix[,conduit] ..."] [MPI=1] [SHMEM=1] [ROUNDS=n] [ONLY=program]
#                                 measures; with any argument, in turn with those libraries,
#                                 into the tables and drawings of docs/bench; with ONLY what one
#                                 program of capi-tests/bench measures, which is printed alone
#   make bench HOSTS=2 [PEER=prefix,udp] [ROUNDS=n]
#                                 measures over several hosts made of network namespaces (as
#                                 root), into docs/bench/hosts.md
#   make bench-credits [ROUNDS=n] measures what dynamic credits cost
#   make book                     the guide and the internals as a book in build/book/html
#   make release                  the tarball of a release with its crates, licences and bill of
#                                 materials, in dist/; builds from it without a network
#   make deb rpm                  Debian and RPM packages in dist/, built and tried
#   make headers doc clean help

# Folders of an installation: also by their GNU names.
PREFIX     ?= $(or $(prefix),/usr/local)
BINDIR     ?= $(bindir)
LIBDIR     ?= $(libdir)
INCLUDEDIR ?= $(includedir)
MANDIR     ?= $(mandir)
DOCDIR     ?= $(docdir)
DESTDIR ?=
FOR     ?= 120
CC      ?= cc
CARGO   ?= cargo
export CC CARGO SEED PORTALS PORTALS_PREFIX PORTALS_INCLUDE PORTALS_LIBS

# One word of the shell, whatever it contains.
quoted = '$(subst ','\'',$(1))'
FOLDERS = $(call quoted,$(DESTDIR)) $(call quoted,$(PREFIX)) BINDIR=$(call quoted,$(BINDIR)) \
  LIBDIR=$(call quoted,$(LIBDIR)) INCLUDEDIR=$(call quoted,$(INCLUDEDIR)) MANDIR=$(call quoted,$(MANDIR)) \
  DOCDIR=$(call quoted,$(DOCDIR)) KEEP_DEBUG=$(call quoted,$(KEEP_DEBUG))

.PHONY: release deb rpm all lib faults libportals demo check soak bench bench-credits headers doc portals install \
  install-portals uninstall uninstall-portals check-programs cross cross-check book clean help

all: lib

lib:
	@ci/tools.sh
	@ci/build.sh build

# The library with planted faults, for the tests that must fail.
faults:
	@ci/tools.sh
	@ci/build.sh build-faults

# The library over a libportals: our own libportals3, and one that behaves as other vendors'
# libraries do; and the library for lightweight kernels. Needs libclang, which makes the binding.
libportals:
	@ci/tools.sh
	@ci/build.sh build-libportals
	@ci/build.sh build-contrary
	@ci/build.sh build-lightweight

demo: lib
	@ci/demo.sh

check:
	@ci/check.sh

soak: lib faults libportals
	@ci/launchers.sh any $(CARGO) run --quiet -p capi-tests --bin soak -- $(FOR) $(ONLY)

bench: lib
	@ci/bench.sh $(foreach p,$(PEER),--peer $(p)) $(if $(MPI),--with openmpi --with mpich) $(if $(ONLY),--only $(ONLY)) \
	  $(if $(SHMEM),--with shmem) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(HOSTS),$(if $(filter-out 2,$(HOSTS)),$(error make bench: HOSTS=$(HOSTS): only HOSTS=2 is measured),--hosts))

bench-credits: lib
	@ci/bench-credits.sh $(ROUNDS)

headers:
	@ci/cbindgen.sh --write

doc:
	@$(CARGO) doc --workspace --no-deps

book:
	@ci/book.sh

check-programs: lib
	@TREE="$(TREE)" ARGS="$(ARGS)" ONLY="$(ONLY)" SECONDS="$(SECONDS)" \
	    BUILT="$(BUILT)" THROUGH="$(THROUGH)" \
	    $(CARGO) run --quiet -p capi-tests --bin check-programs -- "$(DIR)" "$(NP)" "$(MODE)"

# A value of make's own is none of the user's.
cross cross-check: export CROSS_CC = $(if $(filter default file,$(origin CC)),,$(CC))
cross cross-check: export CROSS_CXX = $(if $(filter default file,$(origin CXX)),,$(CXX))
cross: export CROSS_PREFIX = $(if $(filter file,$(origin PREFIX)),$(prefix),$(PREFIX))
cross: export CROSS_DESTDIR = $(DESTDIR)

cross:
	@ci/cross.sh "$(TARGET)"

cross-check:
	@ci/cross-check.sh "$(TARGET)"

install:
	@ci/install.sh $(FOLDERS)

portals:
	@ci/tools.sh
	@ci/build-portals.sh

install-portals:
	@ci/install-portals.sh $(FOLDERS)

uninstall:
	@ci/uninstall.sh install $(FOLDERS)

uninstall-portals:
	@ci/uninstall.sh install-portals $(FOLDERS)

release:
	@packaging/release.sh

deb:
	@packaging/debian.sh

rpm:
	@packaging/rpm.sh

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile

clean:
	rm -rf build build-faults build-address build-libportals build-contrary build-lightweight \
	  $(patsubst cross/%.target,build-%,$(wildcard cross/*.target))
	$(CARGO) clean
