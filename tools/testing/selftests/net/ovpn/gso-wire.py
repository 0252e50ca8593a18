#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check the datagrams of the data channel in a capture.

gso-wire.py count FILE PORT
    how many datagrams from PORT there are so far
gso-wire.py check FILE PORT HEADER [OPTION]...
    each has right lengths and checksums, and HEADER (hexadecimal: opcode,
    key ID and peer ID) in front; no outer IPv4 ID and no packet ID is there
    twice, no packet ID is missing. Prints the lengths of the records in the
    order of the capture, as LENGTHxCOUNT.

    order       the packet IDs are in order
    partial     the device was to finish the UDP checksum: what has to be there
                is the sum of the pseudo header of that very datagram
"""

import struct
import sys

LINKTYPE_ETHERNET = 1
ETH_P_IP = 0x0800
ETH_P_IPV6 = 0x86dd
ETH_P_8021Q = 0x8100
IPPROTO_UDP = 17
OVPN_OVERHEAD = 24


def die(msg):
    """Say what is wrong with the capture."""
    print(msg)
    sys.exit(1)


def frames(name):
    """All complete frames of a capture that may still be written to."""
    with open(name, 'rb') as f:
        data = f.read()
    if len(data) < 24:
        return
    for order in '<', '>':
        if struct.unpack_from(order + 'I', data)[0] == 0xa1b2c3d4:
            break
    else:
        die('not a capture')
    if struct.unpack_from(order + 'I', data, 20)[0] != LINKTYPE_ETHERNET:
        die('not a capture of Ethernet')
    pos = 24
    while pos + 16 <= len(data):
        _, _, caplen, length = struct.unpack_from(order + '4I', data, pos)
        pos += 16
        if pos + caplen > len(data):
            return
        if caplen < length:
            die('a frame was cut off')
        yield data[pos:pos + caplen]
        pos += caplen


def csum(data):
    """The sum of 16-bit words, folded and not inverted."""
    if len(data) % 2:
        data += b'\0'
    n = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while n > 0xffff:
        n = (n >> 16) + (n & 0xffff)
    return n


class Datagram:
    """An outer UDP datagram."""

    def __init__(self, nr, frame):
        self.nr = nr
        self.id = None
        proto, = struct.unpack_from('!H', frame, 12)
        frame = frame[14:]
        if proto == ETH_P_8021Q:
            proto, = struct.unpack_from('!H', frame, 2)
            frame = frame[4:]
        self.udp = None
        if proto == ETH_P_IP:
            self.ipv4(frame)
        elif proto == ETH_P_IPV6:
            self.ipv6(frame)
        if self.udp is not None and len(self.udp) < 8:
            self.bad('no UDP header')

    def ipv4(self, ip):
        """Take an IPv4 packet apart."""
        total, self.id, frag = struct.unpack_from('!3H', ip, 2)
        if ip[9] != IPPROTO_UDP:
            return
        if ip[0] != 0x45 or csum(ip[:20]) != 0xffff:
            self.bad('bad IPv4 header')
        if total > len(ip) or frag & 0x3fff:
            self.bad('bad IPv4 length, or a fragment')
        self.udp = ip[20:total]
        self.pseudo = ip[12:20] + struct.pack('!HH', IPPROTO_UDP, total - 20)

    def ipv6(self, ip):
        """Take an IPv6 packet apart."""
        length, = struct.unpack_from('!H', ip, 4)
        if ip[6] != IPPROTO_UDP:
            return
        if length + 40 > len(ip):
            self.bad('bad IPv6 length')
        self.udp = ip[40:40 + length]
        self.pseudo = ip[8:40] + struct.pack('!II', length, IPPROTO_UDP)

    def bad(self, msg):
        """Say what is wrong with this one."""
        die('datagram %d: %s' % (self.nr, msg))

    def check(self, partial):
        """Check the UDP header."""
        _, _, length, check = struct.unpack_from('!4H', self.udp)
        if length != len(self.udp):
            self.bad('UDP length %d, not %d' % (length, len(self.udp)))
        if partial:
            # 0 and 0xffff are the same to who adds to it
            if (check or 0xffff) != csum(self.pseudo):
                self.bad('checksum starts with %#x, not %#x' %
                         (check, csum(self.pseudo)))
        elif not check or csum(self.pseudo + self.udp) != 0xffff:
            self.bad('bad UDP checksum %#x' % check)
        if length < 8 + OVPN_OVERHEAD + 20:
            self.bad('UDP length %d: no room for a packet' % length)


def datagrams(name, port):
    """All UDP datagrams that came from a port."""
    for nr, frame in enumerate(frames(name), 1):
        dgram = Datagram(nr, frame)
        if dgram.udp and struct.unpack_from('!H', dgram.udp)[0] == port:
            yield dgram


def check_all(name, port, header, options):
    """Check each datagram, and all together."""
    outer, pktids, runs = {}, [], []
    for dgram in datagrams(name, port):
        dgram.check('partial' in options)
        if dgram.id is not None:
            if dgram.id in outer:
                dgram.bad('IPv4 ID %#x as in %d' %
                          (dgram.id, outer[dgram.id]))
            outer[dgram.id] = dgram.nr
        head, pktid = struct.unpack_from('!II', dgram.udp, 8)
        if head != header:
            dgram.bad('begins with %#x, not %#x' % (head, header))
        if 'order' in options and pktids and pktid != pktids[-1] + 1:
            dgram.bad('packet ID %#x after %#x' % (pktid, pktids[-1]))
        pktids.append(pktid)
        length = len(dgram.udp) - 8
        if runs and runs[-1][0] == length:
            runs[-1][1] += 1
        else:
            runs.append([length, 1])
    if not pktids:
        die('no datagrams')
    if len(set(pktids)) != len(pktids):
        die('a packet ID was used twice')
    if max(pktids) - min(pktids) + 1 != len(pktids):
        die('a packet ID is missing')
    print(' '.join('%dx%d' % (length, n) for length, n in runs))


def main(args):
    """See above."""
    if len(args) >= 3 and args[0] == 'count':
        print(sum(1 for _ in datagrams(args[1], int(args[2]))))
    elif len(args) >= 4 and args[0] == 'check':
        check_all(args[1], int(args[2]), int(args[3], 16), args[4:])
    else:
        print(__doc__)
        sys.exit(2)


main(sys.argv[1:])
