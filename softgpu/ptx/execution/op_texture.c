/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures and surfaces: tex, tld4, txq, suld, sust, suq.  The driver supplies the descriptors of
 * their 64-bit handles.
 *
 * Weights of linear filtering have 8 bits, as CUDA documents.  Sums are exact and rounded as on an
 * H200, so only the last bits in three dimensions differ from it.  Filtering of cubemaps stays
 * within one face.  Only unified handles are supported: .texref variables and separate samplers are
 * refused.
 */
#include <math.h>
#include <string.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

#define HANDLER(name) static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)

enum { TEX_PLAIN, TEX_LEVEL, TEX_GRAD, TEX_GATHER };

struct texture_insn {
	enum ckt_ptx_texture_shape shape;
	int kind, component; /* component: of a gather */
	bool integer_coordinates;
	enum ptx_type type; /* of the result, or of the data that a surface moves */
	int32_t handle;
	int32_t coordinates[4], x[3], y[3], level; /* x, y: gradients */
	int32_t values[4];
	unsigned n_coordinates, n_values, bytes;
	bool clamp, zero, store; /* surfaces: the action outside; neither: a fault */
};

/* n: number of coordinates besides the layer. */
static const struct {
	const char *name;
	uint8_t n;
	bool layered;
} shapes[] = {[CKT_PTX_TEXTURE_1D] = {"1d", 1, false},
	[CKT_PTX_TEXTURE_2D] = {"2d", 2, false},
	[CKT_PTX_TEXTURE_3D] = {"3d", 3, false},
	[CKT_PTX_TEXTURE_1D_LAYERED] = {"a1d", 1, true},
	[CKT_PTX_TEXTURE_2D_LAYERED] = {"a2d", 2, true},
	[CKT_PTX_TEXTURE_CUBEMAP] = {"cube", 3, false},
	[CKT_PTX_TEXTURE_CUBEMAP_LAYERED] = {"acube", 3, true}};

/* ---- Reading texels */

struct texel {
	double f[4];
	uint32_t bits[4];
};

