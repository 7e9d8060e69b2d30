# SPDX-License-Identifier: Apache-2.0
"""Draws a recorded terminal session as SVG: the lines appear as they came, again and again.

Without animation, as in a PNG, all of them are there.
"""
from xml.sax.saxutils import escape

SIZE, WIDTH, HEIGHT, MARGIN, HEAD = 14, 8.43, 20, 16, 34
PAUSE_S = 6.0       # with all lines, before it begins again
TYPING_S = 0.9      # a typed line appears so long before what it prints
COLOURS = {"typed": "#e6edf3", "printed": "#9fb1c4", "program": "#7ee787", "note": "#8b949e"}
STYLE = """text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}
@media (prefers-reduced-motion:reduce){.l{animation:none!important}}
"""


def wrapped(events, columns):
    """As a terminal of that width has them."""
    for event in events:
        text = event["text"]
        width = columns - (2 if event["kind"] == "typed" else 0)
        while len(text) > width:
            yield {**event, "text": text[:width]}
            text = text[width:]
        yield {**event, "text": text}


def timeline(events):
    """(seconds, event) with pauses that a reader needs and none that only the machine needed."""
    at, last, found = 0.5, 0.0, []
    for event in events:
        wait = min(max(event["at"] - last, 0.0), 1.2)
        last = event["at"]
        at += max(wait, TYPING_S) if event["kind"] == "typed" else max(wait, 0.05)
        found.append((at, event))
        at += 0.6 if event["kind"] == "typed" else 0
    return found, at + PAUSE_S


def line(number, event):
    y = HEAD + MARGIN + number * HEIGHT
    kind, text = event["kind"], event["text"]
    if kind != "typed":
        return f'<text class="l l{number}" x="{MARGIN}" y="{y}" fill="{COLOURS[kind]}" xml:space="preserve">{escape(text)}</text>'
    comment = text.find("#")
    command, note = (text, "") if comment < 0 else (text[:comment], text[comment:])
    spans = f'<tspan fill="#58a6ff">$ </tspan>{escape(command)}<tspan fill="{COLOURS["note"]}">{escape(note)}</tspan>'
    return f'<text class="l l{number}" x="{MARGIN}" y="{y}" fill="{COLOURS[kind]}" xml:space="preserve">{spans}</text>'


def picture(events, columns):
    events = list(wrapped(events, columns))
    times, total = timeline(events)
    width, height = round(columns * WIDTH + 2 * MARGIN), HEAD + 2 * MARGIN + len(events) * HEIGHT
    style = STYLE % SIZE
    for number, (at, _) in enumerate(times):
        share = 100 * at / total
        style += (f"@keyframes k{number}{{0%,{share:.2f}%{{opacity:0}}{share + 0.01:.2f}%,100%{{opacity:1}}}}"
                  f".l{number}{{animation:k{number} {total:.1f}s infinite}}\n")
    lights = "".join(f'<circle cx="{20 + 20 * n}" cy="17" r="6" fill="{colour}"/>' for n, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")))
    lines = "\n".join(line(number, event) for number, (_, event) in enumerate(times))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">\n'
            "<title>A CUDA program on a remote GPU: checkpointed, its server killed, restored on a second server, and going on</title>\n"
            f"<style>{style}</style>\n"
            f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>{lights}\n{lines}\n</svg>\n')
