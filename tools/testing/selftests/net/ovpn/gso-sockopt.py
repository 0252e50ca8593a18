#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Set options of a UDP socket that another process holds.

gso-sockopt.py PID FD no-check-tx|no-check6-tx|no-check6-rx on|off [TIMES]
    do not send (over IPv4, over IPv6), or do not insist on (over IPv6), UDP
    checksums; with TIMES: set the opposite first, and go back and forth that
    often
"""

import ctypes
import os
import socket
import sys
import time

SYS_PIDFD_GETFD = 438
SO_NO_CHECK = 11
SOL_UDP = 17
UDP_NO_CHECK6_TX = 101
UDP_NO_CHECK6_RX = 102


def getfd(pid, fd):
    """A duplicate of a file descriptor of another process."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    ret = libc.syscall(SYS_PIDFD_GETFD, pidfd, fd, 0)
    if ret < 0:
        raise OSError(ctypes.get_errno(), 'pidfd_getfd')
    return ret


def main(args):
    """See above."""
    if len(args) not in (4, 5):
        print(__doc__)
        sys.exit(2)
    sock = socket.socket(fileno=getfd(int(args[0]), int(args[1])))
    value = int(args[3] == 'on')
    times = int(args[4]) if len(args) == 5 else 0

    opts = {
        'no-check-tx': (socket.SOL_SOCKET, SO_NO_CHECK),
        'no-check6-tx': (SOL_UDP, UDP_NO_CHECK6_TX),
        'no-check6-rx': (SOL_UDP, UDP_NO_CHECK6_RX),
    }
    opt = opts[args[2]]

    for i in range(2 * times):
        sock.setsockopt(*opt, value ^ (i & 1) ^ 1)
        time.sleep(0.002)
    sock.setsockopt(*opt, value)
    if sock.getsockopt(*opt) != value:
        sys.exit('the option was not set')


main(sys.argv[1:])
