#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The simulator: the same load and the same record give the same numbers, and a record's own policy gives its own waits.

	test_simulate.py SIMULATE [--update]
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
RECORD = os.path.join(HERE, "record.jsonl")
GOLDEN = os.path.join(HERE, "golden.json")


def simulate(*words, status=0):
    done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return json.loads(done.stdout) if status == 0 else done.stderr


def refused(text):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        return simulate("--replay", file.name, status=1)


def main():
    now = {"crowd": simulate("--sessions", "200", "--gpus", "20"), "record": simulate("--replay", RECORD)}
    if "--update" in sys.argv:
        with open(GOLDEN, "w", encoding="utf-8") as file:
            json.dump(now, file, indent=1)
            file.write("\n")
    with open(GOLDEN, encoding="utf-8") as file:
        golden = json.load(file)
    assert now == golden, "the policies decide otherwise than before; if that is meant: test_simulate.py SIMULATE --update"
    # The record was made under fifo: its replay tells the times of the record, to some milliseconds.
    fifo = next(run for run in now["record"] if run["policy"] == "fifo")
    for session in fifo["sessions"]:
        assert abs(session["waited_ms"] - session["recorded_waited_ms"]) < 20, session
        assert abs(session["ended_ms"] - session["recorded_ended_ms"]) < 20, session
    (alone,) = simulate("--replay", RECORD, "--policy", "best-fit")
    assert alone == next(run for run in now["record"] if run["policy"] == "best-fit")
    assert simulate("--sessions", "200", "--gpus", "20", "--seed", "2") != now["crowd"]
    for words in (("--replay", RECORD, "--policy", "lifo"), ("--sessions", "0", "--gpus", "1"), ("--sessions", "100", "--gpus", "1"), ("0",)):
        assert "usage" in simulate(*words, status=2)
    # What is no record, or would lead out of it.
    came = '{"event":"came","session":"0123456789ab","at_ms":5,"gpu":0,"bytes":4194304,"used_bytes":0}\n'
    assert "line 1 is no event" in refused("nonsense\n")
    assert "has no session" in refused("")
    assert "line 2 is no event" in refused(came + '{"event":"leased","session":"0123456789ab","at_ms":6,"gpu":4711,"bytes":2097152}\n')
    assert "line 1 is no event" in refused(came.replace('"gpu":0', '"gpu":-1'))
    assert "cannot be opened" in simulate("--replay", "/nonexistent", status=1)
    print("ok")


main()
