package mad

import "testing"

func TestDREQEveryBit(t *testing.T) { checkEveryBit(t, AttrDREQ, map[int]byte{35: 0xff}) }

// IBA 12.6.10.
func TestDREQLayout(t *testing.T) {
	m := DREQ{LocalCommID: 0x01020304, RemoteCommID: 0x05060708, RemoteQPN: 0x111213, PrivateData: [220]byte{0: 1, 219: 2}}
	checkAt(t, &m, map[int]string{16: "0015", 24: "0102030405060708", 32: "11121300", 36: "01", 255: "02"})
}
