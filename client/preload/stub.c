/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An empty library. libcricket-client.so is linked with it under the names $ORIGIN/libcudart.so.13
 * and $ORIGIN/libcuda.so.1, so that it needs exactly these names.
 */
