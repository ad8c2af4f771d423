/* Shared receive queues that match tags. The driver has the list: an operation on it has happened when its call returns. */
#define _GNU_SOURCE
#include "object.h"

/* MAX_OPS: nothing depends on it, as no operation is ever outstanding. */
enum { MAX_TAGS = 1024, MAX_TAG_SGE = 4, MAX_OPS = 64, MAX_REQUEST = 256 };
enum { TAG_ADD = 1, TAG_REMOVE, TAG_SYNC }; /* kinds of operations */
enum { TAG_SIGNALED = 1, TAG_COUNTS = 2 }; /* their flags */

static bool has_tags(const struct svpi *s) { return s->about.minor >= SVPI_TAGS_MINOR; }

void svpi_fill_tag_caps(const struct svpi *s, struct ibv_device_attr_ex *a)
{
	if (has_tags(s))
		a->tm_caps = (struct ibv_tm_caps){ MAX_REQUEST, MAX_TAGS, IBV_TM_CAP_RC, MAX_OPS, MAX_TAG_SGE };
}

int svpi_check_tags(const struct svpi *s, const struct ibv_srq_init_attr_ex *a)
{
	const uint32_t need = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;

	if (!has_tags(s))
		return EOPNOTSUPP;
	if ((a->comp_mask & need) != need || !a->cq || a->tm_cap.max_num_tags < 1 || a->tm_cap.max_num_tags > MAX_TAGS ||
	    a->tm_cap.max_ops > MAX_OPS)
		return EINVAL;
	return 0;
}

/* fill translates an operation. Returns 0 or an errno. */
static int fill(struct svpi_tag_op *q, const struct ibv_ops_wr *wr)
{
	q->id = wr->wr_id;
	q->flags = (wr->flags & IBV_OPS_SIGNALED ? TAG_SIGNALED : 0) | (wr->flags & IBV_OPS_TM_SYNC ? TAG_COUNTS : 0);
	q->unexpected = wr->tm.unexpected_cnt;
	switch (wr->opcode) {
	case IBV_WR_TAG_ADD:
		q->kind = TAG_ADD;
		if ((unsigned)wr->tm.add.num_sge > MAX_TAG_SGE)
			return EINVAL;
		q->num_sge = (uint32_t)wr->tm.add.num_sge;
		q->recv_id = wr->tm.add.recv_wr_id;
		q->tag = wr->tm.add.tag;
		q->mask = wr->tm.add.mask;
		_Static_assert(sizeof(struct ibv_sge) == 16, "two words of the request");
		if (q->num_sge)
			memcpy(q->sge, wr->tm.add.sg_list, q->num_sge * sizeof(struct ibv_sge));
		break;
	case IBV_WR_TAG_DEL:
		q->kind = TAG_REMOVE;
		q->entry = wr->tm.handle;
		break;
	case IBV_WR_TAG_SYNC:
		q->kind = TAG_SYNC;
		break;
	default:
		return EINVAL;
	}
	return wr->flags & ~(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC) ? EINVAL : 0;
}

int svpi_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	struct svpi_srq *s = to_srq(srq);

	for (; wr; wr = wr->next) {
		struct svpi_tag_op q = { .srq = srq->handle };
		uint32_t entry = 0;
		int error = s->tag_cq ? fill(&q, wr) : EINVAL;

		if (!error)
			error = svpi_call(s->svpi, SVPI_TAG, &q, sizeof(q), &entry, sizeof(entry));
		if (error) {
			*bad = wr;
			return error;
		}
		if (wr->opcode == IBV_WR_TAG_ADD)
			wr->tm.handle = entry;
	}
	return 0;
}