static double from_srgb(double v)
{
	return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static struct texel read_texel(const struct ckt_ptx_texture *t, const struct ckt_ptx_image *image,
	int64_t x, int64_t y, int64_t z)
{
	struct texel r = {0}; /* missing channels are zero, including the fourth */
	const uint8_t *at = image->memory + (uint64_t)z * image->slice_bytes +
		(uint64_t)y * image->row_bytes + (uint64_t)x * t->channels * t->channel_bytes;
	for (unsigned k = 0; k < t->channels && k < 4; k++, at += t->channel_bytes) {
		uint32_t bits = 0;
		memcpy(&bits, at, t->channel_bytes);
		if (t->channel == CKT_PTX_CHANNEL_FLOAT) {
			r.f[k] = t->channel_bytes == 2 ? ckt_ptx_half_to_float((uint16_t)bits)
						       : ptx_float(bits);
			r.bits[k] = ptx_float_bits((float)r.f[k]);
			continue;
		}
		unsigned width = t->channel_bytes * 8u;
		bool is_signed = t->channel == CKT_PTX_CHANNEL_SIGNED;
		int64_t v = is_signed ? (int64_t)((uint64_t)bits << (64 - width)) >> (64 - width)
				      : (int64_t)bits;
		r.bits[k] = (uint32_t)v;
		r.f[k] = (double)v;
		if (t->normalized_read && width < 32) {
			r.f[k] = (double)v / (double)((1u << (width - is_signed)) - 1);
			if (r.f[k] < -1)
				r.f[k] = -1;
			if (t->srgb && k < 3 && width == 8 && !is_signed)
				r.f[k] = from_srgb(r.f[k]);
			r.bits[k] = ptx_float_bits((float)r.f[k]);
		}
	}
	return r;
}

/* Moves an outside index inside; false: use the border's colour. */
static bool inside(enum ckt_ptx_address_mode mode, bool normalized, int64_t *index, uint32_t size)
{
	int64_t n = size, v = *index;
	if (v >= 0 && v < n)
		return true;
	if (mode == CKT_PTX_ADDRESS_BORDER || !n)
		return false;
	/* wrap and mirror are for normalized coordinates only */
	if (!normalized || mode == CKT_PTX_ADDRESS_CLAMP) {
		*index = v < 0 ? 0 : n - 1;
	} else if (mode == CKT_PTX_ADDRESS_WRAP) {
		*index = (v % n + n) % n;
	} else {
		v = (v % (2 * n) + 2 * n) % (2 * n);
		*index = v < n ? v : 2 * n - 1 - v;
	}
	return true;
}

/*
 * False if the place is outside the image, for example because a kernel uses a texture of another
 * shape, or if the memory was freed.  The texel is then zero.
 */
static bool readable(const struct ckt_ptx_texture *t, const struct ckt_ptx_image *image, int64_t x,
	int64_t y, int64_t z)
{
	if (z < 0 || z >= image->depth || y < 0 || y >= image->height || x < 0 || x >= image->width)
		return false;
	uint64_t at = (uint64_t)(uintptr_t)image->memory + (uint64_t)y * image->row_bytes +
		(uint64_t)x * t->channels * t->channel_bytes;
	return !t->checked ||
		ckt_soft_memmap_ok(
			at, (uint32_t)t->channels * t->channel_bytes, CKT_SOFT_PAGE_READ);
}

/* The border's colour has the precision of the texels. */
static struct texel border_of(const struct ckt_ptx_texture *t)
{
	struct texel border = {0};
	bool is_signed = t->channel == CKT_PTX_CHANNEL_SIGNED;
	double most = (double)((1ull << (t->channel_bytes * 8u - is_signed)) - 1);
	for (unsigned c = 0; c < t->channels; c++) {
		border.f[c] = t->border[c];
		if (t->normalized_read && t->channel != CKT_PTX_CHANNEL_FLOAT)
			border.f[c] = rint(border.f[c] * most) / most;
		border.bits[c] = ptx_float_bits((float)border.f[c]);
	}
	return border;
}

struct place {
	const struct ckt_ptx_texture *t;
	const struct ckt_ptx_image *image;
	unsigned n;
	int64_t slice;
}; /* slice: -1 for 3D */

static struct texel fetch(const struct place *at, const int64_t *index)
{
	int64_t i[3] = {index[0], at->n > 1 ? index[1] : 0, at->n > 2 ? index[2] : 0};
	uint32_t size[3] = {at->image->width, at->image->height, at->image->depth};
	for (unsigned k = 0; k < at->n; k++) {
		if (inside(at->t->address[k], at->t->normalized_coordinates, &i[k], size[k]))
			continue;
		return border_of(at->t);
	}
	int64_t z = at->n > 2 ? i[2] : at->slice;
	return readable(at->t, at->image, i[0], i[1], z)
		? read_texel(at->t, at->image, i[0], i[1], z)
		: (struct texel){0};
}

/* Rounds a filtered value as an H200 does: to nearest, and from the middle away from zero. */
static uint32_t filtered_bits(double v)
{
	float f = (float)v;
	if (isfinite(f) && (double)f != v) {
		float other = nextafterf(f, v > (double)f ? INFINITY : -INFINITY);
		if (fabs((double)other - v) == fabs((double)f - v) && fabsf(other) > fabsf(f))
			f = other;
	}
	return ptx_float_bits(f);
}

static struct texel sample(const struct place *at, const double *coordinates)
{
	const struct ckt_ptx_texture *t = at->t;
	uint32_t size[3] = {at->image->width, at->image->height, at->image->depth};
	int64_t low[3] = {0};
	double weight[3] = {0};
	bool linear = t->filter == CKT_PTX_FILTER_LINEAR &&
		(t->channel == CKT_PTX_CHANNEL_FLOAT || t->normalized_read);
	for (unsigned k = 0; k < at->n; k++) {
		double v = coordinates[k] * (t->normalized_coordinates ? size[k] : 1) -
			(linear ? 0.5 : 0),
		       whole = floor(v);
		low[k] = whole > -0x1p40 && whole < 0x1p40 ? (int64_t)whole
			: whole > 0                        ? (int64_t)1 << 40
							   : -((int64_t)1 << 40);
		weight[k] = floor((v - whole) * 256 + 0.5) / 256;
	}
	if (!linear)
		return fetch(at, low);
	struct texel r = {0};
	for (unsigned corner = 0; corner < 1u << at->n; corner++) {
		int64_t index[3];
		double share = 1;
		for (unsigned k = 0; k < at->n; k++) {
			index[k] = low[k] + (corner >> k & 1);
			share *= corner >> k & 1 ? weight[k] : 1 - weight[k];
		}
		if (share == 0)
			continue;
		struct texel one = fetch(at, index);
		for (unsigned c = 0; c < 4; c++)
			r.f[c] += share * one.f[c];
	}
	if (t->shape == CKT_PTX_TEXTURE_1D && t->address[1] == CKT_PTX_ADDRESS_BORDER) {
		/*
		 * A 1D texture is a plane of one row, and its middle line is half a row from the
		 * border (observed on an H200).
		 */
		struct texel border = border_of(t);
		for (unsigned c = 0; c < 4; c++)
			r.f[c] = (r.f[c] + border.f[c]) / 2;
	}
	for (unsigned c = 0; c < 4; c++)
		r.bits[c] = filtered_bits(r.f[c]);
	return r;
}

/* ---- Instructions */

static double lane_float(const struct ptx_warp *w, int32_t operand, unsigned l)
{
	return operand == PTX_OPERAND_NONE ? 0
					   : ptx_float(((const uint32_t *)ptx_at(w, operand))[l]);
}

static int64_t lane_integer(const struct ptx_warp *w, int32_t operand, unsigned l)
{
	return operand == PTX_OPERAND_NONE ? 0 : ((const int32_t *)ptx_at(w, operand))[l];
}

/* Converts a direction to a face and coordinates from 0 to 1 in it. */
static unsigned cube_face(double *c)
{
	double x = c[0], y = c[1], z = c[2], ax = fabs(x), ay = fabs(y), az = fabs(z), major, s, t;
	unsigned face;
	if (az >= ax && az >= ay) {
		face = 4 + (z < 0);
		major = az, s = z < 0 ? -x : x, t = -y;
	} else if (ay >= ax) {
		face = 2 + (y < 0);
		major = ay, s = x, t = y < 0 ? -z : z;
	} else {
		face = x < 0;
		major = ax, s = x < 0 ? z : -z, t = -y;
	}
	c[0] = major == 0 ? 0.5 : (s / major + 1) / 2;
	c[1] = major == 0 ? 0.5 : (t / major + 1) / 2;
	return face;
}

/*
 * The change of a face's coordinates when d is added to a direction.  An H200 projects the sum onto
 * the same face, so this is not the derivative.
 */
static void cube_slopes(const double *c, const double *d, double *ret)
{
	unsigned axis = fabs(c[2]) >= fabs(c[0]) && fabs(c[2]) >= fabs(c[1]) ? 2
		: fabs(c[1]) >= fabs(c[0])                                   ? 1
									     : 0,
		 k = 0;
	double major = fabs(c[axis]), moved = major + (c[axis] < 0 ? -d[axis] : d[axis]);
	for (unsigned other = 0; other < 3; other++)
		if (other != axis)
			ret[k++] = major == 0 || moved == 0
				? 0
				: ((c[other] + d[other]) / moved - c[other] / major) / 2;
}

static double level_of(const struct ptx_warp *w, const struct texture_insn *x,
	const struct ckt_ptx_texture *t, unsigned n, const double *direction, unsigned l)
{
	double level = x->kind != TEX_LEVEL ? 0
		: x->integer_coordinates    ? (double)lane_integer(w, x->level, l)
					    : lane_float(w, x->level, l);
	if (x->kind == TEX_GRAD) {
		double size[3] = {t->levels[0].width, t->levels[0].height, t->levels[0].depth},
		       dx = 0, dy = 0, sx[3], sy[3];
		for (unsigned k = 0; k < 3; k++) {
			sx[k] = x->x[k] == PTX_OPERAND_NONE ? 0 : lane_float(w, x->x[k], l);
			sy[k] = x->y[k] == PTX_OPERAND_NONE ? 0 : lane_float(w, x->y[k], l);
		}
		if (direction) {
			double fx[2], fy[2];
			cube_slopes(direction, sx, fx);
			cube_slopes(direction, sy, fy);
			memcpy(sx, fx, sizeof fx);
			memcpy(sy, fy, sizeof fy);
		}
		for (unsigned k = 0; k < n; k++) {
			double scale = t->normalized_coordinates ? size[k] : 1, a = sx[k] * scale,
			       b = sy[k] * scale;
			dx += a * a;
			dy += b * b;
		}
		level = 0.5 * log2(dx > dy ? dx : dy);
	}
	level += t->mipmap_bias;
	level = level < t->mipmap_least  ? t->mipmap_least
		: level > t->mipmap_most ? t->mipmap_most
					 : level;
	return level > 0 ? (level < t->n_levels - 1 ? level : t->n_levels - 1) : 0;
}

static struct texel sample_level(
	const struct texture_insn *x, struct place at, unsigned level, const double *c)
{
	at.image = &at.t->levels[level];
	if (x->kind != TEX_GATHER)
		return sample(&at, c);
	/* The four texels that linear filtering would use, counterclockwise from the lower left. */
	static const uint8_t corners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
	struct texel r = {0};
	double size[2] = {at.image->width, at.image->height};
	for (unsigned k = 0; k < 4; k++) {
		int64_t index[3] = {0};
		for (unsigned d = 0; d < 2; d++)
			index[d] =
				(int64_t)floor(
					c[d] * (at.t->normalized_coordinates ? size[d] : 1) - 0.5) +
				corners[k][d];
		struct texel one = fetch(&at, index);
		r.f[k] = one.f[x->component];
		r.bits[k] = one.bits[x->component];
	}
	return r;
}

static struct texel run_texture(const struct ptx_warp *w, const struct texture_insn *x,
	const struct ckt_ptx_texture *t, unsigned l)
{
	struct place at = {.t = t, .image = &t->levels[0], .n = shapes[x->shape].n};
	bool layered = shapes[x->shape].layered,
	     cube = x->shape == CKT_PTX_TEXTURE_CUBEMAP ||
		x->shape == CKT_PTX_TEXTURE_CUBEMAP_LAYERED;
	double c[3] = {0};
	int64_t index[3] = {0}, wanted = 0, layer = 0, layers = at.image->depth / (cube ? 6 : 1);
	if (layered) {
		wanted = layer = lane_integer(w, x->coordinates[0], l);
		layer = layer < 0 ? 0 : layer >= layers ? layers - 1 : layer;
	}
	for (unsigned k = 0; k < at.n; k++) {
		int32_t operand = x->coordinates[k + layered];
		c[k] = x->integer_coordinates ? (double)lane_integer(w, operand, l)
					      : lane_float(w, operand, l);
		index[k] = x->integer_coordinates ? lane_integer(w, operand, l) : 0;
		if (c[k] != c[k])
			c[k] = 0;
	}
	double direction[3] = {c[0], c[1], c[2]};
	if (cube) {
		layer = layer * 6 + cube_face(c);
		at.n = 2;
	}
	at.slice = layer;
	if (x->integer_coordinates) {
		double level = level_of(w, x, t, at.n, cube ? direction : NULL, l);
		at.image = &t->levels[(unsigned)level];
		int64_t size[3] = {at.image->width, at.image->height, at.image->depth};
		/* in 1D without .level, an H200 reads integer coordinates of linear memory only */
		bool outside = t->shape == CKT_PTX_TEXTURE_1D && x->kind != TEX_LEVEL;
		for (unsigned k = 0; k < at.n; k++)
			outside |= index[k] < 0 || index[k] >= size[k];
		if (x->kind == TEX_LEVEL && t->shape != CKT_PTX_TEXTURE_LINEAR)
			return fetch(&at, index);
		if (outside || (layered && wanted >= layers))
			return (struct texel){0}; /* for any address mode */
		return read_texel(t, at.image, index[0], index[1], at.n > 2 ? index[2] : at.slice);
	}
	double level = level_of(w, x, t, at.n, cube ? direction : NULL, l);
	if (t->mipmap_filter == CKT_PTX_FILTER_POINT || t->n_levels == 1 || level == floor(level))
		return sample_level(x, at, (unsigned)floor(level + 0.5), c);
	struct texel low = sample_level(x, at, (unsigned)level, c),
		     high = sample_level(x, at, (unsigned)level + 1, c);
	double share = floor((level - floor(level)) * 256 + 0.5) / 256;
	for (unsigned k = 0; k < 4; k++) {
		low.f[k] += (high.f[k] - low.f[k]) * share;
		low.bits[k] = filtered_bits(low.f[k]);
	}
	return low;
}

static const struct ckt_ptx_texture *resolve(
	struct ptx_warp *w, const struct texture_insn *x, unsigned l, bool surface)
{
	const struct ckt_ptx_device *device = w->block->grid->launch->device;
	uint64_t handle = ((const uint64_t *)ptx_at(w, x->handle))[l];
	const struct ckt_ptx_texture *(*ask)(void *, uint64_t) =
		surface ? device->surface : device->texture;
	const struct ckt_ptx_texture *t = ask ? ask(device->data, handle) : NULL;
	if (!t)
		ckt_ptx_fault(w, l, CKT_PTX_FAULT_ILLEGAL_INSTRUCTION, "0x%llx is not a %s",
			(unsigned long long)handle, surface ? "surface" : "texture");
	return t;
}

HANDLER(exec_tex)
{
	const struct texture_insn *x = i->side;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		const struct ckt_ptx_texture *t = resolve(w, x, l, false);
		if (!t)
			return RUN_FAULT;
		struct texel r = run_texture(w, x, t, l);
		for (unsigned k = 0; k < 4; k++)
			if (x->values[k] != PTX_OPERAND_NONE)
				((uint32_t *)ptx_at(w, x->values[k]))[l] = r.bits[k];
	}
	return RUN_NEXT;
}

