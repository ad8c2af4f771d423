/* Memory to which the peer may write, addressed by offset. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rsocket.h"

/* rs_tell_mappings tells the peer of mappings that it does not know yet, as far as sends can be posted. */
void rs_tell_mappings(struct rs *s)
{
	for (struct rs_mapping *m = s->mappings; m; m = m->next) {
		struct rs_iomap map = { m->offset, { (uintptr_t)m->mr->addr, m->mr->rkey, (uint32_t)m->mr->length } };
		struct ibv_sge sge = { (uintptr_t)&map, sizeof(map), 0 };

		if (m->told)
			continue;
		if (s->state != RS_CONNECTED || s->slots == 0 || m->index >= s->peer_iomaps.length)
			return;
		if (s->swap) {
			map.offset = __builtin_bswap64(map.offset);
			map.sge = (struct rs_sge){ __builtin_bswap64(map.sge.addr), __builtin_bswap32(map.sge.key),
						   __builtin_bswap32(map.sge.length) };
		}
		if (rs_post(s, rs_message(RS_IOMAP, m->index), &sge, 1, s->peer_iomaps.addr + m->index * sizeof(map),
			    s->peer_iomaps.key, true))
			return;
		m->told = true;
	}
}

static uint32_t free_index(const struct rs *s)
{
	for (uint32_t i = 0;; i++) {
		const struct rs_mapping *m = s->mappings;

		while (m && m->index != i)
			m = m->next;
		if (!m)
			return i;
	}
}

static int map(struct rs *s, void *buf, size_t len, int prot, off_t *offset)
{
	struct rs_mapping *m, **end;
	int access = IBV_ACCESS_LOCAL_WRITE | (prot & PROT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
		     (prot & PROT_READ ? IBV_ACCESS_REMOTE_READ : 0);
	struct ibv_pd *pd = s->id->verbs ? device_pd(s->id->verbs) : NULL;

	if (!pd)
		return ENOTCONN;
	if (len > UINT32_MAX || prot & ~(PROT_READ | PROT_WRITE))
		return EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return ENOMEM;
	m->index = free_index(s);
	if (m->index >= 128) {
		free(m);
		return ENOBUFS;
	}
	m->mr = ibv_reg_mr(pd, buf, len, access);
	if (!m->mr) {
		free(m);
		return errno;
	}
	m->offset = *offset == -1 ? (uint64_t)(uintptr_t)buf : (uint64_t)*offset;
	*offset = (off_t)m->offset;
	for (end = &s->mappings; *end; end = &(*end)->next)
		;
	*end = m;
	rs_poll_queue(s);
	return 0;
}

off_t riomap(int fd, void *buf, size_t len, int prot, int flags, off_t offset);
EXPORT off_t riomap(int fd, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rs *s = rs_enter(fd);
	int error;

	if (!s)
		return -1;
	error = flags ? EINVAL : map(s, buf, len, prot, &offset);
	rs_leave(s);
	return error ? result(error) : offset;
}

int riounmap(int fd, void *buf, size_t len);
EXPORT int riounmap(int fd, void *buf, size_t len)
{
	struct rs *s = rs_enter(fd);
	struct rs_mapping **p, *m;

	if (!s)
		return -1;
	for (p = &s->mappings; *p && ((*p)->mr->addr != buf || (*p)->mr->length != len); p = &(*p)->next)
		;
	m = *p;
	if (m) {
		*p = m->next;
		ibv_dereg_mr(m->mr);
		free(m);
	}
	rs_leave(s);
	return result(m ? 0 : EINVAL);
}

void rs_unmap_all(struct rs *s)
{
	while (s->mappings) {
		struct rs_mapping *m = s->mappings;

		s->mappings = m->next;
		ibv_dereg_mr(m->mr);
		free(m);
	}
}

static bool find(const struct rs *s, uint64_t offset, struct rs_iomap *out)
{
	for (uint32_t i = 0; i < s->iomap_size; i++) {
		*out = *(struct rs_iomap *)&s->iomaps[i];
		if (out->sge.length && offset >= out->offset && offset < out->offset + out->sge.length)
			return true;
	}
	return false;
}

/* Writes use no receive of the peer, so they need no credit. */
static bool may_write(const struct rs *s) { return !s->writable || (s->slots > 0 && s->send_free > 0); }

static int write_some(struct rs *s, const uint8_t *buf, size_t want, uint64_t offset, uint32_t *done)
{
	struct rs_iomap to;
	struct ibv_sge sge;
	uint32_t n = RS_MAX_TRANSFER;

	if (!find(s, offset, &to))
		return EINVAL;
	if (n > want)
		n = (uint32_t)want;
	if (n > s->send_free)
		n = s->send_free;
	if (n > s->send_bytes - s->send_at)
		n = s->send_bytes - s->send_at;
	if (n > to.offset + to.sge.length - offset)
		n = (uint32_t)(to.offset + to.sge.length - offset);
	memcpy(s->send_buffer + s->send_at, buf, n);
	sge = (struct ibv_sge){ (uintptr_t)s->send_buffer + s->send_at, n, s->send_mr->lkey };
	s->send_at = (s->send_at + n) % s->send_bytes;
	s->send_free -= n;
	*done = n;
	return rs_post(s, rs_message(RS_WRITE, n), &sge, 1, to.sge.addr + (offset - to.offset), to.sge.key, n <= s->inline_size);
}

size_t riowrite(int fd, const void *buf, size_t count, off_t offset, int flags);
EXPORT size_t riowrite(int fd, const void *buf, size_t count, off_t offset, int flags)
{
	struct rs *s = rs_enter(fd);
	size_t done = 0;
	bool lone = false; /* nothing else is in progress */
	int error = 0;

	if (!s)
		return (size_t)-1;
	while (done < count && !error) {
		uint32_t n = 0;

		error = rs_await(s, may_write, s->nonblock || flags & MSG_DONTWAIT);
		lone = rs_sends_done(s);
		if (!error && !s->writable)
			error = ECONNRESET;
		if (!error)
			error = write_some(s, (const uint8_t *)buf + done, count - done, (uint64_t)offset + done, &n);
		if (!error)
			done += n;
	}
	rs_leave(s);
	if (error && done == 0) {
		errno = error;
		return (size_t)-1;
	}
	/* The caller will probably look at memory for an answer, and call nothing here that would yield: on few
	 * processors the driver would have to wait for the end of the time slice. In a stream the driver has work
	 * anyway. */
	if (lone)
		sched_yield();
	return done;
}
