package driver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/wait"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

// TestJumboPacket: the frame size bounds the RoCE packets of an adapter (WinOF 5.50, 4.6.3).
func TestJumboPacket(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	before := d.Status().Adapters[0]
	for _, c := range []struct {
		value          string
		link, payloads uint32
	}{{"1514", 1500, 1024}, {"614", 600, 256}, {"9614", 9600, 4096}} {
		set(t, d, "left", "*JumboPacket", c.value)
		restart(t, d, "left")
		if s := d.Status().Adapters[0]; s.LinkMTU != c.link || s.ActiveMTU != c.payloads {
			t.Errorf("%s: packets of %d bytes with payloads of %d, want %d and %d", c.value, s.LinkMTU, s.ActiveMTU, c.link, c.payloads)
		}
	}
	set(t, d, "left", "RoceMaxFrameSize", "4096")
	set(t, d, "left", "*JumboPacket", "1514")
	restart(t, d, "left")
	wantEvent(t, d, "RegistryValueIgnored", "RoceMaxFrameSize", "4096", "1024")
	if s := d.Status().Adapters[0]; s.ActiveMTU != 1024 || !s.Up {
		t.Errorf("payloads of %d, up %v; want 1024 and up", s.ActiveMTU, s.Up)
	}
	for _, key := range []string{"*JumboPacket", "RoceMaxFrameSize"} {
		if _, err := d.Set("left", key, nil); err != nil {
			t.Fatal(err)
		}
	}
	restart(t, d, "left")
	if s := d.Status().Adapters[0]; s.LinkMTU != before.LinkMTU || s.ActiveMTU != before.ActiveMTU {
		t.Errorf("deleted: packets of %d bytes, want %d", s.LinkMTU, before.LinkMTU)
	}
}

// TestNetworkAddress: a stored MAC address is used after a restart; a group address is reported, and the adapter
// keeps its own (WinOF-2 1.21, 5.5).
func TestNetworkAddress(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	own := d.Status().Adapters[0].MAC
	set(t, d, "left", "NetworkAddress", "02-AB-cd-00-00-01")
	restart(t, d, "left")
	if mac := d.Status().Adapters[0].MAC; mac != "02:ab:cd:00:00:01" {
		t.Errorf("the address is %s, want 02:ab:cd:00:00:01", mac)
	}
	group := "030000000001"
	if _, err := d.Set("left", "NetworkAddress", &group); err == nil {
		t.Error("a group address was accepted")
	}
	p := d.running[0].Class()
	if _, err := d.ChangeRegistry([]registry.Change{{Kind: registry.SetValue, Key: p, Value: registry.String("NetworkAddress", group)}},
		true); err != nil {
		t.Fatal(err)
	}
	restart(t, d, "left")
	if mac := d.Status().Adapters[0].MAC; mac != own {
		t.Errorf("the address is %s, want %s", mac, own)
	}
	wantEvent(t, d, "MulticastAddress", "left", group)
}

func TestLogNumRdmaRc(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	set(t, d, "left", "LogNumRdmaRc", "1")
	restart(t, d, "left")
	h := attach(t, d)
	for i, want := range []int{2, 2} { // the key is the driver's; right waits for its restart
		if i == 1 {
			restart(t, d, "right")
		}
		dev, err := h.DeviceByAddr(d.cfg.Adapters[i].Address)
		if err != nil {
			t.Fatal(err)
		}
		a, err := dev.Query()
		if err != nil {
			t.Fatal(err)
		}
		if a.MaxReadResponder != want || a.MaxReadInitiator != want {
			t.Errorf("%d: %d and %d reads, want %d", i, a.MaxReadResponder, a.MaxReadInitiator, want)
		}
	}
}

