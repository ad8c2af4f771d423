#!/bin/sh
# PFC by the priority of the VLAN tag (PCP): "Configuring Quality of Service (QoS)" and "Configuring Arista Switch" of the manual.
#
#   pcp.sh [HOP]...
scenario=$(dirname "$0")/pcp.json
adapter=,vlan=100 # Set-NetAdapterAdvancedProperty -RegistryKeyword "VlanID" -RegistryValue "100"
mark() {
	softvpi qos set nic willing=off                            # Set-NetQosDcbxSetting -Willing 0
	softvpi qos policy add nic ND netdirect=10000 priority=3   # New-NetQosPolicy "ND" -NetDirectPortMatchCondition 10000 -PriorityValue8021Action 3
	softvpi qos policy add nic DEFAULT default priority=3      # New-NetQosPolicy "DEFAULT" -Default -PriorityValue8021Action 3
	softvpi qos policy add nic TCP protocol=tcp priority=1     # New-NetQosPolicy "TCP" -IPProtocolMatchCondition TCP -PriorityValue8021Action 1
	softvpi qos policy add nic UDP protocol=udp priority=1     # New-NetQosPolicy "UDP" -IPProtocolMatchCondition UDP -PriorityValue8021Action 1
	softvpi qos set nic prio-tc=3:1 tc-bw=0:50,1:50            # New-NetQosTrafficClass -Priority 3 -BandwidthPercentage 50 -Algorithm ETS
}
lossless() {
	softvpi qos set nic pfc=3                                  # Enable-NetQosFlowControl -Priority 3
}
. "$(dirname "$0")/lab.sh"
