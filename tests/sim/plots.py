#!/usr/bin/python3
"""Has the simulator draw its plots and reads them: each parses as XML, has a curve for each server from the beginning
to the end, within the frame, the four limits, and a bar for each prefix that was out, where something was shed.

By default of four scenarios; with REDSHANK_LONG in the environment of all.

usage: plots.py SIM
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
LEFT, RIGHT, TOP, BOTTOM = 60, 980, 40, 340  # of the curves, as in plot.c
LIMITS = ["release", "target", "accept", "hot"]
QUICK = ["one", "tiers", "attack", "upstream"]
SERVERS = {"upstream": 5, "thousand": 20, "random": 3, "health": 3}  # drawn; else 8
NO_BARS = ["hot", "attack", "upstream"]  # nothing is shed there
MIDDLE = re.compile(r"server (\d+) without prefix (\d+), (\d+) to (\d+) s")


def faults_of(name, root):
    curves = root.findall(f"{SVG}polyline")
    wanted = SERVERS.get(name, 8)
    if [curve.findtext(f"{SVG}title") for curve in curves] != [f"server {i}" for i in range(wanted)]:
        yield f"{len(curves)} curves, expected one for each of {wanted} servers"
    heights = set()
    for curve in curves:
        points = [tuple(map(float, point.split(","))) for point in curve.get("points").split()]
        if len(points) < 90 or points[0][0] > LEFT + 10 or points[-1][0] != RIGHT:
            yield f"a curve of {len(points)} points that does not go from one side to the other"
        if any(a[0] > b[0] for a, b in zip(points, points[1:])):
            yield "a curve that goes back in time"
        if any(not TOP <= y <= BOTTOM for _, y in points):
            yield "a curve that leaves the frame"
        heights |= {y for _, y in points}
    if len(heights) < 4:
        yield "curves that show no load"
    words = [text.text for text in root.findall(f"{SVG}text")]
    if [word for word in words if word in LIMITS] != LIMITS:
        yield "not the four limits"
    bars = [MIDDLE.fullmatch(title.text) for title in root.findall(f"{SVG}rect/{SVG}title")]
    if not all(bars) or any(int(bar[1]) >= wanted or int(bar[3]) > int(bar[4]) for bar in bars):
        yield "a bar that does not say who had what out, and from when to when"
    if bool(bars) == (name in NO_BARS):
        yield f"{len(bars)} bars of prefixes that were out"


def main():
    sim = sys.argv[1]
    names = [line.split()[0] for line in subprocess.check_output([sim, "list"], text=True).splitlines()]
    chosen = names if os.environ.get("REDSHANK_LONG") else QUICK
    n_faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            subprocess.run([sim, "plots", folder, name], check=True)
        if sorted(os.listdir(folder)) != sorted(f"{name}.svg" for name in chosen):
            sys.exit(f"not a plot for each scenario, and no other: {sorted(os.listdir(folder))}")
        for name in chosen:
            for fault in faults_of(name, ElementTree.parse(f"{folder}/{name}.svg").getroot()):
                n_faults += 1
                print(f"FAIL {name}: {fault}")
    print(f"{len(chosen)} plots, {n_faults} faults")
    return 1 if n_faults or not names else 0


if __name__ == "__main__":
    sys.exit(main())
