/*
 * A driver that hangs: silent. Calls to a driver that answers nothing end with ETIMEDOUT; calls to one that is merely
 * slow with one request do not; and late answers do no harm. Built from the library's own files. The driver is a
 * thread of this program, and delays every call as the test says.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ipc/stream.h"

enum { LOOK_MS = 60, ATTACH_LOOK_MS = 10000, ARENA = 1 << 16 };
#define SLOW SVPI_CM_LISTEN
#define QUICK SVPI_ALLOC_PD

static int failures;

#define CHECK(ok) do { if (!(ok)) { failures++; fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #ok); } } while (0)

/* What the driver does. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t news;
	int fd;
	bool hangs;		/* it reads nothing from the stream */
	int known;		/* how often it was asked for something that it answers at once */
	int answer_after;	/* the slow request is answered when known has reached this; -1: never */
	struct svpi_frame slow; /* the slow request; length 0: none */
} driver = { .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER };

static void send_frame(uint16_t op, uint16_t flags, uint64_t id, const void *body, size_t len, int fd)
{
	struct svpi_frame h = { (uint32_t)(SVPI_FRAME_HEADER + len), op, flags, id };
	struct iovec v[2] = { { &h, sizeof(h) }, { (void *)body, len } };
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };

	if (fd >= 0) {
		h.flags |= 1 << 8;
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
	}
	CHECK(sendmsg(driver.fd, &m, MSG_NOSIGNAL) == (ssize_t)h.length);
	if (fd >= 0)
		close(fd);
}

static void answer(const struct svpi_frame *h, int fd)
{
	struct svpi_handle_args q = { 7 };

	send_frame(h->op, SVPI_FLAG_RESPONSE, h->id, &q, sizeof(q), fd);
}

static int memory(size_t size)
{
	int fd = memfd_create("silent", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size))
		exit(1);
	return fd;
}

static void welcome(uint64_t id)
{
	struct svpi_welcome w = { .magic = SVPI_MAGIC, .major = SVPI_MAJOR, .minor = SVPI_MINOR, .doorbells = 64, .credits = 64,
				  .max_requests = 64 };
	struct svpi_arena_body a = { .size = ARENA };

	send_frame(SVPI_HELLO, SVPI_FLAG_RESPONSE, id, &w, sizeof(w), memory(8));
	send_frame(SVPI_ARENA, 0, 0, &a, sizeof(a), memory(ARENA));
}

