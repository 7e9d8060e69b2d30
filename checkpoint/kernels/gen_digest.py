#!/usr/bin/env python3
"""Writes the kernel that hashes device memory with BLAKE3, as PTX in a C string.

	gen_digest.py OUTPUT

	ckt_digest(table, out)		one block of THREADS threads an item {address, size}: whole KiB, at most 2 MiB, 16-byte aligned;
					out: 32 bytes an item

A thread compresses the leaves (chunks of 1 KiB) tid, tid + THREADS, ...; then the block halves the row of nodes level by level, an odd one moving
up as it is, which is BLAKE3's tree.  A row of 1024 nodes fits shared memory; of an item with more, the first 1024 leaves are a whole subtree
whose root waits in registers for the root of the rest.  There is one compression in the code, so that it loads fast.
"""
import sys

THREADS, ROW = 256, 1024
IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
MIXES = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8


def mix(a, b, c, d, x, y):
    def half(word, first, second):
        yield f"add.u32 %v{a}, %v{a}, %v{b}; add.u32 %v{a}, %v{a}, {word};"
        yield f"xor.b32 %v{d}, %v{d}, %v{a}; {first.format(r=f'%v{d}')}"
        yield f"add.u32 %v{c}, %v{c}, %v{d}; xor.b32 %v{b}, %v{b}, %v{c}; {second.format(r=f'%v{b}')}"

    yield from half(x, "prmt.b32 {r}, {r}, {r}, 0x1032;", "shf.r.wrap.b32 {r}, {r}, {r}, 12;")
    yield from half(y, "prmt.b32 {r}, {r}, {r}, 0x0321;", "shf.r.wrap.b32 {r}, {r}, {r}, 7;")


def compression():
    """%h, %m, %low, %flags -> %h."""
    for i in range(8):
        yield f"mov.u32 %v{i}, %h{i};"
    for i in range(4):
        yield f"mov.u32 %v{8 + i}, {IV[i]};"
    yield "mov.u32 %v12, %low; mov.u32 %v13, 0; mov.u32 %v14, 64; mov.u32 %v15, %flags;"
    # The rounds are a loop, so that the driver compiles the kernel in a moment.
    yield "mov.u32 %round, 7;"
    yield "ROUND:"
    for i, lanes in enumerate(MIXES):
        yield from mix(*lanes, f"%m{2 * i}", f"%m{2 * i + 1}")
    for i in range(16):
        yield f"mov.u32 %n{i}, %m{PERMUTATION[i]};"
    for i in range(16):
        yield f"mov.u32 %m{i}, %n{i};"
    yield "sub.u32 %round, %round, 1; setp.ne.u32 %p, %round, 0; @%p bra ROUND;"
    for i in range(8):
        yield f"xor.b32 %h{i}, %v{i}, %v{i + 8};"


def node(word, base, stride, at):
    """The address of a node's word in shared memory."""
    return f"mad.lo.u32 %a, {stride}, {4 * word}, {base}; mad.lo.u32 %a, {at}, 4, %a;"