// TestModerationKeys: how the keys set an adapter's moderation (WinOF 5.50, 4.6.5 and 4.9.3).
func TestModerationKeys(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	pace := func(n uint32, d time.Duration) device.Pace { return device.Pace{Count: n, Interval: d} }
	for _, c := range []struct {
		generation, keys string
		want             device.Moderation
	}{
		{"mlx5", "", device.Moderation{Receive: pace(10, 20*us), Adaptive: true, Low: 150000, High: 170000}},
		{"mlx5", "*InterruptModeration=0", device.Moderation{}},
		{"mlx5", "RxIntModeration=1", device.Moderation{Receive: pace(5, 10*us), Low: 150000, High: 170000}},
		{"mlx5", "RxIntModeration=1 RxIntModerationPacketCount=7 RxIntModerationPacketTime=0",
			device.Moderation{Receive: pace(7, 0), Low: 150000, High: 170000}},
		{"mlx5", "RxIntModerationProfile=0", device.Moderation{Adaptive: true, Low: 150000, High: 170000}},
		{"mlx5", "RxIntModerationProfile=1", device.Moderation{Receive: pace(5, 10*us), Adaptive: true, Low: 150000, High: 170000}},
		{"mlx5", "RxIntModeration=1 TxIntModerationPacketCount=3 TxIntModerationPacketTime=4 TxIntModerationProfile=2",
			device.Moderation{Receive: pace(5, 10*us), Send: pace(6, 8*us), Low: 150000, High: 170000}},
		{"mlx4", "pkt_rate_low=100 pkt_rate_high=200", device.Moderation{Receive: pace(10, 20*us), Adaptive: true, Low: 100, High: 200}},
	} {
		cfg := quiet(t)
		cfg.Adapters[0].Generation = c.generation
		d := start(t, cfg)
		for s := range strings.FieldsSeq(c.keys) {
			name, value, _ := strings.Cut(s, "=")
			set(t, d, "left", name, value)
		}
		restart(t, d, "left")
		if got := d.running[0].moderation(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.keys, got, c.want)
		}
		stop(t, d)
	}
}

// TestModerationOfAdapters: with moderation, an event comes only after its time if too few completions come; without,
// at once.
func TestModerationOfAdapters(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	wire := "wire"
	if err := d.SetLink(LinkRequest{Adapter: "left", Path: &wire}); err != nil {
		t.Fatal(err)
	}
	const held = 60 * time.Millisecond
	for key, value := range map[string]string{"TxIntModerationPacketCount": "1000", "TxIntModerationPacketTime": "60000"} {
		set(t, d, "left", key, value)
	}
	if took := writes(t, d, 20); took >= held {
		t.Errorf("events came after %v before the restart", took)
	}
	restart(t, d, "left")
	if took := writes(t, d, 1); took < held {
		t.Errorf("the event came after %v, want %v", took, held)
	}
	set(t, d, "left", "*InterruptModeration", "0")
	restart(t, d, "left")
	if took := writes(t, d, 20); took >= held {
		t.Errorf("switched off, events came after %v", took)
	}
}

// writes returns the shortest of n times from the posting of a write to its event.
func writes(t *testing.T, d *Driver, n int) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	from, to := d.cfg.Adapters[0].Address, d.cfg.Adapters[1].Address
	h := attach(t, d)
	a, err := newCheckSide(h, from, 64, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	b, err := newCheckSide(h, to, 64, verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	disconnect, err := connect(ctx, a, b, from, to)
	if err != nil {
		t.Fatal(err)
	}
	defer disconnect()
	var all []time.Duration
	for range n {
		ticket := a.cq.Arm(verbs.NotifyAny)
		posted := time.Now()
		if err := a.qp.PostSend(&verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.RemoteAddr(),
			RKey: b.mr.RKey()}); err != nil {
			t.Fatal(err)
		}
		if err := a.cq.Wait(ctx, ticket); err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Since(posted))
		var wc [1]verbs.WC
		if n, err := a.cq.Poll(wc[:]); n != 1 || err != nil || wc[0].Status != verbs.Success {
			t.Fatalf("%d completions, %v: %v", n, err, wc[0].Status)
		}
	}
	return slices.Min(all)
}

