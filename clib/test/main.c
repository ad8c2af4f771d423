/* The verbs of the C library against a driver with two adapters, which check.sh starts. Compiled with the
 * distribution's header, as programs are. */
#include "bed.h"

#include <errno.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

static const struct { const char *name; void (*run)(void); } tests[] = {
	{ "requests", test_requests }, { "errors", test_errors }, { "datagrams", test_datagrams }, { "srq", test_srq },
	{ "windows", test_windows }, { "extended", test_extended }, { "queues", test_queues },
	{ "events", test_events }, { "memory", test_memory }, { "access", test_access }, { "domains", test_domains },
	{ "on demand", test_on_demand }, { "device memory", test_device_memory },
	{ "import", test_import }, { "xrc", test_xrc },
	{ "limits", test_limits }, { "states", test_states }, { "threads", test_threads }, { "fork", test_fork },
	{ "gids", test_gids }, { "tags", test_tags }, { "refused", test_refused },
};

/* dies kills the driver and checks that every call returns. */
static void dies(pid_t driver)
{
	struct end a, b;
	struct ibv_sge s;
	struct ibv_wc wc;
	struct ibv_async_event e;
	int n, polls = 0;

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 1, 0, 8);
	CHECK(post(&a, &wr) == 0, ".");
	sleep(1); /* the completion is there, but has not been taken */
	kill(driver, SIGKILL);
	sleep(1);
	CHECK(ibv_poll_cq(a.cq, 1, &wc) == 1 && wc.wr_id == 1, ".");
	for (int i = 0; i < 1000; i++)
		post(&a, &wr); /* a full ring, and a wake-up pipe without a reader: errors, but no signal */
	while ((n = ibv_poll_cq(a.cq, 1, &wc)) >= 0 && polls < 1000000) /* some went the direct path, and complete */
		polls++;
	CHECK(n == -1, ": %d after %d polls", n, polls);
	CHECK(ibv_get_async_event(a.ctx, &e) == 0 && e.event_type == IBV_EVENT_DEVICE_FATAL, ".");
	ibv_ack_async_event(&e);
	CHECK(ibv_get_async_event(a.ctx, &e) == -1, ".");
	CHECK(!ibv_reg_mr(a.pd, a.buf, 8, 0), ".");
	CHECK(ibv_query_device(a.ctx, &(struct ibv_device_attr){ 0 }) == 0, ".");
	part(&a, &b);
	close_end(&a);
	close_end(&b);
	struct ibv_device **none = ibv_get_device_list(&n);
	CHECK(none && n == 0, ": %d", n);
	ibv_free_device_list(none);
}

/* in_segment tells whether memory is shared with the driver. */
static bool in_segment(const void *p)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512];
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && (uintptr_t)p >= from && (uintptr_t)p < to)
			found = strstr(line, "softvpi-segment") != NULL;
	if (maps)
		fclose(maps);
	return found;
}

/* shared checks that a page-aligned buffer is a segment, and stays one while it is used and grown. */
static void shared(void)
{
	uint8_t *p = aligned_alloc(4096, 8192), *q, *small = aligned_alloc(4096, 100);
	void *far = NULL;

	MUST(p && in_segment(p) && small && !in_segment(small));
	free(small);
	memset(p, 7, 8192);
	MUST(q = realloc(p, 20000));
	CHECK(!in_segment(q) && q[0] == 7 && q[8191] == 7, ".");
	free(q);
	MUST(posix_memalign(&far, 1 << 20, 12345) == 0);
	CHECK(((uintptr_t)far & ((1 << 20) - 1)) == 0 && in_segment(far), ".");
	free(far);
	for (int i = 0; i < 3000; i++) { /* freed memory can be allocated again */
		MUST(p = aligned_alloc(4096, 4096));
		CHECK(in_segment(p), ": %d", i);
		free(p);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "dies")) {
		dies((pid_t)atoi(argv[2]));
		printf("%-10s %s\n", "dies", failures ? "FAILED" : "ok");
		return failures != 0;
	}
	if (argc == 2 && !strcmp(argv[1], "shared")) {
		shared();
		printf("%-10s %s\n", "shared", failures ? "FAILED" : "ok");
		argc = 1;
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		int before = failures;

		if (argc > 1 && strcmp(argv[1], tests[i].name))
			continue;
		tests[i].run();
		printf("%-10s %s\n", tests[i].name, failures > before ? "FAILED" : "ok");
		fflush(stdout);
	}
	return failures != 0;
}
