#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A graph launch is one batched message, and one more for a piece of the program's memory that its nodes read; a call of a library is one
batched message too, and none where it is part of a graph; new arguments of a graph's kernel are one, too: counted by the worker.

	launches.py BUILD PROGRAM		the program is graph_launches or blas_graph
"""
import json
import os
import shutil
import sys
import tempfile

import runner


def counts(tree, server, session):
    stats = json.loads(runner.cricketctl(tree, "--server", server.address, "stats", session, "--json"))
    return {c["name"]: (c["calls"], c["batched"]) for c in stats["calls"]}


def between(before, after):
    """What was called in between, but for the transport's own."""
    changed = {}
    for name, (calls, batched) in after.items():
        calls_before, batched_before = before.get(name, (0, 0))
        if calls != calls_before and not name.startswith("session"):
            changed[name] = (calls - calls_before, batched - batched_before)
    return changed


def main(build, path):
    tree = runner.Tree(runner.stage(build))
    directory = tempfile.mkdtemp(prefix="ckt-")
    os.chmod(directory, 0o755)
    point = os.path.join(directory, "phase")
    arg = runner.arguments(["--mode", "tcp", "--build", build, path])
    server = runner.Server(tree, os.path.join(directory, "server"))
    try:
        program = runner.launch(tree, arg, directory, [os.path.abspath(path)], server.address, {"CKT_TEST_PHASE_FILE": point})
        seen = []
        blas = "blas" in os.path.basename(path)
        for suffix in ("", "2") if blas else ("", "2", "3", "4", "5", "6"):
            program.wait_ready(f"{point}.ready{suffix}", arg.timeout)
            session = runner.sessions_of(tree, server)[0]["session"]
            seen.append(counts(tree, server, session))
            with open(f"{point}.go{suffix}", "w", encoding="utf-8"):
                pass
        runner.judge(arg, program.wait(arg.timeout))
        server.stop()
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    if blas:
        steps = between(seen[0], seen[1])
        print("steps:", steps)
        # What the program itself waits for, and nothing else.
        waits = {name: calls - batched for name, (calls, batched) in steps.items() if calls != batched}
        right = waits == {"stream_synchronize": 1} and all(steps.get(name) == (6, 6) for name in ("graph_launch", "cublasSgemm_v2", "cublasGemmEx"))
        return 0 if right else 1
    plain, with_memory = between(seen[0], seen[1]), between(seen[2], seen[3])
    print("plain:", plain)
    changed = between(seen[4], seen[5])
    print("with memory:", with_memory)
    print("changed:", changed)
    right = plain == {"graph_launch": (500, 500), "stream_synchronize": (1, 0)} and \
        with_memory == {"graph_launch": (10, 10), "graph_host_data": (10, 10), "stream_synchronize": (1, 0)} and \
        changed == {"graph_exec_set_node": (100, 100), "graph_launch": (100, 100), "stream_synchronize": (1, 0)}
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
