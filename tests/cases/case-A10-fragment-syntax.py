"""One text for every BIRD: only the common subset, each family apart, no dummy prefix anywhere."""

import re

from lib.case import check, main
from lib.fragments import fragment, parse, programs

V4 = [f"192.0.2.{n}/32" for n in range(1, 5)]
V6 = [f"2001:db8::{n}/128" for n in range(1, 5)]
MANY4 = [f"198.18.{n // 256}.{n % 256}/32" for n in range(200)]
MANY6 = [f"2001:db8:1::{n:x}/128" for n in range(1, 201)]

# Service: its prefixes. Dual stack, one family alone, and more than have a protocol each.
SERVICES = {"dual": V4[:2] + V6[:2], "four": V4[2:], "six": V6[2:], "many": MANY4 + MANY6}


def text(service, wanted):
    return fragment(service, *(f"{p}=100,2,last" for p in SERVICES[service]), wanted=wanted)


def protocols(fragment_text):
    """{name: body} of the protocols."""
    return dict(re.findall(r"^protocol static '([^']+)' \{\n(.*?)^\}\n", fragment_text, re.M | re.S))


def test_parsed():
    """All up, demoted and all down are taken, together and each alone; so is no fragment at all."""
    for program in programs():
        check(parse("", program) == "", f"{program}: the template alone")
        for wanted in ("announce", "demote", "withdraw"):
            for service in SERVICES:
                said = parse(text(service, wanted), program)
                check(said == "", f"{program}: {service}, {wanted}", said)
            said = parse("".join(text(s, wanted) for s in SERVICES), program)
            check(said == "", f"{program}: all services, {wanted}", said)


def test_templates_needed():
    """The parse above can fail: without the template's tables and attributes the same text is refused."""
    check(parse(text("dual", "announce"), template=False), "refused")


def test_families_apart():
    """A protocol holds routes of one family, in its channel and table."""
    for service in SERVICES:
        for name, body in protocols(text(service, "announce")).items():
            routes = re.findall(r"^\troute (\S+) ", body, re.M)
            family = "6" if ":" in routes[0] else "4"
            check(all((":" in r) == (family == "6") for r in routes), "one family", name, routes)
            channels = re.findall(r"^\tipv([46]) \{ table (\S+); preference (\d+); \};$", body, re.M)
            preference = "249" if name.endswith(":last") else "250"
            check(channels == [(family, "redshank" + family, preference)], "its channel", name, channels)


def test_nothing_but_the_prefixes():
    """Exactly the configured prefixes, up or down; a service of one family has nothing of the other."""
    for service, prefixes in SERVICES.items():
        for wanted in ("announce", "demote", "withdraw"):
            found = re.findall(r"^\troute (\S+) ", text(service, wanted), re.M)
            check(sorted(found) == sorted(prefixes * 2), f"{service}, {wanted}: each and its twin", found[:8])
        down = protocols(text(service, "withdraw"))
        check(all(body.startswith("\tdisabled;\n") for body in down.values()), "disabled", service)
    check(not protocols(fragment("none")), "a service without prefixes has no protocol")


def test_no_code():
    """Nothing that versions read differently: no function, filter, set or attribute is defined."""
    for service in SERVICES:
        bare = re.sub(r"/\*.*?\*/", "", text(service, "announce"), flags=re.S)
        outside = re.sub(r"^protocol static '[^']+' \{\n.*?^\}\n", "", bare, flags=re.M | re.S)
        check(outside.strip() == "", "only protocols", outside)
        check(not re.search(r"->|\[|\b(function|filter|define|attribute|include|via)\b", bare), "the common subset")


main()
