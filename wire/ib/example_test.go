package ib_test

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
)

// A packet is built header by header in one slice and parsed into views of that slice.
func ExampleParsePacket() {
	b := make([]byte, ib.BTHLen+ib.RETHLen, 64)
	ib.BTH(b).Encode(ib.RCWriteOnly, false, true, 0, 0xffff, 0x12, 7)
	ib.RETH(b[ib.BTHLen:]).Encode(0x1000, 0xabcd, 4)
	b = append(b, "data"...)

	p, err := ib.ParsePacket(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.BTH.Opcode(), p.BTH.PSN(), p.RETH.DMALen(), string(p.Payload))
	_, err = ib.ParsePacket(b[:20])
	fmt.Println(err)
	// Output:
	// RC RDMA WRITE Only 7 4 data
	// packet: length after the BTH is 8, want at least 16 for RC RDMA WRITE Only with pad 0
}
