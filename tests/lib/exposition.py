"""What GET /metrics says, read by a strict parser of our own: format 0.0.4, and OpenMetrics 1.0.

    families = exposition.parse(text)            # {family: Family}; raises Malformed
    exposition.value(text, "redshank_prefix_wanted", prefix="192.0.2.53/32")
"""

import re
from collections import namedtuple

Family = namedtuple("Family", "kind help samples")  # samples: [(name, {label: value}, float)]

_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^\\"\n]|\\\\|\\"|\\n)*)"(,|$)')
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_SUFFIXES = {"counter": ("", "_total"), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


class Malformed(AssertionError):
    pass


def _labels(text):
    found, at = {}, 0
    while at < len(text):
        one = _LABEL.match(text, at)
        if not one or one[1] in found:
            raise Malformed(f"labels: {text!r}")
        found[one[1]] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), one[2])
        at = one.end()
    return found


def parse(text, openmetrics=False):
    if isinstance(text, bytes):
        text = text.decode("utf-8")  # strictly
    if not text.endswith("# EOF\n" if openmetrics else "\n"):
        raise Malformed("does not end as it should: " + repr(text[-40:]))
    families, name, seen = {}, None, set()
    lines = text[:-1].split("\n")
    for line in lines[:-1] if openmetrics else lines:
        if line.startswith("# HELP "):
            _, _, name, help_text = line.split(" ", 3)
            if name in families:
                raise Malformed(f"a second HELP, or samples apart: {line}")
            families[name] = Family(None, help_text, [])
        elif line.startswith("# TYPE "):
            _, _, typed, kind = line.split(" ")
            if typed != name or families[name].kind or families[name].samples:
                raise Malformed(f"a TYPE that is not behind its HELP: {line}")
            families[name] = families[name]._replace(kind=kind)
        else:
            sample = _SAMPLE.fullmatch(line)
            if not sample or name is None:
                raise Malformed(f"no sample: {line!r}")
            family = families[name]
            if sample[1] not in [name + suffix for suffix in _SUFFIXES[family.kind]]:
                raise Malformed(f"a sample of {sample[1]} in the family {name}")
            labels = _labels(sample[2] or "")
            series = (sample[1], *sorted(labels.items()))
            if series in seen:
                raise Malformed(f"twice: {line}")
            seen.add(series)
            family.samples.append((sample[1], labels, float(sample[3])))
    return families


def value(text, name, **labels):
    """The value of the one sample with this name and (at least) these labels; None: there is none."""
    found = [
        number
        for family in parse(text).values()
        for sample, its, number in family.samples
        if sample == name and labels.items() <= its.items()
    ]
    if len(found) > 1:
        raise Malformed(f"{len(found)} samples of {name} {labels}")
    return found[0] if found else None
