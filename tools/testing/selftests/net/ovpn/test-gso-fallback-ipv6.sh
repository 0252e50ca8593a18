#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What can not be batched over IPv6.

GSO_OUTER=6

source ./test-gso-fallback.sh
