/* The header in front of a MAD. It always has the length of the form with a P_Key index. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "service.h"

int svpi_umad_level;

void svpi_umad_warn(const char *function, const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	fprintf(stderr, "ibwarn: [%d] %s: %s\n", (int)getpid(), function, text);
}

EXPORT int umad_debug(int level)
{
	if (level >= 0)
		svpi_umad_level = level;
	return svpi_umad_level;
}

EXPORT void *umad_get_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

EXPORT size_t umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

EXPORT int umad_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

EXPORT ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

/* mad_addr's numbers are in host byte order. */
EXPORT int umad_set_grh(void *umad, void *mad_addr)
{
	struct ib_user_mad *mad = umad;
	const struct ib_mad_addr *from = mad_addr;

	mad->addr.grh_present = from != NULL;
	if (!from)
		return 0;
	memcpy(mad->addr.gid, from->gid, 16);
	mad->addr.flow_label = htonl(from->flow_label);
	mad->addr.hop_limit = from->hop_limit;
	mad->addr.traffic_class = from->traffic_class;
	return 0;
}

EXPORT int umad_set_pkey(void *umad, int pkey_index)
{
	((struct ib_user_mad *)umad)->addr.pkey_index = (uint16_t)pkey_index;
	return 0;
}

EXPORT int umad_get_pkey(void *umad)
{
	return ((struct ib_user_mad *)umad)->addr.pkey_index;
}

EXPORT int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	TRACE("umad %p dlid %u dqp %d sl %d, qkey %x", umad, dlid, dqp, sl, qkey);
	return umad_set_addr_net(umad, htons((uint16_t)dlid), htonl((uint32_t)dqp), sl, htonl((uint32_t)qkey));
}

EXPORT int umad_set_addr_net(void *umad, uint16_t dlid, uint32_t dqp, int sl, uint32_t qkey)
{
	struct ib_user_mad *mad = umad;

	mad->addr.lid = dlid;
	mad->addr.qpn = dqp;
	mad->addr.sl = (uint8_t)sl;
	mad->addr.qkey = qkey;
	return 0;
}

EXPORT void umad_addr_dump(ib_mad_addr_t *a)
{
	char gid[33];

	for (int i = 0; i < 16; i++)
		sprintf(gid + 2 * i, "%02x", a->gid[i]);
	WARN("qpn %d qkey 0x%x lid %d sl %d\n"
	     "grh_present %d gid_index %d hop_limit %d traffic_class %d flow_label 0x%x pkey_index 0x%x\n"
	     "Gid 0x%s",
	     (int)ntohl(a->qpn), ntohl(a->qkey), ntohs(a->lid), a->sl, a->grh_present, a->gid_index, a->hop_limit, a->traffic_class,
	     a->flow_label, a->pkey_index, gid);
}

EXPORT void umad_dump(void *umad)
{
	struct ib_user_mad *mad = umad;

	WARN("agent id %d status %x timeout %d", (int)mad->agent_id, mad->status, (int)mad->timeout_ms);
	umad_addr_dump(&mad->addr);
}
