# A thin front of the CMake presets (CMakePresets.json), which work alone too.
PREFIX ?= /usr/local

.DEFAULT_GOAL := help
.PHONY: help dependencies configure build demo test benchmarks install format lint clean

help:
	@echo 'make demo             build, then watch processes share one pool of device memory'
	@echo 'make test             build the tests and run them'
	@echo 'make benchmarks       build all that docs/performance.md measures with, in build/bin'
	@echo 'make build            build/bin/gmbd and build/bin/gmb'
	@echo 'make install          build and install to PREFIX ($(PREFIX)); DESTDIR is honoured'
	@echo 'make format           format the sources in place'
	@echo 'make lint             format, layering, owners, prose, links, scripts, Python and clang-tidy, changing nothing'
	@echo 'make clean            remove build/'
	@echo
	@echo 'Missing packages are named, then installed, by tools/install-dependencies.'

dependencies:
	@tools/install-dependencies

configure: dependencies
	cmake --preset release

build: configure
	cmake --build --preset release --target products

demo: build
	build/bin/gmb demo

test: configure
	cmake --build --preset release
	ctest --preset release

benchmarks: configure
	cmake --build --preset release --target benchmarks

install: build
	cmake --install build --prefix '$(PREFIX)'

format:
	tools/format

lint:
	tools/install-dependencies --lint
	tools/format --check
	tools/check_layering.py
	tools/check_owners.py
	tools/check_prose.py
	tools/check_links.py
	tools/check-scripts
	tools/check-python
	cmake --preset tidy
	cmake --build --preset tidy --target gen/gmb/v1/types.pb.h
	tools/tidy -p build/tidy

clean:
	rm -rf build build-no-cuda build-python
