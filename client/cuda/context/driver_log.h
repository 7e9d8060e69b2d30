/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's log of errors (cuLogs*): what is not supported is in it as well. */
#pragma once

void ckt_client_driver_log_init(void);
