# SPDX-License-Identifier: GPL-2.0-or-later
#
# Forwards each target to tools/build/run.sh, which runs meson, ninja and the
# scripts of tools/; runs configure first if the tree has no configuration.

BUILD_DIR := $(shell cat .build-dir 2>/dev/null || echo build)
TARGETS := all demo check check-full check-fast check-file check-debug check-kernels \
           check-big-endian check-arm64 check-targets lint format compdb coverage bench fuzz mutate \
           deb deps native guest consumers debug-kernel guest-arm64

help:
	@sed -n 's/^#= //p' tools/build/run.sh

$(TARGETS): $(BUILD_DIR)/config.mk
	@tools/build/run.sh $@

$(BUILD_DIR)/config.mk: configure
	@if [ -x $(BUILD_DIR)/config.status ]; then $(BUILD_DIR)/config.status; else ./configure; fi

clean:
	@tools/build/run.sh clean

.PHONY: help clean $(TARGETS)
.NOTPARALLEL:
