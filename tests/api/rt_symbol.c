/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables that are registered with the runtime, as nvcc's host code does it, and everything that
 * names them.
 */
#include "registered.h"

static const char ptx[] = ".version 7.8\n"
			  ".target sm_75\n"
			  ".address_size 64\n"
			  ".visible .global .align 4 .b8 table[16];\n"
			  ".visible .const .align 4 .u32 fixed = 7;\n"
			  ".visible .global .attribute(.managed) .align 4 .u32 shared_word = 9;\n"
			  ".visible .entry nothing()\n"
			  "{\n"
			  "	ret;\n"
			  "}\n";

/* Their shadows. */
static char table[16], fixed[4];
static int *shared_word;

static void **module_with(int with_managed)
{
	void **handle = registered(ptx, sizeof(ptx), 7, 8);
	FUNCTION(__cudaRegisterVar)(handle, table, (char *)"table", "table", 0, 16, 0, 0);
	FUNCTION(__cudaRegisterVar)(handle, fixed, (char *)"fixed", "fixed", 0, 4, 1, 0);
	if (with_managed)
		FUNCTION(__cudaRegisterManagedVar)
	(handle, (void **)&shared_word, (char *)"shared_word", "shared_word", 0, 4, 0, 0);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	return handle;
}

/* The symbol, or a part of it, by an ordinary copy. */
static void SYMBOL(const char *what, const void *symbol, size_t size)
{
	uint8_t data[16];
	memset(data, 0xcd, sizeof(data));
	QUIET(cudaDeviceSynchronize);
	QUIET(cudaMemcpyFromSymbol, data, symbol, size, 0, cudaMemcpyDeviceToHost);
	BYTES(what, data, size);
}

CASE(registered)
{
	struct registered_wrapper *image = registered_image(ptx, sizeof(ptx), 7, 8);
	void *address = NULL, *again = NULL;
	size_t size = 77;
	void **handle = FUNCTION(__cudaRegisterFatBinary)(image);
	CALLED(__cudaRegisterFatBinary);
	YES("some", handle != NULL);
	FUNCTION(__cudaRegisterVar)(handle, table, (char *)"table", "table", 0, 16, 0, 0);
	CALLED(__cudaRegisterVar);
	FUNCTION(__cudaRegisterVar)(handle, fixed, (char *)"fixed", "fixed", 0, 4, 1, 0);
	CALLED(__cudaRegisterVar);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	CALLED(__cudaRegisterFatBinaryEnd);
	CALL(cudaGetSymbolSize, &size, table);
	NUMBER("size", (long long)size);
	CALL(cudaGetSymbolSize, &size, fixed);
	NUMBER("size", (long long)size);
	CALL(cudaGetSymbolAddress, &address, table);
	YES("some", address != NULL && address != (void *)table);
	CALL(cudaGetSymbolAddress, &again, table);
	YES("the same", address == again);
	CALL(cudaGetSymbolAddress, &again, fixed);
	YES("another", address != again);
	CALL(cudaMemset, address, 3, 16);
	SYMBOL("bytes", table, 16);
	FUNCTION(__cudaUnregisterFatBinary)(handle);
	CALLED(__cudaUnregisterFatBinary);
	CALL(cudaGetSymbolAddress, &address, table);
}

CASE(registered_managed)
{
	void *address = NULL;
	size_t size = 77;
	char answer;
	void **handle = registered(ptx, sizeof(ptx), 7, 8);
	FUNCTION(__cudaRegisterManagedVar)
	(handle, (void **)&shared_word, (char *)"shared_word", "shared_word", 0, 4, 0, 0);
	CALLED(__cudaRegisterManagedVar);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	answer = FUNCTION(__cudaInitModule)(handle);
	CALLED(__cudaInitModule);
	NUMBER("answer", answer);
	YES("some", shared_word != NULL);
	NUMBER("word", shared_word ? *shared_word : -7);
	CALL(cudaGetSymbolAddress, &address, &shared_word);
	YES("the same", address == (void *)shared_word);
	CALL(cudaGetSymbolSize, &size, &shared_word);
	NUMBER("size", (long long)size);
	*shared_word = 11;
	SYMBOL("bytes", &shared_word, 4);
	CALL(cudaMemset, address, 1, 4);
	CALL(cudaDeviceSynchronize);
	HEX("word", (unsigned)*shared_word);
}

