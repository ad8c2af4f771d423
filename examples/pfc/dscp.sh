#!/bin/sh
# PFC by DSCP, without tags: "Configuring DSCP to Control PFC for RDMA Traffic", its registry settings, and "Receive Trust State" of the
# manual.
#
#   dscp.sh [HOP]...
scenario=$(dirname "$0")/dscp.json
mark() {
	softvpi qos policy add nic ND netdirect=10000 priority=3   # New-NetQosPolicy "ND10000" -NetDirectPortMatchCondition 10000 -PriorityValue8021Action 3
	softvpi qos policy add nic DEFAULT default priority=3      # New-NetQosPolicy "DEFAULT" -Default -PriorityValue8021Action 3
	softvpi reg add PriorityToDscpMappingTable_3 --adapter nic /d 24
	softvpi reg add DscpBasedpfcEnabled --adapter nic /d 1
	softvpi reg add TxUntagPriorityTag --adapter nic /d 1
	softvpi reg add RxUntaggedMapToLossless --adapter nic /d 1
	softvpi reg add RxTrustedState --adapter nic /d 2
}
lossless() {
	softvpi qos set nic pfc=3                                  # Enable-NetQosFlowControl 3
}
. "$(dirname "$0")/lab.sh"
