# SPDX-License-Identifier: Apache-2.0
"""Builds, in a temporary directory, what the preload tests need: a client directory whose CUDA libraries are stand-ins, and programs.

The stand-in libcudart.so.13 has every function of the runtime; each one only notes its own name.  So a test sees which function of ours a call
of the static runtime reached, without a server or a device.
"""
import os
import re
import subprocess


def run(command, **options):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, **options)


def archive_names(archive):
    lines = run(['nm', '-g', '--defined-only', archive]).stdout.splitlines()
    return [f[2] for f in map(str.split, lines) if len(f) == 3 and f[1] == 'T' and re.match('(__)?cuda[A-Z]', f[2])]


def table_names(source):
    with open(os.path.join(source, 'cudacommon/static_runtimes.c'), encoding='utf-8') as file:
        text = file.read()
    return re.findall(r'"(\w+)"', text[text.index('ckt_static_names[] = {'):text.index('ckt_static_fixed')])


# Names of CUDA 12 that 13 dropped: the stand-in must lack them as the real library does.
DROPPED = re.compile('cudaThread(?!Exchange)|cudaSetDouble|cudaLaunchCooperativeKernelMultiDevice|cudaGetDeviceProperties_v2|'
                     '(Capture\\w+|Edges|Depend\\w+|GraphAddNode|MemAdvise|PrefetchAsync|SemaphoresAsync|ElapsedTime)_v[23]')


def target_12(name):
    """Which function of CUDA 13 answers a name called by a program of CUDA 12; "nothing" where it is refused."""
    if re.match('cuda(ChooseDevice$|ExternalMemoryGet|ImportExternal|GetDeviceProperties$|SetDouble|Memcpy(3D)?BatchAsync|'
                'LaunchCooperativeKernelMulti)|cuda(Signal|Wait)ExternalSemaphoresAsync(_ptsz)?$', name):
        return 'nothing'
    return re.sub('_v[23]', '', name).replace('cudaThreadExit', 'cudaDeviceReset').replace('cudaThread', 'cudaDevice').replace('DeviceExchange', 'ThreadExchange')


class Stage:
    def __init__(self, directory, libraries, source, cc):
        """libraries: where libcricket-{client,patch,audit}.so were built."""
        self.directory, self.cc, self.source = directory, cc.split(), source
        self.client = os.path.join(directory, 'client')
        os.mkdir(self.client)
        for name in ('libcricket-client.so', 'libcricket-patch.so', 'libcricket-audit.so'):
            os.symlink(os.path.join(os.path.abspath(libraries), name), os.path.join(self.client, name))
        self.preload = os.path.join(self.client, 'libcricket-client.so')
        self.audit = os.path.join(self.client, 'libcricket-audit.so')

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)
        return self.path(name)

    def compile(self, *arguments):
        run(self.cc + list(arguments))

    def make_standins(self):
        names = [n for n in table_names(self.source) if not DROPPED.search(n)]
        functions = ''.join('int %s(void) { standin_last = "%s"; standin_calls++; return 0; }\n' % (n, n) for n in names)
        source = self.write('standin.c', 'const char *standin_last = "";\nint standin_calls;\n' + functions)
        version = self.write('standin.map', 'libcudart.so.13 { *; };\n')
        cuda = os.path.join(self.client, 'libcuda.so.1')
        self.compile('-shared', '-fPIC', '-w', '-x', 'c', '/dev/null', '-o', cuda, '-Wl,-soname,libcuda.so.1')
        self.compile('-shared', '-fPIC', '-w', '-x', 'c', '/dev/null', '-o', os.path.join(self.client, 'libnvidia-ml.so.1'), '-Wl,-soname,libnvidia-ml.so.1')
        self.compile('-shared', '-fPIC', '-w', source, '-o', os.path.join(self.client, 'libcudart.so.13'), '-Wl,-soname,libcudart.so.13',
                     '-Wl,--version-script=' + version, '-Wl,--no-as-needed', cuda)

    def environment(self, audit=False, preload=True, **more):
        result = {k: v for k, v in os.environ.items() if k not in ('LD_PRELOAD', 'LD_AUDIT') and not k.startswith('CRICKET_')}
        if preload:
            result['LD_PRELOAD'] = self.preload
        if audit:
            result['LD_AUDIT'] = self.audit
        result.update(more)
        return result
