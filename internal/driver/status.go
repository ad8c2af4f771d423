package driver

import (
	"net"
	"net/netip"
	"os"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
)

var roceNames = [...]string{"none", "v1", "v1.25", "v2", "none"} // the last is InfiniBand's
var pathNames = [...]string{"none", "wire", "local", "direct"}
var typeNames = [...]string{"?", "RC", "UC", "UD", "XRC initiator", "XRC target", "raw packet"}
var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

func pick[N ~uint32](names []string, i N) string {
	if int(i) < len(names) {
		return names[i]
	}
	return "?"
}

// Status returns the state of the driver.
func (d *Driver) Status() Status { return d.status(d.host.Snapshot()) }

// Overview is Status without the queue pairs.
func (d *Driver) Overview() Status { return d.status(d.host.Overview()) }

func (d *Driver) status(snap device.Snapshot) Status {
	s := Status{
		Volatile: d.registry.Volatile(),
		Died:     d.died,
		Panics:   d.panics.count(),
		Version:  d.version, PID: os.Getpid(), Started: d.started, Socket: d.cfg.Socket, Attach: d.noAttach, Held: d.held(),
		Adapters: make([]AdapterStatus, 0, len(snap.Adapters)), Programs: make([]api.ProgramStatus, 0, len(snap.Clients)),
	}
	for i := range snap.Adapters {
		s.Adapters = append(s.Adapters, adapterStatus(&snap.Adapters[i]))
		d.describe(&s.Adapters[i], snap.Adapters[i].Wire)
		s.Adapters[i].QoS = d.qosStatus(i, &snap.Adapters[i])
		s.Adapters[i].Healing = d.healingStatus(i)
		s.Adapters[i].FlowControl = d.flowStatus(i, &snap.Adapters[i].Flow)
	}
	s.Switches = d.switchStatus()
	s.Teams = d.Roster.Status()
	s.VirtualSwitches = d.VirtualSwitches()
	for _, c := range snap.Clients {
		s.Programs = append(s.Programs, api.ProgramStatus{
			Name: c.Name, PID: c.PID, UID: c.UID, Function: c.Function, MemoryPath: c.MemoryPath.String(), ArenaBytes: c.ArenaBytes,
			MemoryBytes: c.Memory.Used, Descriptors: c.Descriptors.Used, Refused: c.Memory.Refused + c.Descriptors.Refused,
			Objects: objects(c.Objects),
		})
	}
	return s
}

func adapterStatus(a *device.AdapterStatus) AdapterStatus {
	s := AdapterStatus{
		Index: a.Info.Index, Name: a.Name, Addresses: a.Addrs, Enabled: a.Enabled, Up: a.Up,
		MAC: net.HardwareAddr(a.MAC[:]).String(), RoCE: pick(roceNames[:], a.Info.RoCE), ActiveMTU: a.Info.ActiveMTU,
		LinkMTU: a.Info.LinkMTU, NoRDMA: a.NoRDMA, UDPPort: a.Info.UDPPort, GUID: a.Info.GUID, NodeGUID: a.NodeGUID,
		Path: a.Path.String(), Impairment: a.Impairment, SourcePorts: a.SourcePorts, Frames: a.Frames,
		GIDs: make([]api.GIDStatus, 0, len(a.GIDs)), QPs: make([]api.QPStatus, 0, len(a.QPs)), Objects: objects(a.Objects),
		Retransmits: a.Retransmits, Counters: make(map[string]uint64, len(a.Counters)),
		Link: LinkStatus{
			SentPackets: a.Link.SentPackets, SentBytes: a.Link.SentBytes, SentBursts: a.Link.SentBursts,
			ReceivedPackets: a.Link.ReceivedPackets, ReceivedBytes: a.Link.ReceivedBytes, SendBlocked: a.Link.SendBlocked,
			SendErrors: a.Link.SendErrors, ReceiveDrops: a.Link.ReceiveDrops, ReceiveBuffer: a.Link.ReceiveBuffer,
			ImpairedLost: a.Link.ImpairedLost,
			SentFrames:   a.Link.SentFrames, ReceivedFrames: a.Link.ReceivedFrames,
		},
	}
	for _, g := range a.GIDs {
		s.GIDs = append(s.GIDs, api.GIDStatus{Index: g.Index, RoCE: pick(roceNames[:], g.RoCE), GID: netip.AddrFrom16(g.GID)})
	}
	for _, q := range a.QPs {
		s.QPs = append(s.QPs, api.QPStatus{
			Rate: rateStatus(&q), RateLimit: float64(q.Limit.Rate) / 1000,
			Number: q.Number, Type: pick(typeNames[:], q.Type), State: pick(stateNames[:], q.State), Owner: q.Client, PID: q.PID,
			Peer: q.Peer, PeerLID: q.PeerLID, RemoteNumber: q.RemoteQPN, Path: pick(pathNames[:], q.Path), MTU: q.MTU,
			SourcePort: q.SrcPort,
			SendPosted: q.SendPosted, RecvPosted: q.RecvPosted, Returned: q.Returned,
		})
	}
	for _, c := range a.Counters {
		s.Counters[counterName(c)] = c.Value
	}
	return s
}

// rateStatus returns how congestion limits a queue pair; nil: it does not.
func rateStatus(q *device.QPStatus) *api.RateStatus {
	if !q.Limited {
		return nil
	}
	return &api.RateStatus{Current: q.Rate.Current, Target: q.Rate.Target, Alpha: q.Rate.Alpha}
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
