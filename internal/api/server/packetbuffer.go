package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/softvpi/softvpi/internal/api"
)

// packetBuffers is a driver that keeps the last packets that an adapter received without an RSS hash (WinOF 5.50,
// 4.9.4.4.1). A Driver that has it serves it.
type packetBuffers interface {
	StartPacketBuffer(adapter string, q api.PacketBufferRequest) (api.PacketBuffer, error)
	PacketBuffer(adapter string) (api.PacketBuffer, error)
	// CollectPackets empties the buffer and returns its contents as a pcap file.
	CollectPackets(adapter string) ([]byte, error)
	StopPacketBuffer(adapter string) (api.PacketBuffer, error)
}

func (s *Server) packetBufferRoutes(d packetBuffers) {
	const path = "/adapters/{name}/packet-buffer"
	register(s, operation("GET", path, "packet-buffer", "Whether the last packets without an RSS hash are kept, and how many are"),
		func(_ context.Context, in *AdapterPath) (*one[api.PacketBuffer], error) {
			b, err := d.PacketBuffer(in.Name)
			return body(b), err
		})
	register(s, operation("POST", path, "start-packet-buffer", "Keep the last packets that come without an RSS hash"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body api.PacketBufferRequest
		}) (*one[api.PacketBuffer], error) {
			b, err := d.StartPacketBuffer(in.Name, in.Body)
			return body(b), err
		})
	register(s, operation("DELETE", path, "stop-packet-buffer", "Keep packets no longer, and drop those that are kept"),
		func(_ context.Context, in *AdapterPath) (*one[api.PacketBuffer], error) {
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
