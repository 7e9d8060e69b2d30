/* SPDX-License-Identifier: Apache-2.0 */
/* Says which of two libraries of the same name it is. */
int cublasWho(int a, double b)
{
	return WHO + a + (int)b;
}

int cublasAlias(int a, double b) __attribute__((alias("cublasWho")));

#ifdef GENUINE
int cublasGenuineOnly(void)
{
	return WHO;
}

int cublasData = WHO;
#endif
