#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An asynchronous implementation of AES-GCM.

gso-cryptd.py add
    wrap cryptd around the best implementation of gcm(aes) that there is, and
    give it a higher priority. Prints its driver name.
gso-cryptd.py del DRIVER
    remove it, fails as long as it is in use
"""

import os
import socket
import struct
import sys

NETLINK_CRYPTO = 21
CRYPTO_MSG_NEWALG = 0x10
CRYPTO_MSG_DELALG = 0x11
CRYPTOCFGA_PRIORITY_VAL = 1
CRYPTO_ALG_TYPE_AEAD = 3
CRYPTO_ALG_TYPE_MASK = 0xf
NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400
NLMSG_ERROR = 2
PRIORITY = 9000


def algorithms():
    """All of /proc/crypto, as dictionaries."""
    with open('/proc/crypto', encoding='ascii') as f:
        for block in f.read().split('\n\n'):
            lines = [line.split(':', 1) for line in block.splitlines()]
            alg = {x[0].strip(): x[1].strip() for x in lines if len(x) == 2}
            if alg.get('name') == 'gcm(aes)':
                yield alg


def request(msg, flags, driver, attrs=b''):
    """One message to the crypto layer."""
    alg = struct.pack('64s64s64s4I', b'gcm(aes)', driver.encode(), b'',
                      CRYPTO_ALG_TYPE_AEAD, CRYPTO_ALG_TYPE_MASK, 0, 0)
    data = alg + attrs
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_CRYPTO)
    sock.send(struct.pack('IHHII', 16 + len(data), msg,
                          NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0) + data)
    answer = sock.recv(65536)
    _, kind, _, _, _, err = struct.unpack_from('IHHIIi', answer)
    if kind != NLMSG_ERROR or err:
        sys.exit('%s: %s' % (driver, os.strerror(-err)))


def add():
    """Instantiate it, and print its name."""
    algs = [a for a in algorithms() if a.get('async') == 'no']
    if not algs:
        sys.exit('no gcm(aes) that is synchronous')
    best = max(algs, key=lambda a: int(a['priority']))
    driver = 'cryptd(%s)' % best['driver']
    request(CRYPTO_MSG_NEWALG, NLM_F_CREATE | NLM_F_EXCL, driver,
            struct.pack('HHI', 8, CRYPTOCFGA_PRIORITY_VAL, PRIORITY))
    for alg in algorithms():
        if alg['driver'] == driver and alg['async'] == 'yes':
            print(driver)
            return
    sys.exit('%s is not there' % driver)


if sys.argv[1:] == ['add']:
    add()
elif len(sys.argv) == 3 and sys.argv[1] == 'del':
    request(CRYPTO_MSG_DELALG, 0, sys.argv[2])
else:
    print(__doc__)
    sys.exit(2)
