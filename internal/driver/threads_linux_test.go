package driver

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/offload"
	machine "github.com/softvpi/softvpi/internal/os/processors"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

// sendFlow hands over a small TCP packet of a flow, of which n is the number; the system may lose it.
func (s *stack) sendFlow(to eth.MAC, flow uint16, n uint32) {
	var b [offload.HeaderLen]byte
	f := (&eth.Ethernet{Dst: to, Src: s.mac, Type: eth.TypeIPv4}).Append(b[:])
	ip := make([]byte, eth.IPv4Len+eth.TCPLen+100)
	eth.IPv4(ip).Encode(0, len(ip), 1, 64, eth.ProtocolTCP, [4]byte{192, 0, 2, 101}, [4]byte{192, 0, 2, 102})
	eth.IPv4(ip).SetChecksum()
	tcp := ip[eth.IPv4Len:]
	binary.BigEndian.PutUint16(tcp, 1000+flow)
	binary.BigEndian.PutUint32(tcp[4:], n)
	tcp[12], tcp[13] = 5<<4, 0x10
	_, _ = unix.Write(s.fd, append(f, ip...))
}

// flows reads what has arrived, and passes on the flow and the number of each such packet.
func (s *stack) flows(took func(flow uint16, n uint32)) {
	b := make([]byte, 1<<17)
	for {
		n, err := unix.Read(s.fd, b)
		if err != nil {
			return
		}
		f := b[offload.HeaderLen:n]
		if len(f) != tcpHeaders+100 || eth.MAC(f) != s.mac {
			continue
		}
		tcp := f[eth.EthernetLen+eth.IPv4Len:]
		took(binary.BigEndian.Uint16(tcp)-1000, binary.BigEndian.Uint32(tcp[4:]))
	}
}

// TestThreads: flows of a host by several queues are read by the threads of these, and written to the other host by those of its; the
// packets of each flow arrive in order, and once (WinOF-2 Ethernet, RSS: *RSSProfile 4 keeps queues on their processors).
func TestThreads(t *testing.T) {
	systemtest.Mark(t)
	if len(machine.List()) < 2 {
		t.Skip("it takes two processors")
	}
	eachWire(t, func(t *testing.T, w *wired) {
		if w.wire != "switch" {
			t.Skip("what the wire is does not matter: once is enough")
		}
		names := [2]string{w.withStack(0), w.withStack(1)}
		w.start(t)
		for i, name := range endNames {
			for key, value := range map[string]string{"*RSSProfile": "4", "*RscIPv4": "0"} {
				set(t, w.d[i], name, key, value)
			}
			restart(t, w.d[i], name)
		}
		a, b := stackOf(t, names[0]), stackOf(t, names[1])
		const flows, burst = 8, 1000
		next, sent, got := [flows]uint32{}, uint32(0), 0
		take := func() {
			b.flows(func(flow uint16, n uint32) {
				if n < next[flow] {
					t.Errorf("flow %d: packet %d comes after %d", flow, n, next[flow]-1)
				}
				next[flow] = n + 1
				got++
			})
		}
		threaded := func(i int) bool {
			n, there := value(t, w.d[i], `\ethernet(`+endNames[i]+`)\threaded_frames`)
			return there && n > 100
		}
		await.Eventually(t, "threads pass frames on at both ends", func() bool {
			for range burst {
				for flow := range uint16(flows) {
					a.sendFlow(b.mac, flow, sent)
				}
				if sent++; sent%16 == 0 {
					take()
				}
			}
			take()
			return threaded(0) && threaded(1)
		})
		last := sent
		await.Eventually(t, "all flows arrive", func() bool {
			for flow := range uint16(flows) {
				a.sendFlow(b.mac, flow, sent)
			}
			sent++
			take()
			for _, n := range next {
				if n <= last {
					return false
				}
			}
			return true
		})
		if got > int(sent)*flows {
			t.Errorf("%d packets arrive of %d", got, sent*flows)
		}
	})
}
