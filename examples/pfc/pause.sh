#!/bin/sh
# Global pause between hosts and switches, PFC between switches: "Global Pause (Flow Control)" and "Using Global Pause (Flow Control)" of
# the manual.
#
#   pause.sh [HOP]...
scenario=$(dirname "$0")/pause.json
mark() {
	softvpi qos set nic pfc=none                               # Disable-NetQosFlowControl
	softvpi reg add '*QOS' --adapter nic /d 0                  # Disable-NetAdapterQos
}
lossless() {
	softvpi reg add '*FlowControl' --adapter nic /d 3          # "Flow Control": Rx & Tx Enabled
}
. "$(dirname "$0")/lab.sh"
