#define _GNU_SOURCE
#include "attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "copier.h"

enum { HEADER = 16, MAX_FRAME = 1 << 20, MAX_FDS = 16, HELLO_MS = 10000 };
enum { FLAG_RESPONSE = 1, FLAG_ERROR = 2 };

struct frame {
	uint32_t length;
	uint16_t op, flags;
	uint64_t id;
};
_Static_assert(sizeof(struct frame) == HEADER, "layout");

/* A request that waits for its answer. */
struct svpi_call {
	struct svpi_call *next;
	uint64_t id;
	bool done;
	int error;
	uint8_t *body;
	size_t len;
	int fd;
};

static __thread char detail[1100];

const char *svpi_detail(void) { return detail; }

static int fail(int error, const char *why)
{
	snprintf(detail, sizeof(detail), "%s", why);
	return error;
}

int svpi_errno(uint32_t code)
{
	switch (code) {
	case SVPI_CODE_INVALID: return EINVAL;
	case SVPI_CODE_NOT_FOUND: return ENOENT;
	case SVPI_CODE_BUSY: return EBUSY;
	case SVPI_CODE_EXHAUSTED: return ENOMEM;
	case SVPI_CODE_STATE: return EINVAL;
	case SVPI_CODE_UNSUPPORTED: return EOPNOTSUPP;
	case SVPI_CODE_IN_USE: return EADDRINUSE;
	case SVPI_CODE_ADDR_NOT_AVAILABLE: return EADDRNOTAVAIL;
	case SVPI_CODE_NETWORK_UNREACHABLE: return ENETUNREACH;
	case SVPI_CODE_HOST_UNREACHABLE: return EHOSTUNREACH;
	case SVPI_CODE_REFUSED: return ECONNREFUSED;
	case SVPI_CODE_TIMED_OUT: return ETIMEDOUT;
	case SVPI_CODE_ABORTED: return ECONNABORTED;
	case SVPI_CODE_CANCELED: return ECANCELED;
	case SVPI_CODE_REMOVED: return ENODEV;
	case SVPI_CODE_ACCESS: return EACCES;
	}
	return EIO;
}

/* The stream. */

static int send_frame(struct svpi *s, uint16_t op, uint64_t id, const void *body, size_t len)
{
	struct frame h = { .length = (uint32_t)(HEADER + len), .op = op, .id = id };
	struct iovec v[2] = { { &h, HEADER }, { (void *)body, len } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	int error = 0;

	pthread_mutex_lock(&s->send_lock);
	while (m.msg_iovlen > 0) {
		ssize_t n = sendmsg(s->fd, &m, MSG_NOSIGNAL);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			error = errno;
			break;
		}
		while (m.msg_iovlen > 0 && (size_t)n >= m.msg_iov->iov_len) {
			n -= (ssize_t)m.msg_iov->iov_len;
			m.msg_iov++;
			m.msg_iovlen--;
		}
		if (m.msg_iovlen > 0) {
			m.msg_iov->iov_base = (uint8_t *)m.msg_iov->iov_base + n;
			m.msg_iov->iov_len -= (size_t)n;
		}
	}
	pthread_mutex_unlock(&s->send_lock);
	return error;
}

/* keep_fds takes descriptors that came with a part of the stream. */
static int keep_fds(struct svpi *s, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		int n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (s->nfds + n > s->fdcap) {
			int *more = realloc(s->fds, sizeof(int) * (size_t)(s->nfds + n + 16));

			if (!more) {
				for (int i = 0; i < n; i++)
					close(((int *)CMSG_DATA(c))[i]);
				return ENOMEM;
			}
			s->fds = more;
			s->fdcap = s->nfds + n + 16;
		}
		memcpy(s->fds + s->nfds, CMSG_DATA(c), sizeof(int) * (size_t)n);
		s->nfds += n;
	}
	return 0;
}

static int take_fd(struct svpi *s)
{
	int fd;

	if (s->nfds == 0)
		return -1;
	fd = s->fds[0];
	memmove(s->fds, s->fds + 1, sizeof(int) * (size_t)--s->nfds);
	return fd;
}

