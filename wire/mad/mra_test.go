package mad

import "testing"

func TestMRAEveryBit(t *testing.T) {
	checkEveryBit(t, AttrMRA, map[int]byte{32: 0x3f, 33: 0x07})
}

// IBA 12.6.6.
func TestMRALayout(t *testing.T) {
	m := MRA{LocalCommID: 0x01020304, RemoteCommID: 0x05060708, Message: MRAForLAP, ServiceTimeout: 21,
		PrivateData: [222]byte{0: 1, 221: 2}}
	checkAt(t, &m, map[int]string{16: "0011", 24: "0102030405060708", 32: "80a801", 255: "02"})
}
