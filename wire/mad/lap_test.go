package mad

import (
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
)

func TestLAPEveryBit(t *testing.T) {
	checkEveryBit(t, AttrLAP, with(bytesOf([2]int{32, 36}, [2]int{40, 44}), map[int]byte{39: 0x07, 82: 0x0f, 85: 0xc0, 86: 0x07, 87: 0x07}))
}

// IBA 12.8.1.
func TestLAPLayout(t *testing.T) {
	m := LAP{LocalCommID: 0x01020304, RemoteCommID: 0x05060708, RemoteQPN: 0x111213, RemoteCMResponseTimeout: 20,
		Alternate: Path{LocalLID: 0x2122, RemoteLID: 0x2324, LocalGID: ib.GID{0: 0x31, 15: 0x32}, RemoteGID: ib.GID{0: 0x33, 15: 0x34},
			FlowLabel: 0x41424, TrafficClass: 0x43, HopLimit: 0x44, PacketRate: 0x15, SL: 10, SubnetLocal: true, AckTimeout: 14},
		PrivateData: [168]byte{0: 1, 167: 2}}
	checkAt(t, &m, map[int]string{16: "0019", 24: "0102030405060708", 36: "111213a0", 44: "21222324", 48: "31", 63: "3233", 79: "34",
		80: "41424043", 84: "4415a870", 88: "01", 255: "02"})
}
