/* The hand-written handlers; ckt_cuda_procs (generated) points to them.  See call.h for what they return. */
#pragma once

struct ckt_wcall;

int ckt_worker_ctx_create(struct ckt_wcall *call);
int ckt_worker_ctx_destroy(struct ckt_wcall *call);
int ckt_worker_ctx_synchronize(struct ckt_wcall *call);
int ckt_worker_primary_ctx_retain(struct ckt_wcall *call);
int ckt_worker_primary_ctx_reset(struct ckt_wcall *call);
int ckt_worker_blob_have(struct ckt_wcall *call);
int ckt_worker_blob_data(struct ckt_wcall *call);
int ckt_worker_blob_read(struct ckt_wcall *call);
int ckt_worker_module_load(struct ckt_wcall *call);
int ckt_worker_module_unload(struct ckt_wcall *call);
int ckt_worker_module_get_function(struct ckt_wcall *call);
int ckt_worker_module_get_global(struct ckt_wcall *call);
int ckt_worker_module_list_functions(struct ckt_wcall *call);
int ckt_worker_function_set_attribute(struct ckt_wcall *call);
int ckt_worker_function_set_cache_config(struct ckt_wcall *call);
int ckt_worker_link(struct ckt_wcall *call);
int ckt_worker_function_get_attribute(struct ckt_wcall *call);
int ckt_worker_launch_kernel(struct ckt_wcall *call);
int ckt_worker_launch_kernel_ex(struct ckt_wcall *call);
int ckt_worker_occupancy_blocks(struct ckt_wcall *call);
int ckt_worker_occupancy_available_smem(struct ckt_wcall *call);
int ckt_worker_mem_alloc(struct ckt_wcall *call);
int ckt_worker_mem_free(struct ckt_wcall *call);
int ckt_worker_mem_get_info(struct ckt_wcall *call);
int ckt_worker_memset(struct ckt_wcall *call);
int ckt_worker_memcpy_htod(struct ckt_wcall *call);
int ckt_worker_memcpy_dtoh(struct ckt_wcall *call);
int ckt_worker_memcpy_dtod(struct ckt_wcall *call);
int ckt_worker_memcpy2d_htod(struct ckt_wcall *call);
int ckt_worker_memcpy2d_dtoh(struct ckt_wcall *call);
int ckt_worker_memcpy2d_dtod(struct ckt_wcall *call);
int ckt_worker_stream_create(struct ckt_wcall *call);
int ckt_worker_stream_destroy(struct ckt_wcall *call);
int ckt_worker_stream_synchronize(struct ckt_wcall *call);
int ckt_worker_stream_query(struct ckt_wcall *call);
int ckt_worker_stream_wait_event(struct ckt_wcall *call);
int ckt_worker_event_create(struct ckt_wcall *call);
int ckt_worker_event_destroy(struct ckt_wcall *call);
int ckt_worker_event_record(struct ckt_wcall *call);
int ckt_worker_event_query(struct ckt_wcall *call);
int ckt_worker_event_synchronize(struct ckt_wcall *call);
int ckt_worker_event_elapsed_time(struct ckt_wcall *call);
