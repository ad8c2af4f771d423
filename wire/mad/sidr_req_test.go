package mad

import "testing"

func TestSIDRREQEveryBit(t *testing.T) {
	checkEveryBit(t, AttrSIDRREQ, map[int]byte{30: 0xff, 31: 0xff})
}

// IBA 12.11.1.
func TestSIDRREQLayout(t *testing.T) {
	m := SIDRREQ{RequestID: 0x01020304, PKey: 0x8001, ServiceID: ServiceID(PortSpaceUDP, 7), PrivateData: [216]byte{0: 1, 215: 2}}
	checkAt(t, &m, map[int]string{16: "0017", 24: "01020304", 28: "80010000", 32: "0000000001110007", 40: "01", 255: "02"})
}
