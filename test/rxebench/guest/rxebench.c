/*
 * rxebench measures RC queue pairs between two Soft-RoCE devices of the kernel. One
 * thread drives both ends. It prints one JSON object.
 *
 *   rxebench OP DEVICE-A DEVICE-B PATH-MTU BYTES SECONDS DEPTH LIST QPS
 *
 * OP is write, send or read for bandwidth, with DEPTH requests under way on each of
 * QPS pairs, posted LIST at a time; or write-lat, send-lat, read-lat.
 *
 * As the first process of a guest it mounts what is needed, loads the modules of
 * /modules/order, runs /job and switches the machine off.
 *
 * Time is the processor's counter: in a user-mode kernel every clock_gettime is a
 * system call of several microseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { SET = 16 << 20, MAX_LIST = 64, MAX_QPS = 256, PSN = 4711, MAX_TRIPS = 1 << 20 };

static void fail(const char *what)
{
	printf("{\"error\": \"%s: %s\"}\n", what, strerror(errno));
	exit(1);
}

static void must(int status, const char *what)
{
	if (status) {
		if (status > 0)
			errno = status;
		fail(what);
	}
}

static void *some(void *p, const char *what)
{
	if (!p)
		fail(what);
	return p;
}

/* ---- time */

static double per_tick;

static double now(void) { return __rdtsc() * per_tick; }

static double wall(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void calibrate(void)
{
	double start = wall(), end;
	uint64_t ticks = __rdtsc();
	while ((end = wall()) - start < 0.1)
		;
	per_tick = (end - start) / (__rdtsc() - ticks);
}

/* ---- one end of the pairs */

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *sent, *received;
	struct ibv_mr *mr;
	struct ibv_qp *qp[MAX_QPS];
	uint8_t *memory;
	union ibv_gid gid;
	int gid_index;
	int receives[MAX_QPS]; /* posted */
};

static struct ibv_context *open_device(const char *name)
{
	int n;
	struct ibv_device **all = some(ibv_get_device_list(&n), "list devices");
	for (int i = 0; i < n; i++)
		if (!strcmp(ibv_get_device_name(all[i]), name))
			return some(ibv_open_device(all[i]), name);
	errno = ENODEV;
	fail(name);
	return NULL;
}

/* ipv4_gid finds a device's GID that is an IPv4 address. */
static void ipv4_gid(struct end *e)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	for (e->gid_index = 0; e->gid_index < 64; e->gid_index++)
		if (!ibv_query_gid(e->context, 1, e->gid_index, &e->gid) && !memcmp(e->gid.raw, mapped, sizeof(mapped)))
			return;
	errno = ENOENT;
	fail("GID of an IPv4 address");
}

static void set_up(struct end *e, const char *device, int qps)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	e->context = open_device(device);
	ipv4_gid(e);
	e->pd = some(ibv_alloc_pd(e->context), "allocate a protection domain");
	e->sent = some(ibv_create_cq(e->context, 8192, NULL, NULL, 0), "create a completion queue");
	e->received = some(ibv_create_cq(e->context, 8192, NULL, NULL, 0), "create a completion queue");
	must(posix_memalign((void **)&e->memory, 4096, SET), "memory");
	memset(e->memory, 1, SET);
	e->mr = some(ibv_reg_mr(e->pd, e->memory, SET, access), "register memory");
	for (int i = 0; i < qps; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = e->sent, .recv_cq = e->received, .qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = 256, .max_recv_wr = 256, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64},
		};
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
		e->qp[i] = some(ibv_create_qp(e->pd, &init), "create a queue pair");
		must(ibv_modify_qp(e->qp[i], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "modify to INIT");
	}
}

static void join(struct end *e, struct end *peer, int mtu, int qps)
{
	for (int i = 0; i < qps; i++) {
		struct ibv_qp_attr attr = {
			.qp_state = IBV_QPS_RTR, .path_mtu = mtu == 4096 ? IBV_MTU_4096 : IBV_MTU_1024,
			.dest_qp_num = peer->qp[i]->qp_num, .rq_psn = PSN, .max_dest_rd_atomic = 16, .min_rnr_timer = 12,
			.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .sgid_index = e->gid_index, .hop_limit = 64}},
		};
		must(ibv_modify_qp(e->qp[i], &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "modify to RTR");
		attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = PSN, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 16};
		must(ibv_modify_qp(e->qp[i], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC), "modify to RTS");
	}
}

