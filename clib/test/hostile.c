/*
 * The direct path against nonsense: hostile [SEED]. Frames from the driver, and everything that a neighbour can
 * write, are changed at random. Nothing may fault, hang, or be written outside of what a program's terms permit; and
 * correct requests must work afterwards. Built from the library's own files, without a driver.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../ipc/initiator.h"
#include "../ipc/segment.h"

enum { ARENA = 1 << 16, AREA = 4096, SEGMENT = 1 << 16, ENTRIES = 16, STRIDE = 64, SEND_STRIDE = 128, ROUNDS = 200000 };
enum { CQ_SIZE = 256 + 2 * ENTRIES * 64 + 64, OWN_CQ = 8192, PEER_CQ = 8192, PEER_RECV = 16384, SEND = 32768 };
enum { OWN_KEY = 0x101, PEER_KEY = 0x201, OTHER_KEY = 0x301, PROGRAM = 7, NUMBER = 99, QP = 5, GUARD = 4096 };

static struct svpi *s;
static struct svpi_slot slot;
static uint8_t *own_keys, *peer_keys, *peer_arena, *area, *segment;
static uint8_t own[4096] __attribute__((aligned(64)));
static uint64_t state = 88172645463325252u;
static int failures;

#define CHECK(ok) do { if (!(ok)) { failures++; fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #ok); } } while (0)

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* odd returns a number that the code might not expect. */
static uint64_t odd(void)
{
	static const uint64_t list[] = { 0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 4095, 4096, 65535, 65536, 1u << 31, UINT32_MAX, UINT64_MAX,
					 UINT64_MAX - 7, INT64_MAX };

	return draw() % 3 ? list[draw() % (sizeof(list) / sizeof(*list))] : draw();
}

/* file makes shared memory and maps it for the test; the library gets the descriptor. */
static int file(size_t size, uint8_t **at)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size))
		exit(1);
	*at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*at == MAP_FAILED)
		exit(1);
	return fd;
}

static bool share(uint32_t kind, uint32_t number, uint64_t size, int fd)
{
	struct svpi_share_body b = { .kind = kind, .program = PROGRAM, .number = number, .size = size };

	return svpi_neighbour_frame(s, SVPI_SHARE, &b, sizeof(b), fd);
}

static void key(uint8_t *table, uint32_t k, uint32_t in, void *at, uint64_t length)
{
	struct svpi_key *row = (struct svpi_key *)table + (k >> 8);

	*row = (struct svpi_key){ .key = k, .adapter = 1, .pd = 1, .access = 15, .start = 0x1000, .length = length,
				  .address = (uintptr_t)at, .segment = in };
}

static struct svpi_direction *record(void) { return (struct svpi_direction *)area; }

static void good_terms(struct svpi_terms *t)
{
	*t = (struct svpi_terms){ .send_cq = { .entries = ENTRIES, .stride = STRIDE, .offset = OWN_CQ },
				  .recv_cq = { .entries = ENTRIES, .stride = STRIDE, .offset = PEER_CQ },
				  .receive = { .entries = ENTRIES, .stride = STRIDE, .offset = PEER_RECV },
				  .own_pd = 1, .peer_pd = 1, .own_adapter = 1, .peer_adapter = 1, .access = 15, .flags = 7, .mtu = 1024 };
}

/* lend sets everything up correctly and lends the direction. */
static void lend(uint32_t lease)
{
	memset(s->arenas[0] + OWN_CQ, 0, CQ_SIZE);
	memset(peer_arena, 0, ARENA);
	memset(own_keys, 0, SVPI_TABLE_KEYS / 16 * sizeof(struct svpi_key));
	memset(peer_keys, 0, SVPI_TABLE_KEYS / 16 * sizeof(struct svpi_key));
	key(own_keys, OWN_KEY, 0, own, sizeof(own));
	key(peer_keys, PEER_KEY, 3, NULL, SEGMENT - 2 * GUARD);
	((struct svpi_key *)peer_keys)[PEER_KEY >> 8].offset = GUARD;
	key(peer_keys, OTHER_KEY, 0, NULL, 100);
	good_terms(&record()->terms);
	atomic_store((_Atomic uint32_t *)&record()->lease, lease);
}

