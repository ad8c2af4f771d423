/* Finding the memory that requests of the direct path name, and copying to and from it. */
#define _GNU_SOURCE
#include <sys/uio.h>

#include "initiator.h"
#include "place.h"
#include "segment.h"

enum { TABLE_PROBES = 8, MAX_MESSAGE = 64 << 20, TAIL = 8 };

static const struct svpi_key *find(const struct svpi_key *table, uint32_t adapter, uint32_t key)
{
	for (uint32_t n = 0; key && n < TABLE_PROBES; n++) {
		const struct svpi_key *k = &table[((key >> 8) + n) % SVPI_TABLE_KEYS];

		if (__atomic_load_n(&k->key, __ATOMIC_ACQUIRE) == key && k->adapter == adapter)
			return k;
	}
	return NULL;
}

/* within tells whether n bytes from addr on lie in the region, and whether it has this domain and these rights. *at
 * is the offset within the region. */
static bool within(const struct svpi_key *k, uint32_t pd, uint64_t addr, uint64_t n, uint32_t need, uint64_t *at)
{
	*at = addr - k->start;
	return k->pd == pd && (k->access & need) == need && *at <= k->length && n <= k->length - *at;
}

/* held tells whether one of the program's own segments is still mapped: regions may outlive their segment. */
static bool held(struct svpi_initiator *i, uint32_t number)
{
	uint32_t generation = svpi_segment_generation(), *known = &i->own_known[number % SVPI_SEGMENTS_KNOWN];

	if (i->own_generation != generation) {
		memset(i->own_known, 0, sizeof(i->own_known));
		i->own_generation = generation;
	}
	if (*known != number && svpi_segment_held(i->s, number))
		*known = number;
	return *known == number;
}

enum svpi_reason svpi_gather(struct svpi_initiator *i, const struct svpi_send_entry *e, uint32_t need, struct svpi_pieces *p)
{
	const struct svpi_sge *sge = (const void *)(e + 1);

	p->count = 0;
	p->total = 0;
	p->far = false;
	if (e->flags & SVPI_WR_INLINE) {
		p->total = e->inline_bytes;
		p->list[0] = (struct svpi_piece){ (uint8_t *)(e + 1), e->inline_bytes, false };
		p->count = e->inline_bytes > 0;
		return SVPI_DONE;
	}
	if (e->sges > SVPI_MAX_SGE)
		return SVPI_OTHER_REQUEST;
	for (int n = 0; n < e->sges; n++) {
		const struct svpi_key *k;
		uint64_t at;

		if (sge[n].length == 0)
			continue;
		k = find(i->own, i->terms.own_adapter, sge[n].lkey);
		if (!k || !within(k, i->terms.own_pd, sge[n].addr, sge[n].length, need, &at) ||
		    (k->segment && !held(i, k->segment)))
			return SVPI_LOCAL_MEMORY;
		p->total += sge[n].length;
		if (p->total > MAX_MESSAGE)
			return SVPI_OTHER_REQUEST;
		p->list[p->count++] = (struct svpi_piece){ (uint8_t *)(uintptr_t)(k->address + at), sge[n].length, !k->segment };
	}
	return SVPI_DONE;
}

/* segment finds a segment of the peer. */
static enum svpi_reason segment(struct svpi_initiator *i, uint32_t number, uint8_t **base, size_t *size)
{
	uint32_t generation = atomic_load(&i->peer->generation), n = number % SVPI_SEGMENTS_KNOWN;
	bool refused;

	if (i->generation != generation) {
		memset(i->known, 0, sizeof(i->known));
		i->generation = generation;
	}
	if (i->known[n].number != number) {
		uint8_t *at = svpi_segment_of(i->s, i->peer, number, size, &refused);

		if (!at) {
			i->missing = number;
			return refused ? SVPI_NOT_SHARED : SVPI_NOT_MAPPED;
		}
		i->known[n].number = number;
		i->known[n].at = at;
		i->known[n].size = *size;
	}
	*base = i->known[n].at;
	*size = i->known[n].size;
	return SVPI_DONE;
}

/* process tells whether this program may copy to and from the peer's memory that is in no segment. */
static enum svpi_reason process(struct svpi_initiator *i)
{
	uint32_t number = i->terms.peer_process;

	if (!number)
		return SVPI_NOT_SHARED;
	if (atomic_load(&i->peer->process.number) != number)
		return SVPI_NOT_INTRODUCED;
	return i->peer->process.reached ? SVPI_DONE : SVPI_NOT_REACHED;
}

