/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events of several processes of this user. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_ipc_handle;

bool ckt_client_ipc_own(const struct ckt_ipc_handle *handle);
CUresult ckt_client_ipc_file_make(const uint8_t *handle, int *ret_fd);
/* False where the file is none of ours. */
bool ckt_client_ipc_file_read(int fd, struct ckt_ipc_handle *ret);
void ckt_client_ipc_forget_context(uint64_t context);
