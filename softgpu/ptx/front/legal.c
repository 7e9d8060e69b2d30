/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of accepted combinations of modifiers and types, by PTX ISA 9.0 and as ptxas accepts
 * them.
 *
 * A rule names opcodes, and then slots in the order of the document.  A slot has alternatives
 * separated by |, or the name of a set; a trailing ? makes the slot optional.  Every modifier of an
 * instruction must fill a slot of one rule.  As for ptxas, the order of modifiers does not matter,
 * except that several types are told apart by their order.  A rule that begins with @N needs a
 * .target of at least N.
 *
 * Every spelling that the rules allow up to sm_90 has vectors in tests/truth, or is in
 * elsewhere.list there with the reason: tests/truth/rules.py reads this table.  Spellings from @100
 * on have no vectors, because no GPU that supports them was available.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/legal.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"

static const struct {
	const char *name, *words;
} sets[] = {
	{"INT", "u16|s16|u32|s32|u64|s64"},
	{"BITS", "b16|b32|b64"},
	{"MEM", "b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64"},
	{"RND", "rn|rz|rm|rp"},
	{"JOIN", "and|or|xor"},
	{"ORDERED", "eq|ne|lt|le|gt|ge"},
	{"UNSIGNED", "eq|ne|lt|le|gt|ge|lo|ls|hi|hs"},
	{"FLOATING", "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"},
	{"SCOPE", "cta|cluster|gpu|sys"},
	{"SHARED", "shared|shared::cta|shared::cluster"},
	{"SPACE", "global|shared|shared::cta|shared::cluster"},
	{"HALF", "f16|f16x2|bf16|bf16x2"},
	{"EVICT",
		"L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
	{"POLICY", "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"},
	{"PREFETCH", "L2::64B|L2::128B|L2::256B"},
	{"WORD", "u32|s32|u64|s64"},
	{"WHOLE", "rni|rzi|rmi|rpi"},
	{"WMMA", "m16n16k16|m8n32k16|m32n8k16"},
	{"LAYOUT", "row|col"},
	{"PLACE", "1d|2d|3d|a1d|a2d|cube|acube"},
	{"SURFACE", "1d|2d|3d|a1d|a2d"},
};

static const char *const rules[] = {
	/* integers */
	"add INT|u16x2|s16x2",
	"sub INT",
	"add,sub sat s32",
	"add,sub cc WORD",
	"addc,subc cc? WORD",
	"mul,mad lo|hi INT",
	"mul,mad wide u16|s16|u32|s32",
	"mad hi sat s32",
	"mad lo|hi cc WORD",
	"madc lo|hi cc? WORD",
	"mul24,mad24 lo|hi u32|s32",
	"mad24 hi sat s32",
	"sad,div,rem INT",
	"abs,neg s16|s32|s64",
	"min,max INT|u16x2|s16x2",
	"min,max relu s32|s16x2",
	"dp4a u32|s32 u32|s32",
	"dp2a lo|hi u32|s32 u32|s32",
	/* bits */
	"and,or,xor,not BITS|pred",
	"cnot BITS",
	"shl BITS",
	"shr BITS|INT",
	"shf l|r wrap|clamp b32",
	"popc,clz,brev,bfi b32|b64",
	"bfind shiftamt? WORD",
	"bfe WORD",
	"bmsk wrap|clamp b32",
	"szext wrap|clamp u32|s32",
	"fns b32",
	"prmt b32 f4e|b4e|rc8|ecl|ecr|rc16?",
	"lop3 and|or? b32",
	"mov BITS|INT|f32|f64|pred|b128",
	"selp BITS|INT|f32|f64",
	"slct BITS|INT|f32|f64 s32",
	"slct ftz? BITS|INT|f32|f64 f32",
	/* floats */
	"add,sub,mul RND? ftz? sat? f32",
	"add,sub,mul RND? f64",
	"add,sub,mul rn? ftz? sat? f16|f16x2",
	"add,sub,mul rn? bf16|bf16x2",
	"fma,mad RND ftz? sat? f32",
	"fma,mad RND f64",
	"fma rn ftz? sat|relu? f16|f16x2",
	"fma rn relu? bf16",
	"fma RND relu? bf16x2",
	"fma rn oob sat|relu? f16|f16x2",
	"fma rn oob relu? bf16",
	"fma RND oob relu? bf16x2",
	"@100 add,sub,mul RND? ftz? f32x2",
	"@100 fma RND ftz? f32x2",
	"div approx|full ftz? f32",
	"div,rcp,sqrt RND ftz? f32",
	"div,rcp,sqrt RND f64",
	"rcp,sqrt,rsqrt,sin,cos,lg2,ex2 approx ftz? f32",
	"rcp approx|rn|rz|rm|rp ftz f64",
	"rsqrt approx ftz? f64",
	"ex2 approx f16|f16x2",
	"ex2 approx ftz bf16|bf16x2",
	"tanh approx f32|HALF",
	"min,max ftz? NaN? f32|f16|f16x2",
	"min,max ftz? NaN? xorsign abs f32|f16|f16x2",
	"@100 min,max ftz? NaN? abs f32",
	"min,max f64",
	"min,max NaN? bf16|bf16x2",
	"min,max NaN? xorsign abs bf16|bf16x2",
	"abs,neg ftz? f32|f16|f16x2",
	"abs,neg f64|bf16|bf16x2",
	"copysign f32|f64",
	"testp finite|infinite|number|notanumber|normal|subnormal f32|f64",
	/* comparisons */
	"setp eq|ne JOIN? BITS",
	"setp UNSIGNED JOIN? u16|u32|u64",
	"setp ORDERED JOIN? s16|s32|s64",
	"setp FLOATING JOIN? ftz? f32|f16|f16x2",
	"setp FLOATING JOIN? f64|bf16|bf16x2",
	"set eq|ne JOIN? u32|s32|f32 BITS",
	"set UNSIGNED JOIN? u32|s32|f32 u16|u32|u64",
	"set ORDERED JOIN? u32|s32|f32 s16|s32|s64",
	"set FLOATING JOIN? ftz? u32|s32|f32 f32",
	"set FLOATING JOIN? u32|s32|f32 f64",
	"set FLOATING JOIN? ftz? u32|s32|u16|s16|f16 f16",
	"set FLOATING JOIN? ftz? u32|s32|f16x2 f16x2",
	"set FLOATING JOIN? u32|s32|u16|s16|bf16 bf16",
	"set FLOATING JOIN? u32|s32|bf16x2 bf16x2",
	/* conversions */
	"cvt u8|s8|INT u8|s8|INT",
	"cvt sat u8 s8|INT",
	"cvt sat s8 u8|INT",
	"cvt sat u16 s8|s16|u32|s32|u64|s64",
	"cvt sat s16 u16|u32|s32|u64|s64",
	"cvt sat u32 s8|s16|s32|u64|s64",
	"cvt sat s32 u32|u64|s64",
	"cvt sat u64 s8|s16|s32|s64",
	"cvt sat s64 u64",
	"cvt WHOLE sat? u8|s8|INT f16|f64",
	"cvt WHOLE ftz? sat? u8|s8|INT f32",
	"cvt WHOLE u8|s8|INT bf16",
	"cvt RND sat? f16|f64 u8|s8|INT",
	"cvt RND ftz? sat? f32 u8|s8|INT",
	"cvt RND bf16 INT",
	"cvt WHOLE? sat? f16 f16",
	"cvt WHOLE? sat? f64 f64",
	"cvt WHOLE? ftz? sat? f32 f32",
	"cvt WHOLE? bf16 bf16",
	"cvt RND ftz? sat? f16 f32",
	"cvt RND sat? f16 f64",
	"cvt RND ftz? bf16 f32",
	"cvt RND bf16 f64",
	"cvt RND ftz? sat? f32 f64",
	"cvt rn|rz relu? satfinite? f16|bf16 f32",
	"cvt ftz? sat? f32 f16",
	"cvt ftz? sat? f64 f32",
	"cvt sat? f64 f16",
	"cvt RND? f64 bf16",
	"cvt RND? ftz? f32 bf16",
	"cvt RND? f16 bf16",
	"cvt RND? bf16 f16",
	"cvt rn|rz relu? tf32 f32",
	"cvt rna satfinite? tf32 f32",
	"cvt rn|rz relu? satfinite? f16x2|bf16x2 f32",
	"cvt rn satfinite relu? e4m3x2|e5m2x2 f32|f16x2",
	"cvt rn relu? f16x2 e4m3x2|e5m2x2",
	"cvt pack sat u16|s16 s32",
	"cvt pack sat u8|s8|u4|s4|u2|s2 s32 b32",
	"@100 cvt rp|rz satfinite? ue8m0x2 f32|bf16x2",
	"@100 cvt rn bf16x2 ue8m0x2",
	/* memory */
	"ld weak? global|shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func? ca|cg|cs|lu|cv? v2|v4? MEM|b128",
	"ld weak? global? EVICT? L2::cache_hint? PREFETCH? v2|v4? MEM|b128",
	"ld global nc EVICT? L2::cache_hint? PREFETCH? v2|v4? MEM|b128",
	"ldu global? v2|v4? MEM|b128",
	"ld volatile global|SHARED? v2|v4? MEM|b128",
	"ld relaxed|acquire SCOPE global|SHARED? v2|v4? MEM|b128",
	"ld mmio relaxed sys global? MEM|b128",
	"st weak? global|SHARED|local|param|param::func? wb|cg|cs|wt? v2|v4? MEM|b128",
	"st weak? global? EVICT? L2::cache_hint? v2|v4? MEM|b128",
	"st volatile global|SHARED? v2|v4? MEM|b128",
	"st relaxed|release SCOPE global|SHARED? v2|v4? MEM|b128",
	"st mmio relaxed sys global? MEM|b128",
	"@100 ld weak? global? nc? EVICT? v8 b32|u32|s32|f32",
	"@100 ld weak? global? nc? EVICT? v4 b64|u64|s64|f64",
	"@100 st weak? global? EVICT? v8 b32|u32|s32|f32",
	"@100 st weak? global? EVICT? v4 b64|u64|s64|f64",
	"prefetch global|local? L1|L2",
	"prefetch global L2::evict_last|L2::evict_normal",
	"prefetchu L1",
	"applypriority global L2::evict_normal",
	"@80 createpolicy fractional POLICY L2::evict_first|L2::evict_unchanged? b64",
	"@80 createpolicy range global? POLICY L2::evict_first|L2::evict_unchanged? b64",
	"@80 createpolicy cvt L2 b64",
	"discard global? L2",
	"cvta global|SHARED|local|const|param|param::entry u64",
	"cvta to global|SHARED|local|const|param|param::entry u64",
	"istypep texref|samplerref|surfref",
	"isspacep global|SHARED|local|const|param|param::entry",
	"alloca,stacksave,stackrestore u64",
	/* atomics */
	"atom relaxed|acquire|release|acq_rel? SCOPE? SPACE? L2::cache_hint? add u32|s32|u64|f32|f64",
	"atom relaxed|acquire|release|acq_rel? SCOPE? SPACE? min|max WORD",
	"atom relaxed|acquire|release|acq_rel? SCOPE? SPACE? inc|dec u32",
	"atom relaxed|acquire|release|acq_rel? SCOPE? SPACE? and|or|xor b32|b64",
	"atom relaxed|acquire|release|acq_rel? SCOPE? SPACE? exch b32|b64|b128",
	"atom relaxed|acquire|release|acq_rel? SCOPE? SPACE? cas BITS|b128",
	"atom relaxed|acquire|release|acq_rel? SCOPE? SPACE? add noftz HALF",
	"atom relaxed|acquire|release|acq_rel? SCOPE? global? add v2|v4 f32",
	"atom relaxed|acquire|release|acq_rel? SCOPE? global? add|min|max noftz v2|v4|v8 f16|bf16",
	"atom relaxed|acquire|release|acq_rel? SCOPE? global? add|min|max noftz v2|v4 f16x2|bf16x2",
	"red relaxed|release? SCOPE? SPACE? L2::cache_hint? add u32|s32|u64|f32|f64",
	"red relaxed|release? SCOPE? SPACE? min|max WORD",
	"red relaxed|release? SCOPE? SPACE? inc|dec u32",
	"red relaxed|release? SCOPE? SPACE? and|or|xor b32|b64",
	"red relaxed|release? SCOPE? SPACE? add noftz HALF",
	"red relaxed|release? SCOPE? global? add v2|v4 f32",
	"red relaxed|release? SCOPE? global? add|min|max noftz v2|v4|v8 f16|bf16",
	"red relaxed|release? SCOPE? global? add|min|max noftz v2|v4 f16x2|bf16x2",
	/* asynchronous copies */
	"cp async ca|cg shared|shared::cta global L2::cache_hint? PREFETCH?",
	"cp async commit_group",
	"cp async wait_group",
	"cp async wait_all",
	"cp async mbarrier arrive noinc? shared|shared::cta? b64",
	"cp async bulk shared::cluster|shared::cta global mbarrier::complete_tx::bytes L2::cache_hint?",
	"cp async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint?",
	"cp async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes",
	"cp async bulk global shared::cta bulk_group L2::cache_hint?",
	"cp async bulk commit_group",
	"cp async bulk wait_group read?",
	"cp async bulk prefetch L2 global L2::cache_hint?",
	"cp reduce async bulk global shared::cta bulk_group L2::cache_hint? add u32|s32|u64|f32|f64",
	"cp reduce async bulk global shared::cta bulk_group L2::cache_hint? add noftz f16|bf16",
	"cp reduce async bulk global shared::cta bulk_group L2::cache_hint? min|max WORD|f16|bf16",
	"cp reduce async bulk global shared::cta bulk_group L2::cache_hint? inc|dec u32",
	"cp reduce async bulk global shared::cta bulk_group L2::cache_hint? and|or|xor b32|b64",
	"cp reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes add u32|s32|u64",
	"cp reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes min|max u32|s32",
	"cp reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes inc|dec u32",
	"cp reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes and|or|xor b32",
	/* barriers and order */
	"bar cta? sync|arrive",
	"bar cta? red popc u32",
	"bar cta? red and|or pred",
	"bar warp sync",
	"barrier cta? sync|arrive aligned?",
	"barrier cta? red popc aligned? u32",
	"barrier cta? red and|or aligned? pred",
	"barrier cluster arrive release|relaxed? aligned?",
	"barrier cluster wait acquire? aligned?",
	"membar cta|gl|sys",
	"membar proxy alias",
	"fence sc|acq_rel|acquire|release? SCOPE",
	"fence proxy alias",
	"fence proxy async",
	"fence proxy async global|shared::cta|shared::cluster",
	"fence mbarrier_init release cluster",
	"fence acquire sync_restrict::shared::cluster cluster",
	"fence release sync_restrict::shared::cta cluster",
	"fence proxy async::generic acquire sync_restrict::shared::cluster cluster",
	"fence proxy async::generic release sync_restrict::shared::cta cluster",
	"mbarrier init|inval shared|shared::cta? b64",
	"mbarrier arrive|arrive_drop release|relaxed? cta|cluster? SHARED? b64",
	"mbarrier arrive|arrive_drop expect_tx release|relaxed? cta|cluster? SHARED? b64",
	"mbarrier arrive|arrive_drop noComplete release? cta? shared|shared::cta? b64",
	"mbarrier expect_tx|complete_tx relaxed? cta|cluster? SHARED? b64",
	"mbarrier test_wait|try_wait parity? acquire|relaxed? cta|cluster? shared|shared::cta? b64",
	"mbarrier pending_count b64",
	/* warps and clusters */
	"shfl sync up|down|bfly|idx b32",
	"vote sync all|any|uni pred",
	"vote sync ballot b32",
	"match any|all sync b32|b64",
	"redux sync add|min|max u32|s32",
	"redux sync and|or|xor b32",
	"elect sync",
	"activemask b32",
	"mapa,getctarank shared::cluster u32|u64",
	"mapa,getctarank u64",
	/* matrices */
	"mma sync aligned m16n8k8|m16n8k16 row col f16 f16 f16 f16",
	"mma sync aligned m16n8k8|m16n8k16 row col f32 f16 f16 f32",
	"mma sync aligned m16n8k8|m16n8k16 row col f32 bf16 bf16 f32",
	"mma sync aligned m16n8k4|m16n8k8 row col f32 tf32 tf32 f32",
	"mma sync aligned m16n8k16|m16n8k32 row col f32 e4m3|e5m2 e4m3|e5m2 f32",
	"mma sync aligned m16n8k16|m16n8k32 row col f16 e4m3|e5m2 e4m3|e5m2 f16",
	"mma sync aligned m8n8k4|m16n8k4|m16n8k8|m16n8k16 row col RND? f64 f64 f64 f64",
	"mma sync aligned m8n8k16|m16n8k16|m16n8k32 row col satfinite? s32 s8|u8 s8|u8 s32",
	"mma sync aligned m8n8k32|m16n8k32|m16n8k64 row col satfinite? s32 s4|u4 s4|u4 s32",
	"mma sync aligned m8n8k128|m16n8k128|m16n8k256 row col s32 b1 b1 s32 xor|and popc",
	"wmma mma sync aligned LAYOUT LAYOUT WMMA f16|f32 f16|f32",
	"wmma mma sync aligned LAYOUT LAYOUT WMMA f32 bf16 bf16 f32",
	"wmma mma sync aligned LAYOUT LAYOUT WMMA satfinite? s32 s8 s8 s32",
	"wmma mma sync aligned LAYOUT LAYOUT WMMA satfinite? s32 u8 u8 s32",
	"wmma mma sync aligned LAYOUT LAYOUT m16n16k8 f32 tf32 tf32 f32",
	"wmma mma sync aligned LAYOUT LAYOUT m8n8k4 RND? f64 f64 f64 f64",
	"wmma mma sync aligned row col m8n8k32 satfinite? s32 s4 s4 s32",
	"wmma mma sync aligned row col m8n8k32 satfinite? s32 u4 u4 s32",
	"wmma mma xor|and popc sync aligned row col m8n8k128 s32 b1 b1 s32",
	"wmma load a|b sync aligned LAYOUT WMMA global|shared|shared::cta? f16|bf16|s8|u8",
	"wmma load c sync aligned LAYOUT WMMA global|shared|shared::cta? f16|f32|s32",
	"wmma store d sync aligned LAYOUT WMMA global|shared|shared::cta? f16|f32|s32",
	"wmma load a|b sync aligned LAYOUT m16n16k8 global|shared|shared::cta? tf32",
	"wmma load c sync aligned LAYOUT m16n16k8 global|shared|shared::cta? f32",
	"wmma store d sync aligned LAYOUT m16n16k8 global|shared|shared::cta? f32",
	"wmma load a|b|c sync aligned LAYOUT m8n8k4 global|shared|shared::cta? f64",
	"wmma store d sync aligned LAYOUT m8n8k4 global|shared|shared::cta? f64",
	"wmma load a sync aligned row m8n8k32 global|shared|shared::cta? s4|u4",
	"wmma load b sync aligned col m8n8k32 global|shared|shared::cta? s4|u4",
	"wmma load a sync aligned row m8n8k128 global|shared|shared::cta? b1",
	"wmma load b sync aligned col m8n8k128 global|shared|shared::cta? b1",
	"wmma load c sync aligned LAYOUT m8n8k32|m8n8k128 global|shared|shared::cta? s32",
	"wmma store d sync aligned LAYOUT m8n8k32|m8n8k128 global|shared|shared::cta? s32",
	"ldmatrix,stmatrix sync aligned m8n8 x1|x2|x4 trans? shared|shared::cta? b16",
	"movmatrix sync aligned m8n8 trans b16",
	/* video */
	"vadd2,vadd4,vsub2,vsub4,vavrg2,vavrg4,vabsdiff2,vabsdiff4,vmin2,vmin4,vmax2,vmax4 u32|s32 u32|s32 u32|s32 sat|add?",
	"vset2,vset4 u32|s32 u32|s32 ORDERED add?",
	"vadd,vsub,vabsdiff,vmin,vmax u32|s32 u32|s32 u32|s32 sat? add|min|max?",
	"vshl,vshr u32|s32 u32|s32 u32 clamp|wrap sat? add|min|max?",
	"vset u32|s32 u32|s32 ORDERED add|min|max?",
	"vmad u32|s32 u32|s32 u32|s32 po? sat? shr7|shr15?",
	/* textures and surfaces */
	"tex base|level|grad? 1d|2d|3d|a1d|a2d v4 u32|s32|f32 s32|f32",
	"tex base|level|grad? cube|acube v4 u32|s32|f32 f32",
	"tld4 r|g|b|a 2d v4 u32|s32|f32 f32",
	"txq width|height|depth b32",
	"suq width|height|depth b32",
	"suld b SURFACE ca|cg|cs|cv? v2|v4? b8|b16|b32|b64 trap|clamp|zero",
	"sust b SURFACE wb|cg|cs|wt? v2|v4? b8|b16|b32|b64 trap|clamp|zero",
	/* control */
	"bra,call,ret uni?",
	"brx idx uni?",
	"exit,trap,brkpt",
	"pmevent mask?",
	"nanosleep u32",
	"griddepcontrol launch_dependents|wait",
	"setmaxnreg inc|dec sync aligned u32",
};

/* ---- Matching */

/* maps an opcode to its first rule; next_rule links the others */
static struct ptx_map first_rules;
static int next_rule[sizeof rules / sizeof *rules * 16], rule_of[sizeof rules / sizeof *rules * 16];

/* Only the opcodes of the rules are indexed: a rule has few short words. */
bool ckt_ptx_index_rules(void)
{
	intptr_t n = 1;
	for (size_t r = sizeof rules / sizeof *rules; r-- > 0;) {
		const char *p = *rules[r] == '@' ? strchr(rules[r], ' ') + 1 : rules[r];
		for (size_t size; *p && *p != ' '; p += size + (p[size] == ',')) {
			size = strcspn(p, ", ");
			next_rule[n] = (int)(intptr_t)ckt_ptx_map_get(&first_rules, p, size);
			rule_of[n] = (int)r;
			if (ckt_ptx_map_put(&first_rules, p, size, (void *)n++)) {
				ckt_ptx_map_free(&first_rules);
				return false;
			}
		}
	}
	return true;
}

static const char *set_words(const char *name, size_t size)
{
	for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
		if (strlen(sets[k].name) == size && !memcmp(sets[k].name, name, size))
			return sets[k].words;
	return NULL;
}

/* Whether one of a slot's alternatives is the word; the name of a set stands for its words. */
static bool slot_has(const char *slot, size_t size, const char *word)
{
	size_t length = strlen(word);
	for (const char *end = slot + size; slot < end;) {
		size_t one = 0;
		while (slot + one < end && slot[one] != '|')
			one++;
		const char *words = *slot >= 'A' && *slot <= 'Z' ? set_words(slot, one) : NULL;
		if (words ? slot_has(words, strlen(words), word)
			  : one == length && !memcmp(slot, word, one))
			return true;
		slot += one + 1;
	}
	return false;
}

/* Types must be in order; other modifiers may be anywhere. */
static bool is_type(const char *word)
{
	static const char *const more[] = {"s2", "u2", "s4", "u4", "b1", "e4m3", "e5m2", NULL};
	for (int k = 0; more[k]; k++)
		if (!strcmp(word, more[k]))
			return true;
	return ckt_ptx_type_from(word, strlen(word)) != T_NONE;
}

static bool fill_slot(const struct ptx_raw *raw, const char *slot, size_t size, bool *used)
{
	bool type_seen = false;
	for (unsigned k = 0; k < raw->n_mods; k++) {
		bool type = is_type(raw->mods[k]);
		if (used[k] || (type && type_seen))
			continue;
		if (slot_has(slot, size, raw->mods[k]))
			return used[k] = true;
		type_seen |= type;
	}
	return false;
}

static bool rule_matches(const struct ptx_raw *raw, const char *rule, unsigned target)
{
	bool used[PTX_MAX_MODS] = {false};
	if (*rule == '@' && target < (unsigned)strtoul(rule + 1, NULL, 10))
		return false;
	const char *p = strchr(*rule == '@' ? strchr(rule, ' ') + 1 : rule, ' ');
	while (p) {
		const char *slot = p + 1;
		size_t size = strcspn(slot, " ");
		bool optional = slot[size - 1] == '?';
		p = slot[size] ? slot + size : NULL;
		if (!fill_slot(raw, slot, size - optional, used) && !optional)
			return false;
	}
	for (unsigned k = 0; k < raw->n_mods; k++)
		if (!used[k])
			return false;
	return true;
}

bool ckt_ptx_legal(const struct ptx_raw *raw, unsigned target)
{
	int first = (int)(intptr_t)ckt_ptx_map_get(&first_rules, raw->op, strlen(raw->op));
	for (int n = first; n; n = next_rule[n])
		if (rule_matches(raw, rules[rule_of[n]], target))
			return true;
	return !first;
}

const char *ckt_ptx_stranger(const struct ptx_raw *raw)
{
	for (unsigned k = 0; k < raw->n_mods; k++) {
		bool known = false;
		for (int n = (int)(intptr_t)ckt_ptx_map_get(&first_rules, raw->op, strlen(raw->op));
			n && !known; n = next_rule[n])
			for (const char *p = strchr(rules[rule_of[n]], ' '); p && !known;
				p = strchr(p + 1, ' ')) {
				size_t size = strcspn(p + 1, " ");
				known = slot_has(
					p + 1, p[size] == '?' ? size - 1 : size, raw->mods[k]);
			}
		if (!known)
			return raw->mods[k];
	}
	return NULL;
}
