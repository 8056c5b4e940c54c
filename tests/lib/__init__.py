"""The test site: real BIRDs, nsd, nginx and redshankd in network namespaces.

Start reading at site.py (what a test uses) and case.py (how a test is written and run).

    netns.py, guardian.py   namespaces, processes in them, and their certain end
    birds.py                a BIRD under control: configuration, control socket, routes
    services.py             nsd and nginx of an edge
    agentctl.py             a redshankd under control: configuration, status, signals
    operators.py            an agent that was told nothing, and what operators tell it
    screen.py               a terminal for redshankctl top
    client.py               a client that keeps asking, and knows who answered
    wire.py, bgp.py         the router's packets: each BGP UPDATE with the kernel's time
    wait.py                 wait for a condition with a deadline

Only the standard library of Python 3.11 (Debian 12); everything runs as root.
"""
