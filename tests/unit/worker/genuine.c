/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for a genuine library, of a major version: test_load.c. */
int genuineVersion(void)
{
	return MAJOR * 10000 + 203;
}