/* Coordinates of a surface are integers; x counts bytes. */
static uint8_t *surface_place(struct ptx_warp *w, const struct texture_insn *x,
	const struct ckt_ptx_texture *t, unsigned l, bool *ret_fault)
{
	const struct ckt_ptx_image *image = &t->levels[0];
	bool layered = shapes[x->shape].layered;
	unsigned n = shapes[x->shape].n, bytes = x->bytes * x->n_values;
	int64_t c[3] = {0}, row = (int64_t)image->width * t->channels * t->channel_bytes,
		most[3] = {row - bytes, (int64_t)image->height - 1, (int64_t)image->depth - 1};
	bool in = true;
	for (unsigned k = 0; k < n; k++) {
		c[k] = lane_integer(w, x->coordinates[k + layered], l);
		in &= c[k] >= 0 && c[k] <= most[k];
		if (x->clamp)
			c[k] = c[k] < 0 ? 0 : c[k] > most[k] ? most[k] : c[k];
	}
	if (layered) {
		c[2] = lane_integer(w, x->coordinates[0], l);
		in &= c[2] >= 0 && c[2] <= most[2];
	}
	*ret_fault = false;
	if ((!in && !x->clamp) || most[0] < 0 || c[2] < 0 || c[2] > most[2]) {
		*ret_fault = !x->zero;
		if (*ret_fault)
			ckt_ptx_fault(w, l, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
				"surface access at %lld, %lld, %lld is outside", (long long)c[0],
				(long long)c[1], (long long)c[2]);
		return NULL;
	}
	if (c[0] % bytes) {
		*ret_fault = true;
		ckt_ptx_fault(w, l, CKT_PTX_FAULT_MISALIGNED_ADDRESS,
			"surface access of %u bytes at byte %lld", bytes, (long long)c[0]);
		return NULL;
	}
	return image->memory + (uint64_t)c[2] * image->slice_bytes +
		(uint64_t)c[1] * image->row_bytes + c[0];
}

