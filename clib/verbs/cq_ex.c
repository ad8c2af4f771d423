/* Extended completion queues. The lock is held from start_poll to end_poll. */
#define _GNU_SOURCE
#include <time.h>

#include "../ipc/ticks.h"
#include "polling.h"

static struct svpi_cq *cq_of(struct ibv_cq_ex *x) { return to_cq((struct ibv_cq *)x); }

static void to_current(void *arg, int i, const struct svpi_cqe *e)
{
	(void)i;
	memcpy(arg, e, offsetof(struct svpi_cqe, stamp));
	((struct svpi_cqe *)arg)->slid = e->slid;
}

static int next(struct ibv_cq_ex *x)
{
	struct svpi_cq *c = cq_of(x);

	if (svpi_poll_some(c, 1, to_current, &c->current) == 0)
		return ENOENT;
	svpi_found(c, c->current.flags & SVPI_CQE_RECEIVE);
	if (c->timed)
		c->current.time = svpi_in_order(&c->made, c->current.time);
	x->wr_id = c->current.id;
	x->status = c->current.status;
	return 0;
}

static int start(struct ibv_cq_ex *x, struct ibv_poll_cq_attr *a)
{
	struct svpi_cq *c = cq_of(x);
	int error;

	if (a && a->comp_mask)
		return EINVAL;
	svpi_cq_lock(c);
	error = next(x);
	if (error) {
		if (svpi_missed(c) < 0)
			error = EIO;
		svpi_cq_unlock(c);
	}
	return error;
}

static void end(struct ibv_cq_ex *x) { svpi_cq_unlock(cq_of(x)); }

#define CURRENT(x) (&cq_of(x)->current)

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *x) { return svpi_opcode_of(CURRENT(x)); }
static uint32_t read_vendor(struct ibv_cq_ex *x) { return CURRENT(x)->vendor; }
static uint32_t read_bytes(struct ibv_cq_ex *x) { return CURRENT(x)->bytes; }
static uint32_t read_imm(struct ibv_cq_ex *x) { return svpi_imm_of(CURRENT(x)); }
static uint32_t read_qpn(struct ibv_cq_ex *x) { return CURRENT(x)->qpn; }
static uint32_t read_src(struct ibv_cq_ex *x) { return CURRENT(x)->src_qp; }
static unsigned read_flags(struct ibv_cq_ex *x) { return svpi_flags_of(CURRENT(x)); }
static uint32_t read_slid(struct ibv_cq_ex *x) { return CURRENT(x)->slid; }
static uint8_t read_sl(struct ibv_cq_ex *x) { return CURRENT(x)->sl; }
static uint8_t read_path_bits(struct ibv_cq_ex *x) { return CURRENT(x)->path_bits; }
static uint64_t read_time(struct ibv_cq_ex *x) { return CURRENT(x)->time + cq_of(x)->zero; }

/* read_vlan: the tag that was taken off a frame is where immediate data is else. */
static uint16_t read_vlan(struct ibv_cq_ex *x)
{
	const struct svpi_cqe *e = CURRENT(x);

	return e->flags & (SVPI_CQE_IMM | SVPI_CQE_INVALIDATED) || !(e->flags & SVPI_CQE_RECEIVE) ? 0 : (uint16_t)e->imm;
}

/* No flow tags what is received. */
static uint32_t read_flow_tag(struct ibv_cq_ex *x) { return (void)x, 0; }

static void read_tag(struct ibv_cq_ex *x, struct ibv_wc_tm_info *info)
{
	const struct svpi_cqe *e = CURRENT(x);

	*info = e->op == IBV_WC_TM_RECV ? (struct ibv_wc_tm_info){ e->context, e->src_qp } : (struct ibv_wc_tm_info){ 0 };
}

/* WALL_FRESH: for how many nanoseconds of completions the reading of the time of day holds. */
enum { WALL_FRESH = 1000000 };

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t read_wall(struct ibv_cq_ex *x)
{
	struct svpi_cq *c = cq_of(x);
	uint64_t made = c->current.time;

	if (__builtin_expect(made - c->wall_at + WALL_FRESH > 2 * WALL_FRESH, 0)) {
		c->wall = nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC) + c->zero;
		c->wall_at = made;
	}
	return made + c->wall;
}

/* check returns 0, or why a queue like this cannot be: an errno. */
static int check(struct ibv_context *context, const struct ibv_cq_init_attr_ex *a)
{
	const uint64_t known = 0x7f | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |
			       IBV_WC_EX_WITH_TM_INFO | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

	if (a->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    a->comp_vector >= (uint32_t)context->num_comp_vectors)
		return EINVAL;
	if (a->wc_flags & ~known)
		return EOPNOTSUPP;
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    a->flags & ~(uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
		return EOPNOTSUPP;
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && (!a->parent_domain || !((struct svpi_pd *)a->parent_domain)->parent))
		return EINVAL;
	return 0;
}

/* new creates the queue with those of the flags that the driver has to know. */
static struct svpi_cq *new(struct ibv_context *context, const struct ibv_cq_init_attr_ex *a)
{
	bool times = a->wc_flags & (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	bool lossy = a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && a->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	struct svpi_clock clock = { 0 };
	int error = check(context, a);
	struct svpi_cq *c;

	if (!error && (times || lossy) && !svpi_has_times(to_svpi(context)))
		error = EOPNOTSUPP;
	if (!error && times)
		error = svpi_call(to_svpi(context), SVPI_CLOCK, NULL, 0, &clock, sizeof(clock));
	if (error) {
		errno = error;
		return NULL;
	}
	c = svpi_cq_new(context, a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? a->parent_domain : NULL, a->cqe, a->cq_context, a->channel,
			(times ? SVPI_CQ_TIMESTAMPS : 0) | (lossy ? SVPI_CQ_IGNORE_OVERRUN : 0));
	if (c)
		c->timed = times, c->zero = clock.zero, c->wall_at = UINT64_MAX / 2; /* no completion is made then */
	return c;
}

struct ibv_cq_ex *svpi_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *a)
{
	struct svpi_cq *c = new(context, a);

	if (!c)
		return NULL;
	c->single = a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && a->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	c->ex.start_poll = start;
	c->ex.next_poll = next;
	c->ex.end_poll = end;
	c->ex.read_opcode = read_opcode;
	c->ex.read_vendor_err = read_vendor;
	c->ex.read_byte_len = read_bytes;
	c->ex.read_imm_data = read_imm;
	c->ex.read_qp_num = read_qpn;
	c->ex.read_src_qp = read_src;
	c->ex.read_wc_flags = read_flags;
	c->ex.read_slid = read_slid;
	c->ex.read_sl = read_sl;
	c->ex.read_dlid_path_bits = read_path_bits;
	c->ex.read_completion_ts = read_time;
	c->ex.read_cvlan = read_vlan;
	c->ex.read_flow_tag = read_flow_tag;
	c->ex.read_tm_info = read_tag;
	c->ex.read_completion_wallclock_ns = read_wall;
	return &c->ex;
}
