package driver

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestLinkAddress: RFC 4391 9.1.1, the queue pair and the GID of the port; the broadcast address names the queue pair of
// multicast and the broadcast group, and is not there before the group is.
func TestLinkAddress(t *testing.T) {
	at := command.Interface{Index: 7, Namespace: 9}
	s := service.Status{Address: ipoib.Address{QPN: 0x123456, GID: ib.GID{0xfe, 0x80, 15: 5}},
		Broadcast: ib.GID{0xff, 0x12, 0x40, 0x1b, 15: 0xff}}
	want := command.LinkAddress{Index: 7, Namespace: 9, Hardware: 32,
		Address:   [20]byte{1: 0x12, 0x34, 0x56, 0xfe, 0x80, 19: 5},
		Broadcast: [20]byte{1: 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b, 19: 0xff}}
	if got := linkAddress(at, s); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.Broadcast, want.Broadcast = ib.GID{}, [20]byte{}
	if got := linkAddress(at, s); got != want {
		t.Errorf("without a group %+v, want %+v", got, want)
	}
}