HANDLER(exec_surface)
{
	const struct texture_insn *x = i->side;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		const struct ckt_ptx_texture *t = resolve(w, x, l, true);
		bool fault = !t;
		uint8_t *at = t ? surface_place(w, x, t, l, &fault) : NULL;
		if (fault)
			return RUN_FAULT;
		for (unsigned k = 0; k < x->n_values; k++) {
			void *reg = ptx_at(w, x->values[k]);
			uint64_t v = x->bytes == 8 ? ((const uint64_t *)reg)[l]
						   : ((const uint32_t *)reg)[l];
			if (x->store && at)
				memcpy(at + k * x->bytes, &v, x->bytes);
			if (x->store)
				continue;
			v = 0;
			if (at)
				memcpy(&v, at + k * x->bytes, x->bytes);
			if (x->bytes == 8)
				((uint64_t *)reg)[l] = v;
			else
				((uint32_t *)reg)[l] = (uint32_t)v;
		}
	}
	return RUN_NEXT;
}

enum { Q_WIDTH, Q_HEIGHT, Q_DEPTH, Q_ARRAY, Q_LEVELS, Q_NORMALIZED };

HANDLER(exec_query)
{
	const struct texture_insn *x = i->side;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		const struct ckt_ptx_texture *t = resolve(w, x, l, x->store);
		if (!t)
			return RUN_FAULT;
		const struct ckt_ptx_image *image = &t->levels[0];
		uint32_t answers[] = {image->width, image->height, image->depth, image->depth,
			t->n_levels, t->normalized_coordinates};
		((uint32_t *)ptx_at(w, x->values[0]))[l] = answers[x->component];
	}
	return RUN_NEXT;
}