static void start(void)
{
	int own_fd = file(SVPI_TABLE_KEYS * sizeof(struct svpi_key), &own_keys);
	int peer_fd = file(SVPI_TABLE_KEYS * sizeof(struct svpi_key), &peer_keys);
	struct svpi_introduction b = { .qp = QP, .number = NUMBER, .owner = 11, .program = PROGRAM };
	struct svpi_program *p;
	uint8_t *arena;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_mutex_init(&s->lock, NULL);
	s->fd = s->wake = -1;
	s->pid = getpid();
	s->broken = true; /* there is no driver to ask */
	close(file(ARENA, &arena));
	s->arenas[0] = arena;
	s->arena_size[0] = ARENA;
	s->narenas = 1;
	s->doorbells.h = s->arenas[0];
	s->doorbells.entries = arena + sizeof(struct svpi_ring_header);
	s->doorbells.count = 64;
	svpi_slot_add(s, &slot, QP, NUMBER);
	CHECK(share(1, 0, SVPI_TABLE_KEYS * sizeof(struct svpi_key), own_fd));
	CHECK(share(2, 0, SVPI_TABLE_KEYS * sizeof(struct svpi_key), peer_fd));
	CHECK(share(3, 0, ARENA, file(ARENA, &peer_arena)));
	CHECK(share(4, 0, AREA, file(AREA, &area)));
	CHECK(svpi_neighbour_frame(s, SVPI_INTRODUCE, &b, sizeof(b), -1));
	CHECK(atomic_load(&slot.initiator) != NULL);
	p = s->neighbours.programs;
	p->segments = calloc(1, sizeof(*p->segments));
	p->nsegments = 1;
	p->segments[0].number = 3;
	p->segments[0].memory.size = SEGMENT;
	p->segments[0].memory.at = segment = mmap(NULL, SEGMENT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* receive posts a receive in the neighbour's ring. */
static struct svpi_sge *receive(uint32_t sges)
{
	struct svpi_ring_header *h = (void *)(peer_arena + PEER_RECV);
	struct svpi_recv_entry *e = (void *)((uint8_t *)(h + 1) + (h->producer % ENTRIES) * STRIDE);

	*e = (struct svpi_recv_entry){ .id = 42, .sges = sges };
	struct svpi_sge *g = (void *)(e + 1);

	for (uint32_t i = 0; i < 3; i++)
		g[i] = (struct svpi_sge){ 0x1000 + 100 * i, 100, PEER_KEY };
	h->producer++;
	return g;
}

static struct svpi_send_entry *entry(uint32_t index) { return (void *)((uint8_t *)s->arenas[0] + SEND + 256 + index * SEND_STRIDE); }

static void request(struct svpi_send_entry *e, uint8_t op)
{
	struct svpi_sge *g = (void *)(e + 1);

	memset(e, 0, SEND_STRIDE);
	*e = (struct svpi_send_entry){ .op = op, .flags = SVPI_WR_SIGNALED, .sges = 1, .id = 1, .remote = 0x1000, .rkey = PEER_KEY };
	*g = (struct svpi_sge){ 0x1000, op == SVPI_WR_CAS || op == SVPI_WR_FADD ? 8 : 50, OWN_KEY };
}

/* spoil changes some of what the neighbour or the program itself writes. */
static void spoil(struct svpi_send_entry *e)
{
	struct svpi_ring_header *h = (void *)(peer_arena + PEER_RECV);
	uint8_t *where[] = { (uint8_t *)&record()->terms, (uint8_t *)e, peer_arena + PEER_CQ, peer_arena + PEER_RECV,
			     (uint8_t *)s->arenas[0] + OWN_CQ, peer_keys + (PEER_KEY >> 8) * sizeof(struct svpi_key),
			     own_keys + (OWN_KEY >> 8) * sizeof(struct svpi_key) };
	size_t room[] = { sizeof(struct svpi_terms), SEND_STRIDE, CQ_SIZE, 256 + ENTRIES * STRIDE, CQ_SIZE, sizeof(struct svpi_key),
			  48 /* without the address, which the driver has from this program */ };

	if (draw() % 4 == 0)
		receive((uint32_t)odd())[draw() % 3] = (struct svpi_sge){ odd(), (uint32_t)odd(), draw() % 2 ? PEER_KEY : (uint32_t)odd() };
	if (draw() % 8 == 0)
		h->producer = (uint32_t)odd();
	for (uint64_t n = draw() % 4; n > 0; n--) {
		size_t k = draw() % (sizeof(room) / sizeof(*room)), width = (size_t)1 << draw() % 4;
		uint64_t v = odd();

		if (k == 6) { /* change rights and length only, not the address */
			((struct svpi_key *)where[6])->access = (uint32_t)v;
			((struct svpi_key *)where[6])->length = v % (sizeof(own) + 1);
			continue;
		}
		memcpy(where[k] + draw() % (room[k] / width) * width, &v, width);
	}
}

static bool guarded(void)
{
	for (int i = 0; i < GUARD; i++)
		if (segment[i] || segment[SEGMENT - 1 - i])
			return false;
	return true;
}

/* works checks that one request of each kind is carried out. */
static void works(uint32_t lease)
{
	struct svpi_initiator *i = atomic_load(&slot.initiator);
	uint32_t cq = 0;

	lend(lease);
	for (uint8_t op = SVPI_WR_SEND; op <= SVPI_WR_FADD; op++) {
		if (op == SVPI_WR_SEND_INV)
			continue;
		receive(2);
		request(entry(0), op);
		memset(own, op, sizeof(own));
		memset(segment + GUARD, 0, 256);
		if (op >= SVPI_WR_CAS) { /* the result has to go to one of the program's own segments that still exists */
			((struct svpi_key *)own_keys)[OWN_KEY >> 8].segment = 4;
			i->own_known[4] = 4;
		}
		CHECK(svpi_execute(i, entry(0)));
		CHECK(atomic_load(&((struct svpi_cqe *)((uint8_t *)s->arenas[0] + OWN_CQ + 256 + ENTRIES * 64 + 64))[cq++].state) % 4 ==
		      SVPI_PHASE_READY);
		if (op == SVPI_WR_SEND || op == SVPI_WR_WRITE)
			CHECK(segment[GUARD] == op && segment[GUARD + 49] == op && segment[GUARD + 50] == 0);
	}
	CHECK(record()->op % 2 == 0);
}

static void nonsense(void)
{
	struct svpi_initiator *i = atomic_load(&slot.initiator);
	int done = 0;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		struct svpi_producer ring;

		lend(round);
		i->waited = true; /* do not wait 3 us each for receives */
		if (draw() % 2)
			receive((uint32_t)(draw() % 4));
		request(entry(0), (uint8_t)(draw() % 12));
		spoil(entry(0));
		if (draw() % 2) {
			done += svpi_execute(i, entry(0));
		} else { /* leave it in the ring, whose header may be nonsense */
			struct svpi_ring_header *h = (void *)((uint8_t *)s->arenas[0] + SEND);

			memset(h, 0, sizeof(*h));
			svpi_producer_open(&ring, h, ENTRIES, SEND_STRIDE);
			ring.next = h->producer = 1;
			if (draw() % 4 == 0)
				h->consumer = (uint32_t)odd();
			done += svpi_catch_up(i, &ring);
		}
		CHECK(record()->op % 2 == 0);
		if (round % 64 == 0) /* spoilt keys may point anywhere in the segment, including the guards */
			memset(segment, 0, SEGMENT);
		if (failures > 10)
			return;
	}
	CHECK(done > ROUNDS / 100 && done < ROUNDS);
}

/* frames checks that impossible frames are refused, and unknown ones skipped. */
static void frames(void)
{
	uint8_t body[64];
	uint8_t *at;

	CHECK(!share(3, 5, ARENA, file(ARENA, &at)));	    /* out of order */
	CHECK(!share(1, 0, 64, file(64, &at)));		    /* a key table of another size */
	CHECK(!share(3, 1, ARENA, -1));			    /* without a descriptor */
	CHECK(share(9, 0, ARENA, file(ARENA, &at)));	    /* of a later version */
	struct svpi_introduction b = { .qp = QP, .number = NUMBER, .program = PROGRAM };
	struct svpi_introduction bad[] = { b, b, b, b, b };

	bad[0].role = 2;
	bad[1].program++;
	bad[2].area = 1;
	bad[3].offset = AREA - 64;
	bad[4].offset = 8;
	for (size_t n = 0; n < sizeof(bad) / sizeof(*bad); n++)
		CHECK(!svpi_neighbour_frame(s, SVPI_INTRODUCE, &bad[n], sizeof(b), -1));
	b.number++; /* a queue pair that has ended */
	CHECK(svpi_neighbour_frame(s, SVPI_INTRODUCE, &b, sizeof(b), -1));
	CHECK(!svpi_neighbour_frame(s, SVPI_DROP, body, 7, -1));
	CHECK(!svpi_neighbour_frame(s, SVPI_SHARE, body, sizeof(body), -1));
	/* Memory that is smaller than announced, or cannot be mapped, is done without: the driver then carries out
	 * everything. */
	CHECK(share(3, 1, 1 << 30, file(ARENA, &at)));
	for (int n = 0; n < 20000; n++) {
		struct svpi_share_body q;
		uint16_t op = (uint16_t)(SVPI_SHARE + draw() % 3);

		for (size_t k = 0; k < sizeof(body); k += 8) {
			uint64_t v = odd();

			memcpy(body + k, &v, 8);
		}
		q = (struct svpi_share_body){ .kind = (uint32_t)(draw() % 6), .program = 100 + draw() % 4, .number = (uint32_t)(draw() % 3),
					      .size = draw() % 2 ? 4096 : odd() };
		if (op == SVPI_SHARE)
			memcpy(body, &q, sizeof(q));
		svpi_neighbour_frame(s, op, body, draw() % 8 ? (op == SVPI_SHARE ? sizeof(q) : op == SVPI_INTRODUCE ? 40 : 8) : draw() % 64,
				     op == SVPI_SHARE ? file(4096, &at) : -1);
		if (op == SVPI_SHARE)
			munmap(at, 4096);
	}
}

/* after_trust waits until a process has to show its nonce again. */
static void after_trust(void) { nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL); }

