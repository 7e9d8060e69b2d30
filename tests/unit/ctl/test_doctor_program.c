/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/doctor/doctor_program.c: programs as their files tell: found by PATH, through scripts, and
 * every damage survived.
 */
#include <elf.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/doctor/doctor.h"
#include "inside.h"

/* "name=result" of every finding, in order. */
static const char *look(const char *command)
{
	static char text[512];
	struct ckt_doctor doctor = {.json = true, .checks = json_array()};
	size_t index;
	json_t *check;
	text[0] = 0;
	ckt_ctl_doctor_program(&doctor, command);
	json_array_foreach(doctor.checks, index, check)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s=%s ",
			json_string_value(json_object_get(check, "name")),
			json_string_value(json_object_get(check, "result")));
	json_decref(doctor.checks);
	return text;
}

static void script(const char *path, const char *text)
{
	write_file(path, text);
	IS(chmod(path, 0755), 0);
}

static void test_scripts(void)
{
	char text[300], *path = getenv("PATH"), *kept = path ? strdup(path) : NULL;
	script(path_in("plain.sh"), "#!/bin/sh\n");
	HAS(look(path_in("plain.sh")), "script=ok program=ok");
	script(path_in("env.sh"), "#! /usr/bin/env sh\n");
	HAS(look(path_in("env.sh")), "script=ok program=ok");
	script(path_in("lost.sh"), "#!/nowhere/interpreter -x\n");
	HAS(look(path_in("lost.sh")), "script=ok program=fail");
	script(path_in("empty.sh"), "#!\n");
	HAS(look(path_in("empty.sh")), "program=fail");
	/* One that starts itself. */
	snprintf(text, sizeof text, "#!%s\n", path_in("loop.sh"));
	script(path_in("loop.sh"), text);
	HAS(look(path_in("loop.sh")), "script=ok script=ok script=ok script=ok program=fail");
	write_file(path_in("locked.sh"), "#!/bin/sh\n");
	IS(chmod(path_in("locked.sh"), 0644), 0);
	HAS(look(path_in("locked.sh")), "program=fail script=ok");
	/*
	 * By PATH: not every directory of it exists, and files that cannot be executed are passed
	 * over.
	 */
	IS(mkdir(path_in("p1"), 0755), 0);
	IS(mkdir(path_in("p2"), 0755), 0);
	write_file(path_in("p1/tool-of-test"), "#!/bin/sh\n");
	IS(chmod(path_in("p1/tool-of-test"), 0644), 0);
	script(path_in("p2/tool-of-test"), "#!/bin/sh\n");
	snprintf(text, sizeof text, "/nowhere:%s:%s", path_in("p1"), path_in("p2"));
	setenv("PATH", text, 1);
	HAS(look("tool-of-test"), "script=ok program=ok");
	TEXT(look("no-such-tool"), "program=fail ");
	TEXT(look(""), "program=fail ");
	TEXT(look(directory), "program=fail ");
	if (kept)
		setenv("PATH", kept, 1);
	free(kept);
}

static void put(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "w");
	IS(fwrite(data, 1, size, file), size);
	fclose(file);
	IS(chmod(path, 0755), 0);
}

static void test_files(void)
{
	struct {
		Elf64_Ehdr elf;
		Elf64_Phdr headers[3];
		Elf64_Dyn dynamic[3];
		char strings[64];
	} f = {.elf = {.e_ident = ELFMAG,
		       .e_machine = EM_X86_64,
		       .e_phoff = sizeof f.elf,
		       .e_phentsize = sizeof(Elf64_Phdr),
		       .e_phnum = 3}};
	f.elf.e_ident[EI_CLASS] = ELFCLASS64;
	f.headers[0] = (Elf64_Phdr){.p_type = PT_INTERP};
	f.headers[1] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_filesz = sizeof f};
	f.headers[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
		.p_offset = offsetof(__typeof__(f), dynamic),
		.p_filesz = sizeof f.dynamic};
	f.dynamic[0] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = 1};
	f.dynamic[1] = (Elf64_Dyn){
		.d_tag = DT_STRTAB, .d_un.d_ptr = 0x1000 + offsetof(__typeof__(f), strings)};
	static const struct {
		const char *needed, *found;
	} cases[] = {{"libcudart.so.13", "program=ok runtime=ok "},
		{"libcudart.so.12", "program=ok runtime=ok "},
		{"libcudart.so.11.0", "program=ok runtime=fail "},
		{"libcuda.so.1", "program=ok runtime=ok "},
		{"libc.so.6", "program=ok runtime=ok "}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		memset(f.strings, 0, sizeof f.strings);
		strcpy(f.strings + 1, cases[i].needed);
		put(path_in("elf"), &f, sizeof f);
		TEXT(look(path_in("elf")), cases[i].found);
	}
	/*
	 * Offsets that lead anywhere, and every truncation: an answer, and no read outside of the
	 * file.
	 */
	for (size_t cut = 0; cut < sizeof f; cut += 3) {
		put(path_in("cut"), &f, cut);
		YES(*look(path_in("cut")));
	}
	for (size_t at = sizeof f.elf.e_ident; at + 8 <= offsetof(__typeof__(f), strings);
		at += 8) {
		__typeof__(f) wrong = f;
		memset((char *)&wrong + at, 0xff, 8);
		put(path_in("wrong"), &wrong, sizeof wrong);
		YES(*look(path_in("wrong")));
	}
	f.elf.e_ident[EI_CLASS] = ELFCLASS32;
	put(path_in("elf"), &f, sizeof f);
	TEXT(look(path_in("elf")), "program=fail ");
	f.elf.e_ident[EI_CLASS] = ELFCLASS64;
	f.headers[0].p_type = PT_NOTE; /* linked statically */
	put(path_in("elf"), &f, sizeof f);
	TEXT(look(path_in("elf")), "program=fail ");
}

UNIT_SUITE(doctor_program, {"scripts", test_scripts}, {"files", test_files})