/* ---- Decoding */

static void take_shape(struct ptx_parser *p, struct texture_insn *x)
{
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		if (ckt_ptx_mod(p, shapes[k].name)) {
			x->shape = (enum ckt_ptx_texture_shape)k;
			return;
		}
	}
	ckt_ptx_bad(p, "unknown kind of texture");
}

/* [handle, {x, y, ...}] */
static void take_place(struct ptx_parser *p, struct texture_insn *x, const struct ptx_operand *o,
	bool with_coordinates)
{
	if (o->kind != OP_ADDRESS || o->n_elements != 1u + with_coordinates || o->value ||
		o->elements[0].kind == OP_SYMBOL)
		ckt_ptx_bad(p, "texture handle and coordinates expected");
	x->handle = ckt_ptx_source_of(p, &o->elements[0], T_B64);
	for (unsigned k = 0; k < 4; k++)
		x->coordinates[k] = PTX_OPERAND_NONE;
	if (!with_coordinates)
		return;
	const struct ptx_operand *c = &o->elements[1],
				 *list = c->kind == OP_VECTOR ? c->elements : c;
	unsigned n = c->kind == OP_VECTOR ? c->n_elements : 1,
		 need = shapes[x->shape].n + shapes[x->shape].layered;
	if (n < need || n > 4)
		ckt_ptx_bad(p, "wrong number of coordinates");
	for (unsigned k = 0; k < need; k++)
		x->coordinates[k] = ckt_ptx_source_of(p, &list[k],
			k == 0 && shapes[x->shape].layered ? T_B32
				: x->integer_coordinates   ? T_B32
							   : T_F32);
}

