#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A scheduler outside of cricket-server: of the requests for memory that can be granted, the largest is next.

Start the server with --when-full wait --wait-policy external, and this beside it, as root or as the server's user:

    docs/examples/scheduler.py [--server ADDRESS]

Change next_of() for another policy.  If this program ends or hangs, the server decides by itself again.
"""
import argparse
import json
import os
import subprocess


def next_of(candidates):
    """The largest; of equal ones, the one that came first."""
    return max(candidates, key=lambda c: (c["bytes"], -c["arrived"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="address, as of cricketctl")
    args = parser.parse_args()
    ctl = [os.environ.get("CRICKETCTL", "cricketctl"), *(["--server", args.server] if args.server else [])]
    decide = subprocess.Popen([*ctl, "decide", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    follow = subprocess.Popen([*ctl, "--json", "events", "--follow"], stdout=subprocess.PIPE, text=True)
    for line in follow.stdout:
        event = json.loads(line)
        # An old choice has no candidates any more.
        if event["event"] != "choose" or not event["candidates"]:
            continue
        choice = next_of(event["candidates"])
        decide.stdin.write(f"{event['number']} grant {choice['request']}\n")
        decide.stdin.flush()
        # A refusal is no harm: the choice has changed, and the next event asks again.
        print(f"session {choice['session']}, {choice['bytes'] >> 20} MiB: {decide.stdout.readline().strip()}", flush=True)


if __name__ == "__main__":
    main()
