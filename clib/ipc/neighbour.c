#define _GNU_SOURCE
#include "neighbour.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "initiator.h"
#include "stream.h"

enum { SHARE_OWN_KEYS = 1, SHARE_KEYS, SHARE_ARENA, SHARE_AREA };
enum { RECALL_MS = 5000 }; /* as long as the driver would wait */
enum { MOST_SEGMENTS = 1 << 16 }; /* of one neighbour, including refused ones */

static struct svpi_mapping map(int fd, uint64_t size, int rights)
{
	struct svpi_mapping m = { NULL, size };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || size == 0 || (uint64_t)st.st_size < size || size > SIZE_MAX / 2)
		return (struct svpi_mapping){ 0 };
	m.at = mmap(NULL, size, rights, MAP_SHARED, fd, 0);
	return m.at == MAP_FAILED ? (struct svpi_mapping){ 0 } : m;
}

static void unmap(struct svpi_mapping *m)
{
	if (m->at)
		munmap(m->at, m->size);
	*m = (struct svpi_mapping){ 0 };
}

/* retire puts zeros in place of records: they may be read outside of operations, too. */
static void retire(struct svpi_mapping *m)
{
	if (m->at)
		mmap(m->at, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

/* append adds a mapping to a list; false: out of memory. */
static bool append(struct svpi_mapping **list, uint32_t *n, struct svpi_mapping m)
{
	struct svpi_mapping *more = realloc(*list, sizeof(*more) * (*n + 1));

	if (!more) {
		unmap(&m);
		return false;
	}
	*list = more;
	more[(*n)++] = m;
	return true;
}

static struct svpi_program *find(struct svpi *s, uint32_t id)
{
	struct svpi_program *p = s->neighbours.programs;

	while (p && p->id != id)
		p = p->next;
	return p;
}

static struct svpi_program *known(struct svpi *s, uint32_t id)
{
	struct svpi_program *p = find(s, id);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->id = id;
	p->users = 1;
	p->next = s->neighbours.programs;
	s->neighbours.programs = p;
	return p;
}

static void put(struct svpi_program *p)
{
	if (--p->users > 0)
		return;
	for (uint32_t i = 0; i < p->nareas; i++)
		unmap(&p->areas[i]);
	free(p->areas);
	free(p->arenas);
	free(p->segments);
	free(p);
}

void svpi_program_put(struct svpi *s, struct svpi_program *p)
{
	pthread_mutex_lock(&s->lock);
	put(p);
	pthread_mutex_unlock(&s->lock);
}

/* Segments. */

/* place_of returns the index of a segment in the sorted list, or the index where it would be inserted. */
static uint32_t place_of(const struct svpi_program *p, uint32_t number)
{
	uint32_t from = 0, to = p->nsegments;

	while (from < to) {
		uint32_t at = from + (to - from) / 2;

		if (p->segments[at].number < number)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static struct svpi_lent_segment *segment(const struct svpi_program *p, uint32_t number)
{
	uint32_t at = place_of(p, number);

	return at < p->nsegments && p->segments[at].number == number ? &p->segments[at] : NULL;
}

static bool ask_for(struct svpi_program *p, uint32_t number)
{
	uint32_t at = place_of(p, number);
	struct svpi_lent_segment *more;

	if (p->nsegments == MOST_SEGMENTS)
		return false;
	more = realloc(p->segments, sizeof(*more) * (p->nsegments + 1));
	if (!more)
		return false;
	p->segments = more;
	memmove(more + at + 1, more + at, sizeof(*more) * (p->nsegments++ - at));
	more[at] = (struct svpi_lent_segment){ .number = number };
	return true;
}

void *svpi_segment_of(struct svpi *s, struct svpi_program *p, uint32_t number, size_t *size, bool *refused)
{
	struct svpi_lent_segment *g;
	void *at = NULL;

	pthread_mutex_lock(&s->lock);
	g = segment(p, number);
	*refused = p->gone || (g && g->refused);
	if (g && g->memory.at) {
		at = g->memory.at;
		*size = g->memory.size;
	}
	pthread_mutex_unlock(&s->lock);
	return at;
}

bool svpi_segment_map(struct svpi *s, struct svpi_program *p, uint32_t number)
{
	struct svpi_map_segment_args q = { p->id, number };
	struct svpi_segment_reply r = { 0 };
	struct svpi_mapping m = { 0 };
	struct svpi_lent_segment *g;
	bool first = false, there = false;
	int fd = -1;

	pthread_mutex_lock(&s->lock);
	if (!p->gone && !segment(p, number))
		first = ask_for(p, number);
	pthread_mutex_unlock(&s->lock);
	if (!first)
		return false; /* another thread is asking; this request is left to the driver */
	if (!svpi_call_fd(s, SVPI_MAP_SEGMENT, &q, sizeof(q), &r, sizeof(r), &fd))
		m = map(fd, r.size, PROT_READ | PROT_WRITE);
	if (fd >= 0)
		close(fd);
	pthread_mutex_lock(&s->lock);
	g = segment(p, number);
	if (g && !p->gone) { /* otherwise it was dropped meanwhile */
		g->memory = m;
		g->refused = !m.at;
		there = m.at;
		m.at = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	unmap(&m);
	return there;
}

static void drop_segment(struct svpi_program *p, uint32_t number)
{
	uint32_t at = place_of(p, number);

	if (at == p->nsegments || p->segments[at].number != number)
		return;
	unmap(&p->segments[at].memory);
	memmove(p->segments + at, p->segments + at + 1, sizeof(*p->segments) * (--p->nsegments - at));
	atomic_fetch_add(&p->generation, 1);
}

/* drop_program removes a neighbour that has ended. No operation is using its memory. Its records are still read until
 * the queue pairs of this program that were connected to it end. */
static void drop_program(struct svpi *s, struct svpi_program *p)
{
	struct svpi_program **at = &s->neighbours.programs;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->gone = true;
	for (uint32_t i = 0; i < p->nareas; i++)
		retire(&p->areas[i]);
	for (uint32_t i = 0; i < p->narenas; i++)
		unmap(&p->arenas[i]);
	for (uint32_t i = 0; i < p->nsegments; i++)
		unmap(&p->segments[i].memory);
	p->narenas = p->nsegments = 0;
	unmap(&p->keys);
	atomic_fetch_add(&p->generation, 1);
	put(p);
}

/* Frames. */

/* take_share keeps memory that the driver passed. If it cannot be mapped, for want of address space, the direct path
 * does without. */
static bool take_share(struct svpi *s, const struct svpi_share_body *b, int fd)
{
	const bool keys = b->kind == SHARE_OWN_KEYS || b->kind == SHARE_KEYS;
	struct svpi_program *p = NULL;
	struct svpi_mapping m;

	if (keys && b->size != (uint64_t)SVPI_TABLE_KEYS * sizeof(struct svpi_key))
		return false;
	if (b->kind != SHARE_OWN_KEYS && !(p = known(s, b->program)))
		return true;
	m = map(fd, b->size, keys ? PROT_READ : PROT_READ | PROT_WRITE);
	if (!p) {
		unmap(&s->neighbours.own);
		s->neighbours.own = m;
		return true;
	}
	if (!m.at)
		p->incomplete = true;
	switch (b->kind) {
	case SHARE_KEYS:
		unmap(&p->keys);
		p->keys = m;
		return true;
	case SHARE_ARENA:
		if (b->number != p->narenas)
			break;
		if (!append(&p->arenas, &p->narenas, m))
			p->incomplete = true;
		return true;
	case SHARE_AREA:
		if (b->number != p->nareas)
			break;
		if (!append(&p->areas, &p->nareas, m))
			p->incomplete = true;
		return true;
	}
	unmap(&m);
	return b->kind > SHARE_AREA || p->incomplete; /* kind of a later version; or a piece out of order, allowed after one was lost */
}

static struct svpi_slot **slot_of(struct svpi *s, uint32_t handle)
{
	struct svpi_slot **at = &s->neighbours.slots[handle % SVPI_SLOTS];

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

/* take_introduction gives a queue pair its initiator. */
static bool take_introduction(struct svpi *s, const struct svpi_introduction *b)
{
	struct svpi_program *p = find(s, b->program);
	struct svpi_slot *slot = *slot_of(s, b->qp);
	struct svpi_initiator *now, *i;
	struct svpi_direction *record;

	if (!p || b->role > 1)
		return false;
	if (b->area >= p->nareas)
		return p->incomplete;
	if (!p->areas[b->area].at)
		return true; /* the area could not be mapped */
	if (b->offset % 64 || b->offset > p->areas[b->area].size ||
	    p->areas[b->area].size - b->offset < 2 * sizeof(*record))
		return false;
	if (!slot || slot->number != b->number)
		return true; /* the queue pair has ended */
	record = (void *)((uint8_t *)p->areas[b->area].at + b->offset);
	now = atomic_load(&slot->initiator);
	if (now && now->dir == &record[b->role])
		return true; /* repeated because the neighbour has shared more memory */
	i = svpi_initiator_new(s, p, b, record);
	if (!i)
		return true;
	p->users++;
	i->older = now;
	atomic_store(&slot->initiator, i);
	atomic_store(&slot->peers_lease, &record[1 - b->role].lease);
	return true;
}

static bool take_drop(struct svpi *s, const struct svpi_drop_body *b)
{
	struct svpi_program *p = find(s, b->program);

	if (p && b->segment)
		drop_segment(p, b->segment);
	else if (p)
		drop_program(s, p);
	return true;
}

static bool take_process(struct svpi *s, const struct svpi_process_body *b)
{
	struct svpi_program *p = find(s, b->program);

	if (p)
		svpi_process_take(&p->process, b);
	return true;
}

static bool take(struct svpi *s, uint16_t op, const void *body, size_t len, int fd)
{
	union {
		struct svpi_share_body share;
		struct svpi_introduction introduction;
		struct svpi_process_body process;
		struct svpi_drop_body drop;
	} b;

	if (len > sizeof(b))
		return false;
	memcpy(&b, body, len);
	switch (op) {
	case SVPI_SHARE:
		return len == sizeof(b.share) && fd >= 0 && take_share(s, &b.share, fd);
	case SVPI_INTRODUCE:
		return len == sizeof(b.introduction) && take_introduction(s, &b.introduction);
	case SVPI_PROCESS:
		return len == sizeof(b.process) && take_process(s, &b.process);
	}
	return len == sizeof(b.drop) && take_drop(s, &b.drop);
}

bool svpi_neighbour_frame(struct svpi *s, uint16_t op, const void *body, size_t len, int fd)
{
	bool ok = take(s, op, body, len, fd);

	if (fd >= 0)
		close(fd);
	atomic_store(&s->doorbells.h->taken, ++s->neighbours.took);
	return ok;
}

void svpi_slot_add(struct svpi *s, struct svpi_slot *slot, uint32_t handle, uint32_t number)
{
	struct svpi_slot **first;

	pthread_mutex_lock(&s->lock);
	slot->handle = handle;
	slot->number = number;
	first = &s->neighbours.slots[handle % SVPI_SLOTS];
	slot->next = *first;
	*first = slot;
	pthread_mutex_unlock(&s->lock);
}

void svpi_slot_remove(struct svpi *s, struct svpi_slot *slot)
{
	struct svpi_slot **at;
	struct svpi_initiator *i;

	pthread_mutex_lock(&s->lock);
	at = &s->neighbours.slots[slot->handle % SVPI_SLOTS];
	while (*at && *at != slot)
		at = &(*at)->next;
	if (*at)
		*at = slot->next;
	pthread_mutex_unlock(&s->lock);
	i = atomic_exchange(&slot->initiator, NULL);
	if (i) {
		svpi_initiator_reap(i);
		svpi_initiator_free(i);
	}
}

void *svpi_ring_memory(struct svpi *s, struct svpi_program *p, const struct svpi_ring_at *r, uint64_t size)
{
	uint8_t *at = NULL;
	uint64_t room = 0;

	pthread_mutex_lock(&s->lock);
	if (p && r->arena < p->narenas && p->arenas[r->arena].at) {
		at = p->arenas[r->arena].at;
		room = p->arenas[r->arena].size;
	} else if (!p && r->arena < s->narenas) {
		at = s->arenas[r->arena];
		room = s->arena_size[r->arena];
	}
	pthread_mutex_unlock(&s->lock);
	return at && r->offset % 64 == 0 && r->offset <= room && size <= room - r->offset ? at + r->offset : NULL;
}

/* recall takes both directions of a pair back; until is the time in ms up to which it waits for the peer. */
static void recall(struct svpi_initiator *i, uint64_t until)
{
	__atomic_store_n(&i->dir->lease, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&i->back->lease, 0, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&i->back->op, __ATOMIC_SEQ_CST) % 2 && svpi_now_ms() < until)
		sched_yield();
}

void svpi_neighbours_recall(struct svpi *s)
{
	uint64_t until = svpi_now_ms() + RECALL_MS;

	for (int n = 0; n < SVPI_SLOTS; n++) {
		for (struct svpi_slot *slot = s->neighbours.slots[n]; slot; slot = slot->next) {
			struct svpi_initiator *i = atomic_load(&slot->initiator);

			if (i)
				recall(i, until);
		}
	}
}

void svpi_neighbours_end(struct svpi *s)
{
	while (s->neighbours.programs)
		drop_program(s, s->neighbours.programs);
	unmap(&s->neighbours.own);
}
