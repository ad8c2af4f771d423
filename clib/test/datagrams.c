/* Programs of libibumad against a running fabric, a star with a subnet manager, and against a service that sends
 * nonsense. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../umad/umad.h"

static int failures;

#define CHECK(c) \
	do { \
		if (!(c)) { \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #c, errno); \
			__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED); \
		} \
	} while (0)

enum { MAD = 256, ROOM = 2 << 20, VENDOR = 0x35, SA = 3 };

static const uint8_t oui[3] = { 0x00, 0x14, 0x05 };

static uint8_t *mad_of(void *umad)
{
	return umad_get_mad(umad);
}

/* header writes the header of a MAD. */
static void header(uint8_t *m, int class, int version, int method, int attribute, uint32_t tid)
{
	memset(m, 0, MAD);
	m[0] = 1;
	m[1] = (uint8_t)class;
	m[2] = (uint8_t)version;
	m[3] = (uint8_t)method;
	m[16] = (uint8_t)(attribute >> 8);
	m[17] = (uint8_t)attribute;
	tid = htonl(tid);
	memcpy(m + 12, &tid, 4);
}

/* direct asks the node at the end of a directed route for its NodeInfo. */
static void direct(void *umad, int hops, int port, uint32_t tid)
{
	uint8_t *m = mad_of(umad);

	header(m, 0x81, 1, 1, 0x11, tid);
	m[7] = (uint8_t)hops;
	memset(m + 32, 0xff, 4);
	m[129] = (uint8_t)(hops > 0 ? 1 : 0);
	m[130] = (uint8_t)(hops > 1 ? port : 0);
	umad_set_addr(umad, 0xffff, 0, 0, 0);
}

static void devices(void)
{
	char names[4][UMAD_CA_NAME_LEN], path[256];
	struct umad_device_node *list;
	uint64_t guids[4];
	umad_ca_t ca;
	umad_port_t port;
	int fd;

	CHECK(umad_init() == 0);
	CHECK(umad_get_cas_names(names, 4) == 1 && !strcmp(names[0], "softvpi0"));
	CHECK(umad_get_cas_names(names, 0) == 0);
	CHECK(umad_get_ca(NULL, &ca) == 0);
	CHECK(ca.numports == 1 && ca.ports[1] && !ca.ports[0] && ca.node_type == 1 && ca.ports[1]->state == 4);
	CHECK(ca.ports[1]->pkeys_size >= 1 && ca.ports[1]->pkeys[0] == 0xffff && ca.ports[1]->port_guid && ca.ports[1]->rate > 0);
	CHECK(umad_get_ca_portguids("softvpi0", guids, 4) == 2 && guids[0] == 0 && guids[1] == ca.ports[1]->port_guid);
	CHECK(umad_get_ca_portguids("softvpi0", guids, 1) == -ENOMEM);
	CHECK(umad_release_ca(&ca) == 0 && !ca.ports[1]);
	CHECK(umad_get_ca("mlx5_0", &ca) == -ENOENT);
	CHECK(umad_get_port(NULL, 0, &port) == 0 && port.portnum == 1 && port.base_lid && !strcmp(port.link_layer, "InfiniBand"));
	umad_release_port(&port);
	CHECK(umad_get_port("softvpi0", 7, &port) == -EIO);
	list = umad_get_ca_device_list();
	CHECK(list && !list->next && !strcmp(list->ca_name, "softvpi0"));
	CHECK(umad_sort_ca_device_list(&list, 1) == 0);
	umad_free_ca_device_list(list);
	CHECK(umad_open_port("softvpi0", 9) == -EINVAL && umad_open_port("none", 1) == -EINVAL);
	CHECK(umad_get_issm_path(NULL, 0, path, 3) == -ENAMETOOLONG);
	CHECK(umad_get_issm_path(NULL, 0, path, sizeof(path)) == 0);
	fd = open(path, O_NONBLOCK);
	CHECK(fd >= 0);
	for (int i = 0; i < 2000; i++) {
		CHECK(umad_get_port(NULL, 0, &port) == 0);
		umad_release_port(&port);
		if (ntohl(port.capmask) & 2)
			break;
		usleep(1000);
	}
	CHECK(ntohl(port.capmask) & 2);
	close(fd);
	CHECK(umad_done() == 0);
}

