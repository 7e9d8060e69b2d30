/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events that processes of one user share. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_ipc_handle;

bool ckt_client_ipc_own(const struct ckt_ipc_handle *handle);
CUresult ckt_client_ipc_file_make(const uint8_t *handle, int *ret_fd);
/* Returns false if the file holds no handle of physical memory (rpc/ipc.h). */
bool ckt_client_ipc_file_read(int fd, struct ckt_ipc_handle *ret);
void ckt_client_ipc_forget_context(uint64_t context);
