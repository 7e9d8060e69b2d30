/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of program a file is, as far as the file tells; nothing is executed. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cudacommon/static_runtimes.h"
#include "ctl/doctor/doctor.h"

enum { PATH_SIZE = 4096, SCRIPTS_MAX = 4, CAPABILITY_SIZE = 64 };

/* A file mapped for reading; every offset in it is checked. */
struct file {
	const uint8_t *data;
	size_t size;
};

static const void *at(const struct file *file, uint64_t offset, uint64_t size)
{
	return offset <= file->size && size <= file->size - offset ? file->data + offset : NULL;
}

/* An entry of one of ELF's tables, which are aligned in a valid file. */
static const void *entry_at(const struct file *file, uint64_t offset, uint64_t size)
{
	return offset % 8 ? NULL : at(file, offset, size);
}

static const char *string_at(const struct file *file, uint64_t offset)
{
	const char *text = at(file, offset, 1);
	return text && memchr(text, 0, file->size - offset) ? text : NULL;
}

static bool find_command(const char *command, char ret_path[PATH_SIZE])
{
	const char *path = getenv("PATH");
	if (strchr(command, '/')) {
		snprintf(ret_path, PATH_SIZE, "%s", command);
		return access(ret_path, F_OK) == 0;
	}
	if (!path)
		path = "/usr/bin:/bin";
	while (*path) {
		size_t length = strcspn(path, ":");
		if (length + strlen(command) + 2 <= PATH_SIZE) {
			memcpy(ret_path, path, length);
			ret_path[length] = '/';
			strcpy(ret_path + length + 1, command);
			if (access(ret_path, X_OK) == 0)
				return true;
		}
		path += length + (path[length] == ':');
	}
	return false;
}

static bool file_map(const char *path, struct file *ret_file, struct stat *ret_stat)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file file = {0};
	if (fd < 0)
		return false;
	if (fstat(fd, ret_stat) == 0 && S_ISREG(ret_stat->st_mode) && ret_stat->st_size > 0) {
		file.size = (size_t)ret_stat->st_size;
		void *data = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
		file.data = data == MAP_FAILED ? NULL : data;
	}
	close(fd);
	*ret_file = file;
	return file.data;
}

static const Elf64_Phdr *header_of(const struct file *file, const Elf64_Ehdr *elf, uint32_t type)
{
	for (unsigned i = 0; i < elf->e_phnum; i++) {
		const Elf64_Phdr *header =
			entry_at(file, elf->e_phoff + (uint64_t)i * sizeof *header, sizeof *header);
		if (header && header->p_type == type)
			return header;
	}
	return NULL;
}

static uint64_t offset_of(const struct file *file, const Elf64_Ehdr *elf, uint64_t address)
{
	for (unsigned i = 0; i < elf->e_phnum; i++) {
		const Elf64_Phdr *header =
			entry_at(file, elf->e_phoff + (uint64_t)i * sizeof *header, sizeof *header);
		if (header && header->p_type == PT_LOAD && address >= header->p_vaddr &&
			address - header->p_vaddr < header->p_filesz)
			return address - header->p_vaddr + header->p_offset;
	}
	return UINT64_MAX;
}

/* The first DT_NEEDED with that prefix, or NULL. */
static const char *needs(const struct file *file, const Elf64_Ehdr *elf, const char *beginning)
{
	const Elf64_Phdr *dynamic = header_of(file, elf, PT_DYNAMIC);
	uint64_t strings = UINT64_MAX;
	for (int pass = 0; dynamic && pass < 2; pass++) {
		for (uint64_t i = 0; i + sizeof(Elf64_Dyn) <= dynamic->p_filesz;
			i += sizeof(Elf64_Dyn)) {
			const Elf64_Dyn *entry =
				entry_at(file, dynamic->p_offset + i, sizeof *entry);
			if (!entry || entry->d_tag == DT_NULL)
				break;
			if (pass == 0 && entry->d_tag == DT_STRTAB)
				strings = offset_of(file, elf, entry->d_un.d_ptr);
			if (pass == 1 && entry->d_tag == DT_NEEDED && strings != UINT64_MAX) {
				const char *name = string_at(file, strings + entry->d_un.d_val);
				if (name && strncmp(name, beginning, strlen(beginning)) == 0)
					return name;
			}
		}
	}
	return NULL;
}

