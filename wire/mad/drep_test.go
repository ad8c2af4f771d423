package mad

import "testing"

func TestDREPEveryBit(t *testing.T) { checkEveryBit(t, AttrDREP, nil) }

// IBA 12.6.11.
func TestDREPLayout(t *testing.T) {
	m := DREP{LocalCommID: 0x01020304, RemoteCommID: 0x05060708, PrivateData: [224]byte{0: 1, 223: 2}}
	checkAt(t, &m, map[int]string{16: "0016", 24: "0102030405060708", 32: "01", 255: "02"})
}
