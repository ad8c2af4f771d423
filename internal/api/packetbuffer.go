package api

import (
	"context"
	"io"
	"net/http"
)

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