/* nvcc's host code keeps its device code in sections of these names, which strip leaves alone. */
static bool has_device_code(const struct file *file, const Elf64_Ehdr *elf)
{
	const Elf64_Shdr *names = elf->e_shstrndx < elf->e_shnum
		? entry_at(file, elf->e_shoff + (uint64_t)elf->e_shstrndx * sizeof(Elf64_Shdr),
			  sizeof(Elf64_Shdr))
		: NULL;
	for (unsigned i = 0; names && i < elf->e_shnum; i++) {
		const Elf64_Shdr *section = entry_at(
			file, elf->e_shoff + (uint64_t)i * sizeof *section, sizeof *section);
		const char *name =
			section ? string_at(file, names->sh_offset + section->sh_name) : NULL;
		if (name &&
			(strcmp(name, ".nv_fatbin") == 0 || strcmp(name, ".nvFatBinSegment") == 0))
			return true;
	}
	return false;
}

/* ---- A static copy of the runtime, by the same anchors that the client looks for */

static bool is_anchor(const uint8_t *slot, unsigned *ret_anchor)
{
	uint64_t words[2];
	memcpy(words, slot, sizeof words);
	for (unsigned i = 0; i < ckt_static_anchors_count; i++) {
		if (ckt_static_anchors[i][0] == words[0] && ckt_static_anchors[i][1] == words[1]) {
			*ret_anchor = i;
			return true;
		}
	}
	return false;
}

static bool block_matches(
	const struct ckt_static_block *block, const uint8_t *start, size_t size, size_t anchor)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	if (anchor < (size_t)block->anchor_offset)
		return false;
	/*
	 * The first gap is counted from one slot before zero, so unsigned arithmetic may wrap once.
	 */
	size_t offset = anchor - block->anchor_offset - CKT_STATIC_SLOT;
	for (unsigned i = 0; i < block->count; i++) {
		offset += (size_t)block->slots[i].gap * CKT_STATIC_SLOT;
		if (offset > size - CKT_STATIC_SLOT)
			return false;
		for (unsigned k = 0; k < ckt_static_fixed[block->slots[i].name]; k++)
			hash = (hash ^ start[offset + k]) * 0x100000001b3;
	}
	return hash == block->hash;
}

/* The releases that the block found belongs to, or NULL. */
static const char *find_static_runtime(const struct file *file, const Elf64_Ehdr *elf)
{
	for (unsigned i = 0; i < elf->e_phnum; i++) {
		const Elf64_Phdr *header =
			entry_at(file, elf->e_phoff + (uint64_t)i * sizeof *header, sizeof *header);
		const uint8_t *start = header && header->p_type == PT_LOAD && header->p_flags & PF_X
			? at(file, header->p_offset, header->p_filesz)
			: NULL;
		/* Slots are aligned in memory; the offset in the page is the same in the file. */
		size_t first = start
			? (CKT_STATIC_SLOT - header->p_vaddr % CKT_STATIC_SLOT) % CKT_STATIC_SLOT
			: 0;
		for (size_t offset = first; start && offset + CKT_STATIC_SLOT <= header->p_filesz;
			offset += CKT_STATIC_SLOT) {
			unsigned anchor;
			if (!is_anchor(start + offset, &anchor))
				continue;
			for (unsigned b = 0; b < ckt_static_blocks_count; b++)
				if (!ckt_static_blocks[b].is_head &&
					ckt_static_blocks[b].anchor == anchor &&
					block_matches(&ckt_static_blocks[b], start,
						header->p_filesz, offset))
					return ckt_static_blocks[b].releases;
		}
	}
	return NULL;
}

