// Package captures holds recordings of RoCE v2 traffic between two Linux Soft-RoCE hosts,
// for the tests of everything that reads or writes packets: connection set-up and
// tear-down, every operation at a path MTU of 1024, losses and the NAKs of wrong requests.
package captures

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

//go:embed testdata/*.pcap
var files embed.FS

// Recording is one capture file.
type Recording struct {
	Name   string   // the file's name without its extension: "rping"
	Frames [][]byte // complete Ethernet frames in order
}

// All returns every recording, sorted by name. It fails only if one of the files, which are part of the
// program, is damaged.
func All() ([]Recording, error) {
	entries, err := files.ReadDir("testdata")
	if err != nil {
		return nil, err
	}
	var all []Recording
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".pcap")
		frames, err := read(path.Join("testdata", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("recording %s: %w", name, err)
		}
		all = append(all, Recording{name, frames})
	}
	return all, nil
}

func read(file string) ([][]byte, error) {
	b, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, err := pcapgo.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	if r.LinkType() != layers.LinkTypeEthernet {
		return nil, fmt.Errorf("link type %v is not Ethernet", r.LinkType())
	}
	var frames [][]byte
	for {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return nil, err
		}
		if ci.CaptureLength == ci.Length {
			frames = append(frames, data)
		}
	}
}
