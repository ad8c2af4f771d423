#!/bin/sh
# PFC, ETS and the priority of RoCE from the switch: "Data Center Bridging Exchange (DCBX)" of the manual, "dcbx mode ieee" of the switch.
# A host that is configured wrong is not willing.
#
#   dcbx.sh [HOP]...
scenario=$(dirname "$0")/dcbx.json
mark() {
	mlxconfig -d mt4115_pciconf0 -y set LLDP_NB_TX_MODE_P1=2 LLDP_NB_RX_MODE_P1=2 LLDP_NB_DCBX_P1=1 >/dev/null
	softvpi reg add DcbxMode --adapter nic /d 2
	softvpi qos set nic willing=off                            # Set-NetQosDcbxSetting -Willing 0
}
lossless() {
	softvpi qos set nic willing=on                             # Set-NetQosDcbxSetting -Willing 1
}
ready() { # hosts that are willing have agreed with their switch
	for i in 0 1 2; do
		case " $* " in *" host$i "*) continue ;; esac
		until on $i softvpi qos show nic | grep -q 'PFC 3 (peer)'; do alive "${children%% *}" fabric; done
	done
	on 0 softvpi qos show nic >&2
	do_fabric lldp all >&2
}
. "$(dirname "$0")/lab.sh"
