# SPDX-License-Identifier: Apache-2.0
"""The libraries that a table can be about: what the grammar, the reader of headers and the emitters must know of each.

A library whose header the build has (`declared` false) takes the types of its functions from there, and its table says only what the
pointers are.  Where the build must do without the header, the table declares every parameter; a header that is there all the same must agree.
"""

from dataclasses import dataclass

SCALARS = ("u32", "i32", "u64", "i64", "f32", "f64")
# Kinds of fields that need a number behind their name: a bound, or the bytes of a block.
SIZED = ("opaque", "string", "u32s", "u64s", "block")


@dataclass(frozen=True)
class Library:
    """name: of the `library` line.  prefix: what every function's name begins with.  soname: of the client's library.
    includes: the headers that are read, the one that defines version_macro (None: there is none) first; macros: what they are read with.
    result: the C type that a function must give.  handles: C type -> kind of handle, which travels as an id.
    ordinals: C types of device ordinals, which no generated code translates.
    title: for prose.  program: its number in ONC RPC, None where nothing travels in messages of its own.  codec_includes: the headers that
    define the structs in its messages.  enumerators: what the names of its procedures' numbers begin with.
    forwarded: served at its own API by a genuine library in the worker (forwarded.py); client_header: what its stubs need of the shim;
    c_header: what declares its functions to C, where that is not its first header alone;
    exported: our headers of what the genuine library exports and NVIDIA's headers do not declare;
    cplusplus: the headers are read as C++, which shows more of them; apart: headers that cannot be read with the others.
    versions: the majors that the shim stands for, each a SONAME and the version node of its symbols.
    private: what the client's library exports beside its functions, for our own.
    doubled: every exported name is there with this before it too (NCCL's pnccl names, for profilers); None: it is not.
    logged: a statement in C that each generated function begins with, where the library has a log of calls; None: it has none.
    argument_kinds, result_kinds: the types of `arg` and `res` lines.  modes: classes of procedures.  rules: lines behind the procedures."""
    name: str
    prefix: str
    soname: str
    includes: tuple
    result: str
    handles: dict
    argument_kinds: tuple
    result_kinds: tuple
    modes: tuple
    rules: tuple
    version_macro: str = None
    macros: tuple = ()
    ordinals: tuple = ()
    declared: bool = False
    title: str = None
    program: int = None
    codec_includes: tuple = ()
    enumerators: str = None
    forwarded: bool = False
    client_header: str = None
    c_header: str = None
    versions: tuple = ()
    cplusplus: bool = False
    apart: tuple = ()
    exported: tuple = ()
    private: tuple = ()
    doubled: str = None
    logged: str = None

    @property
    def header(self):
        return self.includes[0]

    def enumerator(self, procedure):
        """The C name of a procedure's number."""
        return f"{self.enumerators}_{procedure.upper()}"


_CUDA_HANDLES = {"CUcontext": "context", "CUstream": "stream", "CUevent": "event", "CUmodule": "module", "CUfunction": "function"}
_CUDA_KINDS = SCALARS + tuple(_CUDA_HANDLES.values()) + ("opaque", "string", "u32s", "u64s")

CUDA = Library(
    name="cuda", prefix="cu", soname="libcuda.so.1", includes=("cuda.h", "cudaProfiler.h"), result="CUresult", handles=_CUDA_HANDLES,
    argument_kinds=_CUDA_KINDS, result_kinds=_CUDA_KINDS, modes=("waits", "batched"),
    rules=("local", "same", "per_thread", "unsupported", "undeclared"), version_macro="CUDA_VERSION",
    # Declares every version of every function under the name that libcuda exports, and keeps the macros from renaming them.
    macros=("-D__CUDA_API_VERSION_INTERNAL",), ordinals=("CUdevice", "CUdevice_v1"),
    title="CUDA", program=0x20434b01, codec_includes=("cuda.h",), enumerators="CKT_PROC",
    private=("ckt_client_table", "ckt_trace_table"))

# Toolkits have nvml.h in a part of its own, which the build does not ask for.
NVML = Library(
    name="nvml", prefix="nvml", soname="libnvidia-ml.so.1", includes=("nvml.h",), result="nvmlReturn_t", handles={"nvmlDevice_t": "device"},
    argument_kinds=("device", "u32"), result_kinds=("u32", "u64", "block", "versioned", "text", "fields"), modes=("waits",),
    rules=("local", "unsupported"),
    # Keeps macros from renaming functions to their newest version.
    macros=("-DNVML_NO_UNVERSIONED_FUNC_DEFS",), declared=True)

_FORWARDED_KINDS = SCALARS + ("object", "stream", "opaque", "string", "u32s", "u64s")


def forwarded(name, number, **more):
    """A library that is served at its own API; number: enum ckt_lib of rpc/wire.h."""
    return Library(name=name, program=0x20434b20 + number, enumerators=f"CKT_{name.upper()}_PROC", forwarded=True, modes=("waits", "batched"),
                   argument_kinds=_FORWARDED_KINDS, result_kinds=_FORWARDED_KINDS,
                   rules=("local", "same", "legacy", "unsupported", "undeclared", "newer"), **more)


CUBLAS = forwarded(
    "cublas", 1, prefix="cublas", soname="libcublas.so", includes=("cublas_api.h",), result="cublasStatus_t",
    handles={"cublasHandle_t": "handle", "cudaStream_t": "stream"}, title="cuBLAS",
    client_header="client/libs/cublas/cublas.h", c_header="rpc/cublas.h", versions=("libcublas.so.13", "libcublas.so.12"), cplusplus=True,
    apart=("cublas.h", "cublasXt.h"), exported=("rpc/cublas_exported.h",), logged="CKT_CUBLAS_LOG();")

CUBLASLT = forwarded(
    "cublasLt", 2, prefix="cublasLt", soname="libcublasLt.so", includes=("cublasLt.h",), result="cublasStatus_t",
    handles={"cublasLtHandle_t": "handle", "cudaStream_t": "stream"}, title="cuBLASLt",
    client_header="client/libs/cublasLt/handle.h", c_header="rpc/cublasLt_exported.h", exported=("rpc/cublasLt_exported.h",),
    versions=("libcublasLt.so.13", "libcublasLt.so.12"))

# A plan is a number, and not a pointer as other libraries' handles are.
CUFFT = forwarded(
    "cufft", 3, prefix="cufft", soname="libcufft.so", includes=("cufft.h", "cufftXt.h"), result="cufftResult",
    handles={"cufftHandle": "plan", "cudaStream_t": "stream"}, title="cuFFT",
    client_header="client/libs/cufft/cufft.h", versions=("libcufft.so.12", "libcufft.so.11"))

NCCL = forwarded(
    "nccl", 8, prefix="nccl", soname="libnccl.so", includes=("nccl.h",), result="ncclResult_t",
    handles={"ncclComm_t": "comm", "cudaStream_t": "stream"}, title="NCCL",
    client_header="client/libs/nccl/nccl.h", versions=("libnccl.so.2",), doubled="p")

LIBRARIES = {library.name: library for library in (CUDA, NVML, CUBLAS, CUBLASLT, CUFFT, NCCL)}
