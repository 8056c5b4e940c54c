"""BGP messages as they are on the wire, as far as the site speaks it.

RFC 4271 (messages, UPDATE, path attributes), RFC 4760 (MP_REACH_NLRI, MP_UNREACH_NLRI), RFC 1997
(communities), RFC 8092 (large communities), RFC 6793 (AS numbers of four bytes), RFC 4724 (the
End-of-RIB marker). Add-path is not decoded: the site does not negotiate it.
"""

import ipaddress
import struct
from dataclasses import dataclass, field

MARKER = b"\xff" * 16
OPEN, UPDATE, NOTIFICATION, KEEPALIVE = 1, 2, 3, 4
GRACEFUL_SHUTDOWN = (65535, 0)


class BadMessage(ValueError):
    pass


@dataclass
class Update:
    announced: list = field(default_factory=list)  # prefixes as text, "192.0.2.53/32"
    withdrawn: list = field(default_factory=list)
    attributes: dict = field(default_factory=dict)  # see attributes() for the keys
    end_of_rib: bool = False


def messages(stream):
    """Cuts complete messages off a bytearray: [(type, body)], and leaves the rest in it."""
    found = []
    while len(stream) >= 19:
        if stream[:16] != MARKER:
            raise BadMessage("no marker where a message begins")
        length, kind = struct.unpack_from("!HB", stream, 16)
        if length < 19:
            raise BadMessage(f"message of {length} bytes")
        if len(stream) < length:
            break
        found.append((kind, bytes(stream[19:length])))
        del stream[:length]
    return found


def _prefixes(data, version):
    """NLRI: length in bits, then as many bytes as these need."""
    size = 4 if version == 4 else 16
    found = []
    at = 0
    while at < len(data):
        bits = data[at]
        n = (bits + 7) // 8
        if bits > size * 8 or at + 1 + n > len(data):
            raise BadMessage("prefix longer than its message")
        packed = data[at + 1 : at + 1 + n].ljust(size, b"\0")
        address = ipaddress.ip_address(packed)
        found.append(f"{address}/{bits}")
        at += 1 + n
    return found


def _as_path(data, as4):
    """AS_PATH as a list of numbers; a set is a list in it."""
    path = []
    at = 0
    width, letter = (4, "I") if as4 else (2, "H")
    while at < len(data):
        kind, count = data[at], data[at + 1]
        numbers = list(struct.unpack_from(f"!{count}{letter}", data, at + 2))
        at += 2 + count * width
        if kind == 1:
            path.append(numbers)
        else:
            path.extend(numbers)
    return path


def _attributes(data):
    """[(type, value)] of the path attributes."""
    found = []
    at = 0
    while at < len(data):
        flags, kind = data[at], data[at + 1]
        if flags & 0x10:
            (length,) = struct.unpack_from("!H", data, at + 2)
            at += 4
        else:
            length = data[at + 2]
            at += 3
        if at + length > len(data):
            raise BadMessage("attribute longer than its message")
        found.append((kind, data[at : at + length]))
        at += length
    return found


def update(body, as4=True):
    """Decodes the body of an UPDATE.

    attributes: origin (0 to 2), as_path (list), next_hop (text), med, local_pref (numbers),
    communities (list of pairs), large_communities (list of triples). What is not there is not a key.
    """
    try:
        return _update(body, as4)
    except (struct.error, IndexError, ValueError) as e:
        raise BadMessage(str(e)) from e


def _update(body, as4):
    result = Update()
    (n,) = struct.unpack_from("!H", body, 0)
    result.withdrawn += _prefixes(body[2 : 2 + n], 4)
    (m,) = struct.unpack_from("!H", body, 2 + n)
    at = 4 + n
    result.announced += _prefixes(body[at + m :], 4)
    known = result.attributes
    for kind, value in _attributes(body[at : at + m]):
        if kind == 1:
            known["origin"] = value[0]
        elif kind == 2:
            known["as_path"] = _as_path(value, as4)
        elif kind == 3:
            known["next_hop"] = str(ipaddress.ip_address(value))
        elif kind == 4:
            (known["med"],) = struct.unpack("!I", value)
        elif kind == 5:
            (known["local_pref"],) = struct.unpack("!I", value)
        elif kind == 8:
            known["communities"] = list(struct.iter_unpack("!HH", value))
        elif kind == 32:
            known["large_communities"] = list(struct.iter_unpack("!III", value))
        elif kind == 14:
            _mp_reach(value, result)
        elif kind == 15:
            afi, safi = struct.unpack_from("!HB", value)
            if safi == 1:
                gone = _prefixes(value[3:], 4 if afi == 1 else 6)
                result.withdrawn += gone
                result.end_of_rib = not gone
    if n == 0 and m == 0 and not result.announced:
        result.end_of_rib = True
    return result


def _mp_reach(value, result):
    afi, safi, length = struct.unpack_from("!HBB", value)
    if safi != 1:
        return
    hop = value[4 : 4 + length]
    if afi == 2 and len(hop) >= 16:
        result.attributes["next_hop"] = str(ipaddress.ip_address(hop[:16]))
    elif len(hop) >= 4:
        result.attributes["next_hop"] = str(ipaddress.ip_address(hop[:4]))
    result.announced += _prefixes(value[5 + length :], 4 if afi == 1 else 6)


def open_has_as4(body):
    """Does this OPEN carry the capability for AS numbers of four bytes (RFC 5492, RFC 6793)?"""
    at = 10
    while at + 2 <= len(body):
        kind, length = body[at], body[at + 1]
        value = body[at + 2 : at + 2 + length]
        at += 2 + length
        inner = 0
        while kind == 2 and inner + 2 <= len(value):
            if value[inner] == 65:
                return True
            inner += 2 + value[inner + 1]
    return False
