package mlxtool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/api"
)

const defaultPcap = "nonrss.pcap"

// packetCapture implements dbg nonrss-capture (WinOF 5.50, 4.9.4.4.1).
func (r *run) packetCapture() (report, error) {
	if len(r.args) < 2 {
		return nil, r.usagef("an interface name and what to do with its packets are needed")
	}
	word, args := r.args[1], r.args[2:]
	do := map[string]func(string, []string) (report, error){
		"start": r.startPackets, "stop": r.stopPackets, "query": r.queryPackets, "collect": r.collectPackets,
	}[strings.ToLower(word)]
	if do == nil {
		return nil, r.usagef("%q is not one of start, stop, query and collect", word)
	}
	if most := map[string]int{"start": 2, "collect": 2}[strings.ToLower(word)]; len(args) > most {
		return nil, r.usagef("unexpected argument %q", args[most])
	}
	a, _, err := r.one()
	if err != nil {
		return nil, err
	}
	return do(a.Name, args)
}

func (r *run) startPackets(name string, args []string) (report, error) {
	var q api.PacketBufferRequest
	for i, to := range []*int{&q.Packets, &q.Bytes} {
		if i >= len(args) {
			break
		}
		n, err := strconv.Atoi(args[i])
		if err != nil || n < 1 {
			return nil, r.usagef("%q is not a number above 0", args[i])
		}
		*to = n
	}
	b, err := r.client.StartPacketBuffer(r.ctx, name, q)
	return packetState(name, b), err
}

func (r *run) stopPackets(name string, _ []string) (report, error) {
	b, err := r.client.StopPacketBuffer(r.ctx, name)
	return packetState(name, b), err
}

func (r *run) queryPackets(name string, _ []string) (report, error) {
	b, err := r.client.PacketBuffer(r.ctx, name)
	return packetState(name, b), err
}

func packetState(name string, b api.PacketBuffer) report {
	t := table{Label: "Interface", Name: name, Fields: []string{"State", "Circular Buffer Size", "Bytes Per Packet", "Packets Stored",
		"Packets Seen", "Packets Missed"}}
	state := "Stopped"
	if b.Running {
		state = "Running"
	}
	t.add(state, b.Packets, b.Bytes, b.Stored, b.Seen, b.Missed)
	return report{t}
}

// collectPackets writes the packets to a file. The buffer is empty afterwards.
func (r *run) collectPackets(name string, args []string) (report, error) {
	file := defaultPcap
	if len(args) > 0 {
		file = args[0]
	}
	if len(args) > 1 && args[1] != "0" { // there is no NIC switch
		return nil, r.usagef("VPort is %q, and the interface has VPort 0", args[1])
	}
	if b, err := r.client.PacketBuffer(r.ctx, name); err != nil {
		return nil, err
	} else if !b.Running {
		return nil, errors.New("no packets are being kept; start begins that")
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600) // before the buffer is emptied
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pcap, err := r.client.CollectPackets(r.ctx, name)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, err
	}
	if _, err := f.Write(pcap); err != nil {
		return nil, fmt.Errorf("write %s: %w", file, err)
	}
	t := table{Label: "Interface", Name: name, Fields: []string{"File", "Packets"}}
	t.add(file, countPackets(pcap))
	return report{t}, f.Close()
}

// countPackets counts the packets in a pcap file.
func countPackets(pcap []byte) (n int) {
	r, err := pcapgo.NewReader(bytes.NewReader(pcap))
	if err != nil {
		return 0
	}
	for {
		if _, _, err := r.ReadPacketData(); err != nil {
			return n
		}
		n++
	}
}
