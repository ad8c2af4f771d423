package driver

import (
	"net/netip"
	"os"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
)

// Status is the state of a driver, the JSON that `softvpi status --json` prints.
type Status struct {
	Version  string          `json:"version"`
	PID      int             `json:"pid"`
	Started  time.Time       `json:"started"`
	Socket   string          `json:"socket"`
	Attach   string          `json:"attach"` // empty: programs can attach; else why not
	Adapters []AdapterStatus `json:"adapters"`
	Programs []ProgramStatus `json:"programs"`
}

// AdapterStatus is an adapter with its port.
type AdapterStatus struct {
	Index       uint32            `json:"index"`
	Name        string            `json:"name"`
	Addresses   []netip.Addr      `json:"addresses"`
	Enabled     bool              `json:"enabled"`
	Up          bool              `json:"up"`
	RoCE        string            `json:"roce"`
	ActiveMTU   uint32            `json:"active_mtu"` // payload bytes of a packet
	LinkMTU     uint32            `json:"link_mtu"`   // bytes of an IP packet
	UDPPort     uint32            `json:"udp_port"`
	GUID        uint64            `json:"guid"`
	Path        string            `json:"path"`
	Impairment  string            `json:"impairment"` // empty: none
	SourcePorts string            `json:"source_ports"`
	GIDs        []GIDStatus       `json:"gids"`
	QPs         []QPStatus        `json:"qps"`
	Objects     map[string]int    `json:"objects"`
	Link        LinkStatus        `json:"link"`
	Retransmits uint64            `json:"retransmits"`
	Counters    map[string]uint64 `json:"counters"`
}

// GIDStatus is a row of the GID table.
type GIDStatus struct {
	Index uint32     `json:"index"`
	RoCE  string     `json:"roce"`
	GID   netip.Addr `json:"gid"`
}

// QPStatus is a queue pair with its owner.
type QPStatus struct {
	Number       uint32     `json:"number"`
	Type         string     `json:"type"`
	State        string     `json:"state"`
	Owner        string     `json:"owner"`
	PID          int        `json:"pid"`
	Peer         netip.Addr `json:"peer"`
	RemoteNumber uint32     `json:"remote_number"`
	Path         string     `json:"path"`
	MTU          uint32     `json:"mtu"`
	SourcePort   uint16     `json:"source_port"`
	SendPosted   uint32     `json:"send_posted"`
	RecvPosted   uint32     `json:"recv_posted"`
}

// LinkStatus are counters of the link since it was opened.
type LinkStatus struct {
	SentPackets     uint64 `json:"sent_packets"`
	SentBytes       uint64 `json:"sent_bytes"`
	SentBursts      uint64 `json:"sent_bursts"`
	ReceivedPackets uint64 `json:"received_packets"`
	ReceivedBytes   uint64 `json:"received_bytes"`
	SendBlocked     uint64 `json:"send_blocked"`
	SendErrors      uint64 `json:"send_errors"`
	ReceiveDrops    uint64 `json:"receive_drops"`
	ReceiveBuffer   int    `json:"receive_buffer"`
	ImpairedLost    uint64 `json:"impaired_lost"`
}

// ProgramStatus is a program that uses the adapters.
type ProgramStatus struct {
	Name       string         `json:"name"`
	PID        int            `json:"pid"`
	UID        int            `json:"uid"`
	MemoryPath string         `json:"memory_path"` // how its memory is reached: mapped, process_vm, copier
	ArenaBytes uint64         `json:"arena_bytes"`
	Objects    map[string]int `json:"objects"`
}

var roceNames = [...]string{"none", "v1", "v1.25", "v2"}
var pathNames = [...]string{"none", "wire", "local", "direct"}
var typeNames = [...]string{"?", "RC", "UC", "UD"}
var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

func pick[N ~uint32](names []string, i N) string {
	if int(i) < len(names) {
		return names[i]
	}
	return "?"
}

// Status returns the state of the driver.
func (d *Driver) Status() Status {
	snap := d.host.Snapshot()
	s := Status{
		Version: d.version, PID: os.Getpid(), Started: d.started, Socket: d.cfg.Socket, Attach: d.noAttach,
		Adapters: make([]AdapterStatus, 0, len(snap.Adapters)), Programs: make([]ProgramStatus, 0, len(snap.Clients)),
	}
	for i := range snap.Adapters {
		s.Adapters = append(s.Adapters, adapterStatus(&snap.Adapters[i]))
	}
	for _, c := range snap.Clients {
		s.Programs = append(s.Programs, ProgramStatus{
			Name: c.Name, PID: c.PID, UID: c.UID, MemoryPath: c.MemoryPath, ArenaBytes: c.ArenaBytes, Objects: objects(c.Objects),
		})
	}
	return s
}

func adapterStatus(a *device.AdapterStatus) AdapterStatus {
	s := AdapterStatus{
		Index: a.Info.Index, Name: a.Name, Addresses: a.Addrs, Enabled: a.Enabled, Up: a.Up,
		RoCE: pick(roceNames[:], a.Info.RoCE), ActiveMTU: a.Info.ActiveMTU, LinkMTU: a.Info.LinkMTU, UDPPort: a.Info.UDPPort, GUID: a.Info.GUID,
		Path: a.Path.String(), Impairment: a.Impairment, SourcePorts: a.SourcePorts,
		GIDs: make([]GIDStatus, 0, len(a.GIDs)), QPs: make([]QPStatus, 0, len(a.QPs)), Objects: objects(a.Objects),
		Retransmits: a.Retransmits, Counters: make(map[string]uint64, len(a.Counters)),
		Link: LinkStatus{
			SentPackets: a.Link.SentPackets, SentBytes: a.Link.SentBytes, SentBursts: a.Link.SentBursts,
			ReceivedPackets: a.Link.ReceivedPackets, ReceivedBytes: a.Link.ReceivedBytes, SendBlocked: a.Link.SendBlocked,
			SendErrors: a.Link.SendErrors, ReceiveDrops: a.Link.ReceiveDrops, ReceiveBuffer: a.Link.ReceiveBuffer, ImpairedLost: a.Link.ImpairedLost,
		},
	}
	for _, g := range a.GIDs {
		s.GIDs = append(s.GIDs, GIDStatus{g.Index, pick(roceNames[:], g.RoCE), netip.AddrFrom16(g.GID)})
	}
	for _, q := range a.QPs {
		s.QPs = append(s.QPs, QPStatus{
			Number: q.Number, Type: pick(typeNames[:], q.Type), State: pick(stateNames[:], q.State), Owner: q.Client, PID: q.PID,
			Peer: q.Peer, RemoteNumber: q.RemoteQPN, Path: pick(pathNames[:], q.Path), MTU: q.MTU, SourcePort: q.SrcPort,
			SendPosted: q.SendPosted, RecvPosted: q.RecvPosted,
		})
	}
	for _, c := range a.Counters {
		s.Counters[counterName(c)] = c.Value
	}
	return s
}

func counterName(c command.Counter) string {
	n := 0
	for n < len(c.Name) && c.Name[n] != 0 {
		n++
	}
	return string(c.Name[:n])
}

func objects(o device.ObjectCounts) map[string]int {
	return map[string]int{"pd": o.PD, "mr": o.MR, "mw": o.MW, "cq": o.CQ, "srq": o.SRQ, "qp": o.QP, "ah": o.AH, "cm": o.CM}
}