enum svpi_reason svpi_reach(struct svpi_initiator *i, uint32_t key, uint64_t addr, uint64_t n, uint32_t need, uint8_t **to,
			    bool *far)
{
	const struct svpi_key *k = find(i->theirs, i->terms.peer_adapter, key);
	enum svpi_reason why;
	uint8_t *base;
	uint64_t at;
	size_t size;

	if (!k || !within(k, i->terms.peer_pd, addr, n, need, &at))
		return SVPI_REMOTE_MEMORY;
	*far = !k->segment;
	if (*far) {
		*to = (uint8_t *)(uintptr_t)(k->address + at);
		return process(i);
	}
	why = segment(i, k->segment, &base, &size);
	if (why != SVPI_DONE)
		return why;
	at += k->offset;
	if (at > size || n > size - at)
		return SVPI_REMOTE_MEMORY;
	*to = base + at;
	return SVPI_DONE;
}

/* fetch copies from memory that the program may have unmapped; then it fails instead of faulting. */
static bool fetch(struct svpi *s, uint8_t *to, const uint8_t *from, size_t n, size_t tail)
{
	uint8_t end[8];
	struct iovec into[2] = { { to, n - tail }, { end, tail } }, of = { (void *)from, n };

	if (process_vm_readv(s->pid, into, 2, &of, 1, 0) != (ssize_t)n)
		return false;
	svpi_store_tail(to + n - tail, end, tail);
	return true;
}

/* store copies to such memory. */
static bool store(struct svpi *s, uint8_t *to, const uint8_t *from, size_t n)
{
	struct iovec of = { (void *)from, n }, into = { to, n };

	return n == 0 || process_vm_writev(s->pid, &of, 1, &into, 1, 0) == (ssize_t)n;
}

static bool copy(struct svpi *s, const struct svpi_piece *to, size_t at, const struct svpi_piece *from, size_t of, size_t n,
		 bool last)
{
	uint8_t *dst = to->at + at;
	const uint8_t *src = from->at + of;
	size_t tail = last ? svpi_tail(dst, n) : 0;

	if (from->own)
		return fetch(s, dst, src, n, tail);
	if (to->own)
		return store(s, dst, src, n - tail) && store(s, dst + n - tail, src + n - tail, tail);
	if (last)
		svpi_place(dst, src, n);
	else
		memcpy(dst, src, n);
	return true;
}

/* list makes the list of the first n bytes of pieces for the kernel; it is shorter if they are. */
static int list(const struct svpi_pieces *p, size_t n, struct iovec *v)
{
	int count = 0;

	for (; n > 0 && count < p->count; count++) {
		size_t k = p->list[count].length < n ? p->list[count].length : n;

		v[count] = (struct iovec){ p->list[count].at, k };
		n -= k;
	}
	return count;
}

/* split makes the last bytes a piece of their own: the kernel takes the pieces in order (process_vm_writev(2)), and
 * the peer may wait for the last byte. */
static int split(struct iovec *v, int count)
{
	struct iovec *last = &v[count - 1];

	if (last->iov_len <= TAIL)
		return count;
	last->iov_len -= TAIL;
	v[count] = (struct iovec){ (uint8_t *)last->iov_base + last->iov_len, TAIL };
	return count + 1;
}

/* exchange copies to or from the peer's process. */
static enum svpi_reason exchange(struct svpi_initiator *i, const struct svpi_pieces *from, const struct svpi_pieces *to, size_t n)
{
	struct iovec own[SVPI_MAX_SGE], theirs[SVPI_MAX_SGE + 1];
	bool writes = to->far;
	int owns = list(writes ? from : to, n, own), count = list(writes ? to : from, n, theirs);

	if (writes)
		count = split(theirs, count);
	return svpi_process_copy(&i->peer->process, writes, own, owns, theirs, count, n) ? SVPI_DONE : SVPI_NOT_COPIED;
}

enum svpi_reason svpi_transfer(struct svpi_initiator *i, const struct svpi_pieces *from, const struct svpi_pieces *to, size_t n)
{
	const struct svpi_piece *src = from->list, *dst = to->list;
	size_t of = 0, at = 0;

	if (n > 0 && (from->far || to->far))
		return exchange(i, from, to, n);
	while (n > 0) {
		size_t k = src->length - of, room = dst->length - at;

		k = k < room ? k : room;
		k = k < n ? k : n;
		n -= k;
		if (!copy(i->s, dst, at, src, of, k, n == 0))
			return SVPI_LOCAL_MEMORY;
		of += k;
		at += k;
		if (of == src->length)
			src++, of = 0;
		if (at == dst->length)
			dst++, at = 0;
	}
	return SVPI_DONE;
}
