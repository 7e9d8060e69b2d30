/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's log of errors (cuLogs*), which also holds unsupported calls. */
#pragma once

void ckt_client_driver_log_init(void);