/* ---- requests */

static size_t at; /* offset of the next message in the memory that messages cycle through */

static size_t next_place(size_t bytes)
{
	size_t place = at;
	at += (bytes + 63) & ~(size_t)63;
	if (at + bytes > SET)
		at = 0;
	return place;
}

static void post_receives(struct end *e, int qp, size_t bytes, int want)
{
	while (e->receives[qp] < want) {
		struct ibv_sge sge = {(uintptr_t)e->memory + next_place(bytes), bytes, e->mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = qp, .sg_list = &sge, .num_sge = 1}, *bad;
		must(ibv_post_recv(e->qp[qp], &wr, &bad), "post a receive");
		e->receives[qp]++;
	}
}

static void post(struct end *e, struct end *peer, int qp, enum ibv_wr_opcode op, size_t bytes, int n, int flags)
{
	struct ibv_sge sge[MAX_LIST];
	struct ibv_send_wr wr[MAX_LIST], *bad;

	for (int i = 0; i < n; i++) {
		size_t place = next_place(bytes);
		sge[i] = (struct ibv_sge){(uintptr_t)e->memory + place, bytes, e->mr->lkey};
		wr[i] = (struct ibv_send_wr){
			.wr_id = qp, .next = i + 1 < n ? &wr[i + 1] : NULL, .sg_list = &sge[i], .num_sge = 1, .opcode = op,
			.send_flags = IBV_SEND_SIGNALED | flags,
			.wr.rdma = {.remote_addr = (uintptr_t)peer->memory + place, .rkey = peer->mr->rkey},
		};
	}
	must(ibv_post_send(e->qp[qp], wr, &bad), "post");
}

