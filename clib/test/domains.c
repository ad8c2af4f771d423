/* Parent domains: whose allocators provide the state of their queue pairs and queues, and what becomes of it. */
#include "bed.h"

#include <errno.h>

enum { QP = 1, CQ, SRQ, TYPES }; /* lower half of the resource type */

static struct end a, b;
static struct ibv_pd *domain;
static int allocated[TYPES], freed[TYPES], context;
static void *last;
static enum { PLACE, DEFAULT, FAIL, CROOKED } how;

static int type_of(struct ibv_pd *pd, void *pd_context, uint64_t resource_type)
{
	CHECK((!domain || pd == domain) && pd_context == &context && resource_type >> 32 == 0x5f01, ": type %llx",
	      (unsigned long long)resource_type);
	return CHECK((uint32_t)resource_type < TYPES, ".") ? (int)(uint32_t)resource_type : 0;
}

static void *allocate(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t resource_type)
{
	allocated[type_of(pd, pd_context, resource_type)]++;
	CHECK(alignment == 64 && size % alignment == 0 && size > 0 && size <= 4096, ": %zu, %zu", size, alignment);
	if (how == FAIL || how == DEFAULT)
		return how == FAIL ? NULL : IBV_ALLOCATOR_USE_DEFAULT;
	MUST(last = aligned_alloc(alignment, size + alignment));
	memset(last, 0xa5, size + alignment);
	return how == CROOKED ? (uint8_t *)last + 8 : last;
}

static void release(struct ibv_pd *pd, void *pd_context, void *p, uint64_t resource_type)
{
	freed[type_of(pd, pd_context, resource_type)]++;
	free(how == CROOKED ? (uint8_t *)p - 8 : p);
}

static struct ibv_pd *with_allocators(struct end *e, struct ibv_pd *pd)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .alloc = allocate, .free = release, .pd_context = &context,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT };

	memset(allocated, 0, sizeof(allocated));
	memset(freed, 0, sizeof(freed));
	return ibv_alloc_parent_domain(e->ctx, &attr);
}

static struct ibv_cq *extended(struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 64, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent };
	struct ibv_cq_ex *x = ibv_create_cq_ex(a.ctx, &want);

	return x ? ibv_cq_ex_to_cq(x) : NULL;
}

static struct ibv_srq *shared(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };

	return ibv_create_srq(pd, &attr);
}

static bool counted(const int *n, int each)
{
	return n[QP] == each && n[CQ] == each && n[SRQ] == each && n[0] == 0;
}

/* traffic goes through a queue pair, a shared receive queue and a completion queue of such a domain. The domain is in use while
 * there is one of them. */
static void traffic(bool place)
{
	struct ibv_pd *plain;
	struct ibv_cq *cq, *old;
	struct ibv_srq *srq;
	struct ibv_wc wc;

	how = place ? PLACE : DEFAULT;
	open_end(&a, 0);
	open_end(&b, 1);
	plain = a.pd;
	MUST(domain = with_allocators(&a, plain));
	CHECK(domain != plain && ibv_dealloc_pd(plain) == EBUSY, ".");
	MUST(cq = extended(domain));
	CHECK(!place || last == cq, ".");
	CHECK(ibv_dealloc_pd(domain) == EBUSY, ".");
	MUST(srq = shared(domain));
	CHECK(!place || last == srq, ".");
	old = a.cq;
	a.cq = cq;
	a.pd = domain;
	make_qp(&a, IBV_QPT_RC, srq);
	a.pd = plain;
	CHECK((!place || last == a.qp) && a.qp->pd == domain && counted(allocated, 1) && counted(freed, 0), ".");
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	for (uint64_t i = 0; i < 3 * DEPTH; i++) {
		struct ibv_sge s = { (uintptr_t)a.buf, 100, a.mr->lkey };
		struct ibv_recv_wr *bad, receive = { .wr_id = i, .sg_list = &s, .num_sge = 1 };
		struct ibv_send_wr out = request(&b, &a, IBV_WR_SEND, &s, i, 0, 100);

		s = (struct ibv_sge){ (uintptr_t)a.buf, 100, a.mr->lkey };
		CHECK(ibv_post_srq_recv(srq, &receive, &bad) == 0, ".");
		pattern(b.buf, 100, (unsigned)i);
		s = (struct ibv_sge){ (uintptr_t)b.buf, 100, b.mr->lkey };
		CHECK(post(&b, &out) == 0, ".");
		EXPECT(&b, IBV_WC_SUCCESS, i, NULL);
		EXPECT(&a, IBV_WC_SUCCESS, i, &wc);
		CHECK(wc.opcode == IBV_WC_RECV && memcmp(a.buf, b.buf, 100) == 0, ".");
		out = request(&a, &b, IBV_WR_RDMA_WRITE, &s, i, 4096, 8);
		CHECK(post(&a, &out) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, i, NULL);
	}
	CHECK(ibv_resize_cq(cq, 200) == 0, ".");
	part(&a, &b);
	CHECK(ibv_dealloc_pd(domain) == EBUSY && ibv_destroy_srq(srq) == 0, ".");
	CHECK(ibv_dealloc_pd(domain) == EBUSY && ibv_destroy_cq(cq) == 0, ".");
	CHECK(counted(allocated, 1) && counted(freed, place), ": %d, %d, %d", freed[QP], freed[CQ], freed[SRQ]);
	CHECK(ibv_dealloc_pd(domain) == 0, ".");
	domain = NULL;
	a.cq = old;
	close_end(&a);
	close_end(&b);
}

