#!/usr/bin/python3
"""core/ decides and calls nothing: no clock, no I/O, no printing, no library.

Reads the undefined symbols of the built archive and fails on each that neither the archive itself
defines nor this list allows.

usage: core-wall.py NM ARCHIVE
"""
import re
import subprocess
import sys

ALLOWED = re.compile(
    r"mem\w+|strlen|strcmp|strncmp|malloc|calloc|realloc|free|qsort|bsearch|abort|__assert_fail"
    # the compiler's own: hardening, sanitizers, coverage, position independence
    r"|__mem(cpy|set|move)_chk|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"
    r"|__(asan|ubsan|sanitizer|gcov|llvm_gcov|llvm_profile)_\w+|(__(start|stop)_)?__sancov_\w+"
)


def symbols(nm, archive, option):
    """{(member, symbol)} of the archive."""
    command = [nm, "--print-file-name", option, "--format=posix", archive]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = set()
    for line in output.splitlines():
        place, _, rest = line.partition(": ")
        if rest:
            found.add((place, rest.split()[0]))
    return found


def main():
    nm, archive = sys.argv[1:]
    defined = {symbol for _, symbol in symbols(nm, archive, "--defined-only")}
    if "engine_decide" not in defined:
        sys.exit(f"{archive} holds no engine")
    beyond = [
        (place, symbol)
        for place, symbol in sorted(symbols(nm, archive, "--undefined-only"))
        if symbol not in defined and not ALLOWED.fullmatch(symbol)
    ]
    for place, symbol in beyond:
        print(f"{place} needs {symbol}, which is not for core/")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