static void registrations(void)
{
	int fd = umad_open_port(NULL, 0), id, length = MAD;
	long methods[2] = { 1 << 1, 0 };
	struct umad_reg_attr attr = { .mgmt_class = SA, .mgmt_class_version = 2, .rmpp_version = 1 };
	uint32_t number;
	char umad[64 + MAD] = { 0 };

	CHECK(fd >= 0 && umad_get_fd(fd) == fd && umad_size() == 64);
	CHECK(umad_recv(fd, umad, &length, 0) == -EAGAIN);
	CHECK(umad_recv(fd, umad, &length, 20) == -ETIMEDOUT && umad_poll(fd, 1) == -ETIMEDOUT);
	id = umad_register(fd, 9, 1, 0, methods);
	CHECK(id == 0);
	CHECK(umad_register(fd, 9, 1, 0, methods) == -EPERM && umad_register(fd, 0x60, 1, 0, methods) == -EPERM);
	CHECK(umad_register_oui(fd, 9, 0, (uint8_t *)oui, NULL) == -EINVAL);
	CHECK(umad_register_oui(fd, VENDOR, 1, (uint8_t *)oui, methods) == 1);
	CHECK(umad_register2(fd, &attr, &number) == 0 && number == 2);
	attr.flags = 4;
	CHECK(umad_register2(fd, &attr, &number) == EINVAL && attr.flags == 1 && umad_register2(fd, NULL, &number) == EINVAL);
	CHECK(umad_unregister(fd, id) == 0 && umad_unregister(fd, id) == -1 && errno == EINVAL);
	CHECK(umad_send(fd, 40, umad, MAD, 0, 0) == -EIO && umad_send(fd, -1, umad, MAD, 0, 0) == -EIO);
	CHECK(umad_close_port(fd) == 0);
}

/* ask sends n requests at once, and returns how many answers came with the given status. */
static int ask(int fd, int agent, int n, int hops, int port, int timeout, int status)
{
	char *umad = calloc(1, 64 + MAD);
	int got = 0;

	for (int i = 0; i < n; i++) {
		direct(umad, hops, port, (uint32_t)i + 1);
		CHECK(umad_send(fd, agent, umad, MAD, timeout, 1) == 0);
	}
	for (int i = 0; i < n; i++) {
		int length = MAD, id = umad_recv(fd, umad, &length, 30000);

		CHECK(id == agent);
		if (id == agent && umad_status(umad) == status && length == (status ? 24 : MAD))
			got++;
	}
	free(umad);
	return got;
}

static void requests(void)
{
	int fd = umad_open_port(NULL, 0), id = umad_register(fd, 0x81, 1, 0, NULL);

	CHECK(fd >= 0 && id >= 0);
	CHECK(ask(fd, id, 300, 1, 0, 5000, 0) == 300);
	CHECK(ask(fd, id, 3, 2, 77, 20, ETIMEDOUT) == 3);
	umad_close_port(fd);
}

/* A table of subnet administration that is longer than the buffer offered first. */
static void table(void)
{
	int fd = umad_open_port(NULL, 0), id = umad_register(fd, SA, 2, 1, NULL), length = MAD, first;
	char *umad = calloc(1, ROOM);
	umad_port_t port;

	CHECK(umad_get_port(NULL, 0, &port) == 0);
	umad_release_port(&port);
	header(mad_of(umad), SA, 2, 0x12, 0x11, 9);
	umad_set_addr(umad, (int)port.sm_lid, 1, 0, (int)0x80010000);
	CHECK(umad_send(fd, id, umad, MAD, 10000, 3) == 0);
	CHECK(umad_recv(fd, umad, &length, 30000) == -ENOSPC && length > MAD && length < ROOM - 64);
	CHECK(mad_of(umad)[3] == 0x92);
	first = length;
	CHECK(umad_poll(fd, 0) == 0);
	CHECK(umad_recv(fd, umad, &length, 0) == id && length == first && umad_status(umad) == 0);
	CHECK((length - 56) % 112 == 0 && (length - 56) / 112 == 5); /* four adapters and a switch */
	CHECK(umad_recv(fd, umad, &length, 0) == -EAGAIN);
	free(umad);
	umad_close_port(fd);
}