/* read_part reads n bytes of the stream; EAGAIN where there is nothing and the caller does not wait. Once a part has
 * come the rest is waited for: the driver sends frames whole. */
static int read_part(struct svpi *s, void *to, size_t n, bool wait)
{
	uint8_t *p = to;

	while (n > 0) {
		char control[CMSG_SPACE(sizeof(int) * MAX_FDS)];
		struct iovec v = { p, n };
		struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
		ssize_t got = recvmsg(s->fd, &m, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));

		if (got < 0) {
			if (errno == EINTR)
				continue;
			return errno == EWOULDBLOCK ? EAGAIN : errno;
		}
		if (got == 0)
			return ECONNRESET;
		int error = keep_fds(s, &m);

		if (error)
			return error;
		p += got;
		n -= (size_t)got;
		wait = true;
	}
	return 0;
}

/* read_frame reads a frame into s->frame. One thread at a time. */
static int read_frame(struct svpi *s, struct frame *h, bool wait)
{
	int error = read_part(s, h, HEADER, wait);
	size_t len;

	if (error)
		return error;
	if (h->length < HEADER || h->length > MAX_FRAME)
		return EPROTO;
	len = h->length - HEADER;
	if (len > s->framecap) {
		uint8_t *more = realloc(s->frame, len);

		if (!more)
			return ENOMEM;
		s->frame = more;
		s->framecap = len;
	}
	return len ? read_part(s, s->frame, len, true) : 0;
}

static void *map_shared(int fd, uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int take_arena(struct svpi *s, size_t len)
{
	struct svpi_arena_body a;
	int fd = take_fd(s);
	void *p;

	if (len != sizeof(a) || fd < 0)
		return EPROTO;
	memcpy(&a, s->frame, sizeof(a));
	if (a.id != s->narenas || a.id >= SVPI_MAX_ARENAS) {
		close(fd);
		return EPROTO;
	}
	p = map_shared(fd, a.size);
	close(fd);
	if (!p)
		return ENOMEM;
	s->arena_size[a.id] = a.size;
	s->arenas[a.id] = p;
	s->narenas++;
	return 0;
}

static int take_events(struct svpi *s, size_t len)
{
	if (len % sizeof(struct svpi_event))
		return EPROTO;
	for (size_t at = 0; at < len; at += sizeof(struct svpi_event)) {
		struct svpi_queued *q = malloc(sizeof(*q));

		if (!q)
			return ENOMEM;
		q->next = NULL;
		memcpy(&q->event, s->frame + at, sizeof(q->event));
		*s->events_end = q;
		s->events_end = &q->next;
	}
	return 0;
}

/* answer gives a request its answer. */
static int answer(struct svpi *s, const struct frame *h, size_t len)
{
	int fds = h->flags >> 8 & 15, fd = -1;
	struct svpi_call *c = s->calls;

	for (int i = 0; i < fds; i++) {
		int one = take_fd(s);

		if (one < 0)
			return EPROTO;
		if (fd >= 0)
			close(one);
		else
			fd = one;
	}
	while (c && c->id != h->id)
		c = c->next;
	if (!c || !(h->flags & FLAG_RESPONSE)) {
		if (fd >= 0)
			close(fd);
		return 0; /* a push of a later minor version */
	}
	c->fd = fd;
	c->len = len;
	c->body = malloc(len ? len : 1);
	c->error = c->body ? 0 : ENOMEM;
	if (c->body)
		memcpy(c->body, s->frame, len);
	if (h->flags & FLAG_ERROR)
		c->error = len >= 8 ? -1 : EPROTO;
	c->done = true;
	return 0;
}

/* take_neighbour takes what the driver says of the programs of the direct path. */
static int take_neighbour(struct svpi *s, const struct frame *h, size_t len)
{
	int fds = h->flags >> 8 & 15, fd = fds == 1 ? take_fd(s) : -1;

	return fds > 1 || !svpi_neighbour_frame(s, h->op, s->frame, len, fd) ? EPROTO : 0;
}

/* dispatch handles the frame that was read; the lock is held. */
static int dispatch(struct svpi *s, const struct frame *h)
{
	size_t len = h->length - HEADER;

	switch (h->op) {
	case SVPI_EVENTS:
		return take_events(s, len);
	case SVPI_ARENA:
		return take_arena(s, len);
	case SVPI_SHARE:
	case SVPI_INTRODUCE:
	case SVPI_DROP:
		return take_neighbour(s, h, len);
	case SVPI_GOODBYE:
		if (len >= sizeof(struct svpi_goodbye)) {
			const struct svpi_goodbye *g = (const void *)s->frame;

			snprintf(s->reason, sizeof(s->reason), "the driver disconnected this program: %.*s",
				 (int)(g->length < sizeof(g->reason) ? g->length : sizeof(g->reason)), (const char *)g->reason);
		}
		return ENODEV;
	}
	return answer(s, h, len);
}

/* end breaks the attachment: everything that waits learns it. The lock is held. */
static void end(struct svpi *s, int error)
{
	if (!s->broken && !s->reason[0])
		snprintf(s->reason, sizeof(s->reason), "the driver is gone: %s", strerror(error));
	s->broken = true;
	for (struct svpi_call *c = s->calls; c; c = c->next) {
		if (!c->done) {
			c->done = true;
			c->error = ENODEV;
		}
	}
	pthread_cond_broadcast(&s->event_news);
}

/* read_some reads and handles frames; the lock is held, and given up while the stream is read. Without wait it takes
 * what is there, with it one frame at least. */
static void read_some(struct svpi *s, bool wait)
{
	struct frame h;
	int error;

	s->reading = true;
	do {
		pthread_mutex_unlock(&s->lock);
		error = read_frame(s, &h, wait);
		pthread_mutex_lock(&s->lock);
		if (!error)
			error = dispatch(s, &h);
		if (error && error != EAGAIN)
			end(s, error);
	} while (!wait && !error);
	s->reading = false;
	pthread_cond_broadcast(&s->news);
}

void svpi_pump(struct svpi *s)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&s->lock);
	if (!s->reading && !s->broken)
		read_some(s, false);
	pthread_mutex_unlock(&s->lock);
	pthread_setcancelstate(cancel, NULL);
}

