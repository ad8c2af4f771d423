#!/usr/bin/env python3
"""Checks every RoCE v2 packet of a pcap, without any of the code under test.

    icrc.py MTU FILE...

The invariant CRC (IBA 7.8.1 and annex A17) is computed here from its definition
with nothing but zlib. Prints one line for each wrong packet, then the number of
packets of each sender as sender=count. The exit status is 1 if a packet's ICRC is
wrong, its IP or UDP length is wrong, or its frame is larger than the MTU.
"""
import collections
import ipaddress
import struct
import sys
import zlib

ROCE_PORT = 4791
ONES = b"\xff"


def packets(path):
    """Yields (number, original length, bytes) of the records of a pcap file."""
    with open(path, "rb") as f:
        head = f.read(24)
        if len(head) < 24:
            raise SystemExit(f"{path}: no pcap header")
        magic = struct.unpack("<I", head[:4])[0]
        order = {0xA1B2C3D4: "<", 0xA1B23C4D: "<", 0xD4C3B2A1: ">", 0x4D3CB2A1: ">"}.get(magic)
        if order is None:
            raise SystemExit(f"{path}: not a pcap file")
        number = 0
        while True:
            record = f.read(16)
            if len(record) < 16:
                return
            kept, original = struct.unpack(order + "8xII", record)
            data = f.read(kept)
            if len(data) < kept:
                return  # the capture was stopped while it wrote this record
            number += 1
            yield number, original, data


def split(frame):
    """Returns (source, masked IP header, UDP datagram, what is wrong or None) of a UDP frame, None for other frames."""
    kind, ip = frame[12:14], frame[14:]
    if kind == b"\x81\x00":
        kind, ip = frame[16:18], frame[18:]
    if kind == b"\x08\x00" and len(ip) >= 20:
        length = (ip[0] & 0xF) * 4
        total = struct.unpack(">H", ip[2:4])[0]
        if ip[9] != 17:
            return None
        wrong = None
        if total > len(ip):
            wrong = f"IP total length {total}, frame has {len(ip)}"
        if struct.unpack(">H", ip[6:8])[0] & 0x3FFF:
            return str(ipaddress.ip_address(ip[12:16])), b"", b"", "IP fragment"
        header = bytearray(ip[:length])
        header[1:2] = header[8:9] = ONES
        header[10:12] = ONES * 2
        return str(ipaddress.ip_address(ip[12:16])), bytes(header), ip[length:total], wrong
    if kind == b"\x86\xdd" and len(ip) >= 40:
        if ip[6] != 17:
            return None
        payload = struct.unpack(">H", ip[4:6])[0]
        wrong = None
        if 40 + payload > len(ip):
            wrong = f"IPv6 payload length {payload}, frame has {len(ip) - 40}"
        header = bytearray(ip[:40])
        header[0] |= 0x0F
        header[1:4] = ONES * 3
        header[7:8] = ONES
        return str(ipaddress.ip_address(ip[8:24])), bytes(header), ip[40 : 40 + payload], wrong
    return None


def invariant_crc(header, udp):
    masked = bytearray(udp[:-4])
    masked[6:8] = ONES * 2  # UDP checksum
    masked[12:13] = ONES  # FECN, BECN, reserved
    return struct.pack("<I", zlib.crc32(ONES * 8 + header + bytes(masked)))


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        raise SystemExit(__doc__)
    mtu, failed = int(sys.argv[1]), False
    count = collections.Counter()
    for path in sys.argv[2:]:
        for number, original, frame in packets(path):
            parts = split(frame)
            if parts is None:
                continue
            source, header, udp, wrong = parts
            if not wrong and (len(udp) < 8 or struct.unpack(">H", udp[2:4])[0] != ROCE_PORT):
                continue
            count[source] += 1
            if original - 14 > mtu:
                wrong = f"frame carries {original - 14} bytes, MTU {mtu}"
            elif not wrong and struct.unpack(">H", udp[4:6])[0] != len(udp):
                wrong = f"UDP length {struct.unpack('>H', udp[4:6])[0]}, IP carries {len(udp)}"
            elif not wrong and len(udp) < 8 + 12 + 4:
                wrong = f"{len(udp)} bytes, too few for BTH and ICRC"
            elif not wrong and invariant_crc(header, udp) != udp[-4:]:
                wrong = "bad ICRC"
            if wrong:
                failed = True
                print(f"{path} packet {number} from {source}: {wrong}")
    print(" ".join(f"{source}={n}" for source, n in sorted(count.items())))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