static bool take(void *to, size_t n)
{
	return n == 0 || recv(driver.fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

/* handle deals with a request as the test wants. The lock is held. */
static void handle(const struct svpi_frame *h)
{
	switch (h->op) {
	case SVPI_HELLO:
		welcome(h->id);
		break;
	case SVPI_ADAPTERS: /* answered at once */
		driver.known++;
		if (driver.answer_after < 0)
			break;
		answer(h, -1);
		if (driver.slow.length && driver.known >= driver.answer_after) {
			answer(&driver.slow, -1);
			driver.slow.length = 0;
		}
		break;
	case SLOW:
		driver.slow = *h;
		break;
	case QUICK:
		answer(h, -1);
	}
}

static void *serve(void *listener)
{
	static uint8_t body[4096];
	struct svpi_frame h;

	driver.fd = accept(*(int *)listener, NULL, NULL);
	while (take(&h, sizeof(h)) && take(body, h.length - sizeof(h))) {
		pthread_mutex_lock(&driver.lock);
		while (driver.hangs)
			pthread_cond_wait(&driver.news, &driver.lock);
		handle(&h);
		pthread_mutex_unlock(&driver.lock);
	}
	close(driver.fd);
	return NULL;
}

static void set(bool hangs, int answer_after)
{
	pthread_mutex_lock(&driver.lock);
	driver.hangs = hangs;
	driver.answer_after = answer_after;
	driver.known = 0;
	pthread_cond_broadcast(&driver.news);
	pthread_mutex_unlock(&driver.lock);
}

static int known(void)
{
	pthread_mutex_lock(&driver.lock);
	int n = driver.known;

	pthread_mutex_unlock(&driver.lock);
	return n;
}

static int call(struct svpi *s, enum svpi_op op)
{
	struct svpi_handle_args q = { 1 }, r;
	int error = svpi_call(s, op, &q, sizeof(q), &r, sizeof(r));

	CHECK(error || r.handle == 7);
	return error;
}

static void *call_slow(void *s) { return (void *)(intptr_t)call(s, SLOW); }

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A slow driver that answers other questions is waited for, longer than the program's patience lasts. */
static void slow_with_one(struct svpi *s)
{
	uint64_t start = svpi_now_ms();

	set(false, 3); /* it is asked whenever half the patience has passed */
	CHECK(call(s, SLOW) == 0);
	CHECK(known() >= 3);
	CHECK(svpi_now_ms() - start > SVPI_PATIENCE_LOOKS * LOOK_MS);
}

/* A driver that answers nothing is given up by all who wait, and not too early. */
static void hangs(struct svpi *s)
{
	uint64_t start = svpi_now_ms();
	pthread_t t[3];
	void *error;

	set(true, -1);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, call_slow, s);
	CHECK(call(s, QUICK) == ETIMEDOUT);
	CHECK(!strcmp(svpi_detail(), "the driver does not answer") && !svpi_refusal());
	/* What it has answered is told from that. */
	uint8_t no[8 + 4] = { SVPI_CODE_ACCESS, 0, 0, 0, 4, 0, 0, 0, 'n', 'o', 't', '!' };
	CHECK(svpi_refused(no, sizeof(no)) == EACCES && svpi_refusal() && !strcmp(svpi_refusal(), "not!"));
	CHECK(svpi_fail(EPROTO, "why") == EPROTO && !svpi_refusal());
	CHECK(svpi_now_ms() - start >= (SVPI_PATIENCE_LOOKS - 1) * LOOK_MS);
	for (int i = 0; i < 3; i++) {
		pthread_join(t[i], &error);
		CHECK((intptr_t)error == ETIMEDOUT);
	}
	CHECK(!s->broken && !s->calls);
}

/* Late answers, and the descriptors that come with them, belong to nobody. */
static void goes_on(struct svpi *s)
{
	int before = descriptors();

	set(false, 0);
	CHECK(call(s, QUICK) == 0);
	pthread_mutex_lock(&driver.lock);
	driver.slow.id = 1;
	driver.slow.op = SLOW;
	answer(&driver.slow, memory(8));
	driver.slow.length = 0;
	pthread_mutex_unlock(&driver.lock);
	CHECK(call(s, QUICK) == 0);
	CHECK(descriptors() == before);
}

/* A child that dies while it waits for an answer gives up its turn, and its answer is not taken for another's. */
static void bereaved(struct svpi *s)
{
	pid_t child;

	set(false, -1);
	child = fork();
	if (child == 0) {
		call(s, SLOW);
		_exit(1);
	}
	for (;;) { /* until the driver has the child's request */
		pthread_mutex_lock(&driver.lock);
		bool asked = driver.slow.length != 0;

		pthread_mutex_unlock(&driver.lock);
		if (asked)
			break;
		usleep(1000);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	pthread_mutex_lock(&driver.lock);
	answer(&driver.slow, memory(8));
	driver.slow.length = 0;
	pthread_mutex_unlock(&driver.lock);
	for (int i = 0; i < 3; i++)
		CHECK(call(s, QUICK) == 0);
}

/* interrupted tests the same in a program whose timer expires more often than it looks up. */
static void nothing(int sig) { (void)sig; }
static void interrupted(struct svpi *s)
{
	struct sigaction a = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 3000 }, { 0, 3000 } }, never = { { 0, 0 }, { 0, 0 } };

	sigaction(SIGALRM, &a, NULL);
	set(true, -1);
	setitimer(ITIMER_REAL, &often, NULL);
	CHECK(call(s, QUICK) == ETIMEDOUT);
	setitimer(ITIMER_REAL, &never, NULL);
	set(false, 0);
	CHECK(call(s, QUICK) == 0);
}

/* An incomplete frame, or a stream that accepts no more data, ends the attachment. */
static void half(struct svpi *s)
{
	uint32_t length = 64;

	set(false, -1);
	CHECK(write(driver.fd, &length, sizeof(length)) == sizeof(length));
	CHECK(call(s, SLOW) == ENODEV);
	CHECK(s->broken);
}

static void full(struct svpi *s)
{
	static uint8_t body[4000];
	int error = 0;

	set(true, -1);
	for (int i = 0; !error && i < 10000; i++)
		error = svpi_frame_send(s, SVPI_CREDIT, 0, body, sizeof(body));
	CHECK(error == ETIMEDOUT);
	set(false, 0);
}

/* with runs a test that ends an attachment on an attachment of its own. */
static void with(int listener, void (*test)(struct svpi *))
{
	pthread_t t;
	struct svpi *s;

	set(false, 0);
	pthread_create(&t, NULL, serve, &listener);
	svpi_look_ms = ATTACH_LOOK_MS;
	s = svpi_get();
	svpi_look_ms = LOOK_MS;
	if (s) {
		svpi_stream_set_limits(s->fd);
		test(s);
		svpi_put(s);
	}
	CHECK(s);
	pthread_join(t, NULL);
}

static void lasts(struct svpi *s)
{
	slow_with_one(s);
	hangs(s);
	goes_on(s);
	interrupted(s);
	bereaved(s);
}

/* never: a driver that hangs before it answers hello. */
static void never(int listener)
{
	CHECK(!svpi_get() && errno == ETIMEDOUT); /* the connection is waiting to be accepted */
	close(accept(listener, NULL, NULL));
}

int main(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/silentXXXXXX";
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	alarm(120);
	if (!mkdtemp(dir))
		return 1;
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/driver.sock", dir);
	setenv("SOFTVPI_SOCKET", a.sun_path, 1);
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 1))
		return 1;
	with(listener, lasts);
	with(listener, half);
	with(listener, full);
	never(listener);
	unlink(a.sun_path);
	rmdir(dir);
	if (failures == 0)
		printf("silent     ok\n");
	return failures != 0;
}
