#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes of sessions and of control move through rpc/transport/ alone (rpc/transport/transport.h).

A product file elsewhere that calls recv, send, poll, shutdown or their relatives is an error unless EXCEPTIONS says what the call is for, and an
exception that nobody needs any more is an error too.  Record marks are made and parsed in rpc/record.h alone: no other file has their masks.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ('base', 'cudacommon', 'rpc', 'checkpoint', 'client', 'ctl', 'server')
TRANSPORT = 'rpc/transport/'
MARKS = 'rpc/record.h'
CALLS = 'recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg read readv write writev poll ppoll select shutdown connect setsockopt getsockopt '\
    'ckt_write_all ckt_write_synced ckt_net_receive ckt_net_receive_message'
CALL = re.compile(r'(?<![\w.>])(' + '|'.join(CALLS.split()) + r')\(')
MASK = re.compile(r'0x80000000\b|0x7fffffff\b|0x80000000u|0x7fffffffu', re.IGNORECASE)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.DOTALL)

# File, its calls, and what they are for.
EXCEPTIONS = """
base/boot_id.c read the boot id of the host
base/log.c write log lines
base/file_io.h ckt_write_all,ckt_write_synced,write files; its users stand here, too
rpc/net.h ckt_net_receive,ckt_net_receive_message the declarations; their users stand here, too
rpc/identity.c read,getsockopt the token file; who the accepted peer is, before it has a transport
checkpoint/format/broker.c recv,recvmsg,send,sendmsg,poll,shutdown,getsockopt the file broker's own sequenced-packet socket between server and worker: no records
checkpoint/format/chunk.c ckt_write_all image files
checkpoint/format/image_key.c ckt_write_synced key files and manifest-mac
checkpoint/format/sealed_file.c ckt_write_all image files
ctl/claim.c connect whether a worker listens: no records
ctl/events.c poll whether an answer is there, which rpc/net.h then reads
ctl/drain/drain_run.c poll,read what the processes that it starts say on their stderr
server/daemon/durable/chain_job.c write a byte that wakes the loop
server/daemon/durable/chain_store.c ckt_write_synced,read files of automatic images
ctl/replica/run.c poll,recv,send a socketpair of sequenced packets with the server that started it
ctl/replica/send.c read the state file of a chain
server/daemon/durable/replica_keep.c read,write files of replicas
server/daemon/durable/sealed_chain.c write a manifest-mac into a file in memory
server/daemon/durable/replicator.c recv,send a socketpair of sequenced packets with its own process
server/daemon/session/spawn_proc.c getsockopt whether the kernel names a socket's process
server/daemon/session/worker_bounds.c poll whether a worker has ended
server/daemon/peer/drain.c read the file that says that the server drains
server/worker/session/automatic.c write a byte to the file with the session's lock
checkpoint/format/store.c ckt_write_all image files
server/worker/memory/freed_memory.c recv the other end of the server's byte: no records
server/worker/session/parting.c poll sleeping
cudacommon/kernel_compiler.c poll,recvmsg,sendmsg a socketpair to the process that compiles for workers: no records
server/daemon/session/compiler_process.c sendmsg one descriptor for that process
server/worker/compiler/compile_server.c poll,recvmsg,sendmsg,shutdown the other ends of them
server/worker/cage/cage.c getsockopt,read,sendmsg one descriptor for the server, over a socketpair, and /proc
server/daemon/peer/client_container.c getsockopt whose pidfd the accepted peer is
base/refusal_log.c write the file of refusals that CRICKET_REFUSALS names
ctl/cdi.c write the specification
ctl/certificate/certificate_files.c ckt_write_synced files of certificates and keys
server/daemon/log_journal.c connect,sendto the journal's socket: datagrams of its own protocol
server/daemon/metrics/metrics.c shutdown connections of HTTP, which libmicrohttpd reads and writes
client/conn/connect.c read the token file
client/conn/quiesce.c read the file of a hold
client/conn/reply.c write the program's standard output
client/cuda/context/driver_log.c write the program's log file
client/cuda/memory/ipc.c write the file of an exported handle
client/cuda/module/module.c read module files
client/nvml/system.c read /proc
client/patch/patch_log.c write the log file
client/preload/system_calls.c read,readv,recv,recvfrom,recvmmsg,recvmsg,send,sendmmsg,sendmsg,sendto,write,writev the program's own system calls, interposed
client/trace/writer.c read,write the trace, a file, and the names of threads in /proc
client/run/run_soft.c connect asks whether a server listens; no byte moves
ctl/client/client.c write files of a saved client
ctl/client/criu.c poll,recv,send CRIU's own sequenced-packet socket and protocol
ctl/client/process.c read /proc
ctl/doctor/doctor.c read,write a pipe to a child
ctl/files.c ckt_write_synced files
ctl/job/job_manifest.c write files
server/daemon/audit/audit_file.c write the audit log, a file
server/daemon/audit/journal.c connect,sendto systemd's journal
server/daemon/image/memory_images.c read cgroup files
server/daemon/image/stage.c read a file of the stage
server/daemon/main.c read a signalfd
server/daemon/nvml/driver_probe.c ckt_write_all,poll,read a pipe to a child
server/daemon/nvml/nvml.c recv,send a socketpair to the NVML reader, our child
server/daemon/nvml/nvml_reader.c recv,send the other end of it
server/daemon/session/group.c recvmsg,send,sendmsg group channels, socketpairs of sequenced packets with workers
server/daemon/session/mps.c poll a pidfd, until a daemon of MPS has ended
server/daemon/session/mps_control.c poll,read,write pipes to a process of nvidia-cuda-mps-control
server/daemon/session/mps_process.c poll a pidfd, until a daemon of MPS has ended
server/worker/session/space_end.c poll sleeping
server/daemon/session/session_warm.c poll a pidfd, until a worker that does not fit is dead
server/daemon/session/warm_workers.c send one byte over the socketpair of a worker that asked for memory
server/daemon/session/group_domain.c recvmsg,sendmsg a socketpair to our child: descriptors of namespaces
server/daemon/session/lease.c recv,send lease channels, socketpairs of sequenced packets with workers
server/daemon/peer/replace.c getsockopt,ckt_net_receive_message,read,sendmsg,setsockopt,write sockets for a successor, over a socketpair of sequenced packets; a byte of a child
server/daemon/session/turn.c recv,send turn channels, socketpairs of sequenced packets with workers
server/daemon/session/owner_file.c read,write files of owners
server/daemon/session/refused_calls.c recvmsg,poll one message of a worker's cage, and whether a refused call waits
server/daemon/session/server_key.c ckt_write_synced,read the key file
server/daemon/session/session_marks.c read mark files of sessions
server/daemon/session/spawn.c read,write a pipe to a child
server/daemon/session/spawn_cage.c read the kernel's own numbers
server/daemon/session/module_cache.c recv,send,sendmsg the cache of modules, stream socketpairs with workers
server/daemon/session/uid_group.c poll,read,write the files of user ids, and the cleaner, our child
server/daemon/session/worker_cgroup.c write files of cgroups
server/daemon/session/uid_processes.c read /proc
server/daemon/session/user_namespace.c read,write pipes to children
server/daemon/session/worker_files.c ckt_write_all files for the worker
server/daemon/session/worker_request.c connect a worker's socket, without waiting; its bytes are a record stream's
server/daemon/tls/tls_keeper.c recvmsg,send two descriptors from the server, over a socketpair, and one message that it has started
server/daemon/tls/tls_process.c poll,recv,sendmsg the other end of it
server/daemon/systemd_notify.c sendto systemd's notification socket
server/worker/ipc/ipc_talk.c ckt_net_receive,ckt_net_receive_message,send,sendmsg sequenced packets between two workers: no records
server/worker/module/blob_cache.c ckt_net_receive,ckt_net_receive_message,getsockopt,send,setsockopt the other end of such a socketpair
server/worker/session/group.c recvmsg,sendmsg,setsockopt the group channel, a socketpair of sequenced packets with the server
server/worker/libs/nccl/nccl.c read files
server/worker/libs/nccl/nccl_meeting.c ckt_net_receive,send,sendmsg,setsockopt a byte to who visits, and a descriptor for the library, over a socketpair
server/worker/libs/nccl/nccl_rendezvous.c ckt_net_receive,send one packet between two workers
server/worker/libs/nccl/nccl_together.c ckt_net_receive,send a byte between two workers, over a socketpair
server/worker/main.c poll sleeping
server/worker/memory/lease.c poll,recv,send,shutdown the lease channel, a socketpair of sequenced packets with the server
server/worker/session/turn.c recv,send,shutdown the turn channel, a socketpair of sequenced packets with the server
server/worker/memory/rescue.c poll,recv,recvmsg,send,sendmsg a socketpair to the worker's helper process
server/worker/session/client_process.c getsockopt,poll,read the client's pidfd, and /proc; no byte moves
server/worker/session/control.c poll its listening socket and the group's epoll
server/worker/session/client_wait.c poll,read the same beside it
server/worker/session/executor.c poll,read,write its eventfd, polled beside the transport's descriptor
server/worker/session/kernel_output.c poll,read pipes of the kernels' output
"""


