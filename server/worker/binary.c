/* Parts of module images; see binary.h. */
#include "server/worker/binary.h"

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { KIND_PTX = 1, KIND_CODE = 2, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, ENTRY_HEADER = 64, ELF_HEADER = 64 };
static const uint32_t container_magic = 0xba55ed50;
#define UNPACKED_MAX ((uint64_t)2 << 30)

static uint64_t word(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	memcpy(&v, p, bytes);
	return v;
}

static bool is_elf(const uint8_t *data, size_t size)
{
	return size >= ELF_HEADER && memcmp(data, "\177ELF", 4) == 0;
}

/* CUDA's ELF says its capability in e_flags: in the lowest byte, and since ABI 0x41 in the second. */
static unsigned elf_capability(const uint8_t *data)
{
	enum { OSABI = 7, MACHINE = 18, FLAGS = 48, EM_CUDA_NUMBER = 190 };
	if (word(data + MACHINE, 2) != EM_CUDA_NUMBER)
		return 0;
	switch (data[OSABI]) {
	case 0x33:
		return data[FLAGS];
	case 0x41:
		return data[FLAGS + 1];
	default:
		return 0;
	}
}

static int walk_entry(const uint8_t *header, const uint8_t *payload, uint64_t size, int (*call)(void *, const struct ckt_binary_part *),
		      void *opaque)
{
	uint64_t kind = word(header, 2), compressed = word(header + 16, 4), flags = word(header + 40, 8), unpacked = word(header + 56, 8);
	struct ckt_binary_part part = {.kind = kind == KIND_PTX    ? CKT_BINARY_PTX
					       : kind == KIND_CODE ? CKT_BINARY_CODE
								   : CKT_BINARY_OTHER,
				       .capability = (unsigned)word(header + 28, 4),
				       .data = payload,
				       .size = size};
	if (!compressed)
		return call(opaque, &part);
	if (compressed > size || !unpacked || unpacked > UNPACKED_MAX)
		return 0;
	uint8_t *text = malloc(unpacked);
	if (!text)
		return -ENOMEM;
	bool good = false;
	if (flags & FLAG_ZSTD)
		good = ZSTD_decompress(text, unpacked, payload, compressed) == unpacked;
	else if (flags & FLAG_LZ4)
		good = LZ4_decompress_safe((const char *)payload, (char *)text, (int)compressed, (int)unpacked) == (int)unpacked;
	part.data = text;
	part.size = unpacked;
	int result = good ? call(opaque, &part) : 0;
	free(text);
	return result;
}

int ckt_binary_walk(const uint8_t *image, size_t size, int (*call)(void *opaque, const struct ckt_binary_part *part), void *opaque)
{
	if (size < 16 || word(image, 4) != container_magic) {
		struct ckt_binary_part part = {.kind = CKT_BINARY_PTX, .data = image, .size = size};
		if (is_elf(image, size)) {
			part.kind = CKT_BINARY_CODE;
			part.capability = elf_capability(image);
		}
		return call(opaque, &part);
	}
	uint64_t at = word(image + 6, 2), end = word(image + 8, 8);
	end = end > size - (at < size ? at : size) ? size : at + end;
	int result = 0;
	while (!result && at < end && end - at >= ENTRY_HEADER) {
		uint64_t header = word(image + at + 4, 4), payload = word(image + at + 8, 8);
		if (header < ENTRY_HEADER || header > end - at || payload > end - at - header)
			break;
		result = walk_entry(image + at, image + at + header, payload, call, opaque);
		at += header + payload;
	}
	return result;
}

/* ---- Which GPU can run it */

struct fit {
	unsigned capability;
	bool fits, unknown, has_ptx;
};

/* The word behind ".target", e.g. sm_90a, or NULL. */
static const char *find_target(const struct ckt_binary_part *part, char ret_text[32])
{
	const uint8_t *at = memmem(part->data, part->size, ".target", 7), *end = part->data + part->size;
	size_t n = 0;
	if (!at)
		return NULL;
	for (at += 7; at < end && n < 31; at++)
		ret_text[n++] = (char)*at;
	ret_text[n] = 0;
	return strstr(ret_text, "sm_");
}

/* Any later GPU compiles PTX, but with suffix a the same one only, and with f those of the same major number. */
static bool ptx_fits(const char *target, unsigned capability)
{
	char *suffix;
	unsigned long wanted = strtoul(target + 3, &suffix, 10);
	if (*suffix == 'a')
		return wanted == capability;
	if (*suffix == 'f')
		return wanted / 10 == capability / 10 && wanted <= capability;
	return wanted <= capability;
}

static int look(void *opaque, const struct ckt_binary_part *part)
{
	struct fit *fit = opaque;
	char text[32];
	const char *target = part->kind == CKT_BINARY_PTX ? find_target(part, text) : NULL;
	if (target) {
		fit->has_ptx = true;
		fit->fits |= ptx_fits(target, fit->capability);
	} else if (part->kind == CKT_BINARY_CODE && part->capability) {
		fit->fits |= part->capability / 10 == fit->capability / 10 && part->capability <= fit->capability;
	} else {
		fit->unknown = true;
	}
	return 0;
}

bool ckt_binary_fits(const uint8_t *image, size_t size, unsigned capability, bool *ret_has_ptx)
{
	struct fit fit = {.capability = capability};
	if (ckt_binary_walk(image, size, look, &fit))
		fit.unknown = true;
	*ret_has_ptx = fit.has_ptx;
	return fit.fits || fit.unknown;
}
