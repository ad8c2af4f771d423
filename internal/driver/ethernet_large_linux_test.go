package driver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/bits"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

// The large TCP packet of these tests, and what it is on a wire.
const (
	largeBytes   = 20000
	segmentBytes = 1460
	tcpHeaders   = eth.EthernetLen + eth.IPv4Len + eth.TCPLen
	segmentsOf   = (largeBytes + segmentBytes - 1) / segmentBytes
	bytesOf      = largeBytes + segmentsOf*tcpHeaders
)

// stack is the network stack behind a TAP: what a program sends there goes to the adapter.
type stack struct {
	fd  int
	mac eth.MAC
}

// withStack gives the adapter of an end a TAP of the system as its host.
func (w *wired) withStack(i int) (name string) {
	name = "nic" + string(rune('a'+i))
	w.cfg[i].Adapters[0].Host = "tap:" + name
	return name
}

// stackOf opens the stack behind a TAP, of an adapter that runs.
func stackOf(t *testing.T, name string) *stack {
	t.Helper()
	protocol := bits.ReverseBytes16(uint16(eth.TypeIPv4)) // in the order of the network
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		t.Fatal(err)
	}
	i, err := net.InterfaceByName(name)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index, Protocol: protocol})
	}
	if err != nil {
		t.Fatal(err)
	}
	return &stack{fd, eth.MAC(i.HardwareAddr)}
}

// send hands over a large TCP packet to be cut.
func (s *stack) send(t *testing.T, to eth.MAC, sequence uint32) {
	t.Helper()
	var b [offload.HeaderLen]byte
	offload.Header{NeedsChecksum: true, Kind: offload.TCPv4, Headers: tcpHeaders, Segment: segmentBytes,
		ChecksumStart: eth.EthernetLen + eth.IPv4Len, ChecksumAt: 16}.Put(b[:])
	f := (&eth.Ethernet{Dst: to, Src: s.mac, Type: eth.TypeIPv4}).Append(b[:])
	ip := make([]byte, eth.IPv4Len+eth.TCPLen+largeBytes)
	eth.IPv4(ip).Encode(0, len(ip), 1, 64, eth.ProtocolTCP, [4]byte{192, 0, 2, 101}, [4]byte{192, 0, 2, 102})
	eth.IPv4(ip).SetChecksum()
	tcp := ip[eth.IPv4Len:]
	binary.BigEndian.PutUint32(tcp[4:], sequence)
	tcp[12], tcp[13] = 5<<4, 0x10
	// What the system leaves in the place of the checksum is the sum of the pseudo header.
	binary.BigEndian.PutUint16(tcp[16:], eth.PseudoSum(eth.IPv4(ip).Src(), eth.IPv4(ip).Dst(), eth.ProtocolTCP, len(tcp)))
	for i := range tcp[eth.TCPLen:] {
		tcp[eth.TCPLen+i] = byte(i * 7)
	}
	if _, err := unix.Write(s.fd, append(f, ip...)); err != nil {
		t.Fatal(err)
	}
}

// gets waits until all data of a packet has arrived, in one piece or many, and returns how many there were.
func (s *stack) gets(t *testing.T, sequence uint32) (pieces int) {
	t.Helper()
	b := make([]byte, 1<<17)
	var data []byte
	await.Eventually(t, "the data of a large packet arrives", func() bool {
		for {
			n, err := unix.Read(s.fd, b)
			if err != nil {
				return len(data) >= largeBytes
			}
			f := b[offload.HeaderLen:n]
			if len(f) > tcpHeaders && binary.BigEndian.Uint32(f[eth.EthernetLen+eth.IPv4Len+4:]) == sequence+uint32(len(data)) {
				data, pieces = append(data, f[tcpHeaders:]...), pieces+1
			}
		}
	})
	for i := range data {
		if data[i] != byte(i*7) {
			t.Fatalf("byte %d of %d arrives as %d", i, len(data), data[i])
		}
	}
	return pieces
}

// withoutARP takes from what was counted the frames that are more than is wanted, if they are as long as those by which links look for
// addresses: they do so when an adapter has been restarted, and none of a large packet's frames is so short.
func withoutARP(got, want map[string]uint64) map[string]uint64 {
	const length = eth.EthernetLen + 28
	for _, direction := range []string{"sent_", "received_"} {
		packets, bytes := "adapter_traffic."+direction+"packets", "adapter_traffic."+direction+"bytes"
		n := got[packets] - want[packets]
		for _, name := range []string{packets, "adapter_traffic.packets"} {
			got[name] -= n
		}
		for _, name := range []string{bytes, "adapter_traffic.bytes"} {
			got[name] -= n * length
		}
	}
	maps.DeleteFunc(got, func(_ string, n uint64) bool { return n == 0 })
	return got
}