/* processes checks who is taken for a neighbour's process, and that copies are whole or fail. */
static void processes(void)
{
	uint8_t *mem = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), text[200], seen[200];
	struct svpi_process_body b = { .program = PROGRAM, .number = 3, .address = (uintptr_t)mem, .nonce = "sixteen letters" };
	struct iovec own = { text, sizeof(text) }, theirs[2] = { { mem + 1000, 192 }, { mem + 1192, 8 } }, back = { seen, sizeof(seen) };
	struct iovec nonce = { mem, 16 }, beyond = { mem + 4096 - 100, 200 };
	struct svpi_process p = { 0 };
	pid_t child;
	int ready[2];

	memset(text, 7, sizeof(text));
	CHECK(mem != MAP_FAILED && pipe(ready) == 0);
	child = fork();
	if (child == 0) {
		munmap(mem + 4096, 4096);
		memcpy(mem, b.nonce, 16);
		(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], seen, 1) == 1);
	CHECK(!svpi_neighbour_frame(s, SVPI_PROCESS, &b, sizeof(b) - 1, -1));
	svpi_process_take(&p, &b); /* pid 0 */
	CHECK(!p.reached && p.number == 3);
	b.pid = (uint32_t)getpid(); /* another process, with other memory at that address */
	svpi_process_take(&p, &b);
	CHECK(!p.reached);
	b.pid = (uint32_t)child;
	b.number = 4;
	svpi_process_take(&p, &b);
	CHECK(p.reached && p.number == 4);
	CHECK(svpi_process_copy(&p, true, &own, 1, theirs, 2, sizeof(text)));
	CHECK(svpi_process_copy(&p, false, &back, 1, theirs, 2, sizeof(seen)) && !memcmp(text, seen, sizeof(seen)));
	CHECK(!svpi_process_copy(&p, true, &own, 1, &beyond, 1, sizeof(text))); /* half of it is not there */
	CHECK(process_vm_writev(child, &own, 1, &nonce, 1, 0) == 16);		/* as if the process ran another program */
	after_trust();
	CHECK(!svpi_process_copy(&p, true, &own, 1, theirs, 2, sizeof(text)));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK(!svpi_process_copy(&p, true, &own, 1, theirs, 2, sizeof(text)));
	close(ready[0]);
	close(ready[1]);
	munmap(mem, 2 * 4096);
}

