/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that kernels take themselves, with malloc or new.  It lies in the driver's own heap: no
 * call of the driver tells where, and none copies it (measured on an H200, driver 580.159:
 * cuMemGetAddressRange and cuMemcpy refuse its addresses).  So a session in which a kernel that can
 * take some was launched is not saved; which kernels can is read off their modules.
 *
 * Threading: the executor, or whoever has frozen it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_object;
struct ckt_worker;

/*
 * Whether a kernel of the image (NULL: any) can come to malloc: directly, through functions that it
 * calls, or, where a function that is no kernel does, perhaps through a pointer.
 */
bool ckt_heap_reached(const uint8_t *image, size_t size, const char *kernel);
/*
 * The module is about to go: notes in its context whether one of its kernels that were launched may
 * have such memory.  NULL: all modules.
 */
void ckt_heap_look(struct ckt_worker *worker, const struct ckt_object *module);
/* 0, or -EOPNOTSUPP and a sentence where a context may have such memory. */
int ckt_heap_check(struct ckt_worker *worker, char *ret_message, size_t message_size);