def exceptions():
    listed = {}
    for line in EXCEPTIONS.strip().splitlines():
        path, calls, reason = line.split(' ', 2)
        listed[path] = set(calls.split(','))
        assert reason, line
    return listed


def used(text):
    """The calls and masks of one source text: (set of calls, whether there is a mask)."""
    code = COMMENT.sub(' ', STRING.sub('""', text))
    return set(CALL.findall(code)), bool(MASK.search(code))


def main():
    # The check itself must see what it looks for.
    assert used('n = recv(fd, p, 1, 0); x = "send(";') == ({'recv'}, False)
    assert used('/* poll( */ t->read(t); x & 0x7fffffff') == (set(), True)
    listed, bad, files = exceptions(), [], 0
    for room in ROOMS:
        for path in sorted((TOP / room).rglob('*.[ch]')):
            name = path.relative_to(TOP).as_posix()
            calls, mask = used(path.read_text())
            files += 1
            if mask and name != MARKS:
                bad.append(f'{name}: masks of record marks belong to {MARKS}: use ckt_mark_put, ckt_mark_get or ckt_mark_size')
            if name.startswith(TRANSPORT):
                continue
            allowed = listed.pop(name, set())
            for call in sorted(calls - allowed):
                bad.append(f'{name}: {call}() outside {TRANSPORT}: use rpc/transport/transport.h, or list here what it is for')
            for call in sorted(allowed - calls):
                bad.append(f'{name}: has no {call}() any more: take it off the list')
    bad += [f'{name}: there is no such file: take it off the list' for name in listed]
    for line in bad:
        print(line)
    print(f'{files} files')
    return 1 if bad or not files else 0


if __name__ == '__main__':
    sys.exit(main())