static struct svpi_ring_header *sends(void) { return (void *)((uint8_t *)s->arenas[0] + SEND); }

static _Atomic bool over;

/* driver takes the path back, carries out the next request, and lends the path again, over and over. */
static void *driver(void *unused)
{
	struct svpi_direction *d = record();
	struct svpi_ring_header *h = sends();
	uint64_t *sum = (void *)(segment + GUARD);

	(void)unused;
	for (uint32_t lease = 2 * ROUNDS; !atomic_load(&over); lease++) {
		__atomic_store_n(&d->lease, 0, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&d->op, __ATOMIC_SEQ_CST) % 2)
			sched_yield();
		uint32_t at = atomic_load(&h->consumer);

		if (at != atomic_load(&h->producer)) {
			__atomic_fetch_add(sum, entry(at % ENTRIES)->compare_add, __ATOMIC_SEQ_CST);
			atomic_store(&h->consumer, at + 1);
		}
		__atomic_store_n(&d->lease, lease, __ATOMIC_SEQ_CST);
		for (volatile uint32_t n = lease % 64; n > 0; n--)
			;
	}
	return NULL;
}

/* turns checks that each request is carried out once, by the program or by the driver, whenever the path changes
 * hands. */
static void turns(void)
{
	struct svpi_initiator *i = atomic_load(&slot.initiator);
	struct svpi_ring_header *h = sends();
	struct svpi_producer ring;
	pthread_t thread;
	uint64_t sum;

	lend(2 * ROUNDS - 1);
	record()->terms.flags = 6; /* no completions: nobody would take them */
	((struct svpi_key *)own_keys)[OWN_KEY >> 8].segment = 4;
	memset(segment + GUARD, 0, sizeof(sum));
	memset(h, 0, sizeof(*h));
	svpi_producer_open(&ring, h, ENTRIES, SEND_STRIDE);
	pthread_create(&thread, NULL, driver, NULL);
	for (uint64_t n = 1; n <= ROUNDS; n++) {
		struct svpi_send_entry *e = entry(ring.next % ENTRIES);

		request(e, SVPI_WR_FADD);
		e->flags = 0;
		e->compare_add = n;
		atomic_store(&h->producer, ++ring.next);
		while ((int32_t)(ring.next - atomic_load(&h->consumer)) > 0)
			svpi_catch_up(i, &ring);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	memcpy(&sum, segment + GUARD, sizeof(sum));
	CHECK(sum == (uint64_t)ROUNDS * (ROUNDS + 1) / 2);
}

int main(int argc, char **argv)
{
	struct svpi_drop_body gone = { PROGRAM, 0 };

	if (argc > 1)
		state = strtoull(argv[1], NULL, 0);
	else
		state ^= (uint64_t)time(NULL) << 20;
	printf("seed %llu\n", (unsigned long long)state);
	fflush(stdout);
	start();
	works(1);
	CHECK(guarded());
	nonsense();
	memset(segment, 0, SEGMENT);
	works(ROUNDS + 1);
	CHECK(guarded());
	turns();
	frames();
	processes();
	CHECK(svpi_neighbour_frame(s, SVPI_DROP, &gone, sizeof(gone), -1));
	CHECK(!svpi_lent(atomic_load(&slot.initiator)) && !svpi_receiving(&slot));
	request(entry(0), SVPI_WR_WRITE);
	CHECK(!svpi_execute(atomic_load(&slot.initiator), entry(0)));
	svpi_slot_remove(s, &slot);
	svpi_neighbours_end(s);
	printf("%-10s %s\n", "hostile", failures ? "FAILED" : "ok");
	return failures != 0;
}