def kernel():
    yield ".version 6.4"
    yield ".target sm_70"
    yield ".address_size 64"
    yield ".visible .entry ckt_digest(.param .u64 table, .param .u64 out)"
    yield f".maxntid {THREADS}, 1, 1"
    yield "{"
    yield ".reg .pred %p, %q, %leaves; .reg .b64 %table, %out, %address, %size, %at, %w;"
    yield ".reg .b32 %self, %item, %count, %first, %row, %left, %t, %pairs, %block, %low, %flags, %a, %x, %src, %dst, %sstride, %dstride, %whole;"
    yield ".reg .b32 %v<16>, %m<16>, %n<16>, %h<8>, %c<8>, %round;"
    yield f".shared .align 16 .b8 nodes[{(ROW + ROW // 2) * 32}];"
    yield "ld.param.u64 %table, [table]; ld.param.u64 %out, [out];"
    yield "mov.u32 %item, %ctaid.x; mov.u32 %self, %tid.x;"
    yield "mul.wide.u32 %w, %item, 16; add.u64 %w, %table, %w; ld.global.v2.u64 {%address, %size}, [%w];"
    yield "shr.u64 %w, %size, 10; cvt.u32.u64 %count, %w; mov.u32 %first, 0;"
    # Leaves first .. first + row of the item.
    yield "GROUP:"
    yield f"sub.u32 %row, %count, %first; min.u32 %row, %row, {ROW}; setp.eq.u32 %p, %row, %count; selp.b32 %whole, {ROOT}, 0, %p;"
    yield f"mov.u32 %dst, nodes; mov.u32 %dstride, {ROW}; mov.u32 %src, nodes; mov.u32 %sstride, {ROW};"
    yield "mov.u32 %left, %row; setp.eq.u32 %leaves, %row, %row;"
    # One level: %left nodes to be made in %dst, of leaves or of pairs in %src.
    yield "LEVEL: mov.u32 %t, %self;"
    yield "NODE: setp.ge.u32 %p, %t, %left; @%p bra MADE;"
    yield "add.u32 %low, %first, %t; @!%leaves mov.u32 %low, 0;"
    yield "mul.wide.u32 %at, %low, 1024; add.u64 %at, %address, %at; mov.u32 %block, 0;"
    for i in range(8):
        yield f"mov.u32 %h{i}, {IV[i]};"
    yield "@!%leaves bra PAIR;"
    yield "BLOCK:"
    for i in range(0, 16, 4):
        yield f"ld.global.v4.u32 {{%m{i}, %m{i + 1}, %m{i + 2}, %m{i + 3}}}, [%at+{4 * i}];"
    yield "add.u64 %at, %at, 64;"
    yield f"setp.eq.u32 %p, %block, 0; selp.b32 %flags, {CHUNK_START}, 0, %p;"
    yield f"setp.eq.u32 %p, %count, 1; selp.b32 %x, {CHUNK_END | ROOT}, {CHUNK_END}, %p; setp.eq.u32 %p, %block, 15; @%p or.b32 %flags, %flags, %x;"
    yield "bra COMPRESS;"
    yield "PAIR: shl.b32 %x, %t, 1;"
    for i in range(8):
        yield f"{node(i, '%src', '%sstride', '%x')} ld.shared.u32 %m{i}, [%a]; ld.shared.u32 %m{i + 8}, [%a+4];"
    # The last pair of the whole item is its root.
    yield f"setp.eq.u32 %p, %pairs, 2; selp.b32 %flags, %whole, 0, %p; or.b32 %flags, %flags, {PARENT}; mov.u32 %block, 15;"
    yield "COMPRESS:"
    yield from compression()
    yield "add.u32 %block, %block, 1; setp.lt.u32 %p, %block, 16; @%p bra BLOCK;"
    for i in range(8):
        yield f"{node(i, '%dst', '%dstride', '%t')} st.shared.u32 [%a], %h{i};"
    yield f"add.u32 %t, %t, {THREADS}; bra NODE;"
    # An odd node moves up; thread 0 takes it.
    yield "MADE: @%leaves bra NEXT; and.b32 %x, %pairs, 1; setp.eq.u32 %p, %x, 0; setp.ne.or.u32 %p, %self, 0, %p; @%p bra NEXT;"
    yield "sub.u32 %x, %pairs, 1;"
    for i in range(8):
        yield f"{node(i, '%src', '%sstride', '%x')} ld.shared.u32 %h{i}, [%a]; {node(i, '%dst', '%dstride', '%left')} st.shared.u32 [%a], %h{i};"
    # What was made is what the next level reads; %pairs: how many nodes it has.
    yield "NEXT: bar.sync 0;"
    yield "and.b32 %x, %pairs, 1; @!%leaves add.u32 %left, %left, %x; mov.u32 %pairs, %left; setp.ne.u32 %leaves, %left, %left;"
    yield "mov.u32 %src, %dst; mov.u32 %sstride, %dstride;"
    yield f"mov.u32 %x, nodes; setp.eq.u32 %p, %src, %x; add.u32 %a, %x, {ROW * 32}; selp.b32 %dst, %a, %x, %p;"
    yield f"selp.b32 %dstride, {ROW // 2}, {ROW}, %p;"
    yield "shr.u32 %left, %pairs, 1; setp.gt.u32 %p, %pairs, 1; @%p bra LEVEL;"
    # One node is left, in %src.
    for i in range(8):
        yield f"{node(i, '%src', '%sstride', 0)} ld.shared.u32 %h{i}, [%a];"
    yield "bar.sync 0;"
    yield "setp.ne.u32 %p, %whole, 0; @%p bra DONE;"
    yield "setp.ne.u32 %p, %first, 0; @%p bra BOTH;"
    for i in range(8):
        yield f"mov.u32 %c{i}, %h{i};"
    yield f"mov.u32 %first, {ROW}; bra GROUP;"
    yield f"BOTH: mov.u32 %src, nodes; mov.u32 %sstride, {ROW}; add.u32 %dst, %src, {ROW * 32}; mov.u32 %dstride, {ROW // 2};"
    yield "setp.ne.u32 %p, %self, 0; @%p bra JOIN;"
    for i in range(8):
        yield f"{node(i, '%src', '%sstride', 0)} st.shared.u32 [%a], %c{i}; st.shared.u32 [%a+4], %h{i};"
    yield f"JOIN: bar.sync 0; mov.u32 %pairs, 2; mov.u32 %left, 1; mov.u32 %whole, {ROOT}; bra LEVEL;"
    yield "DONE: setp.ne.u32 %p, %self, 0; @%p bra END; mul.wide.u32 %w, %item, 32; add.u64 %w, %out, %w;"
    for i in range(0, 8, 4):
        yield f"st.global.v4.u32 [%w+{4 * i}], {{%h{i}, %h{i + 1}, %h{i + 2}, %h{i + 3}}};"
    yield "END: ret;"
    yield "}"


with open(sys.argv[1], "w", encoding="utf-8") as output:
    output.write("/* Made by checkpoint/kernels/gen_digest.py. */\nstatic const char digest_kernel[] =\n")
    for line in kernel():
        output.write(f'\t"{line}\\n"\n')
    output.write("\t;\n")
