package register

import (
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/port"
)

// Port is what the registers of a port are made of.
type Port struct {
	Time       time.Time
	Generation string // mlx5, mlx4
	Inspection *device.Inspection
	// Counters are its counters with their values, in any order that stays.
	Counters []Counter
}

// Counter is a counter of a port. The registers have its name, so that the layout does not depend on which counters there are.
type Counter struct {
	Name  string
	Value uint64
}

// nameDwords is how many dwords names have.
const nameDwords = 16

// priority is a row of the port's scheduler; Untagged has no class.
type priority struct {
	number        int
	class, weight uint8
	strict        bool
	rate          uint64
	paused        bool
	sent, arrived port.Tally
}

// partition is a row of the partition table.
type partition struct {
	index int
	key   uint16
}

func partitions(p *Port) (rows []partition) {
	for i, k := range p.Inspection.PKeys {
		rows = append(rows, partition{i, k})
	}
	return rows
}

var (
	typeNames  = []string{"?", "RC", "UC", "UD", "XRC initiator", "XRC target", "raw packet"}
	stateNames = []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}
	pathNames  = []string{"none", "wire", "local", "direct"}
	roceNames  = []string{"none", "v1", "v1.25", "v2", "InfiniBand"}
	yesNo      = []string{"no", "yes"}
)

