/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX for the soft GPU: parses texts and makes functions that can be launched.
 *
 * The driver part (softgpu/) owns memory, streams and handles; this part implements the language.
 * The only global state is the tables of opcodes and rules, built once, and a pool of interpreter
 * threads made at the first launch.  A module is immutable once loaded and bound, so any number of
 * threads may launch from it at once.  Follows the PTX ISA document, version 9.0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_ptx_module;
struct ckt_ptx_function;

struct ckt_ptx_text {
	const char *text; /* need not end in NUL */
	size_t size_bytes;
	const char *name; /* for messages; may be NULL */
};

struct ckt_ptx_load_options {
	/*
	 * the device's compute capability times ten, e.g. 120; PTX for a later capability is
	 * refused
	 */
	unsigned target;
	bool allow_undefined; /* for relocatable code: undefined externs are no error */
};

enum ckt_ptx_result {
	CKT_PTX_OK = 0,
	CKT_PTX_INVALID = 1,    /* syntax error: CUDA_ERROR_INVALID_PTX */
	CKT_PTX_UNRESOLVED = 2, /* an extern symbol that no text defines */
	CKT_PTX_DUPLICATE = 3,  /* defined strongly in two texts */
	/* needs a later compute capability: CUDA_ERROR_NO_BINARY_FOR_GPU */
	CKT_PTX_WRONG_TARGET = 4,
	CKT_PTX_NO_MEMORY = 5,
};

/*
 * Parses and links one or more texts into a module.  On failure `log` (of log_size_bytes, always
 * NUL-terminated) holds one line: text name, line number, the instruction or symbol.  ret_module is
 * written only on success; the caller destroys it.
 *
 * A refused instruction is not a failure: it refuses the kernels that contain it or call a function
 * that does (info.refusal).  Such a function faults if a kernel reaches it through a pointer.  Text
 * that is not PTX is a failure.
 */
enum ckt_ptx_result ckt_ptx_module_load(const struct ckt_ptx_text *texts, size_t n_texts,
	const struct ckt_ptx_load_options *options, char *log, size_t log_size_bytes,
	struct ckt_ptx_module **ret_module);
void ckt_ptx_module_destroy(struct ckt_ptx_module *module);

/*
 * ---- Globals: .global and .const variables of module scope.  The driver assigns their addresses
 * before ckt_ptx_module_bind.
 */

enum ckt_ptx_space { CKT_PTX_SPACE_GLOBAL = 1, CKT_PTX_SPACE_CONST = 2 };

struct ckt_ptx_global {
	const char *name;
	enum ckt_ptx_space space;
	uint64_t size_bytes;
	uint32_t align_bytes;
	bool managed;     /* .attribute(.managed) */
	bool is_public;   /* .visible, .weak or .common: cuModuleGetGlobal finds it */
	uint64_t address; /* written by the driver before ckt_ptx_module_bind */
};

size_t ckt_ptx_module_global_count(const struct ckt_ptx_module *module);
struct ckt_ptx_global *ckt_ptx_module_global(struct ckt_ptx_module *module, size_t index);

/*
 * Writes every global's initial bytes, including zeros and the addresses of other symbols, and
 * makes the module launchable.
 */
void ckt_ptx_module_bind(struct ckt_ptx_module *module);

/* ---- Functions */

struct ckt_ptx_param {
	uint32_t offset_bytes;
	uint32_t size_bytes;
	uint32_t align_bytes;
};

struct ckt_ptx_function_info {
	const char *name;
	bool is_entry;
	size_t n_params;
	const struct ckt_ptx_param *params;
	uint32_t param_bytes; /* end of the last parameter */
	uint32_t static_shared_bytes;
	uint32_t local_bytes; /* per thread */
	uint32_t const_bytes; /* .const of the module */
	uint32_t registers;   /* an estimate, at least 1, at most 255 */
	uint32_t max_threads; /* per block: product of .maxntid or .reqntid, otherwise 1024 */
	uint32_t reqntid[3];  /* zeros if not given */
	uint32_t cluster[3];  /* .reqnctapercluster; zeros if not given */
	unsigned ptx_version; /* e.g. 90 for ISA 9.0 */
	unsigned target;      /* e.g. 120 */
	/*
	 * NULL, or the reason why the kernel cannot run: one line that names the instruction, of
	 * the kernel or of a function that it calls, that the interpreter refuses.
	 */
	const char *refusal;
};

size_t ckt_ptx_module_function_count(const struct ckt_ptx_module *module); /* entries only */
const struct ckt_ptx_function *ckt_ptx_module_function(
	const struct ckt_ptx_module *module, size_t index);
const struct ckt_ptx_function *ckt_ptx_module_find_function(
	const struct ckt_ptx_module *module, const char *name);
const struct ckt_ptx_function_info *ckt_ptx_function_info(const struct ckt_ptx_function *function);

/* ---- Launch */

enum ckt_ptx_fault {
	CKT_PTX_FAULT_NONE = 0,
	CKT_PTX_FAULT_ILLEGAL_ADDRESS,
	CKT_PTX_FAULT_MISALIGNED_ADDRESS,
	CKT_PTX_FAULT_INVALID_ADDRESS_SPACE,
	CKT_PTX_FAULT_INVALID_PC,
	CKT_PTX_FAULT_ILLEGAL_INSTRUCTION,
	CKT_PTX_FAULT_ASSERT,
	CKT_PTX_FAULT_TRAP,
	CKT_PTX_FAULT_STACK_OVERFLOW,
	CKT_PTX_FAULT_LAUNCH_FAILURE,
};

