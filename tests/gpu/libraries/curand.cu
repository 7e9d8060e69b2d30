/* SPDX-License-Identifier: Apache-2.0 */
/* cuRAND: every generator in three distributions, half of the numbers before the mid point and half behind it, by the same generator. */
#include "common.h"

#include <curand.h>

int main()
{
	static const struct {
		curandRngType_t type;
		const char *name;
	} types[] = {{CURAND_RNG_PSEUDO_XORWOW, "xorwow"}, {CURAND_RNG_PSEUDO_MRG32K3A, "mrg32k3a"}, {CURAND_RNG_PSEUDO_MTGP32, "mtgp32"},
		{CURAND_RNG_PSEUDO_MT19937, "mt19937"}, {CURAND_RNG_PSEUDO_PHILOX4_32_10, "philox"}, {CURAND_RNG_QUASI_SOBOL32, "sobol32"},
		{CURAND_RNG_QUASI_SCRAMBLED_SOBOL32, "scrambled sobol32"}};
	enum { TYPES = 7, COUNT = 1 << 16 };
	curandGenerator_t generators[TYPES];
	float *uniform = device<float>(COUNT), *normal = device<float>(COUNT);
	unsigned *words = device<unsigned>(COUNT);

	for (int i = 0; i < TYPES; i++) {
		TRY(curandCreateGenerator(&generators[i], types[i].type));
		if (types[i].type < CURAND_RNG_QUASI_DEFAULT)
			TRY(curandSetPseudoRandomGeneratorSeed(generators[i], 1234));
	}
	for (int half = 0; half < 2; half++) {
		for (int i = 0; i < TYPES; i++) {
			TRY(curandGenerateUniform(generators[i], uniform, COUNT));
			TRY(curandGenerateNormal(generators[i], normal, COUNT, 1.0f, 2.0f));
			TRY(curandGeneratePoisson(generators[i], words, COUNT, 10.0));
			CHECK(cudaDeviceSynchronize());
			printf("%s, half %d\n", types[i].name, half);
			hash("uniform", uniform, COUNT * 4);
			hash("normal", normal, COUNT * 4);
			hash("poisson", words, COUNT * 4);
		}
		if (!half)
			phase();
	}
	for (int i = 0; i < TYPES; i++)
		TRY(curandDestroyGenerator(generators[i]));
	return finish();
}