static void unlink_call(struct svpi *s, struct svpi_call *c)
{
	struct svpi_call **p = &s->calls;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
}

/* ask sends a request and waits for its answer. A thread is not cancelled meanwhile: others may need what it reads. */
static int ask(struct svpi *s, enum svpi_op op, const void *body, size_t len, struct svpi_call *c)
{
	int error, cancel;

	memset(c, 0, sizeof(*c));
	c->fd = -1;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&s->lock);
	if (s->broken) {
		error = fail(ENODEV, s->reason);
		pthread_mutex_unlock(&s->lock);
		pthread_setcancelstate(cancel, NULL);
		return error;
	}
	c->id = ++s->last_id;
	c->next = s->calls;
	s->calls = c;
	pthread_mutex_unlock(&s->lock);
	error = send_frame(s, (uint16_t)op, c->id, body, len);
	pthread_mutex_lock(&s->lock);
	if (error)
		end(s, error);
	while (!c->done) {
		if (s->reading)
			pthread_cond_wait(&s->news, &s->lock);
		else
			read_some(s, true);
	}
	unlink_call(s, c);
	error = c->error;
	if (error == -1) { /* the driver refused */
		uint32_t code;

		memcpy(&code, c->body, 4);
		error = svpi_errno(code);
		snprintf(detail, sizeof(detail), "%.*s", (int)(c->len - 8), (const char *)c->body + 8);
	} else if (error) {
		fail(error, s->broken ? s->reason : strerror(error));
	}
	pthread_mutex_unlock(&s->lock);
	pthread_setcancelstate(cancel, NULL);
	return error;
}

