/* Prints sizes and offsets of everything that programs share with libibumad, from our declarations or from the
 * distribution's. */
#include <stddef.h>
#include <stdio.h>
#ifndef SYSTEM
#include "../umad/umad.h"
#endif

#define SIZE(t) printf(#t " %zu\n", sizeof(t))
#define AT(t, f) printf(#t "." #f " %zu\n", offsetof(t, f))

int main(void)
{
	SIZE(ib_mad_addr_t);
	AT(ib_mad_addr_t, qkey);
	AT(ib_mad_addr_t, lid);
	AT(ib_mad_addr_t, sl);
	AT(ib_mad_addr_t, path_bits);
	AT(ib_mad_addr_t, grh_present);
	AT(ib_mad_addr_t, gid_index);
	AT(ib_mad_addr_t, hop_limit);
	AT(ib_mad_addr_t, traffic_class);
	AT(ib_mad_addr_t, gid);
	AT(ib_mad_addr_t, flow_label);
	AT(ib_mad_addr_t, pkey_index);
	SIZE(struct ib_user_mad);
	AT(struct ib_user_mad, status);
	AT(struct ib_user_mad, timeout_ms);
	AT(struct ib_user_mad, retries);
	AT(struct ib_user_mad, length);
	AT(struct ib_user_mad, addr);
	AT(struct ib_user_mad, data);
	SIZE(umad_port_t);
	AT(umad_port_t, portnum);
	AT(umad_port_t, base_lid);
	AT(umad_port_t, sm_lid);
	AT(umad_port_t, state);
	AT(umad_port_t, rate);
	AT(umad_port_t, capmask);
	AT(umad_port_t, gid_prefix);
	AT(umad_port_t, port_guid);
	AT(umad_port_t, pkeys_size);
	AT(umad_port_t, pkeys);
	AT(umad_port_t, link_layer);
	SIZE(umad_ca_t);
	AT(umad_ca_t, node_type);
	AT(umad_ca_t, numports);
	AT(umad_ca_t, fw_ver);
	AT(umad_ca_t, ca_type);
	AT(umad_ca_t, hw_ver);
	AT(umad_ca_t, node_guid);
	AT(umad_ca_t, system_guid);
	AT(umad_ca_t, ports);
	SIZE(struct umad_device_node);
	AT(struct umad_device_node, ca_name);
	SIZE(struct umad_reg_attr);
	AT(struct umad_reg_attr, mgmt_class_version);
	AT(struct umad_reg_attr, flags);
	AT(struct umad_reg_attr, method_mask);
	AT(struct umad_reg_attr, oui);
	AT(struct umad_reg_attr, rmpp_version);
	return 0;
}