// Blocks are the tables of the register space after the header, which is block 0.
var Blocks = []*Block{
	block(1, "PORT", "the port and its limits", func(p *Port) []device.Inspection { return []device.Inspection{*p.Inspection} },
		text("name", nameDwords, func(s *device.Inspection) string { return s.Counters.Name }),
		wide(Hex, "guid", func(s *device.Inspection) uint64 { return s.Info.GUID }),
		address("address", func(s *device.Inspection) [16]byte { return s.Info.Addr }),
		dec("port", func(s *device.Inspection) uint64 { return uint64(s.Info.Port) }),
		choice("up", yesNo, func(s *device.Inspection) uint64 { return uint64(s.Info.Up) }),
		choice("roce", roceNames, func(s *device.Inspection) uint64 { return uint64(s.Info.RoCE) }),
		dec("active_mtu", func(s *device.Inspection) uint64 { return uint64(s.Info.ActiveMTU) }),
		dec("link_mtu", func(s *device.Inspection) uint64 { return uint64(s.Info.LinkMTU) }),
		dec("udp_port", func(s *device.Inspection) uint64 { return uint64(s.Info.UDPPort) }),
		hex("vendor_id", func(s *device.Inspection) uint64 { return uint64(s.Info.VendorID) }),
		hex("device_id", func(s *device.Inspection) uint64 { return uint64(s.Info.DeviceID) }),
		wide(Decimal, "speed", func(s *device.Inspection) uint64 { return s.Speed }),
		dec("max_qp", func(s *device.Inspection) uint64 { return uint64(s.Limits.QP) }),
		dec("max_cq", func(s *device.Inspection) uint64 { return uint64(s.Limits.CQ) }),
		dec("max_srq", func(s *device.Inspection) uint64 { return uint64(s.Limits.SRQ) }),
		dec("max_mr", func(s *device.Inspection) uint64 { return uint64(s.Limits.MR) }),
		dec("max_mw", func(s *device.Inspection) uint64 { return uint64(s.Limits.MW) }),
		dec("max_pd", func(s *device.Inspection) uint64 { return uint64(s.Limits.PD) }),
		dec("max_ah", func(s *device.Inspection) uint64 { return uint64(s.Limits.AH) }),
		dec("empty_rounds", func(s *device.Inspection) uint64 { return uint64(s.EmptyRounds) }),
	),
	block(2, "GID", "rows of the GID table", func(p *Port) []command.GID { return p.Inspection.GIDs },
		dec("row", func(g *command.GID) uint64 { return uint64(g.Index) }),
		choice("roce", roceNames, func(g *command.GID) uint64 { return uint64(g.RoCE) }),
		address("gid", func(g *command.GID) [16]byte { return g.GID }),
	),
	block(3, "PKEY", "the partition table", partitions,
		dec("index", func(k *partition) uint64 { return uint64(k.index) }),
		hex("pkey", func(k *partition) uint64 { return uint64(k.key) }),
	),
	block(4, "QP", "contexts of queue pairs, by number", func(p *Port) []device.QPInspection { return p.Inspection.QPs }, queuePair...),
	block(5, "CQ", "completion queues", func(p *Port) []device.CQInspection { return p.Inspection.CQs },
		dec("number", func(q *device.CQInspection) uint64 { return uint64(q.Number) }),
		dec("users", func(q *device.CQInspection) uint64 { return uint64(q.Users) }),
		dec("unpolled", func(q *device.CQInspection) uint64 { return uint64(q.Unpolled) }),
		dec("waiters", func(q *device.CQInspection) uint64 { return uint64(q.Waiters) }),
		choice("failed", yesNo, func(q *device.CQInspection) uint64 { return bit(q.Failed) }),
		dec("moderation_count", func(q *device.CQInspection) uint64 { return uint64(q.Count) }),
		wide(Decimal, "moderation_ns", func(q *device.CQInspection) uint64 { return uint64(q.Interval) }),
		dec("held", func(q *device.CQInspection) uint64 { return uint64(q.Held) }),
		dec("pid", func(q *device.CQInspection) uint64 { return uint64(q.PID) }),
		text("program", nameDwords, func(q *device.CQInspection) string { return q.Program }),
	),
	block(6, "SRQ", "shared receive queues", func(p *Port) []device.SRQInspection { return p.Inspection.SRQs },
		hex("handle", func(q *device.SRQInspection) uint64 { return uint64(uint32(q.Handle)) }),
		dec("users", func(q *device.SRQInspection) uint64 { return uint64(q.Users) }),
		dec("depth", func(q *device.SRQInspection) uint64 { return uint64(q.Depth) }),
		dec("posted", func(q *device.SRQInspection) uint64 { return uint64(q.Posted) }),
		dec("limit", func(q *device.SRQInspection) uint64 { return uint64(q.Limit) }),
		choice("failed", yesNo, func(q *device.SRQInspection) uint64 { return bit(q.Failed) }),
		dec("pid", func(q *device.SRQInspection) uint64 { return uint64(q.PID) }),
		text("program", nameDwords, func(q *device.SRQInspection) string { return q.Program }),
	),
	block(7, "EQ", "event queues of programs, which all ports have in common",
		func(p *Port) []device.EventQueueInspection { return p.Inspection.Queues },
		dec("pid", func(q *device.EventQueueInspection) uint64 { return uint64(q.PID) }),
		dec("waiting", func(q *device.EventQueueInspection) uint64 { return uint64(q.Waiting) }),
		dec("first_type", func(q *device.EventQueueInspection) uint64 {
			if len(q.Events) == 0 {
				return 0
			}
			return uint64(q.Events[0].Type)
		}),
		text("program", nameDwords, func(q *device.EventQueueInspection) string { return q.Program }),
	),
	block(8, "MR", "memory regions", func(p *Port) []device.MRInspection { return p.Inspection.MRs },
		hex("handle", func(m *device.MRInspection) uint64 { return uint64(uint32(m.Handle)) }),
		hex("key", func(m *device.MRInspection) uint64 { return uint64(m.Key) }),
		dec("pd", func(m *device.MRInspection) uint64 { return uint64(m.PD) }),
		wide(Hex, "base", func(m *device.MRInspection) uint64 { return m.Base }),
		wide(Decimal, "length", func(m *device.MRInspection) uint64 { return m.Length }),
		wide(Hex, "iova", func(m *device.MRInspection) uint64 { return m.IOVA }),
		hex("access", func(m *device.MRInspection) uint64 { return uint64(m.Access) }),
		dec("pid", func(m *device.MRInspection) uint64 { return uint64(m.PID) }),
		text("program", nameDwords, func(m *device.MRInspection) string { return m.Program }),
	),
	block(9, "SCHED", "priorities at the port's scheduler; the last row has what names no priority", priorities,
		dec("priority", func(r *priority) uint64 { return uint64(r.number) }),
		dec("class", func(r *priority) uint64 { return uint64(r.class) }),
		choice("strict", yesNo, func(r *priority) uint64 { return bit(r.strict) }),
		dec("weight", func(r *priority) uint64 { return uint64(r.weight) }),
		wide(Decimal, "rate", func(r *priority) uint64 { return r.rate }),
		choice("paused", yesNo, func(r *priority) uint64 { return bit(r.paused) }),
		wide(Decimal, "sent_packets", func(r *priority) uint64 { return r.sent.Packets }),
		wide(Decimal, "sent_bytes", func(r *priority) uint64 { return r.sent.Bytes }),
		wide(Decimal, "arrived_packets", func(r *priority) uint64 { return r.arrived.Packets }),
		wide(Decimal, "arrived_bytes", func(r *priority) uint64 { return r.arrived.Bytes }),
	),
	block(10, "COUNTER", "counters with their names", func(p *Port) []Counter { return p.Counters },
		text("name", nameDwords, func(c *Counter) string { return c.Name }),
		wide(Decimal, "value", func(c *Counter) uint64 { return c.Value }),
	),
}