/*
 * ---- Textures and surfaces.  The driver makes the descriptors; kernels use their 64-bit handles
 */

enum ckt_ptx_channel {
	CKT_PTX_CHANNEL_UNSIGNED = 0,
	CKT_PTX_CHANNEL_SIGNED,
	CKT_PTX_CHANNEL_FLOAT
};

/*
 * One level of an array, or linear memory, as rows of whole elements:
 *
 *	address of element (x, y, z) =
 *		memory + z * slice_bytes + y * row_bytes + x * channels * channel_bytes
 *
 * z is the depth of a 3D image, the layer of a layered image, the face (+x -x +y -y +z -z) of a
 * cubemap, or 6 * layer + face of a layered cubemap.  A dimension that a shape lacks is 1.
 */
struct ckt_ptx_image {
	uint8_t *memory;
	/* in elements; the width of linear memory may be up to 1 << 27 */
	uint32_t width, height, depth;
	uint64_t row_bytes, slice_bytes;
};

enum ckt_ptx_texture_shape {
	CKT_PTX_TEXTURE_1D = 0,
	CKT_PTX_TEXTURE_2D,
	CKT_PTX_TEXTURE_3D,
	CKT_PTX_TEXTURE_1D_LAYERED,
	CKT_PTX_TEXTURE_2D_LAYERED,
	CKT_PTX_TEXTURE_CUBEMAP,
	CKT_PTX_TEXTURE_CUBEMAP_LAYERED,
	/* linear memory: fetched by integer coordinate only; pitched memory is a 2D texture */
	CKT_PTX_TEXTURE_LINEAR,
};

/* The values of CUaddress_mode and CUfilter_mode. */
enum ckt_ptx_address_mode {
	CKT_PTX_ADDRESS_WRAP = 0,
	CKT_PTX_ADDRESS_CLAMP,
	CKT_PTX_ADDRESS_MIRROR,
	CKT_PTX_ADDRESS_BORDER
};
enum ckt_ptx_filter { CKT_PTX_FILTER_POINT = 0, CKT_PTX_FILTER_LINEAR = 1 };

/* A surface uses only shape, levels[0] and the channels. */
struct ckt_ptx_texture {
	enum ckt_ptx_texture_shape shape;
	unsigned n_levels; /* at least 1 */
	const struct ckt_ptx_image *levels;
	uint8_t channels;      /* 1, 2 or 4 */
	uint8_t channel_bytes; /* 1, 2 or 4; a float has 2 or 4 */
	enum ckt_ptx_channel channel;
	bool normalized_coordinates; /* coordinates go from 0 to 1 */
	/* integers of 1 or 2 bytes are read as floats from 0 or -1 to 1 */
	bool normalized_read;
	/* ordinary memory, which may be freed when a kernel reads it */
	bool checked;
	/* unsigned bytes hold sRGB; the fourth channel is linear */
	bool srgb;
	enum ckt_ptx_address_mode address[3];
	enum ckt_ptx_filter filter, mipmap_filter;
	float mipmap_bias, mipmap_least, mipmap_most;
	float border[4];
};

struct ckt_ptx_device {
	unsigned n_sm;       /* for %nsmid; blocks are numbered over it for %smid */
	unsigned capability; /* 120 */
	/* Interpreter threads call these functions, possibly several at once. */
	/* printf: 1, assert: 2 */
	void (*output)(void *data, int fd, const char *text, size_t size_bytes);
	/* device malloc: memory that is already in the memmap, or NULL */
	void *(*heap_alloc)(void *data, uint64_t size_bytes);
	void (*heap_free)(void *data, void *address);
	/*
	 * cudaGraphSetConditional.  False: the handle is not a condition, and the kernel faults.
	 * NULL: there are no conditions.
	 */
	bool (*set_condition)(void *data, uint64_t handle, uint32_t value);
	/*
	 * The descriptor of a texture or surface handle, valid until the launch returns.  NULL
	 * result: the handle is invalid, and the kernel faults.  Kernels call the function often,
	 * so it should be fast.  NULL function: there are no textures.
	 */
	const struct ckt_ptx_texture *(*texture)(void *data, uint64_t handle);
	const struct ckt_ptx_texture *(*surface)(void *data, uint64_t handle);
	void *data;
};

struct ckt_ptx_launch {
	uint32_t grid[3], block[3], cluster[3]; /* cluster: zeros for none */
	uint32_t dynamic_shared_bytes;
	/* param_bytes bytes laid out as ckt_ptx_function_info says; read until the call returns */
	const void *params;
	bool cooperative; /* all blocks resident together */
	/* CU_LIMIT_STACK_SIZE; 0: the default, 1024, increased if the code needs more */
	uint64_t stack_bytes;
	/*
	 * if set to true, the launch stops soon and returns CKT_PTX_FAULT_LAUNCH_FAILURE; may be
	 * NULL
	 */
	const volatile bool *cancel;
	const struct ckt_ptx_device *device;
};

/*
 * Runs the whole grid on the calling thread and the pool.  ret_message (may be NULL) gets one line
 * about a fault.
 */
enum ckt_ptx_fault ckt_ptx_launch(const struct ckt_ptx_function *function,
	const struct ckt_ptx_launch *launch, char *ret_message, size_t message_size_bytes);
