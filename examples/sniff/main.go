// Command sniff prints the Ethernet frames that a port of the driver receives and sends, one line each, or counts those of a
// UDP or TCP port that it takes away from the port's host.
//
// With a driver running whose adapter carries whole frames (docs/ethernet.md):
//
//	go run ./examples/sniff -count 4
//	go run ./examples/sniff -udp 5201
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"

	"github.com/softvpi/softvpi/packetdirect"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "sniff:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("sniff", flag.ContinueOnError)
	flags.SetOutput(stderr)
	adapter := flags.String("adapter", "", "`name` or address of the adapter; empty: the first with a wire of whole frames")
	count := flags.Uint64("count", 0, "end after so many `frames`; 0: at Ctrl-C")
	udp := flags.Uint("udp", 0, "take the frames to this `port` of UDP, in place of copies of all")
	tcp := flags.Uint("tcp", 0, "take the frames to this `port` of TCP")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *udp > 65535 || *tcp > 65535 || *udp > 0 && *tcp > 0 {
		return errors.New("want at most one of -udp and -tcp, 1 to 65535, and no other arguments")
	}
	filter := packetdirect.Filter{Kind: packetdirect.Copies}
	switch {
	case *udp > 0:
		filter = packetdirect.Filter{Protocol: 17, DstPort: uint16(*udp)}
	case *tcp > 0:
		filter = packetdirect.Filter{Protocol: 6, DstPort: uint16(*tcp)}
	}
	a, err := packetdirect.Open(ctx, packetdirect.Options{Adapter: *adapter})
	if err != nil {
		return err
	}
	defer a.Close()
	return watch(ctx, a, filter, *count, stdout)
}

// watch prints the frames that a filter gives, until there were count or ctx ends.
func watch(ctx context.Context, a *packetdirect.Adapter, filter packetdirect.Filter, count uint64, stdout io.Writer) error {
	const depth = 1024
	queue, err := a.NewReceiveQueue(packetdirect.QueueConfig{Depth: depth})
	if err != nil {
		return err
	}
	pool, err := a.NewPool(depth, 0)
	if err != nil {
		return err
	}
	if _, _, err := queue.PostAndDrain(pool.Buffers(), nil); err != nil {
		return err
	}
	steering, err := queue.AddFilter(filter)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "watching %s, %v\n", a.Name(), net.HardwareAddr(macOf(a)))
	burst, n := make([]*packetdirect.Buffer, 64), 0
	for seen := uint64(0); count == 0 || seen < count; {
		if _, n, err = queue.PostAndDrain(burst[:n], burst); err != nil {
			return err
		}
		for _, b := range burst[:n] {
			if seen++; count == 0 || seen <= count {
				fmt.Fprintln(stdout, line(b.Bytes()))
			}
		}
		if n == 0 && queue.Wait(ctx) != nil {
			break
		}
	}
	counted, err := steering.Counters()
	fmt.Fprintf(stdout, "%d frames, %d bytes, %d lost\n", counted.Frames, counted.Bytes, counted.Lost)
	return err
}

func macOf(a *packetdirect.Adapter) []byte {
	mac := a.MAC()
	return mac[:]
}

// line describes a frame.
func line(b []byte) string {
	if len(b) < 14 {
		return fmt.Sprintf("%d bytes, which is no frame", len(b))
	}
	name := map[uint16]string{0x0800: "IPv4", 0x0806: "ARP", 0x8100: "VLAN", 0x86dd: "IPv6", 0x8915: "RoCE v1"}
	t := binary.BigEndian.Uint16(b[12:])
	what, ok := name[t]
	if !ok {
		what = fmt.Sprintf("%#04x", t)
	}
	return fmt.Sprintf("%v > %v %s, %d bytes", net.HardwareAddr(b[6:12]), net.HardwareAddr(b[:6]), what, len(b))
}