/* Transfers between two programs, up to sizes that need a memory file. */
static void transfers(void)
{
	static const int sizes[] = { 40, 256, 257, 10000, 32704, 32705, 1000000 };
	long methods[2] = { 1 << 1, 0 };
	char *umad = calloc(1, ROOM), *copy = malloc(ROOM);
	umad_port_t port;
	int a, b, from, to;

	setenv("SOFTVPI_NODE", "node00002", 1);
	CHECK(umad_get_port(NULL, 0, &port) == 0);
	umad_release_port(&port);
	b = umad_open_port(NULL, 0);
	to = umad_register_oui(b, VENDOR, 1, (uint8_t *)oui, methods);
	setenv("SOFTVPI_NODE", "node00001", 1);
	a = umad_open_port(NULL, 0);
	from = umad_register_oui(a, VENDOR, 1, (uint8_t *)oui, NULL);
	CHECK(a >= 0 && b >= 0 && from >= 0 && to >= 0);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint8_t *m = mad_of(umad);
		int length = ROOM - 64;

		for (int j = 0; j < sizes[i]; j++)
			m[j] = (uint8_t)(j * 13 + j / 256);
		header(m, VENDOR, 1, 1, 0x10, 0x77 + i);
		for (int j = 40; j < sizes[i]; j++)
			m[j] = (uint8_t)(j * 13 + j / 256);
		memcpy(m + 37, oui, 3);
		m[24] = 1;
		m[25] = 1;
		m[26] = 1;
		memcpy(copy, m, (size_t)sizes[i]);
		umad_set_addr(umad, (int)port.base_lid, 1, 0, (int)0x80010000);
		CHECK(umad_send(a, from, umad, sizes[i], 0, 3) == 0);
		CHECK(umad_recv(b, umad, &length, 10000) == to);
		CHECK(length == sizes[i] && !memcmp(mad_of(umad) + 40, copy + 40, (size_t)sizes[i] - 40));
	}
	free(umad);
	free(copy);
	umad_close_port(a);
	umad_close_port(b);
}

static void *thread(void *arg)
{
	int fd = umad_open_port(NULL, 0), id = umad_register(fd, 0x81, 1, 0, NULL);

	(void)arg;
	for (int i = 0; i < 20; i++)
		CHECK(ask(fd, id, 20, 1, 0, 20000, 0) == 20);
	umad_close_port(fd);
	return NULL;
}

/* reader receives on a port that others read, too. */
static int shared, shared_got;

