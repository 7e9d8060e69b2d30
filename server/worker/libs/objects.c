/* What libraries make for a session: handles, plans, descriptors; see libs.h. */
#include <stdlib.h>

#include "rpc/log.h"
#include "server/worker/libs/libs.h"
#include "server/worker/worker.h"

CUresult ckt_library_object_add(struct ckt_worker *worker, const struct ckt_library *library, unsigned type, uint64_t id, void *real, void *data,
				struct ckt_object **ret_object)
{
	struct ckt_library_object *made = malloc(sizeof *made);
	struct ckt_object *object;
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = ckt_objects_add(&worker->objects, id, CKT_KIND_LIB_OBJECT, false, &object);
	if (result) {
		free(made);
		return result;
	}
	*made = (struct ckt_library_object){.library = library, .type = type, .data = data};
	object->context = worker->current ? worker->current->id : 0;
	object->real = real;
	object->library = made;
	*ret_object = object;
	return CUDA_SUCCESS;
}

struct ckt_object *ckt_library_object_find(struct ckt_worker *worker, enum ckt_lib lib, unsigned type, uint64_t id)
{
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_LIB_OBJECT);
	return object && object->library->library->lib == lib && object->library->type == type ? object : NULL;
}

void ckt_library_object_end(struct ckt_worker *worker, struct ckt_object *object)
{
	const struct ckt_library *library = object->library->library;
	if (library->destroy)
		library->destroy(worker, object);
	object->real = NULL;
}

void ckt_library_object_free(struct ckt_library_object *made)
{
	if (made)
		free(made->data);
	free(made);
}

CUresult ckt_library_batched(const struct ckt_wcall *call, int status, bool *once)
{
	if (!status)
		return CUDA_SUCCESS;
	if (!__atomic_exchange_n(once, true, __ATOMIC_RELAXED)) {
		ckt_log_user("%s: the server's library gave status %d", call->proc->name, status);
		ckt_warning("%s: status %d", call->proc->name, status);
	}
	return CUDA_ERROR_UNKNOWN;
}
