/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective of NCCL, in every type of numbers and with every operation; what comes out is compared with sums of the program's own. */
#include "nccl_ranks.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum { N = 3001, MOST = N * RANKS };

static ncclComm_t comm;
static cudaStream_t stream;
static char *from, *to, *host, *expected;

template <typename T> struct type;
#define TYPE(T, value, text)                                                                                                     \
	template <> struct type<T> {                                                                                             \
		static constexpr ncclDataType_t number = value;                                                                  \
		static constexpr const char *name = text;                                                                        \
	}
TYPE(int8_t, ncclInt8, "int8");
TYPE(uint8_t, ncclUint8, "uint8");
TYPE(int32_t, ncclInt32, "int32");
TYPE(uint32_t, ncclUint32, "uint32");
TYPE(int64_t, ncclInt64, "int64");
TYPE(uint64_t, ncclUint64, "uint64");
TYPE(__half, ncclFloat16, "half");
TYPE(__nv_bfloat16, ncclBfloat16, "bfloat16");
TYPE(float, ncclFloat32, "float");
TYPE(double, ncclFloat64, "double");

template <typename T> static T make(int value) { return (T)value; }
template <> __half make(int value) { return __float2half((float)value); }
template <> __nv_bfloat16 make(int value) { return __float2bfloat16((float)value); }

/* Small and even, so that every type holds their sums, products and averages. */
static int number(int of, size_t i)
{
	return (int)((i * 7 + (size_t)of * 5) % 4) * 2;
}

