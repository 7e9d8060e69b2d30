/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thrust and CUB, as they come with the toolkit, against the C++ library on the host: sort, scan, reduce, select, unique, histogram,
 * radix sort.  Compiled for compute_75, where CUB scans by looking back at blocks that may not have run yet.
 *
 * The arguments name what to run, all without any.  Nothing is printed that depends on the device.
 */
#include <cub/cub.cuh>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

static const int N = 20011;
static int failures;

static void tell(const char *name, bool right)
{
	printf("%-16s %s\n", name, right ? "right" : "WRONG");
	failures += !right;
}

static std::vector<int> numbers(int n, unsigned modulus)
{
	std::vector<int> v(n);
	uint32_t seed = 12345;

	for (int &x : v) {
		seed = seed * 1664525u + 1013904223u;
		x = (int)((seed >> 8) % modulus) - (int)(modulus / 4);
	}
	return v;
}

template <class T> static bool same(const thrust::device_vector<T> &device, const std::vector<T> &host, size_t n)
{
	thrust::host_vector<T> back = device;
	return n == host.size() && std::equal(host.begin(), host.end(), back.begin());
}

struct is_odd { __host__ __device__ bool operator()(int v) const { return v & 1; } };
struct square { __host__ __device__ long long operator()(int v) const { return (long long)v * v; } };

static void run_sort()
{
	std::vector<int> h = numbers(N, 1000000), keys = h;
	thrust::device_vector<int> d(h.begin(), h.end());

	std::sort(h.begin(), h.end(), std::greater<int>());
	thrust::sort(d.begin(), d.end(), thrust::greater<int>());
	tell("sort", same(d, h, d.size()));
}

static void run_merge_sort()
{
	/* A comparison of its own makes Thrust merge instead of counting digits; equal keys must keep their order. */
	std::vector<int> h = numbers(5003, 1000000);
	thrust::device_vector<int> d(h.begin(), h.end());
	auto by_tens = [] __host__ __device__(int a, int b) { return a / 10000 < b / 10000; };

	std::stable_sort(h.begin(), h.end(), by_tens);
	thrust::stable_sort(d.begin(), d.end(), by_tens);
	tell("stable_sort", same(d, h, d.size()));
}

static void run_scan()
{
	std::vector<int> h = numbers(3 * N, 1000), inclusive(h.size()), exclusive(h.size());
	thrust::device_vector<int> d(h.begin(), h.end()), out(h.size());

	std::partial_sum(h.begin(), h.end(), inclusive.begin());
	thrust::inclusive_scan(d.begin(), d.end(), out.begin());
	tell("inclusive_scan", same(out, inclusive, out.size()));
	int sum = 7;
	for (size_t i = 0; i < h.size(); i++) {
		exclusive[i] = sum;
		sum += h[i];
	}
	thrust::exclusive_scan(d.begin(), d.end(), out.begin(), 7);
	tell("exclusive_scan", same(out, exclusive, out.size()));
}

static void run_reduce()
{
	std::vector<int> h = numbers(5 * N, 100000);
	thrust::device_vector<int> d(h.begin(), h.end());
	long long sum = 0, squares = 0;

	for (int v : h) {
		sum += v;
		squares += (long long)v * v;
	}
	tell("reduce", thrust::reduce(d.begin(), d.end(), 0ll) == sum);
	tell("reduce max", thrust::reduce(d.begin(), d.end(), -1 << 30, thrust::maximum<int>()) == *std::max_element(h.begin(), h.end()));
	tell("transform_reduce", thrust::transform_reduce(d.begin(), d.end(), square(), 0ll, thrust::plus<long long>()) == squares);
}

static void run_select()
{
	std::vector<int> h = numbers(3 * N, 1000), kept;
	thrust::device_vector<int> d(h.begin(), h.end()), out(h.size());

	std::copy_if(h.begin(), h.end(), std::back_inserter(kept), is_odd());
	size_t n = thrust::copy_if(d.begin(), d.end(), out.begin(), is_odd()) - out.begin();
	tell("select", same(out, kept, n));
}

static void run_unique()
{
	std::vector<int> h = numbers(2 * N, 8), kept;
	thrust::device_vector<int> d(h.begin(), h.end());

	std::unique_copy(h.begin(), h.end(), std::back_inserter(kept));
	size_t n = thrust::unique(d.begin(), d.end()) - d.begin();
	tell("unique", same(d, kept, n));
}

static void run_histogram()
{
	std::vector<int> h = numbers(3 * N, 400), counts(64);
	thrust::device_vector<int> d(h.begin(), h.end()), out(64);
	size_t bytes = 0;

	for (int v : h)
		if (v >= -64 && v < 192)
			counts[(v + 64) / 4]++;
	cub::DeviceHistogram::HistogramEven(nullptr, bytes, d.data().get(), out.data().get(), 65, -64, 192, (int)h.size());
	thrust::device_vector<char> space(bytes);
	cub::DeviceHistogram::HistogramEven(space.data().get(), bytes, d.data().get(), out.data().get(), 65, -64, 192, (int)h.size());
	tell("histogram", same(out, counts, out.size()));
}

static void run_radix_sort()
{
	std::vector<int> values = numbers(N, 1 << 20);
	std::vector<uint64_t> keys(N);
	std::vector<std::pair<uint64_t, int>> pairs(N);
	size_t bytes = 0;

	for (int i = 0; i < N; i++) {
		keys[i] = (uint64_t)(uint32_t)values[i] * 0x9e3779b97f4a7c15ull;
		pairs[i] = {keys[i], values[i]};
	}
	thrust::device_vector<uint64_t> in(keys.begin(), keys.end()), out(N);
	thrust::device_vector<int> vin(values.begin(), values.end()), vout(N);
	cub::DeviceRadixSort::SortPairs(nullptr, bytes, in.data().get(), out.data().get(), vin.data().get(), vout.data().get(), N);
	thrust::device_vector<char> space(bytes);
	cub::DeviceRadixSort::SortPairs(space.data().get(), bytes, in.data().get(), out.data().get(), vin.data().get(), vout.data().get(), N);
	std::stable_sort(pairs.begin(), pairs.end(), [](auto &a, auto &b) { return a.first < b.first; });
	for (int i = 0; i < N; i++) {
		keys[i] = pairs[i].first;
		values[i] = pairs[i].second;
	}
	tell("radix sort", same(out, keys, N) && same(vout, values, N));
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(); } all[] = {
		{"sort", run_sort}, {"merge_sort", run_merge_sort}, {"scan", run_scan}, {"reduce", run_reduce}, {"select", run_select},
		{"unique", run_unique}, {"histogram", run_histogram}, {"radix_sort", run_radix_sort}};
	int ran = 0;

	for (auto &one : all) {
		bool wanted = argc < 2;

		for (int i = 1; i < argc; i++)
			wanted |= !strcmp(argv[i], one.name);
		if (wanted) {
			one.run();
			ran++;
		}
	}
	return failures || !ran;
}
