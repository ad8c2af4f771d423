package mad

import (
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
)

func TestREQEveryBit(t *testing.T) {
	checkEveryBit(t, AttrREQ, with(bytesOf([2]int{28, 32}, [2]int{48, 52}), map[int]byte{
		// The reserved bits between flow label and rate, and behind SL and ACK time-out, of both paths.
		114: 0x0f, 115: 0xc0, 118: 0x07, 119: 0x07,
		158: 0x0f, 159: 0xc0, 162: 0x07, 163: 0x07,
	}))
}

// IBA 12.6.5, table "REQ Message Contents".
func TestREQLayout(t *testing.T) {
	m := REQ{
		LocalCommID: 0x01020304, ServiceID: ServiceID(PortSpaceTCP, 7471), LocalCAGUID: 0x1112131415161718, LocalQKey: 0x21222324,
		LocalQPN: 0x313233, ResponderResources: 0x41, LocalEECN: 0x424344, InitiatorDepth: 0x45, RemoteEECN: 0x464748,
		RemoteCMResponseTimeout: 20, TransportType: TransportUC, FlowControl: true, StartingPSN: 0x515253, LocalCMResponseTimeout: 19,
		RetryCount: 5, PKey: 0x8123, PathMTU: ib.MTU1024, RDCExists: true, RNRRetryCount: 6, MaxCMRetries: 15, SRQ: true, ExtendedType: 1,
		Primary: Path{LocalLID: 0xfffe, RemoteLID: 0xfffd, LocalGID: ib.GID{0: 0x61, 15: 0x62}, RemoteGID: ib.GID{0: 0x63, 15: 0x64},
			FlowLabel: 0x71727, PacketRate: 0x12, TrafficClass: 0x73, HopLimit: 0x74, SL: 9, SubnetLocal: true, AckTimeout: 14},
		Alternate:   Path{LocalLID: 0x0102, AckTimeout: 31},
		PrivateData: [92]byte{0: 0x81, 91: 0x82},
	}
	checkAt(t, &m, map[int]string{
		16: "0010", 24: "01020304", 32: "0000000001061d2f", 40: "1112131415161718", 52: "21222324", 56: "31323341", 60: "42434445",
		64: "464748a3", 68: "5152539d", 72: "8123", 74: "3e", 75: "f9", 76: "fffefffd", 80: "61", 95: "6263", 111: "64",
		112: "71727012", 116: "7374", 118: "98", 119: "70", 120: "0102", 163: "f8", 164: "81", 255: "82",
	})
}
