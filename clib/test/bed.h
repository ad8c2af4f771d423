/* The test bed of the C libraries: two adapters of one driver, and queue pairs between them. */
#ifndef BED_H
#define BED_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 16, DEPTH = 16 };

/* One end: everything that a queue pair needs, on one adapter. */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	union ibv_gid gid;
	int gid_index;
	uint32_t psn;
};

extern int failures;

#define CHECK(ok, ...) check((ok), __FILE__, __LINE__, #ok, __VA_ARGS__)
#define MUST(ok) do { if (!CHECK(ok, " (errno %d)", errno)) exit(1); } while (0)
bool check(bool ok, const char *file, int line, const char *what, const char *format, ...) __attribute__((format(printf, 5, 6)));

void open_end(struct end *, int device);
void close_end(struct end *);
/* make_qp gives an end a queue pair of a type; its send requests are signaled only if they say so. */
uint64_t microseconds(void); /* of a clock that does not go back */
void make_qp(struct end *, enum ibv_qp_type, struct ibv_srq *);
void to_init(struct end *);
void to_rtr(struct end *, struct end *peer);
void to_rts(struct end *);
/* join brings two queue pairs to RTS, and connects them unless they are UD. */
void join(struct end *, struct end *);
void part(struct end *, struct end *);
/* open_joined opens both ends with queue pairs of a type, joined; close_joined ends them. */
void open_joined(struct end *, struct end *, enum ibv_qp_type);
void close_joined(struct end *, struct end *);

/* next polls up to 5 s for a completion; false: none came. */
bool next(struct ibv_cq *, struct ibv_wc *);
/* expect takes a completion and checks its status and id. */
void expect(struct end *, enum ibv_wc_status, uint64_t id, struct ibv_wc *, int line);
#define EXPECT(e, status, id, wc) expect(e, status, id, wc, __LINE__)

int post_recv(struct end *, uint64_t id, size_t at, uint32_t length);
/* request makes a signaled request for length bytes at an offset of the end's buffer, directed at the same offset of
 * the peer's. */
struct ibv_send_wr request(struct end *, struct end *peer, enum ibv_wr_opcode, struct ibv_sge *, uint64_t id, size_t at,
			   uint32_t length);
int post(struct end *, struct ibv_send_wr *);
void pattern(uint8_t *, size_t, unsigned seed);

/* The tests. */
void test_requests(void);
void test_errors(void);
void test_datagrams(void);
void test_srq(void);
void test_windows(void);
void test_extended(void);
void test_queues(void);
void test_events(void);
void test_states(void);
void test_memory(void);
void test_access(void);
void test_domains(void);
void test_on_demand(void);
void test_device_memory(void);
void test_import(void);
void test_xrc(void);
void test_limits(void);
void test_gids(void);
void test_refused(void);
void test_tags(void);
void test_fork(void);
void test_threads(void);
void test_datagram_sockets(void);
void test_stream_sockets(void);
void test_kinds_of_sockets(void);

#endif