/* take counts the completions of each queue pair. */
static int take(struct ibv_cq *cq, int *of_qp, int step)
{
	struct ibv_wc wc[MAX_LIST];
	int n = ibv_poll_cq(cq, MAX_LIST, wc);
	for (int i = 0; i < n; i++) {
		if (wc[i].status) {
			printf("{\"error\": \"completion: %s\"}\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		of_qp[wc[i].wr_id] += step;
	}
	return n;
}

/* ---- measurements */

static void bandwidth(struct end *a, struct end *b, enum ibv_wr_opcode op, size_t bytes, double seconds, int depth, int list, int qps)
{
	int under[MAX_QPS] = {0};
	long done = 0, from = 0;
	double start = now(), warm = start + seconds / 4, began = 0, end;

	for (;;) {
		int came;
		for (int i = 0; i < qps; i++) {
			if (op == IBV_WR_SEND)
				post_receives(b, i, bytes, 2 * depth);
			for (; under[i] + list <= depth; under[i] += list)
				post(a, b, i, op, bytes, list, 0);
		}
		came = take(a->sent, under, -1);
		done += came;
		if (op == IBV_WR_SEND)
			take(b->received, b->receives, -1);
		if (!came)
			sched_yield(); /* on one processor the kernel's own threads run only then */
		end = now();
		if (!began && end > warm) {
			began = end;
			from = done;
		}
		if (began && end - began > seconds)
			break;
	}
	printf("{\"gbps\": %.4f, \"messages\": %ld, \"all\": %ld}\n", (done - from) * (double)bytes * 8 / (1 << 30) / (end - began), done - from, done);
}

static int earlier(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static void await(struct ibv_cq *cq)
{
	int ignored[MAX_QPS];
	while (!take(cq, ignored, 0))
		;
}

/* one sends a message and waits until it has arrived; for a write, until byte `last` has changed. */
static void one(struct end *e, struct end *peer, enum ibv_wr_opcode op, size_t bytes, volatile uint8_t *last, uint8_t mark)
{
	e->memory[bytes - 1] = mark;
	at = 0;
	post(e, peer, 0, op, bytes, 1, bytes <= 64 ? IBV_SEND_INLINE : 0);
	if (op == IBV_WR_SEND) {
		await(peer->received);
		peer->receives[0]--;
	} else
		while (*last != mark)
			;
}

static void latency(struct end *a, struct end *b, enum ibv_wr_opcode op, size_t bytes, double seconds)
{
	double *trips = some(malloc(MAX_TRIPS * sizeof(*trips)), "memory"), start = now(), before, after;
	int n = 0, skip = 200, share = op == IBV_WR_RDMA_READ ? 1 : 2;
	uint8_t mark = 1;

	do {
		if (op == IBV_WR_SEND) {
			post_receives(a, 0, bytes, 16);
			post_receives(b, 0, bytes, 16);
		}
		mark++;
		before = now();
		if (op == IBV_WR_RDMA_READ) {
			at = 0;
			post(a, b, 0, op, bytes, 1, 0);
			await(a->sent);
		} else {
			one(a, b, op, bytes, b->memory + bytes - 1, mark);
			one(b, a, op, bytes, a->memory + bytes - 1, mark + 101);
		}
		after = now();
		if (op != IBV_WR_RDMA_READ) {
			await(a->sent);
			await(b->sent);
		}
		if (skip > 0)
			skip--;
		else
			trips[n++] = (after - before) / share;
	} while (n < MAX_TRIPS && after - start < seconds);
	qsort(trips, n, sizeof(*trips), earlier);
	printf("{\"typical_us\": %.3f, \"p99_us\": %.3f, \"n\": %d}\n", trips[n / 2] * 1e6, trips[(int)(n * 0.99)] * 1e6, n);
}

/* syscall_cost measures a system call here. Latencies include it; with a real kernel they would include much less. */
static void syscall_cost(void)
{
	enum { N = 20000 };
	double start = now();
	for (int i = 0; i < N; i++)
		syscall(SYS_getppid);
	printf("{\"syscall_us\": %.4f}\n", (now() - start) / N * 1e6);
}

/* ---- the guest */

static void load_modules(void)
{
	char line[256], path[300];
	FILE *f = fopen("/modules/order", "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		snprintf(path, sizeof(path), "/modules/%s", line);
		int fd = open(path, O_RDONLY);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != ENODEV && errno != EEXIST))
			printf("{\"error\": \"module %s: %s\"}\n", line, strerror(errno));
		close(fd);
	}
}

static int guest(void)
{
	static const char *kinds[][2] = {{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"}};
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		mount(kinds[i][0], kinds[i][1], kinds[i][0], 0, "");
	int console = open("/dev/console", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(console, fd);
	setvbuf(stdout, NULL, _IONBF, 0);
	setrlimit(RLIMIT_MEMLOCK, &all);
	setenv("PATH", "/usr/bin:/usr/sbin:/bin:/sbin", 1);
	load_modules();
	printf("{\"status\": %d}\n", WEXITSTATUS(system("/bin/sh /job")));
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}

int main(int n, char **args)
{
	static struct end a, b;
	static const struct { const char *name; enum ibv_wr_opcode op; int latency; } ops[] = {
		{"write", IBV_WR_RDMA_WRITE, 0}, {"send", IBV_WR_SEND, 0}, {"read", IBV_WR_RDMA_READ, 0},
		{"write-lat", IBV_WR_RDMA_WRITE, 1}, {"send-lat", IBV_WR_SEND, 1}, {"read-lat", IBV_WR_RDMA_READ, 1},
	};

	if (getpid() == 1)
		return guest();
	calibrate();
	if (n == 2 && !strcmp(args[1], "syscall")) {
		syscall_cost();
		return 0;
	}
	if (n == 10) {
		int mtu = atoi(args[4]), depth = atoi(args[7]), list = atoi(args[8]), qps = atoi(args[9]);
		size_t bytes = strtoul(args[5], NULL, 10);
		double seconds = atof(args[6]);
		for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
			if (strcmp(args[1], ops[i].name) || bytes < 1 || bytes > SET / 4 || qps < 1 || qps > MAX_QPS || list < 1 || list > MAX_LIST || depth > 128)
				continue;
			set_up(&a, args[2], qps);
			set_up(&b, args[3], qps);
			join(&a, &b, mtu, qps);
			join(&b, &a, mtu, qps);
			if (ops[i].latency)
				latency(&a, &b, ops[i].op, bytes, seconds);
			else
				bandwidth(&a, &b, ops[i].op, bytes, seconds, depth, list, qps);
			return 0;
		}
	}
	printf("{\"error\": \"usage: rxebench OP DEVICE-A DEVICE-B PATH-MTU BYTES SECONDS DEPTH LIST QPS\"}\n");
	return 2;
}
