package mad

import "testing"

func TestRTUEveryBit(t *testing.T) { checkEveryBit(t, AttrRTU, nil) }

// IBA 12.6.9.
func TestRTULayout(t *testing.T) {
	m := RTU{LocalCommID: 0x01020304, RemoteCommID: 0x05060708, PrivateData: [224]byte{0: 1, 223: 2}}
	checkAt(t, &m, map[int]string{16: "0014", 24: "0102030405060708", 32: "01", 255: "02"})
}