// TestPollingKeys: with the polling method the loop continues for ThreadPoll rounds without a packet; adaptively it
// does not.
func TestPollingKeys(t *testing.T) {
	const rounds = 200000 // the largest value of the key
	d := start(t, quiet(t))
	defer stop(t, d)
	look := func() uint32 {
		s, err := d.host.Inspect(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return s.EmptyRounds
	}
	// asleep waits until the loop has stopped or made that many rounds, and returns the rounds.
	asleep := func() uint32 {
		for last := uint32(0); ; time.Sleep(5 * time.Millisecond) {
			now := look()
			if now >= rounds || now == last && now > 0 {
				return now
			}
			last = now
		}
	}
	set(t, d, "left", "ThreadPoll", "200000")
	restart(t, d, "left")
	adaptively := asleep()
	if adaptively >= rounds {
		t.Errorf("adaptively the loop polled for %d rounds", adaptively)
	}
	set(t, d, "left", "RecvCompletionMethod", "0")
	restart(t, d, "left")
	// It gives way to others in each round, so that on a busy machine all rounds would take minutes. A look is a round too.
	looks, more := uint32(0), uint32(200)
	if !await.Until(func() bool { looks++; return look() >= min(adaptively+more+looks, rounds) }) {
		t.Fatalf("the loop made %d rounds of which %d were looks; adaptively %d, want %d more", look(), looks, adaptively, more)
	}
	for key, value := range map[string]string{"AverageFactor": "256", "AveragePollThreshold": "1", "ThisPollThreshold": "2",
		"RecvCompletionMethod": "2"} {
		set(t, d, "left", key, value)
	}
	restart(t, d, "left")
	if got, want := d.running[0].polling(), (wait.Polling{On: true, Weight: 256, Average: 1, Last: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestDisabledAdaptersStayDisabled: an adapter stays enabled or disabled when the driver starts again, whatever the
// configuration says, as in Windows' Device Manager; a restart of the adapter enables it.
func TestDisabledAdaptersStayDisabled(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.Adapters[1].Disabled = true
	states := func(d *Driver) string {
		var out []string
		for _, a := range d.Status().Adapters {
			out = append(out, map[bool]string{true: "on", false: "off"}[a.Enabled])
		}
		return strings.Join(out, " ")
	}
	again := func(d *Driver, want string) *Driver {
		t.Helper()
		stop(t, d)
		d = start(t, cfg)
		if got := states(d); got != want {
			t.Errorf("the adapters are %s, want %s", got, want)
		}
		return d
	}
	d := start(t, cfg)
	for adapter, on := range map[string]bool{"left": false, "right": true} {
		if err := d.SetAdapter(AdapterRequest{Adapter: adapter, Enable: on}); err != nil {
			t.Fatal(err)
		}
	}
	d = again(d, "off on")
	restart(t, d, "left")
	if err := d.SetAdapter(AdapterRequest{Adapter: "right"}); err != nil {
		t.Fatal(err)
	}
	d = again(d, "on off")
	stop(t, d)
}

// TestEventsOfARestartAreInOrder: the events of a restart are logged in the order of what happened, those about keys
// between the stop and the start.
func TestEventsOfARestartAreInOrder(t *testing.T) {
	t.Parallel()
	for _, generation := range []string{"mlx5", "mlx4"} {
		cfg := quiet(t)
		cfg.Adapters[0].Generation = generation
		d := start(t, cfg)
		p := d.running[0].Class()
		if _, err := d.ChangeRegistry([]registry.Change{{Kind: registry.SetValue, Key: p, Value: registry.String("RoceMaxFrameSize",
			"1000")}}, true); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			restart(t, d, "left")
		}
		stop(t, d)
		got := logged(t, cfg.State)
		got = got[slices.Index(got, "LinkDown left"):]
		want := []string{"LinkDown left", "AdapterStopped left", "RegistryValueIgnored", "AdapterStarted left", "RoCEMode left",
			"LinkUp left"}
		if generation == "mlx5" { // mlx4 has no such event
			want = slices.Insert(want, 3, "FlowControlOff left")
		}
		for i := range 5 {
			if part := got[i*len(want):]; !slices.Equal(part[:len(want)], want) {
				t.Fatalf("%s: restart %d is %q, want %q", generation, i, part[:len(want)], want)
			}
		}
	}
}

// TestDumpEventsNum: the sets of files of an event are overwritten in turn (WinOF 5.50, 6.9).
func TestDumpEventsNum(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	set(t, d, "left", "DumpEventsNum", "2")
	restart(t, d, "left")
	for i, want := range []int{0, 1, 0} {
		out, err := d.Dump("left", api.DumpRequest{Kind: api.StateDump})
		if err != nil {
			t.Fatal(err)
		}
		if out.Number != want {
			t.Errorf("dump %d has number %d, want %d", i, out.Number, want)
		}
	}
}

// TestDynamicKeys: keys that can be changed while the driver runs take effect at once. An invalid value counts as the
// default, not as the value before, and more than the line rate counts as the line rate (WinOF-2 Ethernet b, RoCEv2
// Congestion Management).
func TestDynamicKeys(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	inForce := func(key string) string {
		t.Helper()
		all, err := d.Settings("left")
		if err != nil {
			t.Fatal(err)
		}
		s := all[slices.IndexFunc(all, func(s api.Setting) bool { return s.Name == key })]
		if s.Pending {
			t.Errorf("%s waits for a restart", key)
		}
		return s.Value
	}
	const key = "DefaultUntaggedPriority"
	set(t, d, "left", key, "3")
	if v := inForce(key); v != "3" {
		t.Errorf("%s is %s, want 3", key, v)
	}
	p := d.running[0].Class()
	if _, err := d.ChangeRegistry([]registry.Change{{Kind: registry.SetValue, Key: p, Value: registry.DWord(key, 8)}}, true); err != nil {
		t.Fatal(err)
	}
	if v := inForce(key); v != "0" {
		t.Errorf("%s is %s, want the default", key, v)
	}
	wantEvent(t, d, "RegistryValueIgnored", key, "8", "0 to 7")
	rate := []string{"rate=10M"}
	if err := d.SetLink(LinkRequest{Adapter: "left", Impairment: &rate}); err != nil {
		t.Fatal(err)
	}
	value := "11"
	notices, err := d.Set("left", "DcqcnRpgAiRate", &value)
	if err != nil || !slices.ContainsFunc(notices, func(n registry.Notice) bool { return strings.Contains(n.Text, "taken as that: 10") }) {
		t.Errorf("notices %+v (%v), want one that the value is taken as 10", notices, err)
	}
	if v := inForce("DcqcnRpgAiRate"); v != "10" {
		t.Errorf("DcqcnRpgAiRate is %s on a link of 10 Mbit/s", v)
	}
}

// TestPacketDirectKey: *PacketDirect 0 takes queues of frames away, from the adapter's next start on (WinOF-2 24.4, PacketDirect).
func TestPacketDirectKey(t *testing.T) {
	d := start(t, overSockets(t)[0])
	defer stop(t, d)
	h, err := verbs.Within(d.host, "frames")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, c := range []struct {
		value string
		want  error
	}{{"1", nil}, {"0", verbs.ErrUnsupported}, {"1", nil}} {
		set(t, d, "port", "*PacketDirect", c.value)
		restart(t, d, "port")
		adapter, err := h.Device("port")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := adapter.FramePort(); !errors.Is(err, c.want) {
			t.Errorf("*PacketDirect %s: %v, want %v", c.value, err, c.want)
		}
	}
}

// TestNetworkDirectKey: *NetworkDirect 0 takes RDMA from programs when the adapter starts again: connections both ways fail, those
// from it by ErrUnsupported. Its port stays up, the Ethernet function works on, and programs still have queues of frames.
func TestNetworkDirectKey(t *testing.T) {
	cfg := overSockets(t)
	guests := [2]*guest{withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")}
	d, far := start(t, cfg[0]), start(t, cfg[1])
	defer stop(t, d)
	defer stop(t, far)
	program := attach(t, d)
	addr := cfg[0].Adapters[0].Address
	connect := func(h *verbs.Host) error {
		ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
		defer cancel()
		_, err := ping(ctx, h, addr, addr)
		return err
	}
	if err := connect(program); err != nil {
		t.Fatal(err)
	}
	provider, told := nd.NewProvider(attach(t, d)), atomic.Uint32{}
	defer provider.Close()
	take := func(_ netip.Addr, s nd.AdapterStatus) { told.Store(uint32(s)) }
	if _, err := provider.Control().RegisterForAdapterStatus(addr, take); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value string
		want  error
	}{{"0", verbs.ErrUnsupported}, {"1", nil}} {
		set(t, d, "port", "*NetworkDirect", c.value)
		restart(t, d, "port")
		if err := connect(program); !errors.Is(err, c.want) {
			t.Errorf("*NetworkDirect %s: %v, want %v", c.value, err, c.want)
		}
		s := d.Status().Adapters[0]
		if !s.Up || !s.Enabled || s.NoRDMA != (c.value == "0") || s.RoCE != "v2" {
			t.Errorf("*NetworkDirect %s: up %v, enabled %v, no RDMA %v, RoCE %s", c.value, s.Up, s.Enabled, s.NoRDMA, s.RoCE)
		}
		for i, from := range guests {
			to := guests[1-i]
			what := fmt.Sprintf("with %s from %d", c.value, i)
			to.gets(t, what, func() { from.send(t, from.frame(to.mac, what)) })
		}
		if err := rawPair(program); err != nil {
			t.Errorf("*NetworkDirect %s: queues of frames: %v", c.value, err)
		}
		status := map[string]nd.AdapterStatus{"0": nd.AdapterRDMADisabled}[c.value]
		await.Eventually(t, "NetworkDirect's status is "+status.String(), func() bool { return told.Load() == uint32(status) })
	}
}

// rawPair makes and ends a queue pair of frames.
func rawPair(h *verbs.Host) error {
	adapter, err := h.Device("port")
	if err != nil {
		return err
	}
	pd, err := adapter.AllocPD()
	if err != nil {
		return err
	}
	defer pd.Close()
	cq, err := adapter.CreateCQ(16)
	if err != nil {
		return err
	}
	defer cq.Close()
	q, err := pd.CreateQP(verbs.QPConfig{Type: verbs.RawPacket, SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4})
	if err != nil {
		return err
	}
	return q.Close()
}
