/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about the certificates of this user's TLS; a user without any has none. */
#pragma once

#include <time.h>

#include "ctl/doctor/doctor.h"

void ckt_ctl_doctor_certificates(struct ckt_doctor *doctor, time_t now);
