/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Empty: linked under the names $ORIGIN/libcudart.so.13 and $ORIGIN/libcuda.so.1, so that
 * libcricket-client.so needs exactly those.
 */
