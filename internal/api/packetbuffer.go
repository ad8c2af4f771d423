package api

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// packetBuffers is a driver that keeps the last packets that an adapter received without an RSS hash (WinOF 5.50,
// 4.9.4.4.1). A Driver that has it serves it.
type packetBuffers interface {
	StartPacketBuffer(adapter string, q PacketBufferRequest) (PacketBuffer, error)
	PacketBuffer(adapter string) (PacketBuffer, error)
	// CollectPackets empties the buffer and returns its contents as a pcap file.
	CollectPackets(adapter string) ([]byte, error)
	StopPacketBuffer(adapter string) (PacketBuffer, error)
}

// PacketBufferRequest says how much to keep. Zero fields select the defaults.
type PacketBufferRequest struct {
	Packets int `json:"packets,omitempty" doc:"1024 by default."`
	Bytes   int `json:"bytes,omitempty" doc:"Of each packet; 128 by default."`
}

// PacketBuffer is the state of an adapter's buffer.
type PacketBuffer struct {
	Running bool   `json:"running"`
	Packets int    `json:"packets" doc:"How many the buffer has room for."`
	Bytes   int    `json:"bytes" doc:"Kept of each packet."`
	Stored  int    `json:"stored" doc:"Packets in the buffer now."`
	Seen    uint64 `json:"seen" doc:"Packets since the start."`
	Missed  uint64 `json:"missed" doc:"Packets that came faster than they could be taken."`
}

func (s *Server) packetBufferRoutes(d packetBuffers) {
	const path = "/adapters/{name}/packet-buffer"
	register(s, operation("GET", path, "packet-buffer", "Whether the last packets without an RSS hash are kept, and how many are"),
		func(_ context.Context, in *AdapterPath) (*one[PacketBuffer], error) {
			b, err := d.PacketBuffer(in.Name)
			return body(b), err
		})
	register(s, operation("POST", path, "start-packet-buffer", "Keep the last packets that come without an RSS hash"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body PacketBufferRequest
		}) (*one[PacketBuffer], error) {
			b, err := d.StartPacketBuffer(in.Name, in.Body)
			return body(b), err
		})
	register(s, operation("DELETE", path, "stop-packet-buffer", "Keep packets no longer, and drop those that are kept"),
		func(_ context.Context, in *AdapterPath) (*one[PacketBuffer], error) {
			b, err := d.StopPacketBuffer(in.Name)
			return body(b), err
		})
	collect := operation("POST", path+"/collect", "collect-packets", "Take the packets out of the buffer as a pcap file")
	collect.Responses = map[string]*huma.Response{"200": {Description: "A pcap file", Content: map[string]*huma.MediaType{
		"application/vnd.tcpdump.pcap": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}}
	register(s, collect, func(_ context.Context, in *AdapterPath) (*file, error) {
		b, err := d.CollectPackets(in.Name)
		return &file{"application/vnd.tcpdump.pcap", `attachment; filename="nonrss.pcap"`, b}, err
	})
}

const packetBuffer = "/packet-buffer"

// StartPacketBuffer makes an adapter keep the last packets that arrive without an RSS hash.
func (c *Client) StartPacketBuffer(ctx context.Context, adapter string, q PacketBufferRequest) (b PacketBuffer, err error) {
	err = c.call(ctx, "POST", adapterURL(adapter, packetBuffer), nil, q, &b)
	return b, err
}

// PacketBuffer returns the state of an adapter's buffer.
func (c *Client) PacketBuffer(ctx context.Context, adapter string) (b PacketBuffer, err error) {
	err = c.call(ctx, "GET", adapterURL(adapter, packetBuffer), nil, nil, &b)
	return b, err
}

// StopPacketBuffer drops an adapter's buffer with its contents.
func (c *Client) StopPacketBuffer(ctx context.Context, adapter string) (b PacketBuffer, err error) {
	err = c.call(ctx, "DELETE", adapterURL(adapter, packetBuffer), nil, nil, &b)
	return b, err
}

// CollectPackets empties an adapter's buffer and returns its contents as a pcap file.
func (c *Client) CollectPackets(ctx context.Context, adapter string) ([]byte, error) {
	resp, err := c.send(ctx, c.http, http.MethodPost, adapterURL(adapter, packetBuffer+"/collect"), nil, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
}
