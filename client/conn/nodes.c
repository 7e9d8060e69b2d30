/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers of several nodes as one machine.  REMOTE_GPU_ADDRESS is a list, and the program has a
 * session at each address.  The program sees the GPUs as devices 0 to n-1, in the list's order.
 * Each server counts its own GPUs from 0.  Each session uses its own part of the window, so an
 * address identifies its session.
 *
 * CUDA_VISIBLE_DEVICES selects from the whole list, so the client reads it here.  The client first
 * asks the servers for their GPUs, and names the wanted ones in its hellos.  A server without a
 * wanted GPU gets no session.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/conn/conn.h"
#include "client/conn/control.h"
#include "client/conn/settings.h"
#include "rpc/control.h"
#include "rpc/handle.h"
#include "base/log.h"
#include "cudacommon/visible_devices.h"

/* The ids that are constants have room for the contexts of 63 devices (rpc/handle.h). */
enum { DEVICES_MAX = 63, NUMBERS_MAX = 4 * DEVICES_MAX };

struct place {
	unsigned node;   /* index in the list of addresses */
	unsigned number; /* of the device at its server */
};

struct ckt_conn *ckt_conns[CKT_SERVERS_MAX] = {&ckt_conn};
unsigned ckt_conn_count = 1;

static unsigned opened; /* number of ckt_conns that are opened */
static struct place places[CKT_DEVICES_MAX];
static unsigned place_count;
static struct ckt_conn *conn_of_node[CKT_SERVERS_MAX];
static char numbers[CKT_SERVERS_MAX]
		   [NUMBERS_MAX]; /* the wanted GPUs of each server, as its CUDA_VISIBLE_DEVICES */

struct ckt_conn *ckt_call_conn_of(unsigned device)
{
	return ckt_conn_count > 1 ? conn_of_node[places[device].node] : &ckt_conn;
}

unsigned ckt_call_node(void)
{
	return ckt_call_conn->number;
}

uint32_t ckt_call_device_slow(unsigned device)
{
	/* A number without a device stays invalid. */
	return device < place_count ? places[device].number : device;
}

uint32_t ckt_call_device_back(uint32_t number)
{
	for (unsigned d = 0; d < place_count; d++)
		if (places[d].number == number && conn_of_node[places[d].node] == ckt_call_conn)
			return d;
	return number;
}

uint64_t ckt_call_id_slow(uint64_t id)
{
	uint32_t slot = ckt_handle_slot(id);
	if (slot && slot < CKT_HANDLE_FIRST_SLOT &&
		(id == ckt_handle_primary(slot - 1) || id == ckt_handle_default_pool(slot - 1)))
		return id - slot + ckt_call_device_slow(slot - 1) + 1;
	return id;
}

/* ---- CUDA_VISIBLE_DEVICES */

static int ask_devices(const char *address, ckt_control_devices_res *ret)
{
	char message[2 * CKT_MESSAGE_MAX] = "";
	int fd;
	int64_t deadline_ms = ckt_net_now_ms() + ckt_settings.connect_timeout_ms;
	int result = ckt_conn_control_connect(address, deadline_ms, &fd, message, sizeof message);
	if (!result) {
		result = ckt_net_call(fd, CRICKET_CONTROL_PROG, CKT_CONTROL_DEVICES, NULL, NULL,
			(xdrproc_t)xdr_ckt_control_devices_res, ret, deadline_ms, -1);
		close(fd);
		if (result)
			snprintf(message, sizeof message,
				"the server at %s does not list its GPUs: %s", address,
				strerror(-result));
	}
	if (result)
		ckt_log_user("no GPU: %s; every server of REMOTE_GPU_ADDRESS must answer: "
			     "remove it from the list or repair it",
			message);
	return result;
}

/* Lists every GPU of the servers, in the list's order. */
static CUresult list_gpus(
	struct place *ret_places, uint8_t (*ret_uuids)[CKT_VISIBLE_UUID], unsigned *ret_count)
{
	unsigned count = 0;
	for (unsigned node = 0; node < ckt_settings.address_count; node++) {
		ckt_control_devices_res res = {0};
		if (ask_devices(ckt_settings.addresses[node], &res))
			return CUDA_ERROR_NO_DEVICE;
		for (u_int i = 0; i < res.devices.devices_len && count < CKT_DEVICES_MAX;
			i++, count++) {
			ret_places[count] = (struct place){.node = node, .number = i};
			memcpy(ret_uuids[count], res.devices.devices_val[i].uuid, CKT_VISIBLE_UUID);
		}
		xdr_free((xdrproc_t)xdr_ckt_control_devices_res, (char *)&res);
	}
	*ret_count = count;
	return CUDA_SUCCESS;
}

/*
 * Selects the GPUs that the program sees: places[] in the program's order, numbers[] for the
 * hellos.
 */
