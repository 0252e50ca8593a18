#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Wind the packet IDs of a key forward: nobody can send 2^32 packets.

usage: gso-wind.py NOW NEW cmd...

The command must send one packet with the key, first of all. Its next packet
ID, which is NOW after that, becomes NEW. Needs kprobe events, and a /dev/mem
that reaches RAM. Ends with status 4 where these are missing.
"""

import os
import re
import struct
import subprocess
import sys

TRACING = "/sys/kernel/tracing"
PROBE = "ovpn_wind"
# more than a key slot has in front of its packet ID
SLOT_SIZE = 1024
SKIP = 4


def skip(why):
    """end: this kernel can not do it"""
    print(why)
    sys.exit(SKIP)


def trace_write(name, text):
    """write to a file of tracefs: truncating it would delete all events"""
    fd = os.open(f"{TRACING}/{name}", os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def key_slot(cmd):
    """address of the key slot that the packet of the command is sent with"""
    if not os.path.exists(f"{TRACING}/kprobe_events"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING],
                       check=False, stderr=subprocess.DEVNULL)
    if not os.path.exists(f"{TRACING}/kprobe_events"):
        skip("the kernel has no kprobe events")
    # ovpn_aead_encrypt(peer, ks, skb)
    trace_write("kprobe_events", f"p:{PROBE} ovpn_aead_encrypt ks=%si:x64")
    try:
        with open(f"{TRACING}/trace", "w", encoding="ascii"):
            pass
        trace_write(f"events/kprobes/{PROBE}/enable", "1")
        subprocess.run(cmd, check=True, stdout=subprocess.DEVNULL)
        with open(f"{TRACING}/trace", encoding="ascii") as file:
            slots = re.findall(r"ks=0x([0-9a-f]+)", file.read())
    finally:
        trace_write(f"events/kprobes/{PROBE}/enable", "0")
        trace_write("kprobe_events", f"-:{PROBE}")
    if not slots:
        sys.exit("no packet was encrypted")
    # the other peer is on this machine, too, and answers
    return int(slots[0], 16)


def physical(addr):
    """what /dev/mem calls an address of the direct mapping without KASLR"""
    for base in (0xff11000000000000, 0xffff888000000000):
        if base <= addr < base + (1 << 46):
            return addr - base
    return skip(f"{addr:#x} is not in the direct mapping")


def main():
    """find the counter by its value, which the caller knows, and set it"""
    now, new = int(sys.argv[1], 0), int(sys.argv[2], 0)

    if os.uname().machine != "x86_64":
        skip("knows the registers and addresses of x86_64 only")
    if not os.path.exists("/dev/mem"):
        skip("the kernel has no /dev/mem")
    start = physical(key_slot(sys.argv[3:]))
    with open("/dev/mem", "r+b", buffering=0) as mem:
        try:
            slot = os.pread(mem.fileno(), SLOT_SIZE, start)
        except OSError as err:
            skip(f"/dev/mem does not reach RAM: {err.strerror}")
        found = [at for at in range(0, SLOT_SIZE, 4)
                 if struct.unpack_from("=I", slot, at)[0] == now]
        if len(found) != 1:
            sys.exit(f"{now} stands {len(found)} times in the key slot")
        os.pwrite(mem.fileno(), struct.pack("=I", new), start + found[0])


if __name__ == "__main__":
    main()
