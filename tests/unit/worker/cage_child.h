/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts to escape, each in a child, which is in the cage for good. */
#pragma once

/*
 * The exit status of the child that runs it with no_new_privs; -1 if a signal ended it.
 */
int cage_child(int (*attempt)(void));
/* The same as a user that nobody else is, if this is root. */
int cage_child_of_nobody(int (*attempt)(void));