static CUresult select_devices(const char *visible, unsigned *ret_count)
{
	struct place all[CKT_DEVICES_MAX];
	uint8_t uuids[CKT_DEVICES_MAX][CKT_VISIBLE_UUID];
	unsigned count, chosen[CKT_DEVICES_MAX], taken[CKT_SERVERS_MAX] = {0};
	CUresult result = list_gpus(all, uuids, &count);
	if (result)
		return result;
	int selected = ckt_visible_select(visible, uuids, count, chosen);
	if (selected < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	for (int i = 0; i < selected && i < DEVICES_MAX; i++) {
		const struct place *from = &all[chosen[i]];
		char *text = numbers[from->node];
		size_t used = strlen(text);
		snprintf(text + used, NUMBERS_MAX - used, "%s%u", used ? "," : "", from->number);
		/*
		 * The hello names the GPUs in this order, and the server counts them in this order.
		 */
		places[i] = (struct place){.node = from->node, .number = taken[from->node]++};
		*ret_count = (unsigned)i + 1;
	}
	return *ret_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* ---- Sessions */

static struct ckt_conn *new_conn(unsigned node)
{
	struct ckt_conn *conn = opened ? calloc(1, sizeof *conn) : &ckt_conn;
	if (!conn)
		return NULL;
	if (conn != &ckt_conn)
		ckt_conn_init(conn);
	conn->number = opened;
	conn->visible = numbers[node][0] ? numbers[node] : NULL;
	snprintf(conn->address_text, sizeof conn->address_text, "%s", ckt_settings.addresses[node]);
	conn_of_node[node] = ckt_conns[opened++] = conn;
	return conn;
}

/*
 * Moves the device's struct into the joint list, and translates its peers from the server's
 * numbers.  Pinned memory has no device address (client/cuda/memory/mapped.c), so the attribute
 * CAN_MAP_HOST_MEMORY becomes 0.
 */
static void take_device(struct ckt_devices_res *from, unsigned number, unsigned device,
	unsigned count, struct ckt_devices_res *ret)
{
	struct ckt_device *to = &ret->devices.devices_val[device];
	*to = from->devices.devices_val[number];
	uint64_t peers = to->can_access_peer;
	if (CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY < to->attributes.attributes_len)
		to->attributes.attributes_val[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY].value = 0;
	to->can_access_peer = 0;
	for (unsigned other = 0; other < count; other++)
		if (places[other].node == places[device].node && peers >> places[other].number & 1)
			to->can_access_peer |= (uint64_t)1 << other;
}

static CUresult join_devices(
	struct ckt_devices_res *from, unsigned count, struct ckt_devices_res *ret)
{
	struct ckt_device *list = calloc(count, sizeof *list);
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	place_count = count;
	*ret = (struct ckt_devices_res){.driver_version = INT32_MAX, .devices = {count, list}};
	for (unsigned d = 0; d < count; d++) {
		struct ckt_devices_res *node = &from[places[d].node];
		if (places[d].number >= node->devices.devices_len) {
			ckt_log_user("no GPU: the server at %s offers other GPUs than it announced",
				ckt_settings.addresses[places[d].node]);
			free(list);
			return CUDA_ERROR_NO_DEVICE;
		}
		take_device(node, places[d].number, d, count, ret);
		if (node->driver_version < ret->driver_version)
			ret->driver_version = node->driver_version;
	}
	return CUDA_SUCCESS;
}

/* Adds all GPUs of the server after those of the servers before it. */
static unsigned append_devices(unsigned node, unsigned of_node, unsigned count)
{
	if (of_node > DEVICES_MAX - count)
		ckt_log_user("the servers have more GPUs than the %d that a program can "
			     "see: ignoring those at the end of the list",
			DEVICES_MAX);
	for (unsigned i = 0; i < of_node && count < DEVICES_MAX; i++)
		places[count++] = (struct place){.node = node, .number = i};
	return count;
}

CUresult ckt_nodes_open(struct ckt_devices_res *ret_devices)
{
	struct ckt_devices_res of_node[CKT_SERVERS_MAX] = {0};
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	unsigned count = 0;
	/*
	 * Memory shared with one worker is not visible to kernels at the other servers.  So pinned
	 * memory is copied, as over a network.
	 */
	ckt_settings.share_memory = false;
	CUresult result = visible ? select_devices(visible, &count) : CUDA_SUCCESS;
	for (unsigned node = 0; node < ckt_settings.address_count && !result; node++) {
		if (visible && !numbers[node][0])
			continue;
		struct ckt_conn *conn = new_conn(node);
		result = conn ? ckt_conn_open_session(
					conn, node, ckt_settings.address_count, &of_node[node])
			      : CUDA_ERROR_OUT_OF_MEMORY;
		if (!result && !visible)
			count = append_devices(node, of_node[node].devices.devices_len, count);
	}
	if (!result)
		result = join_devices(of_node, count, ret_devices);
	/* The joint list now owns what the device structs point to. */
	for (unsigned node = 0; node < ckt_settings.address_count && !result; node++)
		free(of_node[node].devices.devices_val);
	for (unsigned i = 0; i < opened && result; i++)
		ckt_conn_end(ckt_conns[i]);
	if (!result)
		ckt_conn_count = opened;
	return result;
}
