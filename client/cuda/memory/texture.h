/* SPDX-License-Identifier: Apache-2.0 */
/* Textures and surfaces. */
#pragma once

#include <stdint.h>

/* Destroys the textures and surfaces of a context that ends or is reset. */
void ckt_client_texture_forget_context(uint64_t context);
