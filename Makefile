# A thin shim over cargo and ci/: what it builds looks like an installed prefix under build/.
#
#   make demo                  build, run testsmall and testexit, print latencies and exit codes
#   make check [SEED=n]        all tests, with a sample of the large matrices
#   make soak FOR=minutes [ONLY=word]
#                              the whole matrices, on from where the last soak stopped, or of them the cases with that
#                              word in their names; tally in soak/tally.txt
#   make install [PREFIX=] [DESTDIR=]
#   make check-programs DIR=folder [NP=2] [MODE=par] [TREE=prefix] [ARGS=table] [ONLY="names"] [SECONDS=120]
#                              compile and run other people's programs: one verdict each
#   make lib PORTALS_PREFIX=/opt/portals          over a libportals too; docs/guide/libportals.md
#   make install-portals [PREFIX=] [DESTDIR=]     libportals3, the C interface of the network below, by itself
#   make bench [PEER="prefix[,conduit] ..."] [MPI=1] [SHMEM=1] [ROUNDS=n]     with any of these: the table and
#                              drawings of docs/bench, beside those libraries
#   make bench-credits [ROUNDS=n]              the AM rate while credits move, against that with more of them than anybody needs
#   make headers doc clean

PREFIX  ?= /usr/local
DESTDIR ?=
FOR     ?= 120
CC      ?= cc
CARGO   ?= cargo
export CC CARGO SEED PORTALS PORTALS_PREFIX PORTALS_INCLUDE PORTALS_LIBS

.PHONY: all lib faults libportals demo check soak bench bench-credits headers doc install install-portals check-programs clean

all: lib

lib:
	@ci/tools.sh
	@ci/build.sh build

# The same library with planted faults, for the tests that must fail.
faults:
	@ci/tools.sh
	@ci/build.sh build-faults

# The same over a libportals that is bound by its header: our own libportals3, and one that has the habits of others. Needs libclang.
libportals:
	@ci/tools.sh
	@ci/build.sh build-libportals
	@ci/build.sh build-contrary

demo: lib
	@ci/demo.sh

check:
	@ci/check.sh

soak: lib faults libportals
	@ci/launchers.sh any $(CARGO) run --quiet -p capi-tests --bin soak -- $(FOR) $(ONLY)

bench: lib
	@ci/bench.sh $(foreach p,$(PEER),--peer $(p)) $(if $(MPI),--beside openmpi --beside mpich) \
	  $(if $(SHMEM),--beside shmem) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-credits: lib
	@ci/bench-credits.sh $(ROUNDS)

headers:
	@ci/cbindgen.sh --write

doc:
	@$(CARGO) doc --workspace --no-deps

check-programs: lib
	@TREE="$(TREE)" ARGS="$(ARGS)" ONLY="$(ONLY)" SECONDS="$(SECONDS)" \
	    $(CARGO) run --quiet -p capi-tests --bin check-programs -- "$(DIR)" "$(NP)" "$(MODE)"

install: lib
	@ci/install.sh "$(DESTDIR)" "$(PREFIX)"

install-portals:
	@ci/install-portals.sh "$(DESTDIR)" "$(PREFIX)"

clean:
	rm -rf build build-faults build-libportals build-contrary
	$(CARGO) clean
