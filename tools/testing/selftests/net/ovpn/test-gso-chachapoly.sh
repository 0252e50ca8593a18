#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Aggregates with the other cipher.

OVPN_ALG="chachapoly"

source ./test-gso-batch.sh
