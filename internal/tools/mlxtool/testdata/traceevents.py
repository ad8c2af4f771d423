"""Reads traces as the Trace Event Format describes them, without the code that wrote them, and counts their events by category and phase.

usage: traceevents.py FILE...

A file that lacks something that the format asks for is named with the event and what is wrong; the status is 1 then.
"""

import json
import sys


def once(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"a member is there twice: {names}")
    return dict(pairs)


def no_number(text):
    raise ValueError(f"{text} is no JSON number")


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check(event, named, last):
    """Returns the time of an event."""
    for member, kind in (("name", str), ("ph", str), ("pid", int), ("tid", int)):
        if not isinstance(event.get(member), kind) or event[member] == "":
            raise ValueError(f"{member} is {event.get(member)!r}")
    if not isinstance(event.get("args", {}), dict):
        raise ValueError(f"args is {event['args']!r}")
    phase = event["ph"]
    if phase == "M":
        if event["name"] not in ("process_name", "thread_name") or not isinstance(event.get("args", {}).get("name"), str):
            raise ValueError(f"metadata {event}")
        named.add((event["name"], event["pid"], event["tid"] if event["name"] == "thread_name" else 0))
        return last
    if phase not in ("X", "i"):
        raise ValueError(f"ph is {phase!r}")
    if not number(event.get("ts")) or event["ts"] < last:
        raise ValueError(f"ts is {event.get('ts')!r} after {last}")
    if not isinstance(event.get("cat"), str):
        raise ValueError(f"cat is {event.get('cat')!r}")
    if phase == "X" and (not number(event.get("dur")) or event["dur"] <= 0):
        raise ValueError(f"dur is {event.get('dur')!r}")
    if phase == "i" and event.get("s") not in ("g", "p", "t"):
        raise ValueError(f"s is {event.get('s')!r}")
    for what in (("process_name", event["pid"], 0), ("thread_name", event["pid"], event["tid"])):
        if what not in named:
            raise ValueError(f"no {what[0]} for pid {event['pid']}, tid {event['tid']}")
    return event["ts"]


def counted(path):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, object_pairs_hook=once, parse_constant=no_number)
    if trace.get("displayTimeUnit") not in ("ms", "ns") or not isinstance(trace.get("traceEvents"), list):
        raise ValueError("no displayTimeUnit or traceEvents")
    named, last, counts = set(), 0, {}
    for n, event in enumerate(trace["traceEvents"]):
        try:
            last = check(event, named, last)
        except ValueError as wrong:
            raise ValueError(f"event {n}: {wrong}") from None
        key = f"{event.get('cat', '')} {event['ph']}"
        counts[key] = counts.get(key, 0) + 1
    return counts


status = 0
for path in sys.argv[1:]:
    try:
        counts = counted(path)
    except ValueError as wrong:
        print(f"{path}: {wrong}")
        status = 1
        continue
    for key in sorted(counts):
        print(f"{path}: {key.strip()} {counts[key]}")
sys.exit(status)