static void take_vector(struct ptx_parser *p, const struct ptx_operand *o, int32_t *to, unsigned n)
{
	const struct ptx_operand *list = o->kind == OP_VECTOR ? o->elements : o;
	for (unsigned k = 0; k < 3; k++)
		to[k] = k < n && k < (o->kind == OP_VECTOR ? o->n_elements : 1)
			? ckt_ptx_source_of(p, &list[k], T_F32)
			: PTX_OPERAND_NONE;
}

static void decode_tex(struct ptx_parser *p)
{
	static const char *const kinds[] = {"base", "level", "grad", NULL},
				 *const components[] = {"r", "g", "b", "a", NULL};
	struct texture_insn *x = ckt_ptx_new(p, sizeof *x);
	bool gather = !strcmp(p->raw.op, "tld4");
	int kind = ckt_ptx_mod_one(p, kinds);
	x->kind = gather ? TEX_GATHER : kind < 0 ? TEX_PLAIN : kind;
	if (gather && (x->component = ckt_ptx_mod_one(p, components)) < 0)
		ckt_ptx_bad(p, "component expected");
	take_shape(p, x);
	if (!ckt_ptx_mod(p, "v4"))
		ckt_ptx_bad(p, ".v4 expected");
	x->type = ckt_ptx_need_type(p);
	enum ptx_type by = ckt_ptx_need_type(p);
	if ((x->type != T_F32 && x->type != T_S32 && x->type != T_U32) ||
		(by != T_F32 && by != T_S32) ||
		(gather && (by != T_F32 || shapes[x->shape].n != 2)))
		ckt_ptx_bad(p, "unsuitable type");
	x->integer_coordinates = by == T_S32;
	unsigned n = 2u + (x->kind == TEX_LEVEL) + 2u * (x->kind == TEX_GRAD);
	ckt_ptx_need_operands(p, n, n);
	take_place(p, x, &p->raw.operands[1], true);
	x->level = PTX_OPERAND_NONE;
	if (x->kind == TEX_LEVEL)
		x->level = ckt_ptx_source(p, 2, x->integer_coordinates ? T_S32 : T_F32);
	if (x->kind == TEX_GRAD) {
		take_vector(p, &p->raw.operands[2], x->x, shapes[x->shape].n);
		take_vector(p, &p->raw.operands[3], x->y, shapes[x->shape].n);
	}
	const struct ptx_operand *d = &p->raw.operands[0];
	if (d->kind != OP_VECTOR || d->n_elements != 4)
		ckt_ptx_bad(p, "four registers expected");
	for (unsigned k = 0; k < 4; k++)
		x->values[k] = d->elements[k].kind == OP_SINK
			? PTX_OPERAND_NONE
			: ckt_ptx_dest_of(p, &d->elements[k], T_B32);
	ckt_ptx_emit(p, exec_tex)->side = x;
}

