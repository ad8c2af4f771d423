package mad

import "testing"

func TestREPEveryBit(t *testing.T) {
	checkEveryBit(t, AttrREP, map[int]byte{39: 0xff, 43: 0xff, 47: 0xff, 51: 0x0f})
}

// IBA 12.6.8.
func TestREPLayout(t *testing.T) {
	m := REP{LocalCommID: 0x01020304, RemoteCommID: 0x05060708, LocalQKey: 0x11121314, LocalQPN: 0x212223, LocalEECN: 0x313233,
		StartingPSN: 0x414243, ResponderResources: 0x51, InitiatorDepth: 0x52, TargetAckDelay: 15, Failover: FailoverRejected,
		FlowControl: true, RNRRetryCount: 7, SRQ: true, LocalCAGUID: 0x6162636465666768, PrivateData: [196]byte{0: 1, 195: 2}}
	checkAt(t, &m, map[int]string{16: "0013", 24: "0102030405060708", 32: "11121314", 36: "21222300", 40: "31323300", 44: "41424300",
		48: "51527df0", 52: "6162636465666768", 60: "01", 255: "02"})
}