var queuePair = []column[device.QPInspection]{
	hex("number", func(q *device.QPInspection) uint64 { return uint64(q.Number) }),
	hex("handle", func(q *device.QPInspection) uint64 { return uint64(uint32(q.Handle)) }),
	choice("type", typeNames, func(q *device.QPInspection) uint64 { return uint64(q.Type) }),
	choice("state", stateNames, func(q *device.QPInspection) uint64 { return uint64(q.Attr.State) }),
	choice("path", pathNames, func(q *device.QPInspection) uint64 { return uint64(q.Path) }),
	choice("draining", yesNo, func(q *device.QPInspection) uint64 { return uint64(q.Draining) }),
	dec("pd", func(q *device.QPInspection) uint64 { return uint64(q.PD) }),
	hex("send_cq", func(q *device.QPInspection) uint64 { return uint64(q.SendCQ) }),
	hex("recv_cq", func(q *device.QPInspection) uint64 { return uint64(q.RecvCQ) }),
	hex("srq", func(q *device.QPInspection) uint64 { return uint64(uint32(q.SRQ)) }),
	dec("send_posted", func(q *device.QPInspection) uint64 { return uint64(q.SendPosted) }),
	dec("recv_posted", func(q *device.QPInspection) uint64 { return uint64(q.RecvPosted) }),
	hex("dest_qp", func(q *device.QPInspection) uint64 { return uint64(q.Attr.DestQPN) }),
	address("dest_address", func(q *device.QPInspection) [16]byte { return q.Attr.Route.Addr }),
	dec("dest_lid", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Route.LID) }),
	dec("source_row", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Route.SrcIndex) }),
	dec("source_port", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Route.SrcPort) }),
	hex("traffic_class", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Route.TrafficClass) }),
	dec("hop_limit", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Route.HopLimit) }),
	dec("sl", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Route.SL) }),
	hex("flow_label", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Route.FlowLabel) }),
	dec("mtu", func(q *device.QPInspection) uint64 { return uint64(q.Attr.MTU) }),
	dec("pkey_index", func(q *device.QPInspection) uint64 { return uint64(q.Attr.PKeyIndex) }),
	hex("qkey", func(q *device.QPInspection) uint64 { return uint64(q.Attr.QKey) }),
	hex("access", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Access) }),
	hex("rq_psn", func(q *device.QPInspection) uint64 { return uint64(q.Attr.RQPSN) }),
	hex("sq_psn", func(q *device.QPInspection) uint64 { return uint64(q.Attr.SQPSN) }),
	dec("timeout", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Timeout) }),
	dec("retry", func(q *device.QPInspection) uint64 { return uint64(q.Attr.Retry) }),
	dec("rnr_retry", func(q *device.QPInspection) uint64 { return uint64(q.Attr.RNRRetry) }),
	dec("min_rnr_timer", func(q *device.QPInspection) uint64 { return uint64(q.Attr.MinRNRTimer) }),
	dec("initiator_depth", func(q *device.QPInspection) uint64 { return uint64(q.Attr.InitiatorDepth) }),
	dec("responder_resources", func(q *device.QPInspection) uint64 { return uint64(q.Attr.ResponderResources) }),
	choice("flow_control", yesNo, func(q *device.QPInspection) uint64 { return uint64(q.Attr.FlowControl) }),
	dec("pid", func(q *device.QPInspection) uint64 { return uint64(q.PID) }),
	text("program", nameDwords, func(q *device.QPInspection) string { return q.Program }),
}

func priorities(p *Port) (rows []priority) {
	s := p.Inspection
	for i := range s.Counters.Sent {
		r := priority{number: i, sent: s.Counters.Sent[i], arrived: s.Counters.Arrived[i]}
		if i < frame.Priorities {
			c := s.Traffic.Class[i]
			r.class, r.weight, r.strict = c, s.Traffic.Weight[c], s.Traffic.Strict>>c&1 != 0
			r.rate, r.paused = s.Traffic.Rate[c], s.Paused>>i&1 != 0
		}
		rows = append(rows, r)
	}
	return rows
}