template <typename T> static void fill(int of, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((T *)host)[i] = make<T>(number(of, i));
	CHECK(cudaMemcpyAsync(from, host, n * sizeof(T), cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemsetAsync(to, 0x5a, MOST * sizeof(T), stream));
	CHECK(cudaStreamSynchronize(stream));
}

/* The first n numbers of `what` on this rank have to be those in `expected`. */
static void compare(const char *name, const char *what, const char *type, size_t bytes)
{
	CHECK(cudaMemcpyAsync(host, what, bytes, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	if (memcmp(host, expected, bytes) != 0) {
		printf("rank %d: %s of %s is wrong\n", rank, name, type);
		test_failures++;
	}
	say("%s %s: %016llx\n", name, type, (unsigned long long)checksum(host, bytes));
}

static int combine(ncclRedOp_t op, size_t i)
{
	int value = number(0, i);

	for (int r = 1; r < RANKS; r++) {
		int other = number(r, i);
		value = op == ncclProd ? value * other : op == ncclMax ? (value > other ? value : other) :
			op == ncclMin ? (value < other ? value : other) : value + other;
	}
	return op == ncclAvg ? value / RANKS : value;
}

template <typename T> static void all_reduce(ncclRedOp_t op, const char *name, bool in_place)
{
	fill<T>(rank, N);
	NCCL(ncclAllReduce(from, in_place ? from : to, N, type<T>::number, op, comm, stream));
	for (size_t i = 0; i < N; i++)
		((T *)expected)[i] = make<T>(combine(op, i));
	compare(name, in_place ? from : to, type<T>::name, N * sizeof(T));
}

template <typename T> static void reduce(int root)
{
	fill<T>(rank, N);
	NCCL(ncclReduce(from, rank == root ? to : NULL, N, type<T>::number, ncclSum, root, comm, stream));
	for (size_t i = 0; i < N; i++)
		((T *)expected)[i] = make<T>(combine(ncclSum, i));
	if (rank == root)
		compare("reduce", to, type<T>::name, N * sizeof(T));
	CHECK(cudaStreamSynchronize(stream));
}

template <typename T> static void reduce_scatter(void)
{
	fill<T>(rank, MOST);
	NCCL(ncclReduceScatter(from, to, N, type<T>::number, ncclSum, comm, stream));
	for (size_t i = 0; i < N; i++)
		((T *)expected)[i] = make<T>(combine(ncclSum, (size_t)rank * N + i));
	compare("reduce-scatter", to, type<T>::name, N * sizeof(T));
}

template <typename T> static void gathers(void)
{
	fill<T>(rank, N);
	NCCL(ncclAllGather(from, to, N, type<T>::number, comm, stream));
	for (size_t i = 0; i < MOST; i++)
		((T *)expected)[i] = make<T>(number((int)(i / N), i % N));
	compare("all-gather", to, type<T>::name, MOST * sizeof(T));
	/* In place: the own block is where it belongs. */
	for (size_t i = 0; i < N; i++)
		((T *)host)[i] = make<T>(number(rank, i));
	CHECK(cudaMemsetAsync(to, 0, MOST * sizeof(T), stream));
	CHECK(cudaMemcpyAsync(to + rank * N * sizeof(T), host, N * sizeof(T), cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamSynchronize(stream));
	NCCL(ncclAllGather(to + rank * N * sizeof(T), to, N, type<T>::number, comm, stream));
	compare("all-gather in place", to, type<T>::name, MOST * sizeof(T));
}

template <typename T> static void broadcast(int root)
{
	fill<T>(rank, N);
	NCCL(ncclBroadcast(from, to, N, type<T>::number, root, comm, stream));
	for (size_t i = 0; i < N; i++)
		((T *)expected)[i] = make<T>(number(root, i));
	compare("broadcast", to, type<T>::name, N * sizeof(T));
	NCCL(ncclBcast(from, N, type<T>::number, root, comm, stream));
	compare("broadcast in place", from, type<T>::name, N * sizeof(T));
}

/* Each rank's numbers times its own factor. */
template <typename T> static void multiplied(bool on_device)
{
	ncclRedOp_t op;
	T factor = make<T>(rank + 2), *place;

	CHECK(cudaMalloc(&place, sizeof(T)));
	/* `stream` does not wait for the legacy stream, on which such a copy may be still under way. */
	CHECK(cudaMemcpy(place, &factor, sizeof(T), cudaMemcpyHostToDevice));
	CHECK(cudaDeviceSynchronize());
	NCCL(ncclRedOpCreatePreMulSum(&op, on_device ? place : &factor, type<T>::number, on_device ? ncclScalarDevice : ncclScalarHostImmediate, comm));
	fill<T>(rank, N);
	NCCL(ncclAllReduce(from, to, N, type<T>::number, op, comm, stream));
	NCCL(ncclRedOpDestroy(op, comm));
	for (size_t i = 0; i < N; i++) {
		int sum = 0;
		for (int r = 0; r < RANKS; r++)
			sum += number(r, i) * (r + 2);
		((T *)expected)[i] = make<T>(sum);
	}
	compare(on_device ? "multiplied on the device" : "multiplied", to, type<T>::name, N * sizeof(T));
	CHECK(cudaFree(place));
}

template <typename T> static void all_of(void)
{
	all_reduce<T>(ncclSum, "sum", false);
	all_reduce<T>(ncclSum, "sum in place", true);
	all_reduce<T>(ncclProd, "product", false);
	all_reduce<T>(ncclMax, "greatest", false);
	all_reduce<T>(ncclMin, "least", false);
	all_reduce<T>(ncclAvg, "average", false);
	for (int root = 0; root < RANKS; root++) {
		reduce<T>(root);
		broadcast<T>(root);
	}
	reduce_scatter<T>();
	gathers<T>();
	multiplied<T>(false);
	multiplied<T>(true);
}

static void large(size_t factor)
{
	size_t n = factor * 300007;
	float *data, *host_data = (float *)malloc(n * 4);
	unsigned bad = 0;

	CHECK(cudaMalloc(&data, n * 4));
	for (size_t i = 0; i < n; i++)
		host_data[i] = (float)((i + (size_t)rank) % 1024);
	CHECK(cudaMemcpy(data, host_data, n * 4, cudaMemcpyHostToDevice));
	CHECK(cudaDeviceSynchronize());
	for (int round = 0; round < 3; round++)
		NCCL(ncclAllReduce(data, data, n, ncclFloat32, ncclSum, comm, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(host_data, data, n * 4, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < n; i++) {
		float sum = 0;
		for (int r = 0; r < RANKS; r++)
			sum += (float)((i + (size_t)r) % 1024);
		bad += host_data[i] != sum * RANKS * RANKS;
	}
	EXPECT(bad == 0);
	say("large: %u wrong\n", bad);
	free(host_data);
	CHECK(cudaFree(data));
}

static void refused(void)
{
	ncclRedOp_t op = (ncclRedOp_t)77;

	NCCL_ERROR(ncclAllReduce(from, to, N, ncclFloat32, ncclSum, NULL, stream), ncclInvalidArgument);
	NCCL_ERROR(ncclAllReduce(from, to, N, (ncclDataType_t)99, ncclSum, comm, stream), ncclInvalidArgument);
	NCCL_ERROR(ncclAllReduce(from, to, N, ncclFloat32, op, comm, stream), ncclInvalidArgument);
	NCCL_ERROR(ncclBroadcast(from, to, N, ncclFloat32, RANKS, comm, stream), ncclInvalidArgument);
	NCCL_ERROR(ncclBroadcast(from, to, N, ncclFloat32, -1, comm, stream), ncclInvalidArgument);
	NCCL_ERROR(ncclGroupEnd(), ncclInvalidUsage);
	NCCL_ERROR(ncclCommCount(NULL, NULL), ncclInvalidArgument);
	NCCL(ncclAllReduce(from, to, 0, ncclFloat32, ncclSum, comm, stream));
	CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	int count, number_of, device, version;
	ncclResult_t state;

	begin_ranks(argc, argv);
	NCCL(ncclCommInitRank(&comm, RANKS, id, rank));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&from, MOST * 8));
	CHECK(cudaMalloc(&to, MOST * 8));
	host = (char *)malloc(MOST * 8);
	expected = (char *)malloc(MOST * 8);
	NCCL(ncclGetVersion(&version));
	NCCL(ncclCommCount(comm, &count));
	NCCL(ncclCommUserRank(comm, &number_of));
	NCCL(ncclCommCuDevice(comm, &device));
	EXPECT(version >= 20000 && count == RANKS && number_of == rank && device == rank);
	NCCL(ncclCommGetAsyncError(comm, &state));
	EXPECT(state == ncclSuccess);
	all_of<int8_t>();
	all_of<uint8_t>();
	all_of<int32_t>();
	all_of<uint32_t>();
	all_of<int64_t>();
	all_of<uint64_t>();
	phase_ranks();
	all_of<__half>();
	all_of<__nv_bfloat16>();
	all_of<float>();
	all_of<double>();
	refused();
	large(4);
	NCCL(ncclCommFinalize(comm));
	NCCL(ncclCommDestroy(comm));
	return finish_ranks();
}
