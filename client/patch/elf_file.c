/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See elf_file.h.
 */
#include "client/patch/elf_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool ckt_patch_elf_file_map(struct ckt_elf_file *file, const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return false;
	void *bytes = MAP_FAILED;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
		status.st_size > (off_t)sizeof(ElfW(Ehdr)))
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	file->bytes = bytes;
	file->size_bytes = (size_t)status.st_size;
	return true;
}

void ckt_patch_elf_file_unmap(struct ckt_elf_file *file)
{
	munmap((void *)file->bytes, file->size_bytes);
}

bool ckt_patch_elf_file_holds(const struct ckt_elf_file *file, uint64_t offset, uint64_t bytes)
{
	return offset <= file->size_bytes && bytes <= file->size_bytes - offset;
}

static const ElfW(Phdr) * program_headers(const struct ckt_elf_file *file, unsigned *ret_count)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)file->bytes;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
		header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64 ||
		header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff % 8 ||
		!ckt_patch_elf_file_holds(
			file, header->e_phoff, (uint64_t)header->e_phnum * sizeof(ElfW(Phdr))))
		return NULL;
	*ret_count = header->e_phnum;
	return (const ElfW(Phdr) *)(file->bytes + header->e_phoff);
}

/*
 * Finds an address of the mapped library in the file; NULL if the file does not contain that many
 * bytes there.
 */
static const char *at_address(const struct ckt_elf_file *file, const ElfW(Phdr) * segments,
	unsigned count, uint64_t address, uint64_t bytes)
{
	for (unsigned i = 0; i < count; i++) {
		const ElfW(Phdr) *segment = &segments[i];
		uint64_t within = address - segment->p_vaddr;

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
			within < segment->p_filesz && bytes <= segment->p_filesz - within &&
			segment->p_offset <= file->size_bytes &&
			ckt_patch_elf_file_holds(file, segment->p_offset + within, bytes))
			return (const char *)file->bytes + segment->p_offset + within;
	}
	return NULL;
}

static const ElfW(Dyn) *
	dynamic_section(const struct ckt_elf_file *file, const ElfW(Phdr) * segments,
		unsigned count, size_t *ret_entries)
{
	for (unsigned i = 0; i < count; i++)
		if (segments[i].p_type == PT_DYNAMIC && segments[i].p_offset % 8 == 0 &&
			ckt_patch_elf_file_holds(
				file, segments[i].p_offset, segments[i].p_filesz)) {
			*ret_entries = segments[i].p_filesz / sizeof(ElfW(Dyn));
			return (const ElfW(Dyn) *)(file->bytes + segments[i].p_offset);
		}
	return NULL;
}

bool ckt_patch_elf_file_needs(const struct ckt_elf_file *file, struct ckt_elf_needs *ret_needs)
{
	struct ckt_elf_needs needs = {0};
	uint64_t table = 0, table_bytes = 0;
	unsigned segments_count = 0;
	size_t entries = 0;
	const ElfW(Phdr) *segments = program_headers(file, &segments_count);
	const ElfW(Dyn) *dynamic =
		segments ? dynamic_section(file, segments, segments_count, &entries) : NULL;

	if (!dynamic)
		return false;
	for (size_t i = 0; i < entries && dynamic[i].d_tag != DT_NULL; i++) {
		if (dynamic[i].d_tag == DT_STRTAB)
			table = dynamic[i].d_un.d_ptr;
		else if (dynamic[i].d_tag == DT_STRSZ)
			table_bytes = dynamic[i].d_un.d_val;
	}
	const char *strings =
		table_bytes ? at_address(file, segments, segments_count, table, table_bytes) : NULL;
	if (!strings || strings[table_bytes - 1])
		return false;
	for (size_t i = 0; i < entries && dynamic[i].d_tag != DT_NULL; i++) {
		uint64_t text = dynamic[i].d_un.d_val;

		if (text >= table_bytes)
			continue;
		if (dynamic[i].d_tag == DT_NEEDED && needs.count < CKT_ELF_NEEDED_MAX)
			needs.needed[needs.count++] = strings + text;
		else if (dynamic[i].d_tag == DT_RPATH)
			needs.rpath = strings + text;
		else if (dynamic[i].d_tag == DT_RUNPATH)
			needs.runpath = strings + text;
	}
	*ret_needs = needs;
	return true;
}
