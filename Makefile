# All steps; what each of them does is at the top of harness/NAME.sh.
# Variables: BASE=7.3|7.2, KERNEL=/path/to/tree, TREE=/path, OVPN_GSO_CACHE=/path,
# JOBS=n, FORCE=1; for test: SUITES, PER_PATCH, LIMIT_MIN; for bench: QUICK,
# PER_PATCH, PROFILE; for mail: SUBMITTER, REAUTHOR, VERSION, OUT.

export BASE KERNEL TREE OVPN_GSO_CACHE JOBS FORCE SUITES PER_PATCH QUICK PROFILE SUBMITTER REAUTHOR VERSION OUT

.PHONY: help run bench test check check-quick tree series mail docs clean

help:
	@echo 'make run          boot a kernel with the series, run a tunnel, print a table (root)'
	@echo 'make bench        instructions per byte, base against series; QUICK=1, PER_PATCH=1, PROFILE=1 (root)'
	@echo 'make test         all tests; last line: N passed, N failed, N skipped (root)'
	@echo 'make check        static checks of the series and the scripts'
	@echo 'make check-quick  those of them that need no kernel build and no network'
	@echo 'make tree         git tree of the base kernel with a commit for each patch'
	@echo 'make series       from that git tree back to series/ and the mirrored paths'
	@echo 'make mail         series/ as mails for netdev, checked and rehearsed: SUBMITTER="Name <address>"'
	@echo 'make docs         docs/architecture.svg from its source'
	@echo 'make clean        remove built kernels, guest root and logs; FORCE=1: all, git tree too'
	@echo 'KERNEL=/path/to/tree uses that kernel instead of the packaged one, BASE=7.2 another package.'

run:
	@harness/run.sh

bench:
	@harness/bench.sh

test:
	@harness/test.sh

check:
	@harness/check.sh

check-quick:
	@harness/check.sh --quick

tree:
	@harness/tree.sh

series:
	@harness/export.sh

mail:
	@harness/mail.sh

docs:
	@harness/docs.sh

clean:
	@harness/clean.sh