CASE(copies)
{
	uint8_t out[16], back[16];
	char *p = memory(16);
	module_with(0);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	REMARK("as it was loaded");
	SYMBOL("bytes", table, 16);
	CALL(cudaMemcpyToSymbol, table, out, 12, 2, cudaMemcpyHostToDevice);
	SYMBOL("bytes", table, 16);
	CALL(cudaMemcpyFromSymbol, back, table, 8, 4, cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 12);
	CALL(cudaMemcpyFromSymbol, p, table, 8, 0, cudaMemcpyDeviceToDevice);
	CONTENT("bytes", p, 12);
	CALL(cudaMemcpyToSymbol, table, p + 1, 4, 12, cudaMemcpyDeviceToDevice);
	SYMBOL("bytes", table, 16);
	CALL(cudaMemcpyToSymbol, table, out + 4, 4, 0, cudaMemcpyDefault);
	CALL(cudaMemcpyFromSymbol, back, table, 8, 0, cudaMemcpyDefault);
	BYTES("bytes", back, 12);
	REMARK("as it was loaded");
	SYMBOL("bytes", fixed, 4);
	CALL(cudaMemcpyToSymbol, fixed, out, 2, 1, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyFromSymbol, back, fixed, 4, 0, cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 8);
	CALL(cudaMemcpyToSymbol, table, out, 0, 0, cudaMemcpyHostToDevice);
}

CASE(copies_others)
{
	uint8_t out[16], back[16];
	cudaStream_t stream = new_stream();
	module_with(0);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	CALL_AS(cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds, table, out, 12, 2,
		cudaMemcpyHostToDevice);
	CALL_AS(cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds, back, table, 8, 4,
		cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 12);
	CALL(cudaMemcpyToSymbolAsync, table, out + 4, 8, 0, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpyFromSymbolAsync, back, table, 12, 0, cudaMemcpyDeviceToHost, stream);
	QUIET(cudaStreamSynchronize, stream);
	BYTES("bytes", back, 16);
	CALL_AS(cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz, fixed, out + 4, 4, 0,
		cudaMemcpyHostToDevice, NULL);
	CALL_AS(cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz, back, fixed, 4, 0,
		cudaMemcpyDeviceToHost, NULL);
	QUIET(cudaStreamSynchronize, cudaStreamPerThread);
	BYTES("bytes", back, 16);
}

CASE(wrong)
{
	uint8_t host[16];
	static char stranger[16];
	void *address = (void *)8;
	size_t size = 77;
	cudaStream_t stream = new_stream();
	module_with(0);
	CALL(cudaGetSymbolAddress, &address, stranger);
	CALL(cudaGetSymbolAddress, &address, NULL);
	CALL(cudaGetSymbolAddress, NULL, table);
	YES("untouched", address == (void *)8);
	CALL(cudaGetSymbolSize, &size, stranger);
	CALL(cudaGetSymbolSize, NULL, table);
	NUMBER("size", (long long)size);
	CALL(cudaMemcpyToSymbol, stranger, host, 4, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyToSymbol, table, host, 16, 1, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyToSymbol, table, host, 4, 0, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpyToSymbol, table, host, 4, 0, (enum cudaMemcpyKind)77);
	CALL(cudaMemcpyToSymbol, table, NULL, 4, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyFromSymbol, host, stranger, 4, 0, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpyFromSymbol, host, table, 17, 0, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpyFromSymbol, host, table, 4, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyFromSymbol, host, table, 4, 0, cudaMemcpyHostToHost);
	CALL(cudaMemcpyFromSymbol, NULL, table, 4, 0, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpyToSymbolAsync, table, host, 16, 1, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpyToSymbolAsync, stranger, host, 4, 0, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpyFromSymbolAsync, host, table, 17, 0, cudaMemcpyDeviceToHost, stream);
	CALL(cudaMemcpyFromSymbolAsync, host, table, 4, 0, (enum cudaMemcpyKind)77, stream);
	CALL(cudaGetLastError);
}

/* A name that the image does not have. */
CASE(absent)
{
	static char missing[4];
	void *address = NULL;
	void **handle = registered(ptx, sizeof(ptx), 7, 8);
	FUNCTION(__cudaRegisterVar)(handle, table, (char *)"table", "table", 0, 16, 0, 0);
	FUNCTION(__cudaRegisterVar)(handle, missing, (char *)"missing", "missing", 0, 4, 0, 0);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	CALL(cudaGetSymbolAddress, &address, missing);
	CALL(cudaGetLastError);
}

