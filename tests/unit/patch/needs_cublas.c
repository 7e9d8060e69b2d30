/* SPDX-License-Identifier: Apache-2.0 */
/* Needs what it is linked with, and uses nothing of it. */
int ckt_needs_cublas;
