/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of tests/gpu/libraries share: a line for each result, and how a library says
 * that it failed.
 */
#pragma once

#include "phase.h"

#include <vector>

#define TRY(call)                                                                                \
	do {                                                                                     \
		int try_status = (int)(call);                                                    \
		if (try_status) {                                                                \
			printf("%s:%d: %s: status %d\n", __FILE__, __LINE__, #call, try_status); \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)

template <typename T> static T *device(const std::vector<T> &values)
{
	T *p;
	CHECK(cudaMalloc(&p, values.size() * sizeof(T)));
	CHECK(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
	return p;
}

template <typename T> static T *device(size_t count)
{
	T *p;
	CHECK(cudaMalloc(&p, count * sizeof(T) + 1));
	CHECK(cudaMemset(p, 0, count * sizeof(T)));
	return p;
}

static inline void hash(const char *name, const void *p, size_t bytes)
{
	std::vector<char> host(bytes);
	CHECK(cudaMemcpy(host.data(), p, bytes, cudaMemcpyDeviceToHost));
	print_checksum(name, host.data(), bytes);
}

static inline std::vector<float> numbers(size_t count, uint32_t seed)
{
	std::vector<float> values(count);
	for (auto &v : values)
		v = random_float(&seed) - 0.5f;
	return values;
}