/* no_memory: an allocator that has none fails the call and leaves nothing; neither does a call that fails for another reason, or
 * memory that is not aligned. */
static void no_memory(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 1, 1, 0 } };

	open_end(&a, 0);
	attr.send_cq = attr.recv_cq = a.cq;
	MUST(domain = with_allocators(&a, a.pd));
	how = FAIL;
	CHECK(!extended(domain) && errno == ENOMEM, ": %d", errno);
	CHECK(!shared(domain) && errno == ENOMEM, ": %d", errno);
	CHECK(!ibv_create_qp(domain, &attr) && errno == ENOMEM, ": %d", errno);
	CHECK(counted(allocated, 1) && counted(freed, 0), ".");
	how = CROOKED;
	CHECK(!extended(domain) && errno == EINVAL, ": %d", errno);
	CHECK(!shared(domain) && errno == EINVAL, ": %d", errno);
	CHECK(!ibv_create_qp(domain, &attr) && errno == EINVAL, ": %d", errno);
	CHECK(counted(allocated, 2) && counted(freed, 1), ".");
	how = PLACE;
	attr.cap.max_send_wr = 1 << 30;
	CHECK(!ibv_create_qp(domain, &attr) && errno == EINVAL, ": %d", errno);
	CHECK(allocated[QP] == 3 && freed[QP] == 2, ": %d, %d", allocated[QP], freed[QP]);
	CHECK(ibv_dealloc_pd(domain) == 0, ".");
	domain = NULL;
	close_end(&a);
}

/* others: objects outside of the domain are not the allocators' matter, and both functions have to be there. */
static void others(void)
{
	struct ibv_parent_domain_init_attr attr = { 0 };
	struct ibv_srq *srq;
	struct ibv_td *td;
	struct ibv_pd *pd;

	open_end(&a, 0);
	how = PLACE;
	MUST(domain = with_allocators(&a, a.pd));
	make_qp(&a, IBV_QPT_RC, NULL);
	MUST(srq = shared(a.pd));
	CHECK(ibv_destroy_srq(srq) == 0 && counted(allocated, 0), ".");
	CHECK(ibv_dealloc_pd(domain) == 0, ".");
	CHECK(!ibv_alloc_parent_domain(a.ctx, &attr) && errno == EINVAL, ": no domain: %d", errno);
	attr.pd = a.pd;
	attr.comp_mask = 4;
	CHECK(!ibv_alloc_parent_domain(a.ctx, &attr) && errno == EINVAL, ": unknown: %d", errno);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.alloc = allocate;
	CHECK(!ibv_alloc_parent_domain(a.ctx, &attr) && errno == EINVAL, ": no free: %d", errno);
	attr.alloc = NULL;
	attr.free = release;
	CHECK(!ibv_alloc_parent_domain(a.ctx, &attr) && errno == EINVAL, ": no alloc: %d", errno);
	attr.comp_mask = 0;
	MUST(td = ibv_alloc_td(a.ctx, &(struct ibv_td_init_attr){ 0 }));
	attr.td = td;
	MUST(pd = ibv_alloc_parent_domain(a.ctx, &attr)); /* without the bit the functions are not looked at */
	CHECK((srq = shared(pd)) && ibv_destroy_srq(srq) == 0 && counted(allocated, 0), ".");
	CHECK(ibv_dealloc_pd(pd) == 0 && ibv_dealloc_td(td) == 0, ".");
	domain = NULL;
	close_end(&a);
}

void test_domains(void)
{
	traffic(true);
	traffic(false);
	no_memory();
	others();
}
