/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the TLS transport costs alone: a thread writes, another one reads, over this host's TCP.
 *
 *	tls_channel CERTIFICATE KEY [MIB]	the certificate is its own authority and names 127.0.0.1
 *
 * A line each for the socket alone and for TLS: GB a second, and GB for each second of processor time
 * of writer and of reader.  `benchmarks/tls --channel` makes a certificate and runs it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "rpc/net.h"
#include "rpc/transport/tls.h"

enum { PIECE = 1 << 20, DEADLINE_MS = 10000 };

static struct ckt_transport writer, reader;
static struct ckt_tls_settings settings;
static uint64_t size_bytes = (uint64_t)512 << 20;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "tls_channel: %s\n", what);
	exit(1);
}

static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void connect_both(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
		getsockname(listener, (struct sockaddr *)&address, &size) ||
		connect(fd, (struct sockaddr *)&address, size))
		fail("no TCP connection to 127.0.0.1");
	ckt_transport_init_socket(&writer, fd);
	ckt_transport_init_socket(&reader, accept(listener, NULL, NULL));
}

static void *accept_tls(void *argument)
{
	struct ckt_tls_settings own = settings;
	struct ckt_tls_context *context;
	char message[200];
	(void)argument;
	own.ca = NULL;
	if (ckt_tls_context_make(&own, true, &context, message, sizeof message) ||
		ckt_tls_accept(
			&reader, context, ckt_net_now_ms() + DEADLINE_MS, message, sizeof message))
		fail(message);
	ckt_tls_context_free(context);
	return NULL;
}

static void shake_hands(void)
{
	const struct ckt_tls_settings client = {.ca = settings.ca};
	pthread_t thread;
	char message[200];
	pthread_create(&thread, NULL, accept_tls, NULL);
	if (ckt_tls_client(&writer, &client, "127.0.0.1", ckt_net_now_ms() + DEADLINE_MS, message,
		    sizeof message))
		fail(message);
	pthread_join(thread, NULL);
}

static void *write_main(void *argument)
{
	uint8_t *data = malloc(PIECE);
	for (size_t i = 0; data && i < PIECE; i++)
		data[i] = (uint8_t)(i * 31);
	double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
	for (uint64_t done = 0; data && done < size_bytes; done += PIECE)
		if (ckt_transport_write_all(&writer, data, PIECE, -1))
			fail("the stream ended");
	*(double *)argument = seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
	free(data);
	return NULL;
}

static void *read_main(void *argument)
{
	uint8_t *data = malloc(PIECE);
	double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
	for (uint64_t done = 0; data && done < size_bytes; done += PIECE)
		if (ckt_transport_read_all(&reader, data, PIECE))
			fail("the stream ended");
	*(double *)argument = seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
	free(data);
	return NULL;
}

static void measure(const char *name)
{
	pthread_t threads[2];
	double used[2], begin = seconds(CLOCK_MONOTONIC), gb = (double)size_bytes / 1e9;
	pthread_create(&threads[0], NULL, write_main, &used[0]);
	pthread_create(&threads[1], NULL, read_main, &used[1]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%-6s  %.3g GB/s; for each second of processor time: writer %.3g GB, reader %.3g GB, both %.3g GB\n",
		name, gb / (seconds(CLOCK_MONOTONIC) - begin), gb / used[0], gb / used[1],
		gb / (used[0] + used[1]));
	ckt_transport_close(&writer);
	ckt_transport_close(&reader);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		fail("usage: tls_channel CERTIFICATE KEY [MIB]");
	settings = (struct ckt_tls_settings){.certificate = argv[1], .key = argv[2], .ca = argv[1]};
	if (argc > 3)
		size_bytes = strtoull(argv[3], NULL, 10) << 20;
	connect_both();
	measure("socket");
	connect_both();
	shake_hands();
	measure("TLS");
	return 0;
}