/* An image that is none. */
CASE(garbage)
{
	static const char text[] = "no PTX";
	void *address = NULL;
	void **handle = registered(text, sizeof(text), 7, 8);
	FUNCTION(__cudaRegisterVar)(handle, table, (char *)"table", "table", 0, 16, 0, 0);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	CALL(cudaGetSymbolAddress, &address, table);
	CALL(cudaGetLastError);
}

CASE(graph_nodes)
{
	static uint8_t out[16], back[16];
	cudaGraph_t graph = NULL;
	cudaGraphNode_t in = NULL, from = NULL;
	cudaGraphExec_t exec = NULL;
	struct cudaMemcpy3DParms got;
	module_with(0);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	QUIET(cudaGraphCreate, &graph, 0);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &in, graph, NULL, 0, table, out, 12, 2,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNodeFromSymbol, &from, graph, &in, 1, back, table, 8, 4,
		cudaMemcpyDeviceToHost);
	memset(&got, 0xee, sizeof(got));
	CALL(cudaGraphMemcpyNodeGetParams, from, &got);
	NUMBER("width", (long long)got.extent.width);
	NUMBER("kind", got.kind);
	QUIET(cudaGraphInstantiate, &exec, graph, 0);
	CALL(cudaGraphLaunch, exec, NULL);
	QUIET(cudaDeviceSynchronize);
	BYTES("bytes", back, 16);
	SYMBOL("table", table, 16);
	CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol, exec, in, table, out + 4, 12, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphExecMemcpyNodeSetParamsFromSymbol, exec, from, back + 1, table, 8, 0,
		cudaMemcpyDeviceToHost);
	CALL(cudaGraphLaunch, exec, NULL);
	QUIET(cudaDeviceSynchronize);
	BYTES("bytes", back, 16);
	CALL(cudaGraphMemcpyNodeSetParamsToSymbol, in, table, out + 8, 4, 12,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphMemcpyNodeSetParamsFromSymbol, from, back + 2, table, 4, 12,
		cudaMemcpyDeviceToHost);
	QUIET(cudaGraphInstantiate, &exec, graph, 0);
	CALL(cudaGraphLaunch, exec, NULL);
	QUIET(cudaDeviceSynchronize);
	BYTES("bytes", back, 16);
	SYMBOL("table", table, 16);
}

CASE(graph_nodes_wrong)
{
	static uint8_t host[16];
	static char stranger[16];
	cudaGraph_t graph = NULL;
	cudaGraphNode_t node = NULL, copy = NULL;
	module_with(0);
	QUIET(cudaGraphCreate, &graph, 0);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &node, graph, NULL, 0, stranger, host, 4, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &node, graph, NULL, 0, table, host, 16, 4,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &node, graph, NULL, 0, table, host, 4, 0,
		cudaMemcpyDeviceToHost);
	CALL(cudaGraphAddMemcpyNodeFromSymbol, &node, graph, NULL, 0, host, stranger, 4, 0,
		cudaMemcpyDeviceToHost);
	CALL(cudaGraphAddMemcpyNodeFromSymbol, &node, graph, NULL, 0, host, table, 4, 0,
		cudaMemcpyHostToDevice);
	QUIET(cudaGraphAddMemcpyNodeToSymbol, &copy, graph, NULL, 0, table, host, 4, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphMemcpyNodeSetParamsToSymbol, copy, stranger, host, 4, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphMemcpyNodeSetParamsFromSymbol, copy, host, table, 17, 0,
		cudaMemcpyDeviceToHost);
	CALL(cudaGetLastError);
}

/* Shadows on the host's side of what is known to the image, too. */
CASE(host_variable)
{
	static char shadow[4];
	void *address = NULL;
	void **handle = registered(ptx, sizeof(ptx), 7, 8);
	FUNCTION(__cudaRegisterVar)(handle, table, (char *)"table", "table", 0, 16, 0, 0);
	FUNCTION(__cudaRegisterHostVar)(handle, "fixed", shadow, 4);
	CALLED(__cudaRegisterHostVar);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	CALL(cudaGetSymbolAddress, &address, table);
	CALL(cudaGetSymbolAddress, &address, shadow);
	CALL(cudaGetLastError);
}

CASE(no_entry)
{
	void *f = FUNCTION(__cudaGetProcAddress)();
	CALLED(__cudaGetProcAddress);
	YES("null", f == NULL);
}