static void decode_surface(struct ptx_parser *p)
{
	static const char *const vectors[] = {"v2", "v4", NULL},
				 *const outside[] = {"trap", "clamp", "zero", NULL},
				 *const cache[] = {"ca", "cg", "cs", "cv", "wb", "wt", NULL};
	struct texture_insn *x = ckt_ptx_new(p, sizeof *x);
	x->store = !strcmp(p->raw.op, "sust");
	if (!ckt_ptx_mod(p, "b"))
		ckt_ptx_bad(p, "only .b surface accesses are supported");
	take_shape(p, x);
	while (ckt_ptx_mod_one(p, cache) >= 0)
		;
	int v = ckt_ptx_mod_one(p, vectors), how = ckt_ptx_mod_one(p, outside);
	x->type = ckt_ptx_need_type(p);
	x->bytes = ckt_ptx_type_bytes(x->type);
	x->n_values = v < 0 ? 1 : 2u << v;
	x->clamp = how == 1;
	x->zero = how == 2;
	x->integer_coordinates = true;
	if (how < 0 || !x->bytes || x->bytes * x->n_values > 16)
		ckt_ptx_bad(p, "unsuitable type");
	ckt_ptx_need_operands(p, 2, 2);
	take_place(p, x, &p->raw.operands[x->store ? 0 : 1], true);
	const struct ptx_operand *o = &p->raw.operands[x->store ? 1 : 0],
				 *list = o->kind == OP_VECTOR ? o->elements : o;
	if ((o->kind == OP_VECTOR ? o->n_elements : 1) != x->n_values)
		ckt_ptx_bad(p, "wrong number of elements");
	for (unsigned k = 0; k < x->n_values; k++) {
		/* As for ld and st, a register may be wider than the element. */
		bool wider = list[k].kind == OP_REG &&
			ckt_ptx_lane_bytes(list[k].type) == ckt_ptx_lane_bytes(x->type) &&
			ckt_ptx_type_bytes(list[k].type) > x->bytes;
		enum ptx_type held = wider ? list[k].type : x->type;
		x->values[k] = x->store ? ckt_ptx_source_of(p, &list[k], held)
					: ckt_ptx_dest_of(p, &list[k], held);
	}
	ckt_ptx_emit(p, exec_surface)->side = x;
}

static void decode_query(struct ptx_parser *p)
{
	static const char *const questions[] = {"width", "height", "depth", "array_size",
		"num_mipmap_levels", "normalized_coords", NULL};
	struct texture_insn *x = ckt_ptx_new(p, sizeof *x);
	x->store = p->raw.op[0] == 's'; /* queries a surface */
	x->component = ckt_ptx_mod_one(p, questions);
	if (x->component < 0 || ckt_ptx_need_type(p) != T_B32)
		ckt_ptx_bad(p, "unknown query");
	ckt_ptx_need_operands(p, 2, 2);
	take_place(p, x, &p->raw.operands[1], false);
	x->values[0] = ckt_ptx_dest(p, 0, T_B32);
	ckt_ptx_emit(p, exec_query)->side = x;
}

const struct ptx_opcode ckt_ptx_opcodes_texture[] = {
	{"tex", decode_tex},
	{"tld4", decode_tex},
	{"txq", decode_query},
	{"suq", decode_query},
	{"suld", decode_surface},
	{"sust", decode_surface},
	{NULL, NULL},
};
