/* Finding the memory that requests of the direct path name, and copying to and from it. */
#define _GNU_SOURCE
#include <sys/uio.h>

#include "initiator.h"
#include "place.h"
#include "segment.h"

enum { TABLE_PROBES = 8, MAX_MESSAGE = 64 << 20 };

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

enum svpi_reason svpi_reach(struct svpi_initiator *i, uint32_t key, uint64_t addr, uint64_t n, uint32_t need, uint8_t **to)
{
	const struct svpi_key *k = find(i->theirs, i->terms.peer_adapter, key);
	enum svpi_reason why;
	uint8_t *base;
	uint64_t at;
	size_t size;

	if (!k || !within(k, i->terms.peer_pd, addr, n, need, &at))
		return SVPI_REMOTE_MEMORY;
	if (!k->segment)
		return SVPI_NOT_SHARED;
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

bool svpi_transfer(struct svpi_initiator *i, const struct svpi_pieces *from, const struct svpi_pieces *to, size_t n)
{
	const struct svpi_piece *src = from->list, *dst = to->list;
	size_t of = 0, at = 0;

	while (n > 0) {
		size_t k = src->length - of, room = dst->length - at;

		k = k < room ? k : room;
		k = k < n ? k : n;
		n -= k;
		if (!copy(i->s, dst, at, src, of, k, n == 0))
			return false;
		of += k;
		at += k;
		if (of == src->length)
			src++, of = 0;
		if (at == dst->length)
			dst++, at = 0;
	}
	return true;
}
