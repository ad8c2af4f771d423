package driver

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/softvpi/softvpi/internal/sriov"
)

// identify gives a virtual function that was created by command the MAC and the address that it was not given. The MAC is kept.
func (d *Driver) identify(f *virtualFunction) {
	if d.infiniBand(int(f.cfg.Owner)) {
		d.identifyFabric(f, sriov.MostPerPort)
		return
	}
	if f.cfg.MAC == ([6]byte{}) {
		f.cfg.MAC = d.freeMAC(f.cfg.Owner)
		f.give("mac", net.HardwareAddr(f.cfg.MAC[:]).String())
	}
	if !f.cfg.Addr.IsValid() {
		f.cfg.Addr = linkLocal(f.cfg.MAC)
		f.give("address", f.cfg.Addr.String())
	}
}

// freeMAC returns a MAC for a virtual function of adapter i that none of its port has, those of its keys included.
func (d *Driver) freeMAC(i uint32) [6]byte {
	taken := map[[6]byte]bool{}
	for _, f := range d.functions.of(i) {
		taken[f.cfg.MAC] = true
	}
	pf := d.host.Overview().Adapters[i].MAC
	for n := uint32(sriov.MostPerPort); ; n++ {
		if mac := functionMAC(pf, n); !taken[mac] || n == 2*sriov.MostPerPort {
			return mac
		}
	}
}

// functionName returns the name of virtual function n of adapter i that the keys have.
func (d *Driver) functionName(i, n uint32) string {
	base := strings.Map(func(r rune) rune {
		if plainName(r) {
			return r
		}
		return '-'
	}, d.running[i].Name)
	return fmt.Sprintf("%s-vf%d", base[:min(len(base), mostFunctionName-6)], n)
}

// functionMAC returns the MAC of virtual function n of an adapter with a MAC: that with another second byte, locally administered.
func functionMAC(mac [6]byte, n uint32) [6]byte {
	mac[0], mac[1] = mac[0]&^1|2, mac[1]^byte(n+1)
	return mac
}

// linkLocal returns the address that a MAC has on every link (RFC 4291, 2.5.6).
func linkLocal(mac [6]byte) netip.Prefix {
	a := [16]byte{0: 0xfe, 1: 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]}
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}
