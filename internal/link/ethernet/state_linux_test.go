package ethernet

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestSends: an interface whose carrier is there and that the system has not activated yet does not send, nor one without a carrier
// that the system has not put down yet.
func TestSends(t *testing.T) {
	for flags, want := range map[uint32]bool{
		unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING:                      true,
		unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING | unix.IFF_BROADCAST: true,
		unix.IFF_UP | unix.IFF_LOWER_UP:                                         false,
		unix.IFF_UP | unix.IFF_RUNNING:                                          false,
		unix.IFF_LOWER_UP | unix.IFF_RUNNING:                                    false,
		0:                                                                       false,
	} {
		if got := sends(flags); got != want {
			t.Errorf("with flags %#x it sends: %v, want %v", flags, got, want)
		}
	}
}