/* A managed variable is named by where it lies: so does nvcc's code that takes its address. */
CASE(managed_symbols)
{
	void *address = NULL;
	size_t size = 77;
	int out[2] = {11, 12}, back = -7;
	void **handle = registered(ptx, sizeof(ptx), 7, 8);
	FUNCTION(__cudaRegisterManagedVar)
	(handle, (void **)&shared_word, (char *)"shared_word", "shared_word", 0, 4, 0, 0);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	if (!FUNCTION(__cudaInitModule)(handle))
		return;
	CALL(cudaGetSymbolAddress, &address, shared_word);
	YES("the same", address == (void *)shared_word);
	CALL(cudaGetSymbolSize, &size, shared_word);
	NUMBER("size", (long long)size);
	CALL(cudaMemcpyToSymbol, shared_word, out, 4, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyFromSymbol, &back, shared_word, 4, 0, cudaMemcpyDeviceToHost);
	NUMBER("back", back);
	CALL(cudaMemset, shared_word, 1, 4);
	CALL(cudaDeviceSynchronize);
	HEX("word", (unsigned)*shared_word);
	CALL(cudaGetSymbolAddress, &address, shared_word + 1);
	CALL(cudaGetLastError);
}

CASE(copies_wrong)
{
	uint8_t host[32];
	static char stranger[16];
	size_t size = 77;
	cudaStream_t stream = new_stream();
	module_with(0);
	CALL(cudaGetSymbolSize, &size, stranger);
	CALL(cudaGetSymbolSize, &size, NULL);
	NUMBER("size", (long long)size);
	CALL(cudaMemcpyToSymbol, stranger, host, 4, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyToSymbol, table, host, 16, 1, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyToSymbol, table, host, 4, (size_t)-2, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyToSymbol, table, host, 4, 0, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpyToSymbol, table, host, 4, 0, cudaMemcpyHostToHost);
	CALL(cudaMemcpyToSymbol, table, host, 4, 0, (enum cudaMemcpyKind)77);
	CALL(cudaMemcpyToSymbol, table, NULL, 4, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyToSymbol, table, host, 0, 0, (enum cudaMemcpyKind)77);
	CALL(cudaMemcpyToSymbol, stranger, host, 0, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyFromSymbol, host, stranger, 4, 0, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpyFromSymbol, host, table, 17, 0, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpyFromSymbol, host, table, 4, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyFromSymbol, host, table, 4, 0, cudaMemcpyHostToHost);
	CALL(cudaMemcpyFromSymbol, NULL, table, 4, 0, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpyToSymbolAsync, table, host, 16, 1, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpyToSymbolAsync, stranger, host, 4, 0, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpyToSymbolAsync, table, host, 0, 0, (enum cudaMemcpyKind)77, stream);
	CALL(cudaMemcpyFromSymbolAsync, host, table, 17, 0, cudaMemcpyDeviceToHost, stream);
	CALL(cudaMemcpyFromSymbolAsync, host, table, 4, 0, (enum cudaMemcpyKind)77, stream);
	CALL(cudaGetLastError);
}

CASE(graph_updates_wrong)
{
	static uint8_t host[32];
	cudaGraph_t graph = NULL;
	cudaGraphNode_t to = NULL, from = NULL;
	cudaGraphExec_t exec = NULL;
	module_with(0);
	QUIET(cudaGraphCreate, &graph, 0);
	QUIET(cudaGraphAddMemcpyNodeToSymbol, &to, graph, NULL, 0, table, host, 4, 0,
		cudaMemcpyHostToDevice);
	QUIET(cudaGraphAddMemcpyNodeFromSymbol, &from, graph, &to, 1, host, table, 4, 0,
		cudaMemcpyDeviceToHost);
	QUIET(cudaGraphInstantiate, &exec, graph, 0);
	CALL(cudaGraphMemcpyNodeSetParamsToSymbol, to, table, host, 4, 0, cudaMemcpyDeviceToHost);
	CALL(cudaGraphMemcpyNodeSetParamsFromSymbol, from, host, table, 4, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol, exec, to, table, host, 4, 0,
		cudaMemcpyDeviceToHost);
	CALL(cudaGraphExecMemcpyNodeSetParamsFromSymbol, exec, from, host, table, 4, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol, exec, to, table, host, 17, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol, exec, to, host, host, 4, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &to, graph, NULL, 0, table, host, 0, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &to, graph, NULL, 0, table, host, 4, 0,
		(enum cudaMemcpyKind)77);
	CALL(cudaGetLastError);
}