static void check_runtime(struct ckt_doctor *doctor, const struct file *file, const Elf64_Ehdr *elf)
{
	const char *shared = needs(file, elf, "libcudart.so."),
		   *driver = needs(file, elf, "libcuda.so.");
	const char *releases = find_static_runtime(file, elf);
	/*
	 * The client redirects the functions of CUDA 12's library to its own, if the loader finds
	 * that library.
	 */
	if (shared && strcmp(shared, "libcudart.so.12") == 0)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "runtime", NULL,
			"it uses the shared CUDA runtime, %s, which must be installed "
			"here: its functions lead to Cricket's",
			shared);
	else if (shared && strcmp(shared, "libcudart.so.13") != 0)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "runtime",
			"build it with CUDA 12 or 13",
			"it needs %s, but Cricket replaces libcudart.so.12 and "
			"libcudart.so.13 only",
			shared);
	else if (shared)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "runtime", NULL,
			"it uses the shared CUDA runtime, %s", shared);
	if (releases)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "runtime", NULL,
			"it holds a static CUDA runtime of a known release (%s)", releases);
	else if (!shared && has_device_code(file, elf))
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "runtime",
			"build it with -cudart shared, or with a CUDA release that Cricket knows",
			"it holds device code, but its static CUDA runtime is of no known release");
	else if (!shared && driver)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "runtime", NULL,
			"it uses the driver API, %s", driver);
	else if (!shared)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "runtime", NULL,
			"the program's own file holds no CUDA: the libraries that it "
			"loads later matter");
}

static void check_elf(
	struct ckt_doctor *doctor, const char *path, const struct file *file, const struct stat *st)
{
	const Elf64_Ehdr *elf = at(file, 0, sizeof *elf);
	char capability[CAPABILITY_SIZE];
	if (!elf || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) {
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "program", "name the program itself",
			"%s is neither a program nor a script", path);
		return;
	}
	if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != EM_X86_64) {
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "program",
			"use a build for 64-bit x86",
			"%s is for another architecture (ELF machine %u, %s bits)", path,
			elf->e_machine, elf->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32");
		return;
	}
	if (!header_of(file, elf, PT_INTERP)) {
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "program",
			"link it dynamically: only the CUDA runtime may be static",
			"%s is linked statically, so nothing can be preloaded", path);
		return;
	}
	if (st->st_mode & (S_ISUID | S_ISGID) ||
		getxattr(path, "security.capability", capability, sizeof capability) > 0) {
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "program",
			"run a copy of it without those rights",
			"%s is set-user-id, set-group-id or has capabilities: the loader then ignores LD_PRELOAD",
			path);
		return;
	}
	ckt_ctl_doctor_note(
		doctor, CKT_FINDING_OK, "program", NULL, "%s is a dynamic x86-64 program", path);
	check_runtime(doctor, file, elf);
}

/*
 * "#!interpreter [argument]": the interpreter gets the libraries.  False if the file is not a
 * script.
 */
static bool script_interpreter(const struct file *file, char ret_command[PATH_SIZE])
{
	char line[PATH_SIZE], *rest;
	if (file->size < 3 || memcmp(file->data, "#!", 2) != 0)
		return false;
	size_t length = file->size - 2 < sizeof line - 1 ? file->size - 2 : sizeof line - 1;
	memcpy(line, file->data + 2, length);
	line[length] = 0;
	line[strcspn(line, "\n")] = 0;
	char *word = strtok_r(line, " \t\r", &rest);
	size_t word_length = word ? strlen(word) : 0;
	if (word_length > 4 && strcmp(word + word_length - 4, "/env") == 0)
		word = strtok_r(NULL, " \t\r", &rest);
	snprintf(ret_command, PATH_SIZE, "%s", word ? word : "");
	return word;
}

void ckt_ctl_doctor_program(struct ckt_doctor *doctor, const char *command)
{
	char path[PATH_SIZE], current[PATH_SIZE];
	snprintf(current, sizeof current, "%s", command);
	for (int depth = 0; depth < SCRIPTS_MAX; depth++) {
		struct file file;
		struct stat st;
		if (!find_command(current, path)) {
			ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "program",
				"check the name and PATH", "%s: not found", current);
			return;
		}
		if (!file_map(path, &file, &st)) {
			ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "program",
				"check its permissions", "%s cannot be read: %s", path,
				strerror(errno));
			return;
		}
		if (access(path, X_OK))
			ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "program", "chmod +x it",
				"cannot execute %s: %s", path, strerror(errno));
		bool script = script_interpreter(&file, current);
		if (script)
			ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "script", NULL,
				"%s is a script for %s", path, current);
		else
			check_elf(doctor, path, &file, &st);
		munmap((void *)file.data, file.size);
		if (!script)
			return;
	}
	ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "program", "name the program itself",
		"too many scripts start one another");
}
