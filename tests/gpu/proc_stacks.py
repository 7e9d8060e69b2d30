# SPDX-License-Identifier: Apache-2.0
"""What a process's threads are doing, without a debugger: cuda-gdb attaches to no worker whose GPU stands still.

For each thread its name, the system call that it is in, and the words on its stack that point into code, as FILE+OFFSET: some of them are left over from
earlier calls, so it is a hint at the chain of callers and no proof.  Only root or the process's own user may read it.
"""
import contextlib
import os

WORDS = 4096
CALLERS_MAX = 40


def code_of(pid):
    """[(start, end, offset in the file, file)] of what is executable."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            words = line.split()
            if "x" in words[1] and len(words) > 5 and words[5].startswith("/"):
                start, end = (int(word, 16) for word in words[0].split("-"))
                found.append((start, end, int(words[2], 16), words[5]))
    return found


def callers(pid, pointer, code):
    lines = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(pointer)
        data = memory.read(8 * WORDS)
    for at in range(0, len(data) - 7, 8):
        word = int.from_bytes(data[at:at + 8], "little")
        for start, end, offset, path in code:
            if start <= word < end and len(lines) < CALLERS_MAX:
                lines.append(f"{os.path.basename(path)}+0x{word - start + offset:x}")
    return lines


def describe(pid, out):
    """Writes it; what cannot be read is left out."""
    code = []
    with contextlib.suppress(OSError):
        code = code_of(pid)
    for task in sorted(os.listdir(f"/proc/{pid}/task"), key=int) if os.path.isdir(f"/proc/{pid}/task") else []:
        with contextlib.suppress(OSError):
            texts = []
            for name in ("comm", "syscall", "wchan"):
                with open(f"/proc/{pid}/task/{task}/{name}", encoding="utf-8", errors="replace") as f:
                    texts.append(f.read().strip())
            print(f"thread {task} {texts[0]}: {texts[1]} ({texts[2]})", file=out)
            words = texts[1].split()
            if len(words) > 7:
                for line in callers(pid, int(words[7], 16), code):
                    print(f"    {line}", file=out)
    out.flush()
