/* SPDX-License-Identifier: Apache-2.0 */
/* The generated table holds together: what redirect.c relies on without looking. */
#include <CUnit/Basic.h>
#include <string.h>

#include "cudacommon/static_runtimes.h"

static void names_are_distinct(void)
{
	for (unsigned i = 0; i < ckt_static_names_count; i++) {
		CU_ASSERT(strncmp(ckt_static_names[i], "cuda", 4) == 0 ||
			strncmp(ckt_static_names[i], "__cuda", 6) == 0);
		CU_ASSERT(ckt_static_fixed[i] <= CKT_STATIC_SLOT);
		for (unsigned j = 0; j < i; j++)
			CU_ASSERT(strcmp(ckt_static_names[i], ckt_static_names[j]) != 0);
	}
	CU_ASSERT_STRING_EQUAL(ckt_static_names[0], "cudaGetExportTable");
	CU_ASSERT(ckt_static_names_count <= 512);
}

static void blocks_are_sound(void)
{
	for (unsigned i = 0; i < ckt_static_blocks_count; i++) {
		const struct ckt_static_block *block = &ckt_static_blocks[i];
		uint32_t offset = 0;
		bool seen[1024] = {0}, anchor_is_entry = false;

		CU_ASSERT(block->anchor < ckt_static_anchors_count);
		CU_ASSERT(block->major == 12 || block->major == 13);
		CU_ASSERT(block->count > 0 && block->count < 512);
		CU_ASSERT(block->slots[0].gap == 1);
		for (unsigned j = 0; j < block->count; j++) {
			CU_ASSERT_FATAL(block->slots[j].name < ckt_static_names_count);
			CU_ASSERT(block->slots[j].gap > 0 && !seen[block->slots[j].name]);
			seen[block->slots[j].name] = true;
			offset += (j ? block->slots[j].gap : 0) * CKT_STATIC_SLOT;
			/* Only an entry whose 16 bytes no linker changes can be an anchor. */
			anchor_is_entry |= offset == block->anchor_offset &&
				ckt_static_fixed[block->slots[j].name] == CKT_STATIC_SLOT;
		}
		CU_ASSERT(anchor_is_entry);
		for (unsigned j = 0; j < i; j++)
			CU_ASSERT(block->hash != ckt_static_blocks[j].hash || block->is_head);
	}
}

static void every_release_has_both_runs(void)
{
	for (unsigned i = 0; i < ckt_static_blocks_count; i++)
		for (const char *release = ckt_static_blocks[i].releases; *release;
			release += strspn(release, " ")) {
			char name[32] = "";
			unsigned found = 0;
			size_t length = strcspn(release, " ");

			memcpy(name, release, length);
			for (unsigned j = 0; j < ckt_static_blocks_count; j++) {
				const char *at = strstr(ckt_static_blocks[j].releases, name);
				found += at && (at[length] == ' ' || !at[length]);
			}
			CU_ASSERT_EQUAL(found, 2);
			release += length;
		}
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("static table", NULL, NULL);
	CU_add_test(suite, "names", names_are_distinct);
	CU_add_test(suite, "blocks", blocks_are_sound);
	CU_add_test(suite, "releases", every_release_has_both_runs);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