// TestEthernetCapture_EachWire: over every wire a large packet counts as the frames that it is on a wire, whether it is cut or
// not. While a capture runs it is cut, and the captures of both ends show its segments with right checksums, and RDMA beside
// them; the capture of what has no RSS hash shows RDMA alone. When they have ended it goes unsplit again, where it did before.
func TestEthernetCapture_EachWire(t *testing.T) {
	systemtest.Mark(t)
	eachWire(t, func(t *testing.T, w *wired) {
		names := [2]string{w.withStack(0), w.withStack(1)}
		for i := range w.cfg {
			w.cfg[i].Adapters[0].Generation = "mlx4"
		}
		w.start(t)
		near, far := w.d[0], w.d[1]
		set(t, far, "far", rssMonitoring, "1")
		restart(t, far, "far")
		a, b := stackOf(t, names[0]), stackOf(t, names[1])
		sequence := uint32(1)
		large := func() (segments uint64) {
			t.Helper()
			before := snapshot(t, near)
			was, _ := value(t, near, `\ethernet(near)\sent_segments`)
			a.send(t, b.mac, sequence)
			b.gets(t, sequence)
			sequence += largeBytes
			want := carriedBy("sent", segmentsOf, bytesOf)
			diff := ""
			if !await.Until(func() bool {
				got := counted(t, near, before)
				for name := range got {
					if !strings.HasPrefix(name, "adapter_traffic.") {
						delete(got, name)
					}
				}
				diff = cmp.Diff(want, withoutARP(got, want))
				return diff == ""
			}) {
				t.Errorf("a large packet is counted otherwise than wanted (-):\n%s", diff)
			}
			now, _ := value(t, near, `\ethernet(near)\sent_segments`)
			return now - was
		}
		unsplit := large()
		if w.wire == "interface" || w.wire == "switch" {
			if unsplit != 0 {
				t.Errorf("%d segments are made for a wire that takes large packets", unsplit)
			}
		}
		dir, err := os.MkdirTemp("", "cap")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		var files [2]string
		var ids [2]string
		for i, d := range w.d {
			files[i] = filepath.Join(dir, endNames[i])
			s, err := d.CaptureToFile(CaptureRequest{Adapter: endNames[i]}, files[i])
			if err != nil {
				t.Fatal(err)
			}
			ids[i] = s.ID
		}
		if _, err := far.StartPacketBuffer("far", api.PacketBufferRequest{Packets: 4096, Bytes: 9014}); err != nil {
			t.Fatal(err)
		}
		if n := large(); n != segmentsOf {
			t.Errorf("%d segments are made while a capture runs, want %d", n, segmentsOf)
		}
		across(t, w.end(0), w.end(1))
		file, err := far.CollectPackets("far")
		if err != nil {
			t.Fatal(err)
		}
		r, err := pcapgo.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		n := kindsOf(t, b.mac, func() ([]byte, error) { f, _, err := r.ReadPacketData(); return f, err })
		if n["in RoCE"] < 16 || n["in TCP"] != 0 || n["out RoCE"] != 0 {
			t.Errorf("without a hash: %v", n)
		}
		if _, err := far.StopPacketBuffer("far"); err != nil {
			t.Fatal(err)
		}
		for i, d := range w.d {
			if _, err := d.EndCapture(t.Context(), ids[i]); err != nil {
				t.Fatal(err)
			}
		}
		if n := large(); n != unsplit {
			t.Errorf("%d segments are made when the captures have ended, %d before them", n, unsplit)
		}
		for i, file := range files {
			lookedAt(t, file, []string{"out ", "in "}[i], []eth.MAC{a.mac, b.mac}[i])
		}
	})
}

// lookedAt looks at a capture of the segments, in one direction, and of RDMA in both.
func lookedAt(t *testing.T, file, direction string, mac eth.MAC) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	n := kindsOf(t, mac, func() ([]byte, error) {
		f, _, err := r.ReadPacketData()
		var h eth.Headers
		if errors.Is(err, io.EOF) || !h.Parse(f) || h.Protocol != eth.ProtocolTCP {
			return f, err
		}
		if sums := offload.Check(&h, f); len(f) > tcpHeaders+segmentBytes || sums != offload.GoodIP|offload.GoodTransport {
			t.Errorf("%s: a frame of %d bytes, sums %b", filepath.Base(file), len(f), sums)
		}
		return f, err
	})
	if n[direction+"TCP"] != segmentsOf || n["in RoCE"] == 0 || n["out RoCE"] == 0 || n["in RoCE"]+n["out RoCE"] < 17 {
		t.Errorf("%s: %v, want %d segments, and RDMA", filepath.Base(file), n, segmentsOf)
	}
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Log("no tshark: the capture is not read by it")
		return
	}
	read := func(filter string) int {
		out, err := exec.Command("tshark", "-r", file, "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
			"-o", "ip.check_checksum:TRUE", "-Y", filter).Output()
		if err != nil {
			t.Fatalf("tshark: %v", err)
		}
		return bytes.Count(out, []byte("\n"))
	}
	if n := read("tcp.checksum.status==0 || udp.checksum.status==0 || ip.checksum.status==0"); n != 0 {
		t.Errorf("%s: tshark finds %d wrong checksums", filepath.Base(file), n)
	}
	if tcp, roce := read("tcp.checksum.status==1"), read("infiniband.bth"); tcp != segmentsOf || roce != n["in RoCE"]+n["out RoCE"] {
		t.Errorf("%s: tshark reads %d segments and %d RoCE packets", filepath.Base(file), tcp, roce)
	}
}