static void *reader(void *arg)
{
	char umad[64 + MAD] = { 0 };

	(void)arg;
	while (__atomic_load_n(&shared_got, __ATOMIC_RELAXED) < 1000) {
		int length = MAD;

		if (umad_recv(shared, umad, &length, 50) >= 0)
			__atomic_add_fetch(&shared_got, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	char umad[64 + MAD] = { 0 };
	int id;

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, thread, NULL) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	shared = umad_open_port(NULL, 0);
	id = umad_register(shared, 0x81, 1, 0, NULL);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, reader, NULL) == 0);
	for (int i = 0; i < 1000; i++) {
		direct(umad, 1, 0, (uint32_t)i + 1);
		CHECK(umad_send(shared, id, umad, MAD, 20000, 0) == 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(shared_got == 1000);
	umad_close_port(shared);
}

/* A forked child uses its parent's port, and the port stays open when the child exits. A killed child leaves nothing
 * behind. */
static void processes(void)
{
	int fd = umad_open_port(NULL, 0), id = umad_register(fd, 0x81, 1, 0, NULL), status, again = -1, ready[2];
	long methods[2] = { 1 << 1, 0 };
	pid_t child = fork();
	char c;

	if (!child) {
		failures = 0;
		CHECK(ask(fd, id, 50, 1, 0, 20000, 0) == 50);
		umad_close_port(fd);
		_exit(failures != 0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(ask(fd, id, 50, 1, 0, 20000, 0) == 50);
	umad_close_port(fd);
	CHECK(pipe(ready) == 0);
	child = fork();
	if (!child) {
		fd = umad_open_port(NULL, 0);
		if (umad_register(fd, 10, 1, 0, methods) == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	CHECK(read(ready[0], &c, 1) == 1);
	fd = umad_open_port(NULL, 0);
	CHECK(umad_register(fd, 10, 1, 0, methods) == -EPERM);
	kill(child, SIGKILL);
	CHECK(waitpid(child, &status, 0) == child);
	for (int i = 0; i < 5000 && again < 0; i++) {
		again = umad_register(fd, 10, 1, 0, methods);
		if (again < 0)
			usleep(1000);
	}
	CHECK(again >= 0);
	close(ready[0]);
	close(ready[1]);
	umad_close_port(fd);
}

/* liar is a service that answers with random bytes. */
static void liar(const char *path, int round)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), lengths[] = { 1, 8, 9, 28, 120, 212, 512, 724, 2000, 320 };
	unsigned seed = (unsigned)round;
	char b[4096];

	strcpy(a.sun_path, path);
	if (bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(s, 8) < 0)
		_exit(1);
	for (;;) {
		int c = accept(s, NULL, NULL), n = lengths[rand_r(&seed) % 10];

		if (recv(c, b, sizeof(b), 0) <= 0)
			continue;
		for (int i = 0; i < (int)sizeof(b); i++)
			b[i] = (char)rand_r(&seed);
		if (rand_r(&seed) % 4)
			memset(b, 0, 8);
		if (rand_r(&seed) % 2)
			memset(b + 4, 0xff, 4);
		send(c, b, (size_t)n, MSG_NOSIGNAL);
		for (int i = 0; i < 4; i++) { /* read by the port once it is open */
			if (rand_r(&seed) % 2)
				memset(b + 17, 0, 3);
			send(c, b, (size_t)lengths[rand_r(&seed) % 10], MSG_NOSIGNAL | MSG_DONTWAIT);
		}
		close(c);
	}
}

static void lies(void)
{
	char dir[] = "/tmp/umad-liar-XXXXXX", path[64], names[40][UMAD_CA_NAME_LEN], long_path[300];
	const char *before = getenv("SOFTVPI_FABRIC");
	char *was = before ? strdup(before) : NULL;

	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/s", dir);
	setenv("SOFTVPI_FABRIC", path, 1);
	for (int round = 1; round <= 8; round++) {
		pid_t child = fork();

		if (!child)
			liar(path, round);
		while (access(path, F_OK))
			usleep(1000);
		for (int i = 0; i < 40; i++) {
			umad_ca_t ca;
			umad_port_t port;
			char umad[64 + MAD] = { 0 };
			int fd, length = MAD;

			umad_get_cas_names(names, 40);
			umad_free_ca_device_list(umad_get_ca_device_list());
			if (umad_get_ca("x", &ca) == 0)
				umad_release_ca(&ca);
			if (umad_get_port("x", 1, &port) == 0)
				umad_release_port(&port);
			umad_get_issm_path("x", 1, long_path, sizeof(long_path));
			fd = umad_open_port("x", 1);
			if (fd < 0)
				continue;
			umad_recv(fd, umad, &length, 10);
			length = 10;
			umad_recv(fd, umad, &length, 10);
			umad_close_port(fd);
		}
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		unlink(path);
	}
	CHECK(umad_get_cas_names(names, 40) == 0 && umad_open_port(NULL, 0) == -EOPNOTSUPP);
	rmdir(dir);
	if (was)
		setenv("SOFTVPI_FABRIC", was, 1);
	free(was);
}

int main(void)
{
	static const struct { const char *name; void (*run)(void); } all[] = {
		{ "devices", devices }, { "registrations", registrations }, { "requests", requests }, { "table", table },
		{ "transfers", transfers }, { "threads", threads }, { "processes", processes }, { "lies", lies },
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
		int before = failures;

		all[i].run();
		if (failures != before)
			fprintf(stderr, "datagrams: %s failed\n", all[i].name);
	}
	if (!failures)
		puts("datagrams  ok");
	return failures != 0;
}