int svpi_call_fd(struct svpi *s, enum svpi_op op, const void *body, size_t len, void *answer, size_t size, int *fd)
{
	struct svpi_call c;
	int error = ask(s, op, body, len, &c);

	if (!error && c.len != size)
		error = fail(EPROTO, "an answer of another size than the protocol has");
	if (!error && size)
		memcpy(answer, c.body, size);
	free(c.body);
	if (fd && !error)
		*fd = c.fd;
	else if (c.fd >= 0)
		close(c.fd);
	return error;
}

int svpi_call(struct svpi *s, enum svpi_op op, const void *body, size_t len, void *answer, size_t size)
{
	return svpi_call_fd(s, op, body, len, answer, size, NULL);
}

int svpi_list(struct svpi *s, enum svpi_op op, const void *body, size_t len, size_t size, void **list, size_t *count)
{
	struct svpi_call c;
	int error = ask(s, op, body, len, &c);

	if (!error && c.len % size)
		error = fail(EPROTO, "a list of another size than the protocol has");
	if (c.fd >= 0)
		close(c.fd);
	if (error) {
		free(c.body);
		return error;
	}
	*list = c.body;
	*count = c.len / size;
	return 0;
}

bool svpi_take(struct svpi *s, bool (*wants)(const struct svpi_event *, void *), void *arg, struct svpi_event *out)
{
	struct svpi_queued **p, *q;
	uint32_t credit = 0;

	pthread_mutex_lock(&s->lock);
	for (p = &s->events; *p && !wants(&(*p)->event, arg); p = &(*p)->next)
		;
	q = *p;
	if (q) {
		*p = q->next;
		if (s->events_end == &q->next)
			s->events_end = p;
		if (++s->taken >= s->about.credits / 4) {
			credit = s->taken;
			s->taken = 0;
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (credit) {
		struct svpi_credit c = { credit };

		send_frame(s, SVPI_CREDIT, 0, &c, sizeof(c));
	}
	if (!q)
		return false;
	*out = q->event;
	free(q);
	return true;
}

/* wake wakes the driver. It writes to a pipe: where the driver has died that is a SIGPIPE, which is none of the program's.
 * Posting is no point where threads are cancelled. */
static void wake(struct svpi *s)
{
	static const struct timespec now = { 0, 0 };
	sigset_t pipe, old, pending;
	int saved = errno, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	if (write(s->wake, "\0\0\0\0\0\0\0\1", 8) < 0 && errno == EPIPE) { /* full is as good as written */
		sigpending(&pending);
		if (sigismember(&pending, SIGPIPE) && !sigismember(&old, SIGPIPE))
			sigtimedwait(&pipe, NULL, &now);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

void svpi_doorbell(struct svpi *s, uint32_t handle, uint32_t *last)
{
	if (__builtin_expect(svpi_ring(&s->doorbells, handle, last), 0))
		wake(s);
}

void *svpi_memory(struct svpi *s, const struct svpi_ring *r)
{
	void *p = NULL;

	pthread_mutex_lock(&s->lock);
	if (r->arena < s->narenas && r->offset <= s->arena_size[r->arena] && r->size <= s->arena_size[r->arena] - r->offset)
		p = (uint8_t *)s->arenas[r->arena] + r->offset;
	pthread_mutex_unlock(&s->lock);
	return p;
}

/* Attaching. */

static int dial(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *path = getenv("SOFTVPI_SOCKET"), *dir = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	int fd, n;

	if (path && *path)
		n = snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	else if (dir && *dir == '/')
		n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/softvpi/driver.sock", dir);
	else
		n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/softvpi-%d/driver.sock", tmp && *tmp ? tmp : "/tmp", (int)getuid());
	if (n >= (int)sizeof(a.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	do
		n = connect(fd, (struct sockaddr *)&a, sizeof(a));
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		n = errno;
		close(fd);
		errno = n;
		return -1;
	}
	return fd;
}

static void program_name(uint8_t name[64])
{
	extern char *program_invocation_short_name;

	memset(name, 0, 64);
	strncpy((char *)name, program_invocation_short_name, 63);
}

/* show lets the driver look at the memory of this process, where the kernel has such a rule, and puts a nonce where it
 * will; 0, or an errno. */
static int show(struct svpi *s, uint8_t probe[64], uint64_t *addr, uint8_t nonce[16])
{
	struct ucred driver;
	socklen_t n = sizeof(driver);

	if (getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &driver, &n) == 0 && driver.pid > 0)
		prctl(PR_SET_PTRACER, (unsigned long)driver.pid, 0, 0, 0);
	if (getrandom(probe, 16, 0) != 16)
		return EIO;
	memcpy(nonce, probe, 16);
	*addr = (uintptr_t)probe;
	return 0;
}

/* hello introduces the program, and takes welcome and the first arena. */
static int hello(struct svpi *s)
{
	struct svpi_hello q = { .magic = SVPI_MAGIC, .major = SVPI_MAJOR, .minor = SVPI_MINOR,
				.features = SVPI_FEATURE_SEGMENTS | SVPI_FEATURE_PROCESS_VM | SVPI_FEATURE_COPIER };
	const char *path = getenv("SOFTVPI_MEMORY_PATH"), *direct = getenv("SOFTVPI_DIRECT");
	_Alignas(64) uint8_t probe[64];
	struct frame h;
	int error, wake, copier;

	error = show(s, probe, &q.probe_addr, q.nonce);
	if (error)
		return error;
	if (path && *path)
		q.path = !strcmp(path, "process_vm") ? 2 : !strcmp(path, "copier") ? 3 : 0;
	if (!direct || strcmp(direct, "off"))
		q.features |= SVPI_FEATURE_DIRECT;
	program_name(q.name);
	error = send_frame(s, SVPI_HELLO, 1, &q, sizeof(q));
	if (!error)
		error = read_frame(s, &h, true);
	if (error)
		return error;
	if (h.op != SVPI_HELLO || !(h.flags & FLAG_RESPONSE))
		return EPROTO;
	if (h.flags & FLAG_ERROR) {
		uint32_t code = 0;

		if (h.length < HEADER + 8)
			return EPROTO;
		memcpy(&code, s->frame, 4);
		snprintf(detail, sizeof(detail), "%.*s", (int)(h.length - HEADER - 8), (const char *)s->frame + 8);
		return svpi_errno(code);
	}
	if (h.length != HEADER + sizeof(s->about))
		return EPROTO;
	memcpy(&s->about, s->frame, sizeof(s->about));
	s->direct = s->about.features & SVPI_FEATURE_DIRECT;
	wake = take_fd(s);
	copier = s->about.copier_bytes ? take_fd(s) : -1;
	s->wake = wake;
	if (wake < 0 || s->about.magic != SVPI_MAGIC || s->about.major != SVPI_MAJOR || s->about.credits == 0)
		return EPROTO;
	fcntl(wake, F_SETFL, fcntl(wake, F_GETFL) | O_NONBLOCK);
	if (s->about.copier_bytes) {
		s->copier = copier < 0 ? NULL : map_shared(copier, s->about.copier_bytes);
		if (copier >= 0)
			close(copier);
		if (!s->copier)
			return EPROTO;
	}
	error = read_frame(s, &h, true);
	if (error)
		return error;
	if (h.op != SVPI_ARENA || (error = take_arena(s, h.length - HEADER)))
		return EPROTO;
	s->doorbells.h = s->arenas[0];
	s->doorbells.entries = (uint8_t *)s->arenas[0] + sizeof(struct svpi_ring_header);
	s->doorbells.count = s->about.doorbells;
	return 0;
}

static void release(struct svpi *s)
{
	svpi_neighbours_end(s);
	if (s->fd >= 0)
		close(s->fd);
	if (s->wake >= 0)
		close(s->wake);
	for (uint32_t i = 0; i < s->narenas; i++)
		munmap(s->arenas[i], s->arena_size[i]);
	while (s->nfds > 0)
		close(s->fds[--s->nfds]);
	while (s->events) {
		struct svpi_queued *q = s->events;

		s->events = q->next;
		free(q);
	}
	if (s->copier)
		munmap(s->copier, s->about.copier_bytes);
	free(s->fds);
	free(s->frame);
	munmap(s, sizeof(*s));
}

static void locks(struct svpi *s)
{
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->send_lock, NULL);
	pthread_mutex_init(&s->move_lock, NULL);
	pthread_cond_init(&s->news, NULL);
	pthread_cond_init(&s->event_news, NULL);
}

static struct svpi *attach(void)
{
	struct timeval limit = { HELLO_MS / 1000, 0 }, none = { 0, 0 };
	struct svpi *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int error;

	if (s == MAP_FAILED)
		return NULL;
	s->wake = -1;
	s->pid = getpid();
	s->events_end = &s->events;
	locks(s);
	s->fd = dial();
	if (s->fd < 0) {
		error = fail(errno, "no driver answers (start it with softvpi up)");
		release(s);
		errno = error;
		return NULL;
	}
	setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	error = hello(s);
	setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	if (!error && s->copier)
		error = svpi_copier_start(s);
	if (error) {
		release(s);
		errno = error == EAGAIN ? ETIMEDOUT : error;
		return NULL;
	}
	return s;
}

/* The attachment of this process, and those that are still used. A child of fork makes its own when it asks for one. */
static pthread_mutex_t current_lock = PTHREAD_MUTEX_INITIALIZER;
static struct svpi *current, *all;

/* A fork finds no lock taken: the child has this thread alone, which owns them. */
static void before_fork(void)
{
	pthread_mutex_lock(&current_lock);
	for (struct svpi *s = all; s; s = s->next) {
		pthread_mutex_lock(&s->lock);
		pthread_mutex_lock(&s->send_lock);
	}
}

static void in_parent(void)
{
	for (struct svpi *s = all; s; s = s->next) {
		pthread_mutex_unlock(&s->send_lock);
		pthread_mutex_unlock(&s->lock);
	}
	pthread_mutex_unlock(&current_lock);
}

static void in_child(void)
{
	pthread_mutex_init(&current_lock, NULL);
	current = NULL;
	for (struct svpi *s = all; s; s = s->next) {
		locks(s);
		s->reading = false;
		s->calls = NULL; /* of threads that are not here */
		s->moved = true;
	}
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

int svpi_move(struct svpi *s)
{
	_Alignas(64) uint8_t probe[64];
	struct svpi_moved q;
	int error = 0;

	pthread_mutex_lock(&s->move_lock);
	if (s->moved) {
		error = show(s, probe, &q.probe_addr, q.nonce);
		if (!error)
			error = svpi_call(s, SVPI_MOVED, &q, sizeof(q), NULL, 0);
		if (!error && s->copier)
			error = svpi_copier_start(s);
		if (!error) {
			s->pid = getpid();
			s->moves++;
			s->moved = false;
		}
	}
	pthread_mutex_unlock(&s->move_lock);
	return error;
}

struct svpi *svpi_get(void)
{
	struct svpi *s;

	pthread_mutex_lock(&current_lock);
	if (current && current->broken)
		current = NULL; /* whoever uses it still keeps it */
	if (!current) {
		current = attach();
		if (current) {
			current->next = all;
			all = current;
		}
	}
	s = current;
	if (s)
		s->users++;
	pthread_mutex_unlock(&current_lock);
	return s;
}

void svpi_put(struct svpi *s)
{
	int users;

	pthread_mutex_lock(&current_lock);
	users = --s->users;
	if (users == 0) {
		struct svpi **p = &all;

		if (current == s)
			current = NULL;
		while (*p != s)
			p = &(*p)->next;
		*p = s->next;
	}
	pthread_mutex_unlock(&current_lock);
	if (users > 0)
		return;
	if (!s->moved)
		send_frame(s, SVPI_GOODBYE, 0, NULL, 0);
	if (s->copier && !s->moved)
		svpi_copier_stop(s);
	release(s);
}
